"""The outcomes of this service's disks: statements about them, and drains, which prove nothing about a disk."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.reading import Smart
from predrain.data.reported_endings import ReportedEnding, apply_reported_endings
from predrain.data.residence import is_apart
from predrain.data.store.store_port import Store

if TYPE_CHECKING:
    from predrain.data.lifespan import Lifespans

PUT_BACK = frozenset({DrainState.CANCELLING, DrainState.CANCELLED})


def outcomes_of(store: Store) -> tuple[Outcome, ...]:
    """Return the statements in order of time; a drain that moved data counts as `unverified` from its beginning
    on.
    """
    drained = (
        Outcome(drain.device, drain.created_at, DriveFate.UNVERIFIED, f"drain {drain.id}")
        for drain in store.drains()
        if drain.device is not None and drain.progress.moved_pgs and drain.state not in PUT_BACK
    )
    return tuple(sorted((*store.outcomes(), *drained), key=lambda outcome: outcome.at))


def words_of(store: Store) -> tuple[ReportedEnding, ...]:
    """Return the same outcomes by serial number, as histories name drives."""
    serials = {
        device: reading.seen.identity.serial
        for device, reading in store.latest_readings().items()
        if isinstance(reading.seen, Smart)
    }
    return tuple(
        ReportedEnding(
            serials.get(one.device) or one.device.rsplit("_", 1)[-1], _to_utc_date(one.at), one.fate
        )
        for one in outcomes_of(store)
    )


def lives_of(store: Store, first: date) -> Lifespans:
    """Return, by device id, until when each device that was read since `first` is known to have lived, and which
    died.

    Many deaths of one model on one day are one event that no forecast could know (`without_batches`).
    """
    import numpy as np

    from predrain.data.history import EPOCH
    from predrain.data.lifespan import HistorySource, Lifespans, without_batches

    read = {
        device: (_to_utc_date(at) - EPOCH).days
        for device, at in store.read_newest_times().items()
        if _to_utc_date(at) >= first and not is_apart(device)
    }
    devices = sorted(read)
    last = np.array([read[DeviceId(device)] for device in devices], dtype=np.int64)
    spans = Lifespans(
        serials=np.array(devices, dtype=object),
        first=np.full(len(devices), (first - EPOCH).days, dtype=np.int64),
        last=last,
        died=np.zeros(len(devices), dtype=bool),
    )
    words = [ReportedEnding(one.device, _to_utc_date(one.at), one.fate) for one in outcomes_of(store)]
    models = np.array([device.rpartition("_")[0] for device in devices], dtype=object)
    return without_batches(apply_reported_endings([HistorySource((), spans)], words)[0].lifespans, models)


def _to_utc_date(at: datetime) -> date:
    return at.astimezone(UTC).date()

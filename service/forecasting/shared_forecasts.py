"""Copy the forecasts of all workers from the shared store into one scorebook.

So a fleet that several processes score learns like one that a single process scores. A worker holds a part of the
disks, and another part tomorrow, so that no worker knows the chances and deaths of the whole fleet. The outlooks
of all workers are in the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

from predrain.data.ids import DeviceId
from predrain.data.reading import Smart
from predrain.data.refusal import Refusal
from predrain.data.scorebook import Scorebook
from predrain.data.store.store_port import Store
from predrain.service.forecasting import model_succession
from predrain.service.forecasting.challenger_trial import EPOCH, make_lines
from predrain.service.forecasting.forecaster import Forecaster

_TOGETHER = 500
"""Disks whose lines are written, or whose states are read, at once."""
MOST_STATES = 20_000
"""The largest number of disks from which drift is measured. It is measured by family, and 100 disks of a family
are enough.
"""


class OtherBundleScores(Refusal):
    """The workers score with another bundle than the one that is promoted here."""


def copy_forecasts(store: Store, scorebook: Scorebook, champion: Forecaster[Any], first: date) -> int:
    """Write the workers' forecasts with `champion` since `first` that the scorebook lacks; return the number of
    lines.

    Raises OtherBundleScores, ScorebookUnusable, and what the store raises.
    """
    deployment = model_succession.find_last_deployment(store)
    if deployment is None:
        return 0
    if deployment.decided != champion.fingerprint:
        raise OtherBundleScores(
            f"the workers score with another bundle than {champion.name}, which is promoted here; promote one bundle "
            "on every machine (`predrain models promote`)"
        )
    last = scorebook.last_day(champion.fingerprint)
    day = first if last is None else max(first, EPOCH + timedelta(days=last))
    since = datetime(day.year, day.month, day.day, tzinfo=UTC)
    since = max(since, deployment.at) if deployment.seen else since
    models = {
        device: reading.seen.identity.model or ""
        for device, reading in store.latest_readings().items()
        if isinstance(reading.seen, Smart)
    }
    count = 0
    for some in _split_into_batches(models):
        lines = [line for device in some for line in make_lines(store.outlooks(device, since), models)]
        scorebook.write(champion.fingerprint, lines)
        count += len(lines)
    return count


def read_states(store: Store, forecaster: Forecaster[Any]) -> Mapping[DeviceId, Any]:
    """Return the last saved states of at most MOST_STATES disks."""
    found = {}
    for some in _split_into_batches(dict(islice(store.latest_readings().items(), MOST_STATES))):
        for device, checkpoint in store.checkpoints(some).items():
            if checkpoint.layout == forecaster.layout:
                state = forecaster.unpack(checkpoint.state)
                if state is not None:
                    found[device] = state
    return found


def _split_into_batches(devices: Mapping[DeviceId, object]) -> Iterator[list[DeviceId]]:
    names = iter(sorted(devices))
    while some := list(islice(names, _TOGETHER)):
        yield some

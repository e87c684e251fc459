"""What any number of workers forecast, brought from the store that they share into one scorebook: a fleet that several
processes score learns as one that a single process scores.

A worker holds a part of the disks, and another part tomorrow, so that no worker knows what the fleet reached or lost.
The outlooks of all of them stand in the store.
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
from predrain.data.store.port import Store
from predrain.service.scoring import succession
from predrain.service.scoring.forecasting import Forecaster
from predrain.service.scoring.shadow import EPOCH, make_lines

_TOGETHER = 500
"""Disks whose lines are written, or whose states are read, in one go."""
MOST_STATES = 20_000
"""Disks from which drift is told; it is told by family, and 100 of one are enough."""


class OtherBundleScores(Refusal):
    """The workers score with another bundle than the one that is promoted here."""


def copy_forecasts(store: Store, scorebook: Scorebook, champion: Forecaster[Any], first: date) -> int:
    """Write what the workers forecast with `champion` since `first` and is not in the scorebook yet; how many lines.

    Raises OtherBundleScores, ScorebookUnusable, and what the store raises.
    """
    reign = succession.reign(store)
    if reign is None:
        return 0
    if reign.decided != champion.fingerprint:
        raise OtherBundleScores(
            f"the workers score with another bundle than {champion.name}, which is promoted here; promote one bundle "
            "on every machine (`predrain models promote`)"
        )
    last = scorebook.last_day(champion.fingerprint)
    day = first if last is None else max(first, EPOCH + timedelta(days=last))
    since = datetime(day.year, day.month, day.day, tzinfo=UTC)
    since = max(since, reign.at) if reign.seen else since
    models = {
        device: reading.seen.identity.model or ""
        for device, reading in store.latest_readings().items()
        if isinstance(reading.seen, Smart)
    }
    count = 0
    for some in _chunk(models):
        lines = [line for device in some for line in make_lines(store.outlooks(device, since), models)]
        scorebook.write(champion.fingerprint, lines)
        count += len(lines)
    return count


def read_states(store: Store, forecaster: Forecaster[Any]) -> Mapping[DeviceId, Any]:
    """States of at most MOST_STATES disks, as the workers saved them last."""
    found = {}
    for some in _chunk(dict(islice(store.latest_readings().items(), MOST_STATES))):
        for device, checkpoint in store.checkpoints(some).items():
            if checkpoint.layout == forecaster.layout:
                state = forecaster.unpack(checkpoint.state)
                if state is not None:
                    found[device] = state
    return found


def _chunk(devices: Mapping[DeviceId, object]) -> Iterator[list[DeviceId]]:
    names = iter(sorted(devices))
    while some := list(islice(names, _TOGETHER)):
        yield some

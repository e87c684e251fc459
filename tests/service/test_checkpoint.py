"""A start from checkpoints gives what a start from the whole history gives, and reads little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.ids import DeviceId
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading, Unreadable
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application
from predrain.service.fleet.fleet import Fleet
from predrain.service.forecasting import worker
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.forecasting.worker import ScoringWorker
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.outlook_announcements import Announcements
from tests.service.conftest import NOON, Place, SetClock, shut, smart_reading, week_of
from tests.service.test_worker import stored, work

HOUR = timedelta(hours=1)
DISKS = ("A", "B", "DEAD")


@pytest.fixture(autouse=True)
def _saves_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CHECKPOINT_READINGS", 20)


def unreadable(reading: Reading) -> Reading:
    return replace(reading, seen=Unreadable(reading.taken_at, "no answer"))


def days_of(serial: str, pending: Sequence[int], fails: Sequence[bool]) -> list[Reading]:
    """A reading every nine hours, so that some days have two or three, and some probes fail."""
    readings = []
    for turn, (count, failed) in enumerate(zip(pending, fails, strict=True)):
        reading = smart_reading(serial, NOON - 9 * HOUR * (len(pending) - turn), pending=count)
        readings.append(unreadable(reading) if failed or serial == "DEAD" else reading)
    return readings


def started(store: SqliteStore, forecaster: BundledForecaster) -> ScoringWorker:
    clock, log = SetClock(), MemoryLog()
    made = ScoringWorker(
        log, store, clock, forecaster, Fleet(store), Announcements(), RecordSender("test", clock)
    )
    made.rebuild()
    return made


def told(made: ScoringWorker, forecaster: BundledForecaster) -> list[Outlook]:
    """Return the outlooks that the worker would give for every device, now and after one more reading."""
    states = dict(sorted(made._states.items()))
    now = forecaster.compute_outlooks(list(states.values()), NOON, {})
    more = [forecaster.fold(s, [smart_reading(d.split("_")[1], NOON + HOUR)]) for d, s in states.items()]
    return [*now, *forecaster.compute_outlooks(more, NOON + HOUR, {})]


@pytest.mark.slow
@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=25, max_size=60),
    st.integers(1, 25),
)
def test_a_start_from_checkpoints_says_what_a_start_from_all_readings_says(
    forecaster: BundledForecaster, probes: list[tuple[int, bool]], later: int
) -> None:
    store = SqliteStore(":memory:")
    lives = [days_of(serial, *zip(*probes, strict=True)) for serial in DISKS]
    store.add_readings(reading for life in lives for reading in life[:-later])
    started(store, forecaster)
    store.add_readings(reading for life in lives for reading in life[-later:])
    saved = [store.checkpoints([life[0].device]).get(life[0].device) for life in lives]
    from_checkpoints = started(store, forecaster)
    store.save_checkpoints(replace(one, layout="another release") for one in saved if one is not None)
    from_history = started(store, forecaster)
    assert from_checkpoints._newest == from_history._newest
    assert told(from_checkpoints, forecaster) == told(from_history, forecaster)
    store.close()
    if len(probes) - later >= 20:
        assert all(saved)


class Counting:
    """The real forecaster; counts the readings that it is given."""

    def __init__(self, real: BundledForecaster) -> None:
        self.real, self.folded = real, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.real, name)

    def fold(self, state: object, readings: Sequence[Reading]) -> object:
        self.folded += len(readings)
        return self.real.fold(state, readings)  # type: ignore[arg-type]


def restarted(place: Place) -> tuple[Application, int]:
    """Return an application that was started on the existing files, and the number of readings that it folded."""
    counting = Counting(place.forecaster)
    application = replace(place, forecaster=counting).application()  # type: ignore[arg-type]
    application.start()
    return application, counting.folded


def lived(place: Place, days: int = 30) -> list[Reading]:
    application = place.application()
    application.start()
    readings = [smart_reading("A", NOON - timedelta(days=day)) for day in range(days, 0, -1)]
    application.ingest(readings)
    work(application)
    shut(application)
    return readings


def test_a_start_reads_only_what_came_after_the_checkpoints(place: Place) -> None:
    lived(place)
    again, folded = restarted(place)
    again.ingest([smart_reading("A")])
    work(again)
    shut(again)
    assert folded == 0
    assert restarted(place)[1] == 1


@pytest.mark.parametrize("packed", [b"", b"\x00", b"no state", b"\x9b" + b"\xc0" * 11])
def test_a_checkpoint_that_cannot_be_used_makes_the_history_be_read(place: Place, packed: bytes) -> None:
    readings = lived(place)
    device = readings[0].device
    store = SqliteStore(place.state.store)
    good = store.checkpoints([device]).get(device)
    assert good is not None
    store.save_checkpoints([replace(good, state=packed)])
    store.close()
    application, folded = restarted(place)
    assert folded == len(readings)
    healed = application.store.checkpoints([device]).get(device)
    assert healed == good
    shut(application)


def test_a_checkpoint_of_another_layout_is_not_looked_into(place: Place) -> None:
    readings = lived(place)
    store = SqliteStore(place.state.store)
    good = store.checkpoints([readings[0].device]).get(readings[0].device)
    assert good is not None
    store.save_checkpoints([replace(good, layout="predrain of long ago")])
    store.close()
    application, folded = restarted(place)
    assert folded == len(readings)
    shut(application)


def test_a_start_that_is_killed_goes_on_where_it_had_come_to(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(place.state.store)
    store.add_readings(r for serial in "ABCDEF" for r in days_of(serial, [0] * 15, [False] * 15))
    seen: list[DeviceId] = []
    real = BundledForecaster.fold

    def deadly(self: BundledForecaster, state: Any, readings: Sequence[Reading]) -> Any:
        seen.append(readings[0].device)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return real(self, state, readings)

    monkeypatch.setattr(BundledForecaster, "fold", deadly)
    with pytest.raises(KeyboardInterrupt):
        started(store, place.forecaster)
    store.close()
    monkeypatch.setattr(BundledForecaster, "fold", real)
    application, folded = restarted(place)
    assert folded == (6 - 2) * 15
    shut(application)


def test_a_late_reading_is_in_the_next_start_whatever_the_checkpoint_had(place: Place) -> None:
    lived(place)
    application = place.application()
    application.start()
    application.ingest([smart_reading("A", NOON - 40 * HOUR, pending=9)])
    work(application)
    want, before = (
        stored(application),
        application.store.checkpoints([DeviceId("ST4000DM000_A")]).get(DeviceId("ST4000DM000_A")),
    )
    assert before is None
    shut(application)
    again, folded = restarted(place)
    assert folded == 31
    again.ingest([smart_reading("A")])
    work(again)
    assert stored(again)["ST4000DM000_A"][:-1] == want["ST4000DM000_A"]
    rose = f"{NOON - 40 * HOUR:%d %b}"
    assert rose in stored(again)["ST4000DM000_A"][-1].reasons[0].sentence
    shut(again)


def test_a_device_whose_history_was_dropped_is_remembered_by_its_last_reading(place: Place) -> None:
    store = SqliteStore(place.state.store)
    store.add_readings(week_of("A"))
    store.prune(history=NOON + HOUR)
    store.close()
    application, folded = restarted(place)
    assert folded == 1
    assert application.family_survival(DeviceId("ST4000DM000_A")) is not None
    shut(application)

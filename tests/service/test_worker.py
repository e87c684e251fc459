"""The worker: nothing acknowledged is lost, nothing happens twice, and what cannot be read stops nobody."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Delivered, Record, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook, Status
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreBusy
from predrain.data.wire import DeadLetter, decode_envelope
from predrain.features.drive_state import DriveState
from predrain.service.app.application import Application
from predrain.service.streams.dead_letters import list_dead_letters, replay_dead_letters
from tests.service.conftest import NOON, Place, SetClock, shut, smart_reading, week_of


def work(application: Application) -> int:
    """Step until the log is empty; returns how many outlooks were made."""
    made = 0
    while (worked := application.step_worker()).taken:
        made += worked.outlooks
    return made


def stored(application: Application) -> dict[str, tuple[Outlook, ...]]:
    return {device: application.store.outlooks(device) for device in application.store.latest_readings()}


def test_a_reading_becomes_an_outlook_as_of_the_time_it_was_taken(application: Application) -> None:
    application.ingest([smart_reading("A", NOON - timedelta(minutes=3))])
    work(application)
    (outlook,) = application.store.latest_outlooks().values()
    assert outlook.as_of == NOON - timedelta(minutes=3)
    assert outlook.source.startswith(("model:", "rule:"))
    assert outlook.reasons


def test_the_first_reading_of_a_drive_is_judged_by_its_counters(application: Application) -> None:
    application.ingest([smart_reading("A"), smart_reading("B", pending=4000)])
    work(application)
    found = {device: outlook.status for device, outlook in application.store.latest_outlooks().items()}
    assert found == {"ST4000DM000_A": Status.GOOD, "ST4000DM000_B": Status.WARNING}


def test_growing_pending_sectors_are_announced_once_and_with_their_reason(application: Application) -> None:
    application.ingest(week_of("A", pending=400))
    work(application)
    application.clock.sleep(3600)
    application.ingest([smart_reading("A", application.clock.now(), pending=400)])
    work(application)
    told = [
        alert
        for alert in application.announcements.list_newest_alerts()
        if alert.outlook.status is Status.BAD
    ]
    assert len(told) == 1
    assert told[0].outlook.reasons[0].sentence


def test_a_duplicate_has_one_effect(application: Application) -> None:
    reading = smart_reading("A")
    application.ingest([reading])
    work(application)
    before = stored(application)
    application.ingest([reading, reading])
    work(application)
    assert stored(application) == before
    assert len(application.store.readings(reading.device)) == 1


@pytest.mark.parametrize("silent_days", [0, 30])
def test_a_late_reading_gives_the_outlooks_that_it_would_have_given_in_order(
    place: Place, application: Application, silent_days: int
) -> None:
    """Also after a long silence: what bears an outlook out is counted on from before it."""
    earlier = week_of("A", NOON - timedelta(days=1 + silent_days), passed=False)
    readings = earlier + [
        smart_reading("A", NOON - timedelta(days=ago), passed=False) for ago in (0.2, 0.1, 0)
    ]
    late, rest = readings[-3], [*readings[:-3], *readings[-2:]]
    application.ingest(rest)
    work(application)
    application.ingest([late])
    work(application)
    in_order = Place(place.state, place.clock, place.forecaster, place.settings, place.policy)
    in_order.state.store = place.state.path / "other.sqlite"
    other = in_order.application(log=MemoryLog())
    other.start()
    other.ingest(readings)
    work(other)
    assert stored(application) == stored(other)
    shut(other)


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 60))
def test_outlooks_do_not_depend_on_how_readings_were_batched(sizes: list[int], pending: int) -> None:
    readings = [r for serial in "AB" for r in week_of(serial, pending=pending)]
    alone, batched = _scored(readings, [1]), _scored(readings, sizes)
    assert alone == batched


def _scored(readings: list, sizes: list[int]) -> object:
    from predrain.service.fleet.fleet import Fleet
    from predrain.service.forecasting.bundle_choice import BundledForecaster
    from predrain.service.forecasting.worker import ScoringWorker
    from predrain.service.storage.record_sender import RecordSender
    from predrain.service.streams.outlook_announcements import Announcements

    clock, log, store = SetClock(), MemoryLog(), SqliteStore(":memory:")
    sender = RecordSender("test", clock)
    forecaster = _FORECASTER.setdefault("one", BundledForecaster.load())
    fleet, announcements = Fleet(store), Announcements()
    worker = ScoringWorker(log, store, clock, forecaster, fleet, announcements, sender)
    worker.rebuild()
    log.append(Topic.READINGS, [Record(r.device, sender.encode_envelope(r)) for r in readings])
    turn = 0
    while worker.step(sizes[turn % len(sizes)]).taken:
        turn += 1
    found = {device: store.outlooks(device) for device in store.latest_readings()}
    told = [alert.outlook for alert in announcements.list_newest_alerts()]
    store.close()
    return found, sorted(told, key=lambda o: (o.device, o.as_of))


_FORECASTER: dict[str, object] = {}


class Killed(BaseException):
    """The end of a killed process, seen from inside."""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["add_readings", "append", "write_notes", "save_outlooks", "commit"])
@pytest.mark.parametrize("after", [False, True])
def test_a_worker_killed_at_any_call_is_made_good_by_the_next_start(
    place: Place, step: str, after: bool
) -> None:
    readings = [r for serial in "ABC" for r in week_of(serial, pending=400 if serial == "B" else 0)]
    undisturbed = place.application()
    undisturbed.start()
    undisturbed.ingest(readings)
    work(undisturbed)
    want, want_told = stored(undisturbed), [a.outlook for a in undisturbed.announcements.list_newest_alerts()]
    shut(undisturbed)
    for file in place.state.path.glob("*.sqlite*"):
        file.unlink()

    application = place.application()
    application.start()
    application.ingest(readings[:10])
    work(application)
    application.ingest(readings[10:])
    port = application.store if hasattr(application.store, step) else application.log
    real = getattr(port, step)

    def deadly(*arguments: object) -> object:
        if after:
            real(*arguments)
        raise Killed

    object.__setattr__(port, step, deadly)
    with pytest.raises(Killed):
        work(application)
    object.__delattr__(port, step)
    shut(application)

    again = place.application()
    again.start()
    work(again)
    assert stored(again) == want
    assert [a.outlook for a in again.announcements.list_newest_alerts()] == want_told
    shut(again)


def test_an_announced_outlook_is_not_announced_again_while_the_store_takes_nothing(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.ingest(week_of("A", pending=400))

    def busy(_: object) -> None:
        raise StoreBusy("others hold the table")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(application.store, "save_outlooks", busy)
        for _ in range(3):
            with pytest.raises(StoreBusy):
                work(application)
    work(application)
    told = [
        decode_envelope(one.value, Outlook).body for one in application.log.read_newest(Topic.OUTLOOKS, 10)
    ]
    assert told == [alert.outlook for alert in reversed(application.announcements.list_newest_alerts())]
    assert len({one.as_of for one in told}) == len(told) > 0


def test_a_restart_remembers_announcements(place: Place) -> None:
    first = place.application()
    first.start()
    first.ingest(week_of("A", pending=400))
    work(first)
    told = [alert.outlook for alert in first.announcements.list_newest_alerts()]
    shut(first)
    second = place.application()
    assert [alert.outlook for alert in second.announcements.list_newest_alerts()] == told
    assert told
    shut(second)


def test_a_record_that_cannot_be_read_is_a_dead_letter_with_its_reason_and_stops_no_other_record(
    application: Application,
) -> None:
    good = application._sender.encode_envelope(smart_reading("A"))
    newer = json.loads(good)
    newer["version"] = 99
    application.log.append(
        Topic.READINGS,
        [
            Record("x", b"no json"),
            Record("y", json.dumps(newer).encode()),
            Record(smart_reading("A").device, good),
        ],
    )
    work(application)
    letters = list_dead_letters(application.log).letters
    assert [letter.key for letter in letters] == ["x", "y"]
    assert "version 99" in letters[1].reason
    assert "update" in letters[1].reason
    assert len(application.store.latest_outlooks()) == 1


def test_a_replayed_dead_letter_is_taken_when_its_reason_is_gone(application: Application) -> None:
    tomorrow = smart_reading("A", NOON + timedelta(days=1))
    application.log.append(
        Topic.READINGS, [Record(tomorrow.device, application._sender.encode_envelope(tomorrow))]
    )
    work(application)
    assert "future" in list_dead_letters(application.log).letters[0].reason
    application.clock.sleep(2 * 86400)
    assert replay_dead_letters(application.log).sent == 1
    work(application)
    assert list_dead_letters(application.log).letters == ()
    assert tomorrow.device in application.store.latest_outlooks()


def test_a_letter_that_still_cannot_be_taken_comes_back(application: Application) -> None:
    application.log.append(Topic.READINGS, [Record("x", b"no json")])
    work(application)
    replay_dead_letters(application.log)
    work(application)
    (letter,) = list_dead_letters(application.log).letters
    assert letter.value == b"no json"


def test_letters_of_one_place_in_a_topic_that_was_made_anew_are_two_unless_they_hold_the_same(
    application: Application,
) -> None:
    for value in (b"of the old topic", b"of the new one", b"of the new one"):
        torn = DeadLetter.from_delivered(Topic.READINGS, Delivered(1, "x", value), "no envelope", NOON)
        application.log.append(Topic.DEAD_LETTERS, [Record("x", application._sender.encode_envelope(torn))])
    assert [one.value for one in list_dead_letters(application.log).letters] == [
        b"of the old topic",
        b"of the new one",
    ]
    assert replay_dead_letters(application.log).sent == 2


def test_a_letter_keeps_the_record_to_the_byte(application: Application) -> None:
    application.log.append(Topic.READINGS, [Record("x", b"\xff\x00 no json")])
    work(application)
    (record,) = application.log.read(Topic.DEAD_LETTERS, "test", 10)
    assert decode_envelope(record.value, DeadLetter).body.value == b"\xff\x00 no json"


@pytest.mark.slow
def test_a_device_that_cannot_be_scored_is_unknown_and_the_others_are_scored(place: Place) -> None:
    application = place.application()
    application.start()
    worker = application.scorer._worker
    assert worker is not None
    worker._patient._forecaster = Fragile(place.forecaster)
    application.ingest([smart_reading("A"), smart_reading("BROKEN"), smart_reading("C")])
    work(application)
    outlooks = {
        device.removeprefix("ST4000DM000_"): o for device, o in application.store.latest_outlooks().items()
    }
    assert outlooks["BROKEN"].status is Status.UNKNOWN
    assert outlooks["BROKEN"].source == "rule:not-scored"
    assert outlooks["A"].source != "rule:not-scored"
    assert outlooks["C"].source != "rule:not-scored"
    shut(application)


@pytest.mark.slow
def test_the_outlooks_of_a_device_that_cannot_be_scored_carry_the_times_of_its_own_readings(
    place: Place,
) -> None:
    application = place.application()
    application.start()
    worker = application.scorer._worker
    assert worker is not None
    worker._patient._forecaster = Fragile(place.forecaster)
    times = [NOON - timedelta(hours=hours) for hours in (3, 2)]
    application.ingest([*(smart_reading("BROKEN", at) for at in times), smart_reading("A")])
    work(application)
    assert [one.as_of for one in application.store.outlooks(DeviceId("ST4000DM000_BROKEN"))] == times
    shut(application)


class Fragile:
    """The real forecaster, with one device that it fails on."""

    def __init__(self, real: object) -> None:
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def compute_outlooks(self, states: list[DriveState], now: object, before: object) -> object:
        if any("BROKEN" in state.device for state in states):
            raise ZeroDivisionError
        return self._real.compute_outlooks(states, now, before)  # type: ignore[attr-defined]

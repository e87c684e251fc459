"""The store keeps the announcement of each disk, so that no start repeats it, even if the log has dropped it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Log, Topic
from predrain.data.log.memory_log import MemoryLog
from predrain.data.outlook import Outlook, Status, SurvivalCurve
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_faults import StoreBusy
from predrain.data.wire import decode_envelope
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.app.roles import SERVING
from predrain.service.forecasting.bundle_choice import BundledForecaster
from predrain.service.streams.kept_announcements import ROOM, read_announced, write_announced
from predrain.service.streams.log_recall import RECALLED
from tests.service.conftest import NOON, Place, shut, smart_reading
from tests.service.partitioned_log import Member, Partitions
from tests.service.test_shared_worker import put, worker_on
from tests.service.test_worker import work

HOUR = timedelta(hours=1)
MANY = 25_000


def failed(serial: str, hour: int = 0) -> Reading:
    """A disk that says of itself that it fails."""
    return smart_reading(serial, NOON + hour * HOUR, passed=False)


def told(log: Log) -> list[tuple[DeviceId, Status]]:
    """All announcements that a log holds."""
    records = log.read_newest(Topic.OUTLOOKS, 2 * MANY)
    outlooks = [decode_envelope(record.value, Outlook).body for record in records]
    return [(one.device, one.severity) for one in outlooks]


def judged(place: Place, log: Log, *readings: Reading) -> None:
    """One life of the service, with these readings."""
    place.clock.sleep(3600)
    application = place.application(log=log)
    application.start()
    application.ingest(readings)
    work(application)
    shut(application)


def test_a_start_whose_log_has_dropped_an_announcement_does_not_repeat_it(place: Place) -> None:
    judged(place, MemoryLog(), failed("A"))
    log = MemoryLog()
    judged(place, log, failed("A", 1))
    assert told(log) == []


def test_a_disk_that_changed_while_the_service_was_down_is_announced_once(place: Place) -> None:
    judged(place, MemoryLog(), failed("A"), smart_reading("B"))
    log = MemoryLog()
    put(log, [failed("A", 1), failed("B", 1)])  # they wait in the log until the service is back
    judged(place, log)
    judged(place, log, failed("A", 2), failed("B", 2))
    assert told(log) == [(failed("B").device, Status.BAD)]


def test_a_probability_that_doubles_is_measured_from_the_announced_one_after_a_restart(place: Place) -> None:
    application = place.application()
    announced = Outlook(
        DeviceId("A"), NOON, Status.BAD, "model:x", (), "", p_fail_30d=0.1, survival=SurvivalCurve([1.0, 0.5])
    )
    write_announced(application.store, [announced])
    application.start()
    (kept,) = application.announcements.list_announced_outlooks().values()
    assert (kept.p_fail_30d, kept.survival) == (0.1, None)
    shut(application)


def test_an_announcement_whose_note_the_store_refused_is_noted_by_the_next_step(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.ingest([failed("A")])

    def busy(*_: object) -> None:
        raise StoreBusy("others hold the table")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(application.store, "write_notes", busy)
        with pytest.raises(StoreBusy):
            work(application)
    work(application)
    assert [one.severity for one in read_announced(application.store).values()] == [Status.BAD]
    assert len(told(application.log)) == 1


def test_a_start_notes_what_a_process_announced_that_ended_before_its_note(place: Place) -> None:
    log = MemoryLog()
    judged(place, log, failed("A"))
    store = SqliteStore(place.state.store)
    store.write_notes(ROOM, dict.fromkeys(read_announced(store)))
    store.close()
    judged(place, log)
    store = SqliteStore(place.state.store)
    assert read_announced(store).keys() == {failed("A").device}
    store.close()


def test_a_note_that_cannot_be_read_is_skipped(place: Place) -> None:
    application = place.application()
    application.store.write_notes(ROOM, {"A": b"nothing"})
    assert read_announced(application.store) == {}
    shut(application)


def test_a_worker_that_takes_disks_over_repeats_no_announcement_that_the_log_has_dropped(
    tmp_path: Path, forecaster: BundledForecaster
) -> None:
    parts, store = Partitions(1), SqliteStore(tmp_path / "shared.db")
    parts.give({0: 0})
    put(Member(parts, 0), [failed("A", -1)])
    worker_on(Member(parts, 0), store, forecaster, bare=True).step()
    assert told(Member(parts, 0)) == [(failed("A").device, Status.BAD)]
    later = Partitions(1)  # as after the retention of the topic
    put(Member(later, 1), [failed("A"), failed("B")])
    later.give({0: 1})
    taking_over = worker_on(Member(later, 1), store, forecaster, bare=True)
    while taking_over.step().taken:
        pass
    assert told(Member(later, 1)) == [(failed("B").device, Status.BAD)]
    store.close()


def test_a_process_that_scores_nothing_remembers_what_workers_announced(place: Place) -> None:
    judged(place, MemoryLog(), failed("A"))
    store = SqliteStore(place.state.store)
    ports = ApplicationPorts(MemoryLog(), store, place.clock, lambda: place.forecaster)
    page = Application(ports, place.policy, place.settings, parts=SERVING)
    assert page.announcements.list_announced_outlooks().keys() == {failed("A").device}
    shut(page)


@pytest.mark.slow
def test_a_restart_with_25_000_bad_disks_announces_none_of_them_again(place: Place) -> None:
    assert MANY > RECALLED
    log = MemoryLog()
    serials = [f"{number:05}" for number in range(MANY)]
    judged(place, log, *(failed(serial) for serial in serials), smart_reading("new"))
    assert len(told(log)) == MANY
    judged(place, log, *(failed(serial, 1) for serial in serials), failed("new", 1))
    assert told(log)[MANY:] == [(failed("new").device, Status.BAD)]


@pytest.mark.slow
def test_the_first_start_of_a_release_that_keeps_announcements_repeats_none_of_25_000(place: Place) -> None:
    log = MemoryLog()
    serials = [f"{number:05}" for number in range(MANY)]
    judged(place, log, *(failed(serial) for serial in serials))
    store = SqliteStore(place.state.store)
    store.write_notes(ROOM, dict.fromkeys(read_announced(store)))
    store.close()
    judged(place, log, failed(serials[0], 1), failed(serials[-1], 1))
    assert len(told(log)) == MANY

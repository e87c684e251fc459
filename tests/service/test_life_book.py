"""The book of lives: working out what changed gives what working out everything gives, at the cost of what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Counters, Identity, OsdDevice, Protocol, Reading, Role, Smart
from predrain.data.store.sqlite_store import MEMORY, SqliteStore
from predrain.service.fleet.life_book import LifeBook
from tests.service.conftest import NOON

HOUR = timedelta(hours=1)
STALE = 2 * HOUR


def disk(number: int) -> DeviceId:
    return DeviceId(f"ST4000DM000_{number:05d}")


def reading(number: int, hours: float, osd: int | None = None) -> Reading:
    at = NOON + hours * HOUR
    seen = Smart(Protocol.ATA, Identity(model="ST4000DM000"), True, Counters())
    seats = () if osd is None else (OsdDevice(OsdId(osd), Role.DATA),)
    return Reading(disk(number), HostName(f"stor-{number % 2}"), at, at, seen, seats)


def outlook(number: int, hours: float, status: Status = Status.GOOD) -> Outlook:
    return Outlook(disk(number), NOON + hours * HOUR, status, "model:x", (), "")


@dataclass
class Known:
    """The facts that a fleet knows; each step changes a part of them."""

    readings: dict[DeviceId, Reading]
    outlooks: dict[DeviceId, Outlook]
    drains: tuple[Drain, ...] = ()
    outcomes: tuple[Outcome, ...] = ()

    def shown_by(self, book: LifeBook, hours: float) -> Mapping[DeviceId, DiskLife]:
        now = NOON + hours * HOUR
        book.update_outcomes(self.outcomes)
        book.assess_lives(dict(self.readings), dict(self.outlooks), self.drains, None, now)
        book.apply_elapsed_time(now)
        return book.current_lives


@pytest.fixture(scope="module")
def store() -> SqliteStore:
    """Nothing is ever written into it."""
    return SqliteStore(MEMORY)


steps = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["read", "move", "judge", "drain", "state", "wait"]),
    st.sampled_from(list(DrainState)),
    st.sampled_from(list(DriveFate)),
    st.sampled_from([0.5, 3.0, 200.0]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=12))
def test_working_out_what_changed_gives_what_working_out_everything_gives(
    store: SqliteStore, taken: list[tuple[int, str, DrainState, DriveFate, float]]
) -> None:
    known = Known({disk(n): reading(n, 0, n) for n in range(4)}, {disk(n): outlook(n, 0) for n in range(4)})
    book, hours = LifeBook(store, NOON - 9 * HOUR, STALE), 0.0
    known.shown_by(book, hours)
    for number, what, state, fate, wait in taken:
        now = NOON + hours * HOUR
        match what:
            case "read":
                known.readings[disk(number)] = reading(number, hours, number)
            case "move":
                known.readings[disk(number)] = reading(number, hours, (number + 1) % 4)
            case "judge":
                known.outlooks[disk(number)] = outlook(number, hours, Status.BAD)
            case "drain":
                drain = Drain("D", disk(number), (OsdId(number),), state, Intent.REPLACE, "jo", "", now, now)
                known.drains = (drain, *known.drains)
            case "state":
                known.outcomes = (*known.outcomes, Outcome(disk(number), now, fate, "jo"))
            case _:
                hours += wait
        shown = known.shown_by(book, hours)
        book._touched |= shown.keys()
        book.apply_elapsed_time(NOON + hours * HOUR)
        assert book.current_lives == shown


def test_a_disk_that_its_host_no_longer_lists_stays_lost_when_the_host_falls_silent_too() -> None:
    kept = SqliteStore(MEMORY)
    known = Known({disk(n): reading(n, 0) for n in (0, 2)}, {disk(n): outlook(n, 0) for n in (0, 2)})
    book = LifeBook(kept, NOON - 9 * HOUR, STALE)
    known.shown_by(book, 0)
    for hours in (1, 2, 3):
        known.readings[disk(0)] = reading(0, hours)
        known.shown_by(book, hours)
    assert book.current_lives[disk(2)].change.why is RetiredWhy.LOST
    book.record()
    known.shown_by(book, 6)
    known.outlooks[disk(2)] = outlook(2, 0, Status.BAD)
    known.shown_by(book, 6)
    assert book.current_lives[disk(0)].state is LifeState.SILENT
    assert book.current_lives[disk(2)].change.why is RetiredWhy.LOST
    kept.close()


def test_disks_of_which_nothing_changed_are_not_worked_out_again(store: SqliteStore) -> None:
    known = Known({disk(n): reading(n, 0) for n in range(9)}, {disk(n): outlook(n, 0) for n in range(9)})
    book = LifeBook(store, NOON, STALE)
    before = known.shown_by(book, 0)
    known.outlooks[disk(3)] = outlook(3, 0, Status.BAD)
    after = known.shown_by(book, 0)
    assert [name for name in after if after[name] is not before[name]] == [disk(3)]
    assert known.shown_by(book, 0) is after


@pytest.mark.slow
def test_six_thousand_disks_cost_less_than_a_fifth_of_a_second_a_run(store: SqliteStore) -> None:
    count = 6_000
    known = Known(
        {disk(n): reading(n, 0, n) for n in range(count)}, {disk(n): outlook(n, 0) for n in range(count)}
    )
    book = LifeBook(store, NOON - HOUR, STALE)
    known.shown_by(book, 0)
    spent = []
    for run in range(3):  # the cheapest of three: a busy machine makes any single one dearer
        known.readings |= {disk(n): reading(n, run / 10, n) for n in range(run, count, 6)}
        began = process_time()
        known.shown_by(book, run / 10)
        spent.append(process_time() - began)
    assert min(spent) < 0.2


def test_a_disk_that_the_time_does_not_change_is_looked_at_again_when_the_first_disk_becomes_late(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Known({disk(n): reading(n, n / 10) for n in range(9)}, {disk(n): outlook(n, 0) for n in range(9)})
    book, looked = LifeBook(store, NOON - HOUR, STALE), list[int]()
    find = book._find_disks_that_time_changes

    def note(*arguments: Any) -> set[DeviceId]:
        looked.append(len(book._watched))
        return find(*arguments)

    monkeypatch.setattr(book, "_find_disks_that_time_changes", note)
    known.shown_by(book, 1)
    for hours in (1, 1.5, 2):
        book.apply_elapsed_time(NOON + hours * HOUR)
    known.readings[disk(3)] = reading(3, 2)
    known.shown_by(book, 2)
    book.apply_elapsed_time(NOON + 2.05 * HOUR)
    assert looked == [9, 0, 0, 0, 1, 9]
    assert book.current_lives[disk(0)].change.why is RetiredWhy.LOST
    book.apply_elapsed_time(NOON + 2.06 * HOUR)
    assert looked[6:] == [1]


def test_a_recorded_life_state_is_not_recorded_again() -> None:
    kept = SqliteStore(MEMORY)
    known = Known({disk(0): reading(0, 0)}, {disk(0): outlook(0, 0)})
    book = LifeBook(kept, NOON - HOUR, STALE)
    known.shown_by(book, 0)
    assert [one.state for one in book.record()] == [LifeState.IN_SERVICE]
    assert book.record() == ()
    known.shown_by(book, 3)
    assert [one.state for one in book.record()] == [LifeState.SILENT]
    follower = LifeBook(kept, NOON - HOUR, STALE)
    known.shown_by(follower, 3)
    assert follower.record() == ()
    kept.close()

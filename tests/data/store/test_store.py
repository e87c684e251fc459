"""The contract of a store (data.store.store_port), checked in a file, in memory and in a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.data.drain import Drain, DrainState, Intent, JournalEntry, Mechanic, Move, Plan, Progress
from predrain.data.ids import DeviceId, HostName, OsdId, PgId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import GRID_DAYS, Advice, Life, Outlook, Reason, Status, SurvivalCurve
from predrain.data.reading import Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.refusal import Refusal
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Checkpoint, Store
from tests.settings_by_text import by_setting

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def _reading(device: str, at: datetime, pending: int = 0) -> Reading:
    smart = Smart(Protocol.ATA, Identity(model="ST4000"), True, Counters(pending=pending))
    return Reading(DeviceId(device), HostName("ceph-1"), at, at + timedelta(seconds=2), smart)


def _outlook(device: str, as_of: datetime, status: Status = Status.GOOD) -> Outlook:
    curve = SurvivalCurve(1 / (1 + day / 100) for day in GRID_DAYS)
    reasons = (Reason("model-and-age", "An ST4000 of 3 years."),)
    return Outlook(
        DeviceId(device), as_of, status, "model:1", reasons, "", 0.1, 0.2, 0.3, curve, Life(1.0, 2.0, None)
    )


def _without_curve(outlook: Outlook) -> Outlook:
    """The outlook as its device's history has it."""
    return replace(outlook, survival=None)


DRAIN = Drain(
    "d-1", DeviceId("a"), (OsdId(3),), DrainState.PROPOSED, Intent.REPLACE, "controller", "bad", NOON, NOON,
    plan=Plan(Mechanic.UPMAP_WALK, "default", 41, (Move(PgId("3.1f"), OsdId(3), OsdId(4), 10**12),),
              OsdId(4), 0.61, 0.4, 3.5),
    progress=Progress(1, 0, 10**12, 0), saved=by_setting({"osd.3/reweight": "1.0"}), held_by=("osd.4 is nearly full",),
)  # fmt: skip


def test_a_reading_is_kept_once_however_often_it_comes(store: Store) -> None:
    first, second = _reading("a", NOON), _reading("a", NOON + HOUR)
    assert store.add_readings([first, second, first]) == 2
    assert store.add_readings([second, replace(first, host=HostName("elsewhere"))]) == 0
    assert store.readings(DeviceId("a")) == (first, second)
    assert store.add_readings([]) == 0


def test_history_comes_oldest_first_from_the_asked_instant_on(store: Store) -> None:
    readings = [_reading("a", NOON + hours * HOUR) for hours in (3, 1, 2)]
    store.add_readings([*readings, _reading("b", NOON)])
    ordered = tuple(sorted(readings, key=lambda reading: reading.taken_at))
    assert store.readings(DeviceId("a")) == ordered
    assert store.readings(DeviceId("a"), NOON + 2 * HOUR) == ordered[1:]
    assert store.readings(DeviceId("a"), NOON + 2 * HOUR + timedelta(microseconds=1)) == ordered[2:]
    assert store.readings(DeviceId("nobody")) == ()


def test_the_latest_reading_is_the_latest_taken_not_the_latest_received(store: Store) -> None:
    late, early = _reading("a", NOON + HOUR), _reading("a", NOON)
    store.add_readings([late])
    store.add_readings([early, _reading("b", NOON)])
    assert store.latest_readings() == {"a": late, "b": _reading("b", NOON)}


def test_the_times_of_the_newest_readings_can_be_read_without_the_readings(store: Store) -> None:
    assert store.read_newest_times() == {}
    late = _reading("a", NOON + HOUR)
    store.add_readings([late, _reading("a", NOON), _reading("b", NOON)])
    assert store.read_newest_times() == {"a": late.taken_at, "b": NOON}


def test_the_latest_readings_of_some_devices_can_be_asked_alone(store: Store) -> None:
    store.add_readings([_reading("a", NOON), _reading("b", NOON)])
    assert store.latest_readings([DeviceId("b"), DeviceId("c")]) == {"b": _reading("b", NOON)}
    assert store.latest_readings([]) == {}


def test_readings_are_refiled_under_another_device_whose_own_ones_stay(store: Store) -> None:
    a, b = DeviceId("a"), DeviceId("b")
    first, second, third = (_reading("a", NOON + hours * HOUR, hours) for hours in (0, 1, 2))
    own = _reading("b", NOON + HOUR, 900)
    store.add_readings([first, second, third, own])
    store.save_checkpoints([Checkpoint(a, "layout", NOON, b""), Checkpoint(b, "layout", NOON, b"")])
    for _ in range(2):  # after a crash it is done again
        store.refile_readings([second, third], b)
    assert store.readings(a) == (first,)
    assert store.readings(b) == (own, replace(third, device=b))
    assert store.latest_readings() == {"a": first, "b": replace(third, device=b)}
    assert store.checkpoints([a, b]) == {}


def test_a_device_whose_newest_is_forgotten_is_a_device_no_more_and_keeps_its_history(store: Store) -> None:
    a = DeviceId("a")
    store.add_readings([_reading("a", NOON)])
    store.save_outlooks([_outlook("a", NOON)])
    store.save_checkpoints([Checkpoint(a, "layout", NOON, b"")])
    store.forget_newest(a)
    assert (store.latest_readings(), store.latest_outlooks(), store.checkpoints([a])) == ({}, {}, {})
    assert store.readings(a) == (_reading("a", NOON),)


def test_an_unreadable_drive_is_kept_as_evidence(store: Store) -> None:
    silent = replace(_reading("a", NOON), seen=Unreadable(NOON - HOUR, "no answer within 30 s"))
    store.add_readings([silent])
    assert store.readings(DeviceId("a")) == (silent,)
    assert store.latest_readings() == {"a": silent}


def test_the_newest_outlooks_can_be_asked_of_some_devices_only(store: Store) -> None:
    early, late, other = _outlook("a", NOON), _outlook("a", NOON + HOUR), _outlook("b", NOON)
    store.save_outlooks([early, late, other])
    assert store.latest_outlooks([DeviceId("a"), DeviceId("c")]) == {"a": late}
    assert store.latest_outlooks([]) == {}


def test_of_two_outlooks_with_one_key_in_one_save_the_last_stays(store: Store) -> None:
    first, last = _outlook("a", NOON), _outlook("a", NOON, Status.BAD)
    store.save_outlooks([first, last])
    assert store.outlooks(DeviceId("a")) == (_without_curve(last),)
    assert store.latest_outlooks() == {"a": last}


def test_a_checkpoint_is_kept_until_the_next_one_of_its_device(store: Store) -> None:
    a, b, never = map(DeviceId, "abc")
    first = Checkpoint(a, "layout-1", NOON, b"\x00state")
    other = Checkpoint(b, "layout-1", NOON + HOUR, b"")
    later = Checkpoint(a, "layout-2", NOON + HOUR, b"more")
    store.save_checkpoints([first, other])
    assert store.checkpoints([a, never]) == {a: first}
    store.save_checkpoints([later])
    store.save_checkpoints([])
    assert store.checkpoints([a, b, never]) == {a: later, b: other}
    assert store.checkpoints([]) == {}


@pytest.mark.parametrize(("hours", "stays"), [(-1, False), (0, False), (1, True)])
def test_a_checkpoint_goes_with_a_reading_that_it_may_lack(store: Store, hours: int, stays: bool) -> None:
    mine, other = (Checkpoint(DeviceId(name), "layout", NOON, b"state") for name in "ab")
    store.save_checkpoints([mine, other])
    store.add_readings([_reading("a", NOON + 2 * HOUR), _reading("a", NOON + hours * HOUR)])
    kept = (mine, other) if stays else (other,)
    assert store.checkpoints([mine.device, other.device]) == {one.device: one for one in kept}


def test_latency_is_kept_by_osd_and_window(store: Store) -> None:
    assert not store.has_latency()
    windows = [
        LatencySummary(OsdId(3), HostName("h"), NOON + timedelta(seconds=15 * i), 15.0, 9, read_ms_p50=1.5)
        for i in range(4)
    ]
    store.add_latency(
        LatencyWindows.from_summaries([*windows[2:], *windows[:3], replace(windows[0], osd=OsdId(4))])
    )
    store.add_latency(LatencyWindows.from_summaries([replace(windows[0], operations=1)]))
    assert store.read_latency_summaries(3, NOON) == tuple(windows)
    assert store.read_latency_summaries(3, NOON + timedelta(seconds=20)) == tuple(windows[2:])
    assert store.read_latency_summaries(5, NOON) == ()
    assert store.has_latency()


def _window(osd: int, minute: int = 0, host: str = "h", **changes: Any) -> LatencySummary:
    at = NOON + timedelta(minutes=minute)
    return replace(LatencySummary(OsdId(osd), HostName(host), at, 60.0, 9, read_ms_p50=1.5), **changes)


def test_osds_that_come_later_join_those_of_their_host_whose_windows_began_at_once(store: Store) -> None:
    first, other = [_window(1), _window(2)], [_window(2, operations=1), _window(3), _window(1, 1)]
    for told in (first, other, other, first):
        store.add_latency(LatencyWindows.from_summaries(told))
    assert store.host_latency(HostName("h"), NOON) == LatencyWindows.from_summaries([*first, *other[1:]])
    assert [store.read_latency_summaries(osd, NOON) for osd in (2, 3)] == [(first[1],), (other[1],)]


def test_windows_that_come_twice_in_one_save_are_kept_once(store: Store) -> None:
    (once,) = LatencyWindows.from_summaries([_window(1), _window(2)])
    (again,) = LatencyWindows.from_summaries([_window(2, operations=1), _window(3)])
    store.add_latency([once, once, again])
    assert store.host_latency(HostName("h"), NOON) == LatencyWindows.from_summaries(
        [_window(1), _window(2), _window(3)]
    )


def test_an_osd_that_moved_has_one_history_and_each_host_its_own(store: Store) -> None:
    before, after = [_window(1, n, "a") for n in range(3)], [_window(1, n, "b") for n in range(3, 5)]
    store.add_latency(LatencyWindows.from_summaries([*after, _window(2, 3, "b")]))
    store.add_latency(LatencyWindows.from_summaries(before))
    assert store.read_latency_summaries(1, NOON) == (*before, *after)
    assert store.read_latency_summaries(2, NOON) == (_window(2, 3, "b"),)
    assert store.latency_hosts() == ("a", "b")
    assert store.host_latency(HostName("a"), NOON + timedelta(minutes=1)) == LatencyWindows.from_summaries(
        before[1:]
    )
    assert store.host_latency(HostName("c"), NOON) == ()


def test_writers_that_tell_of_one_host_at_once_lose_no_osd(opened: Callable[[], Store]) -> None:
    stores = [opened() for _ in range(4)]

    def tell(number: int) -> None:
        for minute in range(5):
            told = [_window(osd, minute) for osd in (number, number + 4, 9)]
            stores[number].add_latency(LatencyWindows.from_summaries(told))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tell, range(4)))
    for osd in (*range(8), 9):
        assert stores[0].read_latency_summaries(osd, NOON) == tuple(
            _window(osd, minute) for minute in range(5)
        )


def test_the_latest_outlook_is_the_one_with_the_latest_date(store: Store) -> None:
    early, late = _outlook("a", NOON), _outlook("a", NOON + HOUR, Status.BAD)
    store.save_outlooks([late])
    store.save_outlooks([early])
    assert store.latest_outlooks() == {"a": late}
    assert store.outlooks(DeviceId("a")) == (_without_curve(early), _without_curve(late))
    assert store.outlooks(DeviceId("a"), NOON + HOUR) == (_without_curve(late),)


def test_only_the_newest_outlook_of_a_device_keeps_its_curve(store: Store) -> None:
    early, late = _outlook("a", NOON), _outlook("a", NOON + HOUR)
    store.save_outlooks([early])
    assert store.latest_outlooks() == {"a": early}
    store.save_outlooks([late])
    assert store.latest_outlooks() == {"a": late}
    assert [one.survival for one in store.outlooks(DeviceId("a"))] == [None, None]


def test_an_outlook_that_was_computed_anew_replaces_the_one_of_that_instant(store: Store) -> None:
    store.save_outlooks([_outlook("a", NOON)])
    anew = _outlook("a", NOON, Status.WARNING)
    store.save_outlooks([anew])
    assert store.outlooks(DeviceId("a")) == (_without_curve(anew),)
    assert store.latest_outlooks() == {"a": anew}


def test_a_rules_outlook_comes_back_with_its_evidence_and_what_would_clear_it(store: Store) -> None:
    ruled = replace(
        _outlook("a", NOON), source="rule:wear", p_fail_7d=None, p_fail_14d=None, p_fail_30d=None, survival=None,
        life=None, rule_score=0.6, advice=Advice.SWAP_WORN, clears="Does not clear.", endurance=Life(1.0, 9.0, None),
    )  # fmt: skip
    store.save_outlooks([ruled])
    assert store.outlooks(DeviceId("a")) == (ruled,)
    assert store.latest_outlooks() == {"a": ruled}


def test_the_journal_keeps_its_order_and_gives_the_newest_lines(store: Store) -> None:
    lines = [JournalEntry(f"d-{i % 2}", NOON, f"line {i}", "step", "set", i) for i in range(6)]
    store.add_journal(lines[:4])
    store.add_journal(lines[2:])
    assert store.journal() == tuple(lines)
    assert store.journal("d-1") == tuple(lines[1::2])
    assert store.journal(limit=2) == tuple(lines[4:])
    assert store.journal("d-0", limit=2) == (lines[2], lines[4])
    assert store.journal(limit=0) == ()
    assert store.journal("d-9") == ()


def test_outcomes_are_kept_once_and_told_oldest_first(store: Store) -> None:
    failed = Outcome(DeviceId("a"), NOON + HOUR, DriveFate.FAILED, "operator", "clicking")
    suspected = Outcome(DeviceId("a"), NOON, DriveFate.SUSPECTED, "rule:gone")
    cleared = replace(failed, fate=DriveFate.CLEARED)
    for outcome in (failed, suspected, failed, cleared):
        store.add_outcome(outcome)
    assert store.outcomes() == (suspected, failed, cleared)


def test_a_note_is_kept_by_room_and_name_until_it_is_forgotten(store: Store) -> None:
    assert store.read_notes("silences") == {}
    store.write_notes("silences", {"b": b"1", "a": b"2"})
    store.write_notes("silences", {"a": b"3", "b": None, "never": None})
    store.write_notes("told:mail", {"a": b"4"})
    assert store.read_notes("silences") == {"a": b"3"}
    assert store.read_notes("told:mail") == {"a": b"4"}
    store.write_notes("silences", {})


def test_a_halt_stands_until_it_is_lifted(store: Store) -> None:
    assert store.halt_reason() is None
    store.set_halt("network works")
    store.set_halt("network works, until 14:00")
    assert store.halt_reason() == "network works, until 14:00"
    store.set_halt(None)
    store.set_halt(None)
    assert store.halt_reason() is None


def test_everything_survives_a_restart(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state" / "store.db")
    store.add_readings([_reading("a", NOON)])
    store.save_drain(DRAIN)
    store.set_halt("why")
    store.close()
    again = SqliteStore(tmp_path / "state" / "store.db")
    assert (again.latest_readings(), again.drain("d-1")) == ({"a": _reading("a", NOON)}, DRAIN)
    assert again.halt_reason() == "why"
    again.close()


def test_threads_read_and_write_at_once(store: Store) -> None:
    def work(number: int) -> None:
        for i in range(10):
            store.add_readings([_reading(f"dev-{number}", NOON + i * HOUR, pending=i)])
            assert store.readings(DeviceId(f"dev-{number}"))[-1].taken_at == NOON + i * HOUR
            assert len(store.latest_readings()) >= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(store.latest_readings()) == 8


def test_pruning_drops_old_history_and_keeps_what_is_latest_and_what_was_done(store: Store) -> None:
    old, new = _reading("a", NOON), _reading("a", NOON + HOUR)
    lone = _reading("b", NOON)
    store.add_readings([old, new, lone])
    store.save_outlooks([_outlook("a", NOON), _outlook("a", NOON + HOUR)])
    window = LatencySummary(OsdId(3), HostName("h"), NOON, 15.0, 9)
    store.add_latency(LatencyWindows.from_summaries([window, replace(window, window_start=NOON + HOUR)]))
    store.save_drain(DRAIN)
    line = JournalEntry("d-1", NOON - HOUR, "seen", "decided")
    store.add_journal([line])
    assert store.prune(history=NOON + HOUR) == 4, "two readings, an outlook, an event of the drain"
    assert store.readings(DeviceId("a")) == (new,)
    assert store.outlooks(DeviceId("a")) == (_without_curve(_outlook("a", NOON + HOUR)),)
    assert store.latest_readings() == {"a": new, "b": lone}
    assert len(store.read_latency_summaries(3, NOON)) == 2
    assert store.prune(latency=NOON + HOUR) == 1
    assert [summary.window_start for summary in store.read_latency_summaries(3, NOON)] == [NOON + HOUR]
    assert (store.drain("d-1"), store.journal()) == (DRAIN, (line,))


@pytest.mark.slow
def test_of_a_journal_that_is_named_the_old_lines_go_however_many_and_of_others_none(store: Store) -> None:
    def lines(journal: str, count: int) -> list[JournalEntry]:
        return [JournalEntry(journal, NOON + HOUR * number, "seen", "decided") for number in range(count)]

    store.add_journal(lines("audit", 2_500))
    store.add_journal(lines("d-1", 3))
    assert store.prune(journal=("audit", NOON + 2_400 * HOUR)) == 2_400
    assert store.journal("audit") == tuple(lines("audit", 2_500)[2_400:])
    assert store.prune(journal=("audit", NOON + 2_400 * HOUR)) == 0
    assert store.prune(journal=("audit", NOON + 9_999 * HOUR)) == 100
    assert store.journal() == tuple(lines("d-1", 3))


def test_a_save_that_fails_half_way_changes_nothing(store: Store) -> None:
    with pytest.raises(Refusal, match="cannot be written"):
        store.add_readings([_reading("a", NOON), replace(_reading("b", NOON), host=HostName("\ud800"))])
    assert store.latest_readings() == {}

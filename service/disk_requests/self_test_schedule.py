"""The schedule of self-tests: which disks are due for a test, and the requests for them.

Every disk has a phase of its own, drawn from its name, so that the tests of a fleet are spread over the whole period.
A period has one test of a kind at most; a test that guards hold back until the period ends is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from predrain.data.disk_request import DiskVerb
from predrain.data.ids import DeviceId
from predrain.data.self_test import SelfTestKind
from predrain.data.store.store_port import Store
from predrain.service.config.self_tests_table import SelfTestsTable
from predrain.service.disk_requests.request_desk import DiskRequestDesk, RequestHeld, find_host_of_disk
from predrain.service.fleet.fleet import FleetSnapshot

ScheduleKey = tuple[DiskVerb, DeviceId]


@dataclass(frozen=True, slots=True)
class SelfTestPeriods:
    """The time between two tests of a disk; None: no such tests."""

    short: timedelta | None
    long: timedelta | None

    @classmethod
    def from_table(cls, table: SelfTestsTable) -> SelfTestPeriods:
        """Return the periods that the settings name."""
        return cls(_to_period(table.short_days), _to_period(table.long_days))

    def list_verbs(self) -> tuple[tuple[DiskVerb, timedelta], ...]:
        """Return the kinds of test that are scheduled, long ones first."""
        both = ((DiskVerb.LONG_TEST, self.long), (DiskVerb.SHORT_TEST, self.short))
        return tuple((verb, period) for verb, period in both if period is not None)


@dataclass(frozen=True, slots=True)
class ScheduleTurn:
    """The result of one look. `due`: tests to request now, the longest due first. `begun`: disks that are new here."""

    due: tuple[ScheduleKey, ...]
    begun: Mapping[ScheduleKey, int]


def compute_period_number(device: DeviceId, period: timedelta, now: datetime) -> int:
    """Return the number of the disk's present period, counted since 1970; periods of disks begin at different times."""
    return _count_periods(device, period, now)[0]


def _to_period(days: float | None) -> timedelta | None:
    return None if days is None else timedelta(days=days)


def list_due_tests(
    devices: Iterable[DeviceId], periods: SelfTestPeriods, done: Mapping[ScheduleKey, int], now: datetime
) -> ScheduleTurn:
    """Return the tests that are due. `done`: the number of the last period for which a disk needs no further test.

    A disk that is not in `done` begins with its next period, so that a new schedule does not test all disks at once.
    """
    due: list[tuple[float, ScheduleKey]] = []
    begun: dict[ScheduleKey, int] = {}
    for device in devices:
        for verb, period in periods.list_verbs():
            number, elapsed = _count_periods(device, period, now)
            last = done.get((verb, device))
            # A number of the future is one of another period or of a clock that was set back since.
            if last is None or last > number:
                begun[verb, device] = number
            elif last < number:
                due.append((-elapsed, (verb, device)))
                break
    return ScheduleTurn(tuple(key for _, key in sorted(due)), begun)


def _count_periods(device: DeviceId, period: timedelta, now: datetime) -> tuple[int, float]:
    """Return the number of the present period, and the seconds since its begin."""
    length = period.total_seconds()
    drawn = int.from_bytes(hashlib.blake2b(device.encode(), digest_size=8).digest(), "big") / 2**64
    number, elapsed = divmod(now.timestamp() + drawn * length, length)
    return int(number), elapsed


SCHEDULE_ROOM: Final = "self-test schedule"
SCHEDULE_CALLER: Final = "schedule"
"""The name of the schedule in the audit."""
MOST_SHORT_AT_ONCE: Final = 50
"""Most open requests of the schedule for short tests, which end within minutes."""


def request_due_tests(
    store: Store, desk: DiskRequestDesk, snapshot: FleetSnapshot, table: SelfTestsTable, now: datetime
) -> int:
    """Request the tests that are due and that no guard refuses, and return their number.

    A refused test stays due until its period ends. Raises what the store raises.
    """
    periods = SelfTestPeriods.from_table(table)
    if not periods.list_verbs():
        return 0
    living = [
        device
        for device in snapshot.readings
        if snapshot.is_living(device) and find_host_of_disk(snapshot, device)
    ]
    names = {
        _name_note(verb, period, device): (verb, device)
        for device in living
        for verb, period in periods.list_verbs()
    }
    kept = store.read_notes(SCHEDULE_ROOM)
    done = {names[name]: int(raw) for name, raw in kept.items() if name in names and raw.isdigit()}
    turn = list_due_tests(living, periods, done, now)
    changes: dict[str, bytes | None] = dict.fromkeys(kept.keys() - names.keys())
    by_key = {key: name for name, key in names.items()}
    changes |= {by_key[key]: b"%d" % number for key, number in turn.begun.items()}
    requested = 0
    for verb, device in _choose_requests(turn.due, desk, snapshot, table):
        try:
            desk.request(snapshot, device, verb, SCHEDULE_CALLER)
        except RequestHeld:
            continue
        period = dict(periods.list_verbs())[verb]
        changes[by_key[verb, device]] = b"%d" % compute_period_number(device, period, now)
        requested += 1
    store.write_notes(SCHEDULE_ROOM, changes)
    return requested


def _choose_requests(
    due: Iterable[ScheduleKey], desk: DiskRequestDesk, snapshot: FleetSnapshot, table: SelfTestsTable
) -> Iterator[ScheduleKey]:
    """Yield the tests that fit into the limits of the fleet: one test a host, and some long ones in the cluster."""
    opened = [one.request for one in desk.list_open_requests()]
    running = [(state.host, one.kind) for state in desk.find_collectors().values() for one in state.running]
    busy = {host for host, _ in running} | {one.host for one in opened}
    long = sum(kind is not SelfTestKind.SHORT for _, kind in running)
    long += sum(one.verb is DiskVerb.LONG_TEST for one in opened)
    short = sum(one.verb is DiskVerb.SHORT_TEST for one in opened)
    for verb, device in due:
        host = find_host_of_disk(snapshot, device)
        is_long = verb is DiskVerb.LONG_TEST
        if host in busy or (long >= table.long_tests_at_once if is_long else short >= MOST_SHORT_AT_ONCE):
            continue
        yield verb, device
        busy.add(host)
        long, short = long + is_long, short + (not is_long)


def _name_note(verb: DiskVerb, period: timedelta, device: DeviceId) -> str:
    """Return the name of a note. It holds the period, since numbers of other periods are no numbers of this one."""
    return f"{verb.value} {period.total_seconds():.0f} {device}"

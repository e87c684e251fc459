"""The report of a month: each disk and drain is one entry of the right kind, and each number is counted from them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.data.drain import Drain, DrainState, Intent, Progress
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState
from predrain.data.outlook import GRID_DAYS, Life, Outlook, Status, SurvivalCurve
from predrain.service.events.event import HistoryEvent
from predrain.service.events.event_kinds import HistoryKind
from predrain.service.fleet.drain_timeline import DrainSample
from predrain.service.fleet.monthly_report import (
    BadMonth,
    MonthlyReport,
    ReportedDisk,
    ReportKind,
    build_monthly_report,
    find_month_bounds,
    find_reported_disks,
    measure_latency_hours,
)

SINCE, UNTIL = find_month_bounds("2026-03")
AT = datetime(2026, 3, 20, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
DISK, HOST, OSD = DeviceId("ST4000_Z1"), HostName("stor-01"), OsdId(3)
FAILED = HistoryEvent(AT, HistoryKind.DISK_FAILED, HOST, DISK, OSD)
REPLACED = replace(FAILED, kind=HistoryKind.DISK_REPLACED)
BETTER = replace(FAILED, kind=HistoryKind.OUTLOOK_BETTER, severity=Status.GOOD)
DRAIN = Drain(
    "osd.3-1", DISK, (OSD,), DrainState.VERIFIED, Intent.REPLACE, "ada", "", SINCE, AT,
    progress=Progress(planned_bytes=900, moved_bytes=700),
)  # fmt: skip
ENDED = HistoryEvent(
    AT, HistoryKind.DRAIN_DRAINED, HOST, DISK, OSD, DRAIN.id, DrainState.DRAINED, Intent.REPLACE
)


def outlook(at: datetime, status: Status) -> Outlook:
    curve = SurvivalCurve(1 / (1 + day / 100) for day in GRID_DAYS)
    return Outlook(DISK, at, status, "model:1", (), "", 0.1, 0.2, 0.3, curve, Life(1.0, 2.0, None))


def daily_outlooks(*statuses: Status, last: datetime = AT - HOUR) -> tuple[Outlook, ...]:
    """One outlook a day, the last of them at `last`."""
    many = len(statuses)
    return tuple(outlook(last - (many - 1 - n) * DAY, status) for n, status in enumerate(statuses))


def life(state: LifeState, at: datetime, subject: str = "") -> LifeChange:
    return LifeChange(
        DISK, at, state, LifeSource.CLUSTER, LifeEvidence.DRAIN, subject, host=HOST, osds=(OSD,)
    )


def report(
    *events: HistoryEvent,
    lives: tuple[LifeChange, ...] = (),
    outlooks: tuple[Outlook, ...] = (),
    serves: bool = False,
    samples: tuple[DrainSample, ...] = (),
) -> MonthlyReport:
    return build_monthly_report(
        SINCE, UNTIL, is_whole=True, events=events, disks={DISK: ReportedDisk(lives, outlooks)},
        living=lambda _: serves, drains={DRAIN.id: DRAIN}, samples=lambda _: samples, latency_limit=1.2,
    )  # fmt: skip


def test_a_month_begins_at_its_first_midnight_and_ends_before_the_next_one() -> None:
    assert find_month_bounds("2026-12") == (
        datetime(2026, 12, 1, tzinfo=UTC),
        datetime(2027, 1, 1, tzinfo=UTC),
    )


@pytest.mark.parametrize("text", ["", "2026", "2026-13", "March", "2026-03-01"])
def test_a_text_that_is_no_month_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadMonth, match="2026-10"):
        find_month_bounds(text)


@pytest.mark.parametrize(
    ("lives", "statuses", "kind"),
    [
        ((LifeState.DRAINING, LifeState.DRAINED), (Status.BAD,), ReportKind.FAILED_EMPTY),
        ((LifeState.DRAINED, LifeState.SILENT), (Status.BAD,), ReportKind.FAILED_EMPTY),
        ((LifeState.DRAINING,), (Status.BAD,), ReportKind.FAILED_WHILE_DRAINING),
        ((LifeState.DRAINED, LifeState.IN_SERVICE), (Status.WARNING,), ReportKind.FAILED_CALLED),
        ((), (Status.GOOD, Status.WARNING), ReportKind.FAILED_CALLED),
        ((), (Status.GOOD,), ReportKind.FAILED_UNCALLED),
        ((), (), ReportKind.FAILED_UNJUDGED),
        ((), (Status.UNKNOWN,), ReportKind.FAILED_UNJUDGED),
    ],
)
def test_a_failure_is_told_by_what_had_happened_before_it(
    lives: tuple[LifeState, ...], statuses: tuple[Status, ...], kind: ReportKind
) -> None:
    changes = tuple(life(state, AT - (9 - n) * HOUR, DRAIN.id) for n, state in enumerate(lives))
    made = report(FAILED, lives=changes, outlooks=daily_outlooks(*statuses))
    assert [entry.kind for entry in made.entries] == [kind]
    assert made.failures == 1
    assert made.missed == (kind in (ReportKind.FAILED_UNCALLED, ReportKind.FAILED_UNJUDGED))


def test_a_call_that_was_withdrawn_over_a_month_before_a_failure_does_not_count_for_it() -> None:
    old = daily_outlooks(Status.BAD, Status.GOOD, last=AT - 31 * DAY)
    made = report(FAILED, outlooks=old + daily_outlooks(Status.GOOD))
    assert [(entry.kind, entry.called_days) for entry in made.entries] == [(ReportKind.FAILED_UNCALLED, None)]


def test_the_days_of_a_call_begin_with_the_last_unbroken_run_of_outlooks() -> None:
    statuses = (Status.BAD, Status.GOOD, Status.WARNING, Status.BAD, Status.BAD)
    (entry,) = report(FAILED, outlooks=daily_outlooks(*statuses, last=AT)).entries
    assert entry.called_days == 2


def test_a_disk_that_serves_again_has_not_failed() -> None:
    assert report(FAILED, serves=True).entries == ()


def test_a_failure_that_a_person_states_after_a_rule_is_one_entry() -> None:
    made = report(FAILED, replace(FAILED, at=AT + DAY, by="ada"))
    assert [entry.at for entry in made.entries] == [AT]


def test_a_drained_disk_that_is_replaced_before_it_fails_was_swapped_empty() -> None:
    drained = (life(LifeState.DRAINED, AT - DAY, DRAIN.id),)
    (entry,) = report(REPLACED, lives=drained, outlooks=daily_outlooks(Status.BAD)).entries
    assert (entry.kind, entry.drain, entry.device) == (ReportKind.SWAPPED_EMPTY, DRAIN.id, DISK)


@pytest.mark.parametrize(
    "states", [(), (LifeState.IN_SERVICE,), (LifeState.DRAINED, LifeState.FAILED), (LifeState.DRAINING,)]
)
def test_a_disk_that_was_not_empty_or_had_failed_was_not_swapped_empty(states: tuple[LifeState, ...]) -> None:
    changes = tuple(life(state, AT - (9 - n) * HOUR) for n, state in enumerate(states))
    assert report(REPLACED, lives=changes).entries == ()


def test_a_bad_disk_whose_call_is_withdrawn_while_it_serves_is_a_false_alarm() -> None:
    calls = (*daily_outlooks(Status.BAD, Status.BAD), outlook(AT, Status.GOOD))
    (entry,) = report(BETTER, outlooks=calls, serves=True).entries
    assert (entry.kind, entry.called_days) == (ReportKind.FALSE_ALARM, pytest.approx(25 / 24))


@pytest.mark.parametrize(
    ("statuses", "serves"), [((Status.WARNING,), True), ((), True), ((Status.BAD,), False)]
)
def test_a_withdrawn_warning_or_the_call_of_a_disk_that_ended_is_no_false_alarm(
    statuses: tuple[Status, ...], serves: bool
) -> None:
    assert report(BETTER, outlooks=daily_outlooks(*statuses), serves=serves).entries == ()


def test_a_drain_that_ended_tells_its_bytes_and_the_hours_above_the_limit() -> None:
    at = [AT + n * timedelta(minutes=10) for n in range(4)]
    ratios = (1.0, 1.3, None, 1.1)
    samples = tuple(DrainSample(DRAIN.id, time, 0, 1, ratio) for time, ratio in zip(at, ratios, strict=True))
    made = report(ENDED, samples=samples)
    assert (made.moved_bytes, made.count_entries(ReportKind.DRAIN)) == (700, 1)
    assert (made.hours_above, made.hours_measured) == (pytest.approx(1 / 6), pytest.approx(2 / 6))


def test_a_drain_without_a_curve_has_unknown_hours_and_not_zero() -> None:
    made = report(ENDED)
    assert (made.hours_above, made.hours_measured) == (None, None)


def test_a_gap_in_the_curve_counts_as_ten_minutes_at_most() -> None:
    curve = [DrainSample(DRAIN.id, AT, 0, 1, 2.0), DrainSample(DRAIN.id, AT + 5 * HOUR, 0, 1, 1.0)]
    assert measure_latency_hours(curve, 1.2) == (pytest.approx(1 / 6), pytest.approx(1 / 6))


def test_a_quarantine_moves_nothing_and_is_no_entry() -> None:
    quarantine = {DRAIN.id: replace(DRAIN, intent=Intent.QUARANTINE)}
    made = build_monthly_report(
        SINCE, UNTIL, is_whole=True, events=[ENDED], disks={}, living=lambda _: True, drains=quarantine,
        samples=lambda _: (), latency_limit=1.2,
    )  # fmt: skip
    assert made.entries == ()


def test_only_disks_whose_events_the_report_tells_are_looked_up() -> None:
    seen = replace(FAILED, kind=HistoryKind.DISK_SILENT, device=DeviceId("other"))
    assert find_reported_disks([FAILED, ENDED, seen]) == {DISK}

"""The report of one month: drives that left empty, failures, false alarms, bytes moved, clients' latency.

Every total is counted from the list of entries, so that a total and the disks behind it agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from predrain.data.drain import Drain, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeState
from predrain.data.outlook import Outlook, Status
from predrain.service.events.event import HistoryEvent
from predrain.service.events.event_kinds import HistoryKind
from predrain.service.fleet.drain_timeline import DrainSample

WARNED_WITHIN = timedelta(days=30)
"""A call counts for a failure if it stood at most this long before the failure (docs/explanation/evaluation.md)."""
LOOKED_BACK = timedelta(days=120)
"""How far before an event the outlooks of its disk are read, to find the begin of a call."""
_CALLED = frozenset({Status.WARNING, Status.BAD})
_DRAIN_ENDS = frozenset({HistoryKind.DRAIN_DRAINED, HistoryKind.DRAIN_CANCELLED, HistoryKind.DRAIN_FAILED})
_LONGEST_GAP = timedelta(minutes=10)
"""With no sample for longer than this, nothing is known about the latency of the time between two samples."""


class ReportKind(StrEnum):
    """The kinds of an entry. A failure has exactly one of the five kinds that begin with `failed`."""

    DRAIN = "drain"
    """A drain or fill that ended in the month."""
    SWAPPED_EMPTY = "swapped_empty"
    """A disk was replaced or removed after all of its data had moved away, without a failure."""
    FAILED_EMPTY = "failed_empty"
    """A disk failed after all of its data had moved away."""
    FAILED_WHILE_DRAINING = "failed_while_draining"
    """A disk failed while a drain of it was under way."""
    FAILED_CALLED = "failed_called"
    """A disk failed that was called bad or warning in the 30 days before, and no drain had begun."""
    FAILED_UNCALLED = "failed_uncalled"
    """A disk failed that had outlooks in the 30 days before, and none was worse than good."""
    FAILED_UNJUDGED = "failed_unjudged"
    """A disk failed of which predrain had no judgement in the 30 days before."""
    FALSE_ALARM = "false_alarm"
    """A disk was called bad, the call was withdrawn in the month, and the disk serves."""

    @property
    def is_failure(self) -> bool:
        """True if the entry is the failure of a disk."""
        return self.value.startswith("failed_")

    @property
    def is_missed(self) -> bool:
        """True if the entry is a failure of which nothing had warned."""
        return self in (ReportKind.FAILED_UNCALLED, ReportKind.FAILED_UNJUDGED)


ENTRY_TEXTS = {
    ReportKind.DRAIN: "The drain ended",
    ReportKind.SWAPPED_EMPTY: "The disk was swapped empty, before it failed",
    ReportKind.FAILED_EMPTY: "The disk failed and was empty already",
    ReportKind.FAILED_WHILE_DRAINING: "The disk failed while it was drained",
    ReportKind.FAILED_CALLED: "The disk failed after a warning, and no drain had begun",
    ReportKind.FAILED_UNCALLED: "The disk failed without a warning: missed",
    ReportKind.FAILED_UNJUDGED: "The disk failed, and predrain had no judgement of it: missed",
    ReportKind.FALSE_ALARM: "The disk was called bad, and the call was withdrawn",
}


@dataclass(frozen=True, slots=True)
class ReportEntry:
    """One line of the report. A field that does not apply to the kind, or is not known, is None."""

    at: datetime
    kind: ReportKind
    device: DeviceId | None
    host: HostName | None
    osd: OsdId | None
    drain: str | None = None
    intent: Intent | None = None
    moved_bytes: int | None = None
    called_days: float | None = None
    """Days from the first outlook of the last unbroken call to the entry's time."""
    hours_above: float | None = None
    """Hours of the drain in which the latency ratio was above the limit."""
    hours_measured: float | None = None
    """Hours of the drain of which the latency ratio is known."""

    @property
    def sentence(self) -> str:
        """The entry for people."""
        text = ENTRY_TEXTS[self.kind]
        if self.intent is not None and self.intent.fills_osd:
            text = "The fill ended"
        if self.called_days is not None:
            text += f"; it had been called for {self.called_days:.0f} days"
        return f"{text}."


@dataclass(frozen=True, slots=True)
class MonthlyReport:
    """The report of the time from `since` on and before `until`."""

    since: datetime
    until: datetime
    is_whole: bool
    """False if the month is not over, or the stored history begins within it."""
    latency_limit: float
    entries: tuple[ReportEntry, ...]
    """Oldest first."""

    def count_entries(self, *kinds: ReportKind) -> int:
        """Return the number of entries of these kinds."""
        return sum(entry.kind in kinds for entry in self.entries)

    @property
    def failures(self) -> int:
        """Disks that failed."""
        return sum(entry.kind.is_failure for entry in self.entries)

    @property
    def missed(self) -> int:
        """Disks that failed and of which nothing had warned."""
        return sum(entry.kind.is_missed for entry in self.entries)

    @property
    def moved_bytes(self) -> int:
        """Bytes that the drains and fills which ended in the month moved."""
        return sum(entry.moved_bytes or 0 for entry in self.entries)

    @property
    def hours_above(self) -> float | None:
        """Hours of drains with the latency ratio above the limit; None if no drain was measured."""
        return _add_known(entry.hours_above for entry in self.entries)

    @property
    def hours_measured(self) -> float | None:
        """Hours of drains of which the latency ratio is known; None if no drain was measured."""
        return _add_known(entry.hours_measured for entry in self.entries)


@dataclass(frozen=True, slots=True)
class ReportedDisk:
    """The facts about one disk with an event in the month."""

    lives: Sequence[LifeChange]
    """All changes in its life, in any order."""
    outlooks: Sequence[Outlook]
    """Its outlooks since LOOKED_BACK before the month, oldest first."""


class BadMonth(ValueError):
    """A text that is no month of the form 2026-10."""


def find_month_bounds(month: str) -> tuple[datetime, datetime]:
    """Return begin and end, in UTC, of a month such as 2026-10. Raises BadMonth."""
    try:
        since = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    except ValueError:
        raise BadMonth(f"{month!r} is no month; give a year and a month, such as 2026-10") from None
    return since, (since + timedelta(days=32)).replace(day=1)


def find_reported_disks(events: Iterable[HistoryEvent]) -> frozenset[DeviceId]:
    """Return the disks whose history the report of these events needs."""
    return frozenset(
        event.device for event in events if event.device is not None and event.kind in _KINDS_OF_DISKS
    )


def build_monthly_report(
    since: datetime,
    until: datetime,
    *,
    is_whole: bool,
    events: Sequence[HistoryEvent],
    disks: Mapping[DeviceId, ReportedDisk],
    living: Callable[[DeviceId], bool],
    drains: Mapping[str, Drain],
    samples: Callable[[str], Sequence[DrainSample]],
    latency_limit: float,
) -> MonthlyReport:
    """Build the report.

    events: those of the month, in any order. disks: the history of each disk of `find_reported_disks`. living: whether
    a disk serves now. drains: all drains by id. samples: the curve of a drain. latency_limit: the ratio above which a
    drain holds (`policy.latency_hold`).
    """
    entries: dict[tuple[str, bool], ReportEntry] = {}
    for event in sorted(events, key=lambda event: event.at):
        entry = None
        if event.kind in _DRAIN_ENDS and event.drain is not None:
            entry = _report_drain(event, drains.get(event.drain), samples(event.drain), latency_limit)
        elif event.device is not None and (history := disks.get(event.device)) is not None:
            entry = _report_disk(event, event.device, history, is_living=living(event.device))
        if entry is not None:
            # A person's statement may repeat what a rule found, and a failed disk is replaced later: the first
            # entry about a disk's end counts.
            subject = entry.drain if entry.kind is ReportKind.DRAIN else entry.device
            entries.setdefault((subject or "", entry.kind is ReportKind.FALSE_ALARM), entry)
    return MonthlyReport(since, until, is_whole, latency_limit, tuple(entries.values()))


def measure_latency_hours(samples: Sequence[DrainSample], limit: float) -> tuple[float, float] | None:
    """Measure the hours with a ratio above `limit`, and the hours with a known ratio; None without any known ratio."""
    above = measured = timedelta()
    for one, after in pairwise(samples):
        if one.latency_ratio is None:
            continue
        gap = min(after.at - one.at, _LONGEST_GAP)
        measured += gap
        above += gap if one.latency_ratio > limit else timedelta()
    hour = timedelta(hours=1)
    return (above / hour, measured / hour) if measured else None


def _report_drain(
    event: HistoryEvent, drain: Drain | None, samples: Sequence[DrainSample], limit: float
) -> ReportEntry | None:
    if drain is None or not drain.intent.moves_data:
        return None
    hours = measure_latency_hours(samples, limit)
    above, measured = hours if hours is not None else (None, None)
    return ReportEntry(
        event.at, ReportKind.DRAIN, drain.device, event.host, event.osd, drain.id, drain.intent,
        drain.progress.moved_bytes, hours_above=above, hours_measured=measured,
    )  # fmt: skip


def _report_disk(
    event: HistoryEvent, device: DeviceId, history: ReportedDisk, *, is_living: bool
) -> ReportEntry | None:
    kind, called = None, None
    if event.kind is HistoryKind.DISK_FAILED and not is_living:
        kind = _classify_failure(event.at, history)
        called = None if kind.is_missed else _find_call_begin(history.outlooks, event.at, _CALLED)
    elif event.kind in (HistoryKind.DISK_REPLACED, HistoryKind.DISK_REMOVED):
        kind = ReportKind.SWAPPED_EMPTY if _is_swapped_empty(event.at, history.lives) else None
        called = _find_call_begin(history.outlooks, event.at, _CALLED)
    elif event.kind is HistoryKind.OUTLOOK_BETTER and is_living:
        before = [one for one in history.outlooks if one.as_of < event.at]
        if before and before[-1].severity is Status.BAD:
            kind = ReportKind.FALSE_ALARM
            called = _find_call_begin(before, event.at, frozenset({Status.BAD}))
    if kind is None:
        return None
    days = None if called is None else (event.at - called) / timedelta(days=1)
    return ReportEntry(
        event.at, kind, device, event.host, event.osd, _find_last_drain(event.at, history.lives), called_days=days
    )  # fmt: skip


def _classify_failure(at: datetime, history: ReportedDisk) -> ReportKind:
    match _find_drain_state(at, history.lives):
        case LifeState.DRAINED:
            return ReportKind.FAILED_EMPTY
        case LifeState.DRAINING:
            return ReportKind.FAILED_WHILE_DRAINING
        case _:
            pass
    recent = [one.severity for one in history.outlooks if at - WARNED_WITHIN <= one.as_of <= at]
    if any(severity in _CALLED for severity in recent):
        return ReportKind.FAILED_CALLED
    if any(severity is Status.GOOD for severity in recent):
        return ReportKind.FAILED_UNCALLED
    return ReportKind.FAILED_UNJUDGED


def _is_swapped_empty(at: datetime, lives: Sequence[LifeChange]) -> bool:
    """Return whether the disk was drained and had not failed. A failed disk that is replaced later was reported."""
    failed = any(change.state is LifeState.FAILED for change in lives if change.at < at)
    return not failed and _find_drain_state(at, lives) is LifeState.DRAINED


def _find_drain_state(at: datetime, lives: Sequence[LifeChange]) -> LifeState | None:
    """Return DRAINING or DRAINED if that was the disk's last living state but silent before `at`, else None."""
    before = sorted((change for change in lives if change.at < at), key=lambda change: change.at)
    for change in reversed(before):
        if change.state.is_living and change.state is not LifeState.SILENT:
            return change.state if change.state in (LifeState.DRAINING, LifeState.DRAINED) else None
    return None


def _find_last_drain(at: datetime, lives: Sequence[LifeChange]) -> str | None:
    drained = [
        change
        for change in lives
        if change.at < at and change.state in (LifeState.DRAINING, LifeState.DRAINED)
    ]
    return max(drained, key=lambda change: change.at).subject or None if drained else None


def _find_call_begin(outlooks: Sequence[Outlook], at: datetime, called: frozenset[Status]) -> datetime | None:
    """Return the time of the first outlook of the last unbroken call before `at`; None without a call.

    The outlooks after the call, which withdrew it, do not count.
    """
    begin = None
    for one in reversed([one for one in outlooks if one.as_of <= at]):
        if one.severity in called:
            begin = one.as_of
        elif begin is not None:
            break
    return begin


def _add_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


_KINDS_OF_DISKS = frozenset(
    {
        HistoryKind.DISK_FAILED,
        HistoryKind.DISK_REPLACED,
        HistoryKind.DISK_REMOVED,
        HistoryKind.OUTLOOK_BETTER,
    }
)

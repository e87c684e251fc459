"""One message a day with all causes: what is new, what is still open, what is over.

A digest is a value that the store keeps, so that a restart knows what was sent and for which day. A cause that
came and went between two digests is in the second one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo

from predrain.service.notifications.cause import AlertCause, Severity
from predrain.service.notifications.message_texts import format_halt_link


@dataclass(frozen=True, slots=True)
class DigestHour:
    """The time at which a day's digest is due: from this full hour on, in this time zone."""

    hour: int
    zone: tzinfo = UTC

    def find_due_day(self, now: datetime) -> date:
        """Return the day whose digest is due by `now`. An hour that a change of clocks skips counts as over at
        once.
        """
        local = now.astimezone(self.zone)
        return local.date() if local.hour >= self.hour else local.date() - timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DigestEntry:
    """A cause since the last digest."""

    title: str
    severity: Severity
    since: datetime
    gone: datetime | None = None
    told: bool = False
    """True if the cause was in an earlier digest."""
    silent: bool = False
    """True if the cause is silenced now."""
    names: frozenset[str] = frozenset()
    """The names of the points at the last time when the cause was present."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The content of the next digest. `day`: of the last digest; `since`: the time of the last digest."""

    day: date
    since: datetime
    entries: Mapping[str, DigestEntry] = field(default_factory=dict)
    """The entries by key of the cause."""

    def with_current_causes(
        self,
        causes: Sequence[AlertCause],
        silenced: Container[str],
        now: datetime,
        unsure: Set[str] = frozenset(),
    ) -> Digest:
        """Return the digest after a poll that found `causes`.

        silenced: keys of silenced causes. unsure: names of points that may be present though unseen.
        """
        entries = {
            key: one if one.gone is not None or one.names & unsure else replace(one, gone=now)
            for key, one in self.entries.items()
        }
        for cause in causes:
            before = self.entries.get(cause.key) or DigestEntry(cause.title, cause.severity, now)
            entries[cause.key] = replace(
                before,
                title=cause.title,
                severity=cause.severity,
                gone=None,
                silent=cause.key in silenced,
                names=cause.names,
            )
        return replace(self, entries=entries)

    def with_delivery(self, day: date, now: datetime) -> Digest:
        """Return the digest after the delivery, or after a day without anything to send."""
        standing = {
            key: replace(one, told=one.told or not one.silent)
            for key, one in self.entries.items()
            if one.gone is None
        }
        return Digest(day, now, standing)

    @property
    def new_entries(self) -> tuple[DigestEntry, ...]:
        """Causes that are present and were in no digest."""
        return self._those(lambda one: one.gone is None and not one.told and not one.silent)

    @property
    def open_entries(self) -> tuple[DigestEntry, ...]:
        """Causes that are present and were in a digest."""
        return self._those(lambda one: one.gone is None and one.told and not one.silent)

    @property
    def ended_entries(self) -> tuple[DigestEntry, ...]:
        """Causes that are over, whether they were in a digest or not."""
        return self._those(lambda one: one.gone is not None and (one.told or not one.silent))

    def format_subject(self, cluster: str) -> str:
        """Return the subject line."""
        counted = (
            (len(self.new_entries), "new"),
            (len(self.open_entries), "open"),
            (len(self.ended_entries), "over"),
        )
        return f"[{cluster}] daily: {', '.join(f'{count} {what}' for count, what in counted if count)}"

    def format_text(self, address: str) -> str:
        """Return the message; empty if there is nothing to send. address: of the page; empty if it is not set."""
        parts = (("New", self.new_entries), ("Still open", self.open_entries), ("Over", self.ended_entries))
        lines = [
            line
            for name, entries in parts
            if entries
            for line in ("", f"{name}:", *(f"- {_format_entry(one)}" for one in entries))
        ]
        if not lines:
            return ""
        links = ["", f"{address.rstrip('/')}/alerts", format_halt_link(address)] if address else []
        return "\n".join([f"Since {_format_utc_time(self.since)}.", *lines, *links]) + "\n"

    def _those(self, wanted: Callable[[DigestEntry], bool]) -> tuple[DigestEntry, ...]:
        found = filter(wanted, self.entries.values())
        return tuple(sorted(found, key=lambda one: (one.severity is Severity.NOTICE, one.since, one.title)))


def _format_entry(one: DigestEntry) -> str:
    if one.gone is None:
        return f"{one.severity}: {one.title}" + (
            f" (since {_format_utc_time(one.since)})" if one.told else ""
        )
    return (
        f"{one.title} ({'' if one.told else f'came {_format_utc_time(one.since)}, '}gone "
        f"{_format_utc_time(one.gone)})"
    )


def _format_utc_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%d %b %H:%M} UTC"

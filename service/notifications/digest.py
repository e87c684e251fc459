"""Once a day one message of all causes: what is new, what is still open, what is over.

A digest is a value that a channel keeps, so that a restart knows what was told and of which day. What came and went
between two digests is in the second one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta, tzinfo

from predrain.service.notifications.cause import AlertCause, Severity


@dataclass(frozen=True, slots=True)
class Hour:
    """When a day's digest is due: from this full hour on, by that zone's clock."""

    hour: int
    zone: tzinfo = UTC

    def day(self, now: datetime) -> date:
        """The day whose digest is due by `now`. An hour that a change of clocks leaves out is over at once."""
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
    """Whether it was in an earlier digest."""
    silent: bool = False
    """Whether nobody wants to hear of it now."""
    names: frozenset[str] = frozenset()
    """Of its points when it stood last."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What the next one will say. `day`: of the last one; `since`: when that was made."""

    day: date
    since: datetime
    entries: Mapping[str, DigestEntry] = field(default_factory=dict)
    """By key of the cause."""

    def seen(
        self,
        causes: Sequence[AlertCause],
        silenced: Container[str],
        now: datetime,
        unsure: Set[str] = frozenset(),
    ) -> Digest:
        """After a look that found `causes`.

        silenced: keys of those that nobody wants to hear of. unsure: names of points that may stand though unseen.
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

    def told(self, day: date, now: datetime) -> Digest:
        """Once it was delivered, or there was nothing to say."""
        standing = {
            key: replace(one, told=one.told or not one.silent)
            for key, one in self.entries.items()
            if one.gone is None
        }
        return Digest(day, now, standing)

    @property
    def new(self) -> tuple[DigestEntry, ...]:
        """Stands, and was in no digest."""
        return self._those(lambda one: one.gone is None and not one.told and not one.silent)

    @property
    def open(self) -> tuple[DigestEntry, ...]:
        """Stands, and was in one."""
        return self._those(lambda one: one.gone is None and one.told and not one.silent)

    @property
    def over(self) -> tuple[DigestEntry, ...]:
        """Stands no longer, whether it was in one or not."""
        return self._those(lambda one: one.gone is not None and (one.told or not one.silent))

    def subject(self, cluster: str) -> str:
        """One line."""
        counted = ((len(self.new), "new"), (len(self.open), "open"), (len(self.over), "over"))
        return f"[{cluster}] daily: {', '.join(f'{count} {what}' for count, what in counted if count)}"

    def text(self, address: str) -> str:
        """The message; empty when there is nothing to say. address: of the page; empty when nobody said it."""
        parts = (("New", self.new), ("Still open", self.open), ("Over", self.over))
        lines = [
            line
            for name, entries in parts
            if entries
            for line in ("", f"{name}:", *(f"- {_line(one)}" for one in entries))
        ]
        if not lines:
            return ""
        link = ["", f"{address.rstrip('/')}/alerts"] if address else []
        return "\n".join([f"Since {_clock(self.since)}.", *lines, *link]) + "\n"

    def _those(self, wanted: Callable[[DigestEntry], bool]) -> tuple[DigestEntry, ...]:
        found = filter(wanted, self.entries.values())
        return tuple(sorted(found, key=lambda one: (one.severity is Severity.NOTICE, one.since, one.title)))


def _line(one: DigestEntry) -> str:
    if one.gone is None:
        return f"{one.severity}: {one.title}" + (f" (since {_clock(one.since)})" if one.told else "")
    return f"{one.title} ({'' if one.told else f'came {_clock(one.since)}, '}gone {_clock(one.gone)})"


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%d %b %H:%M} UTC"

"""The store port: history, outlooks, drains, journal, outcomes. Queries are few and named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from data.drain import Drain, JournalEntry
from data.ids import DeviceId
from data.outcome import Outcome
from data.outlook import Outlook
from data.reading import LatencySummary, Reading


class RevisionConflict(Exception):
    """Somebody else saved this drain with the same or a higher revision."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a device's readings up to `through` came to, so that a start need not read them all again."""

    device: DeviceId
    layout: str
    """Names how `state` was made and packed; whoever finds another layout reads the history instead."""
    through: datetime
    """When the newest reading in it was taken."""
    state: bytes


class Store(Protocol):
    """Contract, held by one test suite over all adapters.

    - every `save_*`/`add_*` is durable when it returns and idempotent: the same value twice has one effect;
    - readings are keyed by (device, taken_at); a second one with that key is ignored;
    - a checkpoint is dropped with any reading kept that is not later than it: it never lacks one of its time;
    - `save_drain` raises RevisionConflict unless the revision is higher than the stored one (or equal and identical);
    - the journal is append-only and ordered.
    """

    def add_readings(self, readings: Iterable[Reading]) -> int:
        """Keep readings; returns how many were new."""
        ...

    def readings(self, device: DeviceId, since: datetime | None = None) -> tuple[Reading, ...]:
        """A device's readings from `since` on, oldest first."""
        ...

    def latest_readings(self) -> Mapping[DeviceId, Reading]:
        """Every device's newest reading."""
        ...

    def save_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Keep checkpoints, one a device: a later save replaces it."""
        ...

    def checkpoint(self, device: DeviceId) -> Checkpoint | None:
        """The device's checkpoint; None when there is none or when an earlier reading came after it."""
        ...

    def add_latency(self, summaries: Iterable[LatencySummary]) -> None:
        """Keep latency summaries, keyed by (osd, window_start)."""
        ...

    def latency(self, osd: int, since: datetime) -> tuple[LatencySummary, ...]:
        """An OSD's summaries from `since` on, oldest first."""
        ...

    def save_outlooks(self, outlooks: Iterable[Outlook]) -> None:
        """Keep outlooks, keyed by (device, as_of)."""
        ...

    def latest_outlooks(self) -> Mapping[DeviceId, Outlook]:
        """Every device's newest outlook."""
        ...

    def outlooks(self, device: DeviceId, since: datetime | None = None) -> tuple[Outlook, ...]:
        """A device's outlooks from `since` on, oldest first."""
        ...

    def save_drain(self, drain: Drain) -> None:
        """Keep the drain's newest revision. Raises RevisionConflict."""
        ...

    def drain(self, id: str) -> Drain | None:  # noqa: A002
        """One drain by id."""
        ...

    def drains(self) -> tuple[Drain, ...]:
        """All drains, newest first."""
        ...

    def add_journal(self, entries: Sequence[JournalEntry]) -> None:
        """Append lines to drains' journals."""
        ...

    def journal(self, drain: str | None = None, limit: int | None = None) -> tuple[JournalEntry, ...]:
        """Lines of one drain (or of all), newest last; the newest `limit` of them."""
        ...

    def add_outcome(self, outcome: Outcome) -> None:
        """Append a statement about a device's end."""
        ...

    def outcomes(self) -> tuple[Outcome, ...]:
        """All statements, oldest first."""
        ...

    def halt_reason(self) -> str | None:
        """Why everything is halted, or None when it is not."""
        ...

    def set_halt(self, why: str | None) -> None:
        """Halt (with a reason) or lift the halt (None). Survives restarts."""
        ...

    def prune(self, *, history: datetime | None = None, latency: datetime | None = None) -> int:
        """Drop readings and outlooks from before `history`, latency from before `latency`; returns how many.

        A device's latest reading, latest outlook and checkpoint stay, however old. Drains, their journal and
        outcomes are never dropped.
        """
        ...

    def close(self) -> None:
        """Let go of files and sockets."""
        ...

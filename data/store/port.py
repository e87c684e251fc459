"""The store port: history, outlooks, drains, journal, outcomes. Queries are few and named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Protocol

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.drain import Drain, JournalEntry
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange
from predrain.data.outcome import Outcome
from predrain.data.outlook import Outlook
from predrain.data.reading import LatencySummary, Reading
from predrain.data.windows import Windows

AUDIT = "audit"
"""The journal that is a chain: each of its lines is bound to the line before it."""


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


@dataclass(frozen=True, slots=True)
class News:
    """What was written since an earlier look, by whichever process: a device's newest, a drain's last revision.

    Nothing that was written is left out; what is known already may be told again.
    """

    mark: str
    """For the next look."""
    readings: tuple[Reading, ...] = ()
    outlooks: tuple[Outlook, ...] = ()
    drains: tuple[Drain, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


class ChainBreak(StrEnum):
    """CHANGED: a line does not follow from what stands before it. END: lines at the end are missing.

    UNKNOWN: there are lines, and nothing that says where the chain begins and ends.
    """

    CHANGED = "changed"
    END = "end"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AuditChain:
    """What a walk along the chain found.

    lines: those that were read and held. head: the hash of the last of them. adopted: how many of them were written by
    a version that had no chain, and were chained later as they stood. broken_at: the number of the first line that does
    not hold, where the break is at one line. anchored: the number of the last line that retention dropped. ended: the
    number of the last line, as the chain's own row has it; 0 for none.
    """

    lines: int
    head: bytes
    adopted: int = 0
    broken: ChainBreak | None = None
    broken_at: int | None = None
    anchored: int = 0
    ended: int = 0


class Store(Protocol):
    """Contract, held by one test suite over all adapters.

    - every `save_*`/`add_*` is durable when it returns and idempotent: the same value twice has one effect;
    - readings are keyed by (device, taken_at); a second one with that key is ignored;
    - a checkpoint is dropped with any reading kept that is not later than it: it never lacks one of its time;
    - `save_drain` raises RevisionConflict unless the revision is higher than the stored one (or equal and identical);
    - changes in the lives of disks and events of the cluster are append-only, and ordered as they were written;
    - a journal is ordered and only grows at its end; the journal `audit` is a chain (data.store.chain);
    - a row whose document cannot be read is left out of every answer and reported by `describe_damage`; only the
      very drain that it holds can be neither asked for nor saved;
    - upkeep (`thin`, `coarsen`, `prune`) works in short transactions, a device or an hour of a host each, and goes on
      where it was stopped; what is newest of a device always stays.
    """

    def add_readings(self, readings: Iterable[Reading]) -> int:
        """Keep readings; returns how many were new."""
        ...

    def readings(self, device: DeviceId, since: datetime | None = None) -> tuple[Reading, ...]:
        """A device's readings from `since` on, oldest first."""
        ...

    def latest_readings(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Reading]:
        """The newest reading of each of `devices` that was read, or of every device (None)."""
        ...

    def refile_readings(self, readings: Sequence[Reading], device: DeviceId) -> None:
        """Give readings, which are kept under their own device's name, to `device`, in one transaction. A reading that
        `device` has of the same time stays; checkpoints of every device that is concerned are dropped.
        """
        ...

    def forget_newest(self, device: DeviceId) -> None:
        """Drop what is newest of a device (reading, outlook, checkpoint), so that it is a device no more. Its history
        stays until it is pruned.
        """
        ...

    def save_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Keep checkpoints, one a device: a later save replaces it."""
        ...

    def checkpoints(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, Checkpoint]:
        """The checkpoint of each of `devices` that has one, and got no earlier reading after it."""
        ...

    def unsaved(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, tuple[datetime, ...]]:
        """When each of `devices` was read since its checkpoint (ever, where it has none), where it was."""
        ...

    def find_later_readings(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, tuple[Reading, ...]]:
        """The readings of each of `devices` after its checkpoint, oldest first; none of a device that has none."""
        ...

    def add_latency(self, windows: Iterable[Windows]) -> None:
        """Keep what hosts told of their OSDs, keyed by (osd, window_start)."""
        ...

    def has_latency(self) -> bool:
        """Whether any OSD's latency is kept; costs next to nothing, so that many OSDs need not be asked in vain."""
        ...

    def latency(self, osd: int, since: datetime) -> tuple[LatencySummary, ...]:
        """An OSD's summaries from `since` on, oldest first."""
        ...

    def latency_hosts(self) -> tuple[HostName, ...]:
        """Hosts that ever told of an OSD's latency, in order."""
        ...

    def host_latency(self, host: HostName, since: datetime) -> tuple[Windows, ...]:
        """What a host told of its OSDs from `since` on, oldest first: all OSDs' at a fraction of asking for each's."""
        ...

    def save_outlooks(self, outlooks: Iterable[Outlook]) -> None:
        """Keep outlooks, keyed by (device, as_of)."""
        ...

    def latest_outlooks(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Outlook]:
        """The newest outlook of each of `devices` that has any, or of every device (None)."""
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

    def add_life_changes(self, changes: Sequence[LifeChange]) -> None:
        """Append changes in the lives of disks. The same change twice has one effect."""
        ...

    def read_life_changes(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        device: DeviceId | None = None,
        osd: OsdId | None = None,
    ) -> tuple[LifeChange, ...]:
        """Changes from `since` on and before `until`, of one device or of all, and of all or of disks that stood in
        the slot `osd` then, newest first; the newest `limit`.
        """
        ...

    def last_life_changes(self, after: int = 0) -> tuple[int, Mapping[DeviceId, LifeChange]]:
        """The last change of each disk that changed after the change with the number `after`, and the highest number
        there is, for the next look.
        """
        ...

    def add_cluster_events(self, events: Sequence[ClusterEvent]) -> None:
        """Append events of the cluster: those after which their subject stands otherwise than by its last one, and
        that no older map tells; of a disk's outlooks those after the last one. `save_drain` appends those of drains.
        """
        ...

    def read_cluster_events(
        self, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
    ) -> tuple[ClusterEvent, ...]:
        """Events of the cluster from `since` on and before `until`, newest first; the newest `limit`."""
        ...

    def last_cluster_events(self, kind: ClusterEventKind) -> Mapping[str, ClusterEvent]:
        """The last event of each subject of which that is of `kind`."""
        ...

    def news(self, since: str | None = None) -> News:
        """What was written since the look that gave the mark `since`, or all there is (None)."""
        ...

    def notes(self, room: str) -> Mapping[str, bytes]:
        """Small things that a part of the service remembers under names of its own."""
        ...

    def note(self, room: str, changes: Mapping[str, bytes | None], told: Sequence[JournalEntry] = ()) -> None:
        """Remember, or with None forget, all of `changes` or none; the lines `told` are in the journal if they are."""
        ...

    def verify_audit(self) -> AuditChain:
        """Walk along the chain that the journal `audit` is, and tell whether it holds."""
        ...

    def find_audit_end(self) -> tuple[int, bytes] | None:
        """Number and hash of the audit's last line; None where it never had one."""
        ...

    def find_audit_hashes(self, numbers: Collection[int]) -> Mapping[int, bytes]:
        """The hashes of those lines of the audit, by number; lines that are not there have none."""
        ...

    def note_once(self, room: str, name: str, document: bytes) -> bytes:
        """Remember `document` unless something is remembered under that name; returns what is."""
        ...

    def is_empty(self) -> bool:
        """Whether it never took a reading, a latency, an outlook, a drain or an outcome."""
        ...

    def describe_damage(self) -> str | None:
        """A sentence about the rows that were met and cannot be read, or None where there are none."""
        ...

    def count_damaged_drains(self) -> int:
        """How many drains are kept that cannot be read."""
        ...

    def halt_reason(self) -> str | None:
        """Why everything is halted, or None when it is not."""
        ...

    def set_halt(self, why: str | None) -> None:
        """Halt (with a reason) or lift the halt (None). Survives restarts.

        Where the store takes nothing, a halt stands in this object's memory, and StoreRefusal is raised all the same.
        """
        ...

    def hold_halt(self, why: str) -> None:
        """Halt in this object's memory at once, without the database; `set_halt` has to follow."""
        ...

    def unwritten_halt(self) -> str | None:
        """Why everything is halted, where only this object's memory has it; else None."""
        ...

    def days(self) -> Mapping[date, int]:
        """UTC days with readings; each has a number that is another one once a daily value of that day is."""
        ...

    def daily(self, first: date, last: date) -> Iterator[Reading]:
        """Daily values of the UTC days `first` to `last`: each device's last reading of the day that is not Unreadable,
        by device, oldest first.
        """
        ...

    def thin(self, before: date) -> int:
        """Keep of readings and outlooks from days before `before` a day's last one a device, and its last that is not
        Unreadable; returns how many went.
        """
        ...

    def coarsen(self, before: datetime) -> int:
        """Make one summary (data.store.coarse) of an OSD's latencies in ten minutes that were over by `before`; returns
        how many rows less there are. What comes later for such ten minutes goes with the next call.
        """
        ...

    def alone(self, task: str) -> AbstractContextManager[bool]:
        """Whether no other process that shares the store does `task` as long as the block runs."""
        ...

    def prune(
        self,
        *,
        history: datetime | None = None,
        latency: datetime | None = None,
        journal: tuple[str, datetime] | None = None,
    ) -> int:
        """Drop readings, outlooks, events, changes in the lives of disks and outcomes from before `history`, latency
        from before `latency`, and of the one named `journal` the first lines as far as they are from before a time;
        returns how many.

        A device's latest reading, latest outlook and checkpoint stay, however old, and so do the newest change in the
        life of each disk and of each slot, and the newest outcome of each disk by fate and source. Drains and every
        other journal are never dropped.
        """
        ...

    def close(self) -> None:
        """Let go of files and sockets."""
        ...

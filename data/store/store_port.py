"""The store port: history, outlooks, drains, journal, outcomes. Queries are few and named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.drain import Drain, JournalEntry
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.life_cycle import LifeChange
from predrain.data.outcome import Outcome
from predrain.data.outlook import Outlook
from predrain.data.reading import Reading

AUDIT = "audit"
"""Name of the journal that is a chain: each of its lines is bound to the line before it."""


class RevisionConflict(Exception):
    """Another process saved this drain with the same or a higher revision."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state after a device's readings up to `through`, so that a start need not read them all again."""

    device: DeviceId
    layout: str
    """Names how `state` was made and packed. A process that finds another layout reads the history instead."""
    through: datetime
    """Time of the newest reading in the state."""
    state: bytes


class DeviceTimes(NamedTuple):
    """A device, and the times of its readings of a day, in order."""

    device: DeviceId
    taken_at: Sequence[datetime]


@dataclass(frozen=True, slots=True)
class StoreChanges:
    """The rows that any process wrote since an earlier poll: a device's newest, a drain's last revision.

    No written row is left out; a known row may be reported again.
    """

    mark: str
    """The mark to pass to the next poll."""
    readings: tuple[Reading, ...] = ()
    outlooks: tuple[Outlook, ...] = ()
    drains: tuple[Drain, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class NoteCondition:
    """Notes of `room` that must have exactly these documents, by name, for a write to take effect."""

    room: str
    documents: Mapping[str, bytes]


class ChainBreak(StrEnum):
    """The kind of a break in the chain.

    CHANGED: a line does not follow from the line before it. END: lines at the end are missing. UNKNOWN: there are
    lines, but no row that says where the chain begins and ends.
    """

    CHANGED = "changed"
    END = "end"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AuditChain:
    """The result of a walk along the chain.

    `lines`: the number of lines that were read and hold. `head`: the hash of the last of them. `adopted`: how many of
    them were written by a version without a chain, and were chained later as they were. `broken_at`: the number of
    the first line that does not hold, if the break is at one line. `anchored`: the number of the last line that
    retention dropped. `ended`: the number of the last line by the chain's own row; 0 for none.
    """

    lines: int
    head: bytes
    adopted: int = 0
    broken: ChainBreak | None = None
    broken_at: int | None = None
    anchored: int = 0
    ended: int = 0


class Store(Protocol):
    """Contract of a store, checked by one test suite for all adapters.

    1. Every `save_*`/`add_*` is durable when it returns and idempotent: the same value twice has one effect.
    2. Readings are keyed by (device, taken_at); a second one with that key is ignored.
    3. A new reading that is not later than the checkpoint drops it: a checkpoint never lacks a reading of its time.
    4. `save_drain` raises RevisionConflict unless the revision is higher than the stored one (or equal and
       identical).
    5. Changes in the lives of disks and events of the cluster are append-only, in the order of writing.
    6. A journal is ordered and only grows at its end; the journal `audit` is a chain (data.store.audit_chain).
    7. A row whose document cannot be read is left out of every answer and reported by `describe_damage`. Only a drain
       with such a row can be neither read nor saved.
    8. A store belongs to one cluster (`bind_cluster`). OSDs are those of that cluster in everything that the store
       takes and returns, unless a cluster is named. Rows of other clusters stay apart: osd.3 of two clusters is two.
    9. Upkeep (`thin_to_daily_values`, `merge_old_latencies`, `prune`) works in short transactions, each for some
       devices or for an hour of a host. It continues where it was stopped. A device's newest rows always stay.
    """

    def bind_cluster(self, cluster: ClusterId) -> ClusterId:
        """Bind the store to `cluster` unless it is bound; return the cluster to which it is bound.

        The rows that were written before are that cluster's from then on.
        """
        ...

    def get_cluster(self) -> ClusterId | None:
        """Return the cluster to which the store is bound, or None."""
        ...

    def add_readings(self, readings: Iterable[Reading]) -> int:
        """Store readings; return how many were new."""
        ...

    def readings(self, device: DeviceId, since: datetime | None = None) -> tuple[Reading, ...]:
        """Return a device's readings from `since` on, oldest first."""
        ...

    def latest_readings(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Reading]:
        """Return the newest reading of each of `devices` that was read, or of every device (None)."""
        ...

    def read_newest_times(self) -> Mapping[DeviceId, datetime]:
        """Return the time of each device's newest reading, without reading the reading itself."""
        ...

    def refile_readings(self, readings: Sequence[Reading], device: DeviceId) -> None:
        """Move readings, which are stored under their own device's name, to `device`, in one transaction.

        If `device` has a reading of the same time, that one stays. The checkpoints of every device concerned are
        dropped.
        """
        ...

    def forget_newest(self, device: DeviceId) -> None:
        """Drop a device's newest reading, outlook and checkpoint, so that it is no longer listed.

        Its history stays until it is pruned.
        """
        ...

    def save_checkpoints(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Store checkpoints, one for each device: a later save replaces it."""
        ...

    def checkpoints(self, devices: Collection[DeviceId]) -> Mapping[DeviceId, Checkpoint]:
        """Return the checkpoint of each of `devices` that has one, and got no earlier reading after it."""
        ...

    def iterate_readings(
        self, since: Mapping[DeviceId, datetime | None]
    ) -> Iterator[tuple[DeviceId, tuple[Reading, ...]]]:
        """Yield each device with its readings from its time on (None: all), oldest first.

        This costs one question for hundreds of devices, and holds the decoded readings of one device at a time.
        """
        ...

    def add_latency(self, windows: Iterable[LatencyWindows]) -> None:
        """Store the hosts' reports of their OSDs, keyed by (cluster, osd, window_start).

        Windows of another cluster than the store's own are stored under that cluster.
        """
        ...

    def has_latency(self) -> bool:
        """Return whether any OSD's latency is stored. The call is cheap, and saves queries for many OSDs."""
        ...

    def read_latency_summaries(
        self, osd: int, since: datetime, cluster: ClusterId | None = None
    ) -> tuple[LatencySummary, ...]:
        """Return the summaries from `since` on of an OSD of `cluster` (None: the store's own), oldest first."""
        ...

    def read_latency_beside(self, osd: int, since: datetime) -> tuple[LatencyWindows, ...]:
        """Return the windows from `since` on that have an OSD of the store's own cluster, oldest first.

        Each has the other OSDs of the same host, too.
        """
        ...

    def latency_hosts(self) -> tuple[HostName, ...]:
        """Return the hosts that ever reported the latency of an OSD of the store's own cluster, in order."""
        ...

    def host_latency(self, host: HostName, since: datetime) -> tuple[LatencyWindows, ...]:
        """Return a host's windows from `since` on, oldest first. This costs a fraction of a query for each OSD."""
        ...

    def save_outlooks(self, outlooks: Iterable[Outlook]) -> None:
        """Store outlooks, keyed by (device, as_of).

        The survival curve of an outlook is kept as long as the outlook is its device's newest.
        """
        ...

    def latest_outlooks(self, devices: Collection[DeviceId] | None = None) -> Mapping[DeviceId, Outlook]:
        """Return the newest outlook of each of `devices` that has any, or of every device (None)."""
        ...

    def outlooks(self, device: DeviceId, since: datetime | None = None) -> tuple[Outlook, ...]:
        """Return a device's outlooks from `since` on, oldest first, without their survival curves."""
        ...

    def iterate_outlooks(
        self, since: Mapping[DeviceId, datetime | None]
    ) -> Iterator[tuple[DeviceId, tuple[Outlook, ...]]]:
        """Yield each device with its outlooks from its time on (None: all), as `iterate_readings` does."""
        ...

    def find_outlook_keys(
        self, keys: Collection[tuple[DeviceId, datetime]]
    ) -> frozenset[tuple[DeviceId, datetime]]:
        """Return those of `keys`, each a device and a time, of which there is an outlook."""
        ...

    def save_drain(self, drain: Drain) -> None:
        """Save the drain's newest revision. Raises RevisionConflict."""
        ...

    def drain(self, id: str) -> Drain | None:  # noqa: A002
        """Return one drain by id, or None."""
        ...

    def drains(self) -> tuple[Drain, ...]:
        """Return all drains, newest first."""
        ...

    def add_journal(self, entries: Sequence[JournalEntry]) -> None:
        """Append lines to drains' journals. Raises OfOtherCluster, and appends none, if a line names another cluster
        than the store's own.
        """
        ...

    def journal(self, drain: str | None = None, limit: int | None = None) -> tuple[JournalEntry, ...]:
        """Return the lines of one drain (or of all), newest last; the newest `limit` of them.

        Lines that name another cluster are left out.
        """
        ...

    def add_outcome(self, outcome: Outcome) -> None:
        """Append a statement about a device's end."""
        ...

    def outcomes(self) -> tuple[Outcome, ...]:
        """Return all statements, oldest first."""
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
        """Return the changes from `since` on and before `until`, newest first; the newest `limit`.

        `device` selects one device; `osd` selects disks that stood in that slot then.
        """
        ...

    def last_life_changes(self, after: int = 0) -> tuple[int, Mapping[DeviceId, LifeChange]]:
        """Return the last change of each disk that changed after the change number `after`, and the highest number.

        The number is for the next poll.
        """
        ...

    def add_cluster_events(self, events: Sequence[ClusterEvent]) -> None:
        """Append events of the cluster that change their subject's state since its last event.

        An event from an older map is left out; of a disk's outlooks, events after the last one are appended.
        `save_drain` appends the events of drains.
        """
        ...

    def read_cluster_events(
        self, since: datetime | None = None, until: datetime | None = None, limit: int | None = None
    ) -> tuple[ClusterEvent, ...]:
        """Return the events of the cluster from `since` on and before `until`, newest first; the newest `limit`."""
        ...

    def last_cluster_events(self, kind: ClusterEventKind) -> Mapping[str, ClusterEvent]:
        """Return the last event of each subject, if that event is of `kind`."""
        ...

    def read_changes(self, since: str | None = None) -> StoreChanges:
        """Return the rows written since the poll that gave the mark `since`, or all rows (None)."""
        ...

    def read_notes(self, room: str) -> Mapping[str, bytes]:
        """Return the notes of a part of the service, by name."""
        ...

    def write_notes(
        self, room: str, changes: Mapping[str, bytes | None], told: Sequence[JournalEntry] = ()
    ) -> None:
        """Write, or with None delete, all of `changes` or none; the lines `told` enter the journal with them."""
        ...

    def write_notes_if(
        self, condition: NoteCondition, room: str, changes: Mapping[str, bytes | None]
    ) -> bool:
        """Write all of `changes` as `write_notes` does if `condition` holds; return whether it held.

        No other process can change the notes of the condition between the comparison and the write.
        """
        ...

    def verify_audit(self) -> AuditChain:
        """Walk along the chain of the journal `audit`, and return whether it holds."""
        ...

    def find_audit_end(self) -> tuple[int, bytes] | None:
        """Return number and hash of the audit's last line; None if it never had one."""
        ...

    def find_audit_hashes(self, numbers: Collection[int]) -> Mapping[int, bytes]:
        """Return the hashes of those lines of the audit, by number; lines that do not exist have none."""
        ...

    def note_once(self, room: str, name: str, document: bytes) -> bytes:
        """Write the note `document` unless there is one under that name; return the stored note."""
        ...

    def is_empty(self) -> bool:
        """Return whether the store never took a reading, a latency, an outlook, a drain or an outcome."""
        ...

    def describe_damage(self) -> str | None:
        """Return a sentence about the rows that were found to be unreadable, or None if there are none."""
        ...

    def count_damaged_drains(self) -> int:
        """Return how many stored drains cannot be read."""
        ...

    def halt_reason(self) -> str | None:
        """Return the reason of the halt, or None without a halt."""
        ...

    def set_halt(self, why: str | None) -> None:
        """Halt (with a reason) or lift the halt (None). A halt survives restarts.

        If the store cannot be written, a halt stands in this object's memory, and StoreRefusal is raised all the
        same.
        """
        ...

    def hold_halt(self, why: str) -> None:
        """Halt in this object's memory at once, without the database; `set_halt` has to follow."""
        ...

    def unwritten_halt(self) -> str | None:
        """Return the reason of a halt that only this object's memory has; else None."""
        ...

    def compute_day_fingerprints(self) -> Mapping[date, int]:
        """Return the UTC days with readings, each with a number that changes whenever a daily value of
        that day changes.
        """
        ...

    def read_daily_readings(self, first: date, last: date) -> Iterator[Reading]:
        """Yield the daily values of the UTC days `first` to `last`, by device, oldest first.

        A daily value is a device's last reading of the day that is not Unreadable.
        """
        ...

    def list_reading_days(self, before: date) -> tuple[date, ...]:
        """Return the UTC days before `before` with readings, oldest first."""
        ...

    def iterate_day_times(self, day: date) -> Iterator[DeviceTimes]:
        """Yield the times of each device's readings of a UTC day; rows that cannot be read are among them."""
        ...

    def read_day_readings(self, day: date, devices: Collection[DeviceId]) -> tuple[Reading, ...]:
        """Return the readings of a UTC day of some devices, at most hundreds, by device, oldest first."""
        ...

    def thin_to_daily_values(
        self,
        before: date,
        since: date | None = None,
        archived: Mapping[tuple[DeviceId, date], int] | None = None,
    ) -> int:
        """Thin the readings and outlooks from days before `before`; return how many were dropped.

        Days before `since` are not looked at (None: all are). Each device keeps its last one of a day, and its last one
        that is not Unreadable. With `archived`, readings are dropped only of a device's days that have as many
        readings as it says: one that came since stays, and its day with it, until the next thinning.
        """
        ...

    def merge_old_latencies(self, before: datetime) -> int:
        """Merge an OSD's latencies of each ten minutes that were over by `before` into one summary
        (data.store.coarse_latencies).

        Return by how many rows the table shrank. Late windows of such ten minutes are merged by the next call.
        """
        ...

    def try_lock_task(self, task: str) -> AbstractContextManager[bool]:
        """Yield whether no other process that shares the store does `task` as long as the block runs."""
        ...

    def prune(
        self,
        *,
        history: datetime | None = None,
        latency: datetime | None = None,
        journal: tuple[str, datetime] | None = None,
    ) -> int:
        """Drop old rows; return how many.

        Readings, outlooks, events, changes in the lives of disks and outcomes from before `history` are dropped, and
        latency from before `latency`. Of the one named `journal`, the first lines are dropped up to the first that is
        not older than its time.

        A device's latest reading, latest outlook and checkpoint stay at any age. The newest change in the life of
        each disk and of each slot stays as well, and so does the newest outcome of each disk for each `fate` and
        `source`. Drains and all other journals are never dropped.
        """
        ...

    def close(self) -> None:
        """Close files and sockets."""
        ...

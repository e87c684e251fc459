"""Import the history of other systems into the store, with the checks of any reading; resumable at any line.

The readings of a part go to the store in batches, and the progress is noted after each batch. A killed run
continues from the last note. Readings that were stored but not yet noted arrive a second time, and the store's
key ignores them. So the store is the same however often a run was killed. An imported reading counts as received
when it was taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

import msgspec

from predrain.data.clock import Clock
from predrain.data.ids import DeviceId
from predrain.data.importing import ImportPart, Item, NoScrape, UnusableItem
from predrain.data.log.log_port import Log, Record, Topic
from predrain.data.outcome import Outcome
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import Store
from predrain.data.wire import accept_reading
from predrain.service.storage.record_sender import RecordSender

ROOM = "imports"
HANDED_OVER = "handed-over"
"""The room of the store's notes with the devices whose newest reading comes again, for the sake of an imported past."""
BATCH = 1_000
TOLD = 20
"""Refusals that are reported one by one; every refusal is counted under its reason."""
REASONS = 200
OWING = "to hand over"
FRESH = timedelta(days=7)
"""A device whose newest reading is no older than this is scored at once."""
NEVER = datetime.min.replace(tzinfo=UTC)


class ImportTally(msgspec.Struct, omit_defaults=True):
    """Counts of the imported items. Sums add up over parts and runs."""

    read: int = 0
    """Items that were read."""
    new: int = 0
    """Readings that the store did not have."""
    known: int = 0
    """Readings that the store had."""
    outdated: int = 0
    """Readings that are older than the retention of history."""
    outcomes: int = 0
    """Drives' ends that the store did not have."""
    failed_scrapes: int = 0
    refused: int = 0
    reasons: dict[str, int] = {}
    """The number of refusals by reason, without the place."""
    told: list[str] = []
    """The first refused items, with their places."""

    def add(self, other: ImportTally) -> None:
        """Add the other's sums."""
        for name in ("read", "new", "known", "outdated", "outcomes", "failed_scrapes", "refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons = dict(Counter(self.reasons) + Counter(other.reasons))
        self.told = [*self.told, *other.told][:TOLD]

    def refuse(self, where: str, why: str) -> None:
        """Count an item that is refused."""
        self.refused += 1
        if len(self.told) < TOLD:
            self.told = [*self.told, f"{where}: {why}"]
        if why not in self.reasons and len(self.reasons) >= REASONS:
            why = "other reasons"
        self.reasons[why] = self.reasons.get(why, 0) + 1


class _Came(msgspec.Struct):
    """The progress of one version of a part."""

    version: str
    whole: bool
    tally: ImportTally


class ImportJournal:
    """The progress of each part, and whether the imported devices were handed over for scoring.

    A part that changed since starts over. The journal is kept in the store that the parts go to; a journal in
    another store, or beside a restored one, would list readings that are not there.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._held = store, store.read_notes(ROOM)

    @property
    def is_handover_due(self) -> bool:
        """True if a run stored readings and was killed before it handed them over."""
        return OWING in self._held

    def note_handover_due(self, due: bool) -> None:
        """Note whether a handover is due: before anything is stored, and after the handover."""
        if due != self.is_handover_due:
            self._store.write_notes(ROOM, {OWING: b"{}" if due else None})
            self._held = self._store.read_notes(ROOM)

    def read_progress(self, kind: str, part: ImportPart) -> tuple[ImportTally, bool]:
        """Return the part's tally so far, and whether the part was read to its end."""
        raw = self._held.get(f"{kind} {part.name}")
        came = None if raw is None else msgspec.json.decode(raw, type=_Came)
        return (came.tally, came.whole) if came and came.version == part.version else (ImportTally(), False)

    def save_progress(self, kind: str, part: ImportPart, tally: ImportTally, *, whole: bool) -> None:
        """Note the progress of the part, whose readings are in the store by now."""
        if part.version is not None:
            came = _Came(part.version, whole, tally)
            self._store.write_notes(ROOM, {f"{kind} {part.name}": msgspec.json.encode(came)})


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """The progress of an import, for display."""

    part: str
    total: ImportTally
    parts: int
    before: int
    """The parts that an earlier run had read to the end."""


@dataclass(frozen=True, slots=True)
class ImportResult:
    """The counts of all parts, including those of earlier runs."""

    total: ImportTally
    parts: int
    before: int
    broken: tuple[str, ...] = field(default=())
    """One sentence for each part that could not be read to its end."""


class Importer:
    """Imports parts into a store. Without a store it only checks them (a dry run).

    kept: the retention of history in the store; older readings are counted separately.
    """

    def __init__(self, kind: str, clock: Clock, store: Store | None, kept: timedelta | None = None) -> None:
        self._kind, self._clock, self._store, self._kept = kind, clock, store, kept
        self._journal = ImportJournal(store) if store is not None else None
        self._changed = set[DeviceId]()
        self._owed = self._journal is not None and self._journal.is_handover_due
        self._ends = (
            {(one.device, one.at, one.fate) for one in store.outcomes()} if store is not None else set()
        )

    def run(
        self, parts: Iterable[ImportPart], watch: Callable[[ImportProgress], None] = lambda _: None
    ) -> ImportResult:
        """Read all parts. A part that fails is reported, and the next one follows. Raises what the store raises."""
        total, broken, count, before = ImportTally(), [], 0, 0
        for part in parts:
            tally, whole = (
                (ImportTally(), False)
                if self._journal is None
                else self._journal.read_progress(self._kind, part)
            )
            count, before = count + 1, before + whole
            try:
                for now in self._part(part, tally) if not whole else ():
                    so_far = ImportTally()
                    so_far.add(total)
                    so_far.add(now)
                    watch(ImportProgress(part.name, so_far, count, before))
            except StoreRefusal:  # the next part would fail too; another run continues here
                raise
            except Refusal as refusal:
                broken.append(str(refusal))
            total.add(tally)
        return ImportResult(total, count, before, tuple(broken))

    def hand_over(self, log: Log, sender: RecordSender) -> int:
        """Append fresh readings to the log, so that a worker scores their devices; return their number.

        A device is due if it was never scored, or not with the history that was imported now. Each device gets
        one record, its newest reading, and a note that the reading is no mere repetition: the worker reads the
        device's history for it.
        """
        if self._store is None or self._journal is None:
            return 0
        scored = {device: outlook.as_of for device, outlook in self._store.latest_outlooks().items()}
        now = self._clock.now()
        due = [
            reading
            for device, reading in self._store.latest_readings().items()
            if now - reading.taken_at <= FRESH
            and (self._owed or device in self._changed or scored.get(device, NEVER) < reading.taken_at)
        ]
        if due:
            self._store.write_notes(HANDED_OVER, {reading.device: b"{}" for reading in due})
        log.append(
            Topic.READINGS, [Record(reading.device, sender.encode_envelope(reading)) for reading in due]
        )
        self._journal.note_handover_due(False)
        return len(due)

    def _part(self, part: ImportPart, tally: ImportTally) -> Iterator[ImportTally]:
        with closing(part.items(tally.read)) as items:
            while batch := tuple(islice(items, BATCH)):
                self._take(batch, tally)
                if self._journal is not None:
                    self._journal.save_progress(self._kind, part, tally, whole=False)
                yield tally
        if self._journal is not None:
            self._journal.save_progress(self._kind, part, tally, whole=True)

    def _take(self, batch: Iterable[Item], tally: ImportTally) -> None:
        now, readings, ends = self._clock.now(), list[Reading](), list[Outcome]()
        for item in batch:
            tally.read += 1
            match item:
                case Reading():
                    try:
                        readings.append(accept_reading(item, now))
                    except Refusal as refusal:
                        tally.refuse(item.device, str(refusal))
                case Outcome():
                    ends.append(item)
                case UnusableItem():
                    tally.refuse(item.where, item.why)
                case NoScrape():
                    tally.failed_scrapes += 1
        if self._kept is not None:
            tally.outdated += sum(now - one.taken_at > self._kept for one in readings)
        if self._journal is not None and readings:
            self._journal.note_handover_due(True)
        new = len(readings) if self._store is None else self._store.add_readings(readings)
        if new:
            self._changed.update(one.device for one in readings)
        tally.new, tally.known = tally.new + new, tally.known + len(readings) - new
        for end in ends:
            if (key := (end.device, end.at, end.fate)) not in self._ends:
                self._ends.add(key)
                tally.outcomes += 1
                if self._store is not None:
                    self._store.add_outcome(end)

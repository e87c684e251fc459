"""Imports: parts of others' history through the same acceptance as any reading into the store, resumable at any line.

A part's readings go to the store some at a time, and how far it came is noted after each time: a run that was killed
goes on there, what it had stored and not yet noted comes a second time and is ignored by the store's key. So the
store is the same however often a run was killed. An imported reading counts as received when it was taken.
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
from predrain.data.log.port import Log, Record, Topic
from predrain.data.outcome import Outcome
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal
from predrain.data.store.faults import StoreRefusal
from predrain.data.store.port import Store
from predrain.data.wire import accept
from predrain.service.scoring.sender import Sender

ROOM = "imports"
BATCH = 1_000
TOLD = 20
"""Refusals that are told one by one; all are counted under their reason."""
REASONS = 200
OWING = "to hand over"
FRESH = timedelta(days=7)
"""A device whose newest reading is not older is scored at once."""
NEVER = datetime.min.replace(tzinfo=UTC)


class ImportTally(msgspec.Struct, omit_defaults=True):
    """What became of the items. Sums add up over parts and runs."""

    read: int = 0
    """Items seen."""
    new: int = 0
    """Readings that the store did not have."""
    known: int = 0
    """Readings that it had."""
    outdated: int = 0
    """Readings that are older than history is kept."""
    outcomes: int = 0
    """Drives' ends that it did not have."""
    failed_scrapes: int = 0
    refused: int = 0
    reasons: dict[str, int] = {}
    """Why, without the place: how often."""
    told: list[str] = []
    """The first of the refused, with their places."""

    def add(self, other: ImportTally) -> None:
        """Take the other's sums."""
        for name in ("read", "new", "known", "outdated", "outcomes", "failed_scrapes", "refused"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons = dict(Counter(self.reasons) + Counter(other.reasons))
        self.told = [*self.told, *other.told][:TOLD]

    def refuse(self, where: str, why: str) -> None:
        """One that is not taken in."""
        self.refused += 1
        if len(self.told) < TOLD:
            self.told = [*self.told, f"{where}: {why}"]
        if why not in self.reasons and len(self.reasons) >= REASONS:
            why = "other reasons"
        self.reasons[why] = self.reasons.get(why, 0) + 1


class _Came(msgspec.Struct):
    """How far a part of one version came."""

    version: str
    whole: bool
    tally: ImportTally


class ImportJournal:
    """How far each part came, and whether what was taken in is handed over. A part that changed since starts over.

    Kept in the store that the parts go to: of another one, or of one that was brought back, it would tell what is not
    there.
    """

    def __init__(self, store: Store) -> None:
        self._store, self._held = store, store.notes(ROOM)

    @property
    def owing(self) -> bool:
        """Whether a run took something in and was killed before it handed that over."""
        return OWING in self._held

    def owe(self, due: bool) -> None:
        """Note it, before anything is taken in and after it was handed over."""
        if due != self.owing:
            self._store.note(ROOM, {OWING: b"{}" if due else None})
            self._held = self._store.notes(ROOM)

    def came(self, kind: str, part: ImportPart) -> tuple[ImportTally, bool]:
        """The part's tally so far, and whether it was read to its end."""
        raw = self._held.get(f"{kind} {part.name}")
        came = None if raw is None else msgspec.json.decode(raw, type=_Came)
        return (came.tally, came.whole) if came and came.version == part.version else (ImportTally(), False)

    def note(self, kind: str, part: ImportPart, tally: ImportTally, *, whole: bool) -> None:
        """Keep how far the part came, which is in the store by now."""
        if part.version is not None:
            came = _Came(part.version, whole, tally)
            self._store.note(ROOM, {f"{kind} {part.name}": msgspec.json.encode(came)})


@dataclass(frozen=True, slots=True)
class Seen:
    """How far an import is, for whoever watches."""

    part: str
    total: ImportTally
    parts: int
    before: int
    """Of the parts, those that an earlier run had read to the end."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of all parts, those of earlier runs among them."""

    total: ImportTally
    parts: int
    before: int
    broken: tuple[str, ...] = field(default=())
    """Parts that could not be read (any further), one sentence each."""


class Importer:
    """Takes parts into a store. Without a store it only judges them (a dry run).

    kept: how long the store keeps history; older readings are told apart.
    """

    def __init__(self, kind: str, clock: Clock, store: Store | None, kept: timedelta | None = None) -> None:
        self._kind, self._clock, self._store, self._kept = kind, clock, store, kept
        self._journal = ImportJournal(store) if store is not None else None
        self._changed = set[DeviceId]()
        self._owed = self._journal is not None and self._journal.owing
        self._ends = (
            {(one.device, one.at, one.fate) for one in store.outcomes()} if store is not None else set()
        )

    def run(self, parts: Iterable[ImportPart], watch: Callable[[Seen], None] = lambda _: None) -> Imported:
        """Read all parts. What stops one is told and the next goes on. Raises what the store raises."""
        total, broken, count, before = ImportTally(), [], 0, 0
        for part in parts:
            tally, whole = (
                (ImportTally(), False) if self._journal is None else self._journal.came(self._kind, part)
            )
            count, before = count + 1, before + whole
            try:
                for now in self._part(part, tally) if not whole else ():
                    so_far = ImportTally()
                    so_far.add(total)
                    so_far.add(now)
                    watch(Seen(part.name, so_far, count, before))
            except StoreRefusal:  # the next part would meet it, too; another run goes on here
                raise
            except Refusal as refusal:
                broken.append(str(refusal))
            total.add(tally)
        return Imported(total, count, before, tuple(broken))

    def hand_over(self, log: Log, sender: Sender) -> int:
        """Put fresh readings in the log whose devices were never scored, or not with the past that was taken in now, so
        that a worker scores them; returns how many.

        One a device, its newest; the worker knows it by its key, keeps it once, and reads the device's past for it.
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
        log.append(Topic.READINGS, [Record(reading.device, sender.seal(reading)) for reading in due])
        self._journal.owe(False)
        return len(due)

    def _part(self, part: ImportPart, tally: ImportTally) -> Iterator[ImportTally]:
        with closing(part.items(tally.read)) as items:
            while batch := tuple(islice(items, BATCH)):
                self._take(batch, tally)
                if self._journal is not None:
                    self._journal.note(self._kind, part, tally, whole=False)
                yield tally
        if self._journal is not None:
            self._journal.note(self._kind, part, tally, whole=True)

    def _take(self, batch: Iterable[Item], tally: ImportTally) -> None:
        now, readings, ends = self._clock.now(), list[Reading](), list[Outcome]()
        for item in batch:
            tally.read += 1
            match item:
                case Reading():
                    try:
                        readings.append(accept(item, now))
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
            self._journal.owe(True)
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

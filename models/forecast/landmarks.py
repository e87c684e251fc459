"""Landmarks to learn from: drives on days, with their features on that day and their later outcome.

Landmarks are weekly, each drive on its own weekday. Every landmark within three months before a death is kept. The
others are thinned at random, the quiet ones most, and weighted back, so that odds stay true. Deaths on a day on
which a model loses ten or more drives are retirements booked as failures: those drives count as removed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import History, HistoryFiles, SerialRange, describe_files
from predrain.data.lifespan import HistorySource, Lifespans, without_batches
from predrain.features.drive_history_rows import FeatureLedger, ledger_of
from predrain.features.feature_vectors import compute_feature_vectors, rows_at
from predrain.models.forecast.part_executor import PartExecutor, ThreadExecutor

NEAR: Final = 90
"""Days before a death in which every landmark is kept."""


@dataclass(frozen=True, slots=True)
class Landmarks:
    """The data of a training. All arrays have one entry for each landmark."""

    x: NDArray[np.float32]
    """(landmarks, features)"""
    serial: NDArray[np.object_]
    model: NDArray[np.object_]
    day: NDArray[np.int64]
    follow: NDArray[np.int64]
    """Days from the landmark to death, or to the last day known alive; at least 1."""
    died: NDArray[np.bool_]
    watched: NDArray[np.int64]
    """Days from the landmark to the end of its source. A later death could not have been seen."""
    weight: NDArray[np.float64]
    """Number of landmarks that this one stands for."""

    def __len__(self) -> int:
        return len(self.day)

    def select_rows(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> Landmarks:
        """Return these landmarks only."""
        return Landmarks(*(getattr(self, name)[which] for name in self.__slots__))

    def outcome(self, days: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks: whether the drive dies within so many days, and whether its outcome is known.

        The outcome is known if the drive was watched so long and not removed alive before. A death that was seen
        before the watch ended counts only if survival could have been seen as well: otherwise the last weeks would
        look deadlier than they were.
        """
        dies = self.died & (self.follow <= days)
        return dies, (dies | (self.follow >= days)) & (self.watched >= days)

    def compute_decayed_weights(self, half_life: float) -> NDArray[np.float64]:
        """Return the weights, halved for every `half_life` days before the last day of the data."""
        end = float((self.day + self.follow).max()) if len(self) else 0.0
        return self.weight * 0.5 ** ((end - self.day) / half_life)

    def assign_folds(self, folds: int) -> NDArray[np.int64]:
        """Return a fold for each landmark, the same for all landmarks of a drive."""
        return hash_serials(self.serial) // 7 % folds


def join_landmarks(parts: list[Landmarks]) -> Landmarks:
    """Join several sets of landmarks into one."""
    return Landmarks(*(np.concatenate([getattr(p, name) for p in parts]) for name in Landmarks.__slots__))


def hash_serials(serials: NDArray[np.object_]) -> NDArray[np.int64]:
    """Return a fixed hash of each serial number."""
    unique, at = np.unique(serials.astype(str), return_inverse=True)
    hashes = np.array([zlib.crc32(name.encode()) for name in unique], dtype=np.int64)
    return hashes[at] if len(unique) else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Thinning:
    """One landmark in so many is kept far from death: `quiet` for drives without a symptom, `marked` with an old
    one."""

    quiet: int = 40
    marked: int = 6
    step: int = 7


WEEKLY: Final = Thinning()


def draw_landmarks(
    source: HistorySource,
    *,
    until: date | None,
    seed: int,
    exclude: frozenset[str] = frozenset(),
    thinning: Thinning = WEEKLY,
    threads: int = 2,
    executor: PartExecutor | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Landmarks:
    """Draw landmarks from one source, one part of its drives at a time. They are ordered by drive and day."""
    executor = ThreadExecutor(threads) if executor is None else executor
    files = HistoryFiles(list(source.files), threads=threads)
    lifespans = without_retirements(source.lifespans, files, until)
    parts = files.split_into_parts(executor.rows_per_part, executor.copiers)
    work = partial(
        _draw_part,
        files=files,
        until=until,
        exclude=exclude,
        lifespans=lifespans,
        seed=seed,
        thinning=thinning,
    )
    drawn: list[Landmarks] = []
    for landmarks in executor.map_parts(work, parts):
        drawn.append(landmarks)
        told = describe_files(source.files)
        tell(f"landmarks of {told}, part {len(drawn)} of {len(parts)}: {len(landmarks):,}")
    return join_landmarks(drawn)


def _draw_part(
    part: SerialRange,
    *,
    files: HistoryFiles,
    until: date | None,
    exclude: frozenset[str],
    lifespans: Lifespans,
    seed: int,
    thinning: Thinning,
) -> Landmarks:
    def keep(names: Sequence[str]) -> NDArray[np.bool_]:
        return np.array([name not in exclude for name in names], dtype=bool)

    history = files.read(until=until, part=part, keep=keep)
    return _draw_from_history(history, ledger_of(history), lifespans, seed, thinning)


def without_retirements(lifespans: Lifespans, files: HistoryFiles, until: date | None) -> Lifespans:
    """Turn the deaths that `without_batches` does not believe into removals."""
    dead = np.flatnonzero(lifespans.died)
    model = np.full(len(lifespans.died), "", dtype=object)
    if len(dead):
        model[dead] = files.model_of(lifespans.serials[dead], until=until)
    return without_batches(lifespans, model)


def _draw_from_history(
    history: History, ledger: FeatureLedger, lifespans: Lifespans, seed: int, thinning: Thinning
) -> Landmarks:
    at = lifespans.find_positions(history.serials)
    known = np.flatnonzero(at >= 0)
    first = np.maximum(lifespans.first[at[known]], history.day[history.start[known]])
    last, died = lifespans.last[at[known]], lifespans.died[at[known]]
    phase = hash_serials(history.serials[known])
    step = thinning.step
    begin = first + (phase - first) % step
    count = np.maximum((last - 1 - begin) // step + 1, 0)
    who = np.repeat(np.arange(len(known)), count)
    nth = np.arange(len(who)) - np.repeat(np.cumsum(count) - count, count)
    drive, day = known[who], begin[who] + step * nth
    follow = last[who] - day
    row = rows_at(ledger, drive, day)
    symptom = np.zeros(len(row), dtype=bool)
    fresh = np.zeros(len(row), dtype=bool)
    for n in (5, 187, 197, 198):
        symptom |= ledger.rows[f"level_{n}"][row] > 0
        fresh |= day - ledger.rows[f"rose_on_{n}"][row] <= 30
    near = died[who] & (follow <= NEAR)
    rate = np.where(near | fresh, 1, np.where(symptom, thinning.marked, thinning.quiet))
    chance = _hash_drive_days(phase[who], day, seed)
    kept = np.flatnonzero((row >= 0) & (chance % rate == 0))
    rows = row[kept]
    return Landmarks(
        x=compute_feature_vectors(ledger, drive[kept], day[kept]),
        serial=history.serials[drive[kept]],
        model=np.array(history.model_names, dtype=object)[history.model[rows]],
        day=day[kept],
        follow=follow[kept],
        died=died[who][kept],
        watched=int(lifespans.last.max(initial=0)) - day[kept],
        weight=rate[kept].astype(np.float64),
    )


def _hash_drive_days(drive: NDArray[np.int64], day: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Return a whole number for each (drive, day), the same in every run and for every division of the data."""
    mixed = (
        (drive.astype(np.uint64) << np.uint64(20))
        ^ day.astype(np.uint64)
        ^ (np.uint64(seed) << np.uint64(52))
    )
    mixed *= np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)).astype(np.int64)

"""One origin: train on the data known by the split, score the days after it, and ask the peers. Nothing is
judged here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from predrain.data.history import History, HistoryFiles
from predrain.models.deploy.model_card import card_of
from predrain.models.evaluate import FailureTruth, compare_truncated_scores, read_scores
from predrain.models.evaluate.arrays import Ints
from predrain.models.forecast.bundle import Bundle, CorruptBundle
from predrain.models.forecast.history_scores import FRESH, score_landmark_days
from predrain.models.forecast.score_file import ScoreFile
from predrain.models.forecast.training import save_trained_bundle, train_forecaster
from predrain.models.lab.backtest.backtest_plan import BacktestPlan, OriginTrial
from predrain.models.lab.backtest.file_groups import BacktestFleet
from predrain.models.lab.backtest.judged_readings import cut_at, without_fates
from predrain.models.lab.backtest.rolling_origins import Origin
from predrain.models.lab.peers import peer_scores
from predrain.models.lab.peers.peer_columns import load_peer_columns

if TYPE_CHECKING:
    import pyarrow as pa

OURS = "predrain"


@dataclass(frozen=True, slots=True)
class Tried:
    """An origin that was scored and is not judged yet."""

    trial: OriginTrial
    scores: Mapping[str, Path]
    """Forecaster -> its scores; predrain comes first."""
    notes: Mapping[str, str]
    """Peer -> why it could not be computed, or which inputs it lacked."""
    also_every: Mapping[int, Mapping[str, Path]] = field(default_factory=dict)
    """Days between landmarks -> forecaster -> its scores at these landmarks; predrain comes first."""


def try_origin(
    fleet: BacktestFleet,
    truth: FailureTruth,
    learned_from: Sequence[Path],
    origin: Origin,
    plan: BacktestPlan,
    place: Path,
    tell: Callable[[str], None],
) -> Tried:
    """Compute all that is needed to judge one split, and keep it in the folder `place`. Raises TooLittleHistory."""
    place.mkdir(parents=True, exist_ok=True)
    readings = place / "readings.parquet"
    forecaster = train_bundle(
        learned_from,
        place / "bundle",
        name=f"{fleet.name}-{origin.split}",
        until=origin.split,
        plan=plan,
        tell=tell,
    )
    tell("trained")
    without_fates(fleet.readings, readings, truth, _find_carried_days(origin, plan))
    ours = write_scores(
        readings, forecaster, origin, origin.last, place / f"{OURS}.parquet", plan.threads, tell
    )
    tell("scored")
    cut, again = place / "cut.parquet", place / "cut_scores.parquet"
    cut_at(readings, int(origin.landmarks[0]), cut)
    write_scores(cut, forecaster, origin, origin.first, again, plan.threads, tell)
    looked_ahead = compare_truncated_scores(read_scores(ours), read_scores(again))
    history = HistoryFiles([readings], threads=plan.threads).read(until=origin.last)
    tables, notes = _score_peers_and_challengers(history, readings, truth, learned_from, origin, plan, tell)
    also_every: dict[int, Mapping[str, Path]] = {}
    for days in plan.also_every:
        tell(f"scoring every {days} d")
        stepped, folder = replace(origin, every=days), place / f"every-{days}d"
        folder.mkdir(exist_ok=True)
        also = write_scores(
            readings, forecaster, stepped, origin.last, folder / f"{OURS}.parquet", plan.threads, tell
        )
        asked, _ = _score_peers_and_challengers(
            history, readings, truth, learned_from, stepped, replace(plan, challengers=()), tell
        )
        also_every[days] = {OURS: also} | {
            n: write_table(t, folder / f"{n}.parquet") for n, t in asked.items()
        }
    limits = forecaster.facts.thresholds
    said = {"warning": limits.warning, "bad": limits.bad}
    trial = OriginTrial(origin, forecaster.facts.counts, said, looked_ahead, ours, None)
    return Tried(
        trial,
        {OURS: ours} | {n: write_table(t, place / f"{n}.parquet") for n, t in tables.items()},
        notes,
        also_every,
    )


def _find_carried_days(origin: Origin, plan: BacktestPlan) -> Ints:
    """Return the days to which last rows are carried forward: the landmarks, or every week if other steps are
    judged, too.

    A drive is scored on a day if it has a row in the FRESH days before, so one row a week is enough for any day.
    """
    if not plan.also_every:
        return origin.landmarks
    return np.union1d(origin.landmarks, replace(origin, every=FRESH + 1).landmarks)


def train_bundle(
    learned_from: Sequence[Path],
    folder: Path,
    *,
    name: str,
    until: date,
    exclude: frozenset[str] = frozenset(),
    plan: BacktestPlan,
    tell: Callable[[str], None],
) -> Bundle:
    """Train the recipe without the excluded serial numbers and keep the bundle in `folder`.

    If the plan resumes, a kept bundle with this name, split and number of excluded drives is loaded instead.
    Raises TooLittleHistory.
    """
    kept = load_kept_bundle(folder, name, until, len(exclude)) if plan.resume else None
    if kept is not None:
        tell(f"took up the bundle {name} that an earlier run kept")
        return kept
    trained = train_forecaster(
        learned_from, name=name, until=until, exclude=exclude, threads=plan.threads, tell=tell
    )
    save_trained_bundle(trained, folder, card_of(trained.facts))
    return Bundle.load(folder)


def load_kept_bundle(folder: Path, name: str, until: date, excluded: int) -> Bundle | None:
    """Return the bundle in `folder` if it has this name, split and number of excluded drives, or else None."""
    try:
        bundle = Bundle.load(folder)
    except CorruptBundle:
        return None
    facts = bundle.facts
    same = (facts.name, facts.until, facts.counts["excluded"]) == (name, until.isoformat(), excluded)
    return bundle if same else None


def _score_peers_and_challengers(
    history: History,
    readings: Path,
    truth: FailureTruth,
    learned_from: Sequence[Path],
    origin: Origin,
    plan: BacktestPlan,
    tell: Callable[[str], None],
) -> tuple[dict[str, pa.Table], dict[str, str]]:
    answers = peer_scores(
        plan.peers,
        history,
        truth,
        origin.landmarks,
        split=origin.split_day,
        seed=plan.seed,
        columns=load_peer_columns([readings], history, threads=plan.threads),
        threads=plan.threads,
        tell=tell,
    )
    tables = {answer.name: answer.table for answer in answers if answer.table is not None}
    if plan.challengers:
        from predrain.models.lab.challengers import challenger_scores

        tables |= challenger_scores(
            plan.challengers,
            learned_from,
            until=origin.split,
            history=history,
            landmarks=origin.landmarks,
            seed=plan.seed,
            threads=plan.threads,
            tell=tell,
        )
    return tables, {answer.name: answer.note for answer in answers if answer.note}


def write_scores(
    readings: Path,
    bundle: Bundle,
    origin: Origin,
    last: date,
    out: Path,
    threads: int,
    tell: Callable[[str], None],
) -> Path:
    """Score the origin's landmarks up to `last` and write them to `out`."""
    with ScoreFile(out) as file:
        for part in score_landmark_days(
            [readings], bundle, first=origin.first, last=last, every=origin.every, threads=threads, tell=tell
        ):
            file.write(part.table)
    return out


def write_table(table: pa.Table, path: Path) -> Path:
    """Write the table to a parquet file and return the path."""
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")
    return path

"""The recipe on drives that it has not learned from: one training for each left-out set, judged on that set alone.

Peers that follow rules are asked once. predrain and the peers that learn are trained again without the set. The
report also has KNOWING: the same recipe trained on all drives, so with the set's drives up to the split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import numpy as np

from predrain.data.history import HistoryFiles
from predrain.models.evaluate import (
    FailureTruth,
    NothingToJudge,
    Scores,
    evaluate_forecasts,
    rank_only,
    read_scores,
)
from predrain.models.evaluate.arrays import Bools
from predrain.models.forecast.calibration import WINDOW
from predrain.models.forecast.drive_family import YEAR, normalize_model
from predrain.models.forecast.experience import Experience
from predrain.models.forecast.training import TooLittleHistory
from predrain.models.lab.backtest.backtest_origin import OURS, Tried, train_bundle, write_scores, write_table
from predrain.models.lab.backtest.backtest_plan import QUARTER, BacktestPlan, LeftOutTrial
from predrain.models.lab.backtest.file_groups import BacktestFleet
from predrain.models.lab.backtest.left_out_drives import LeaveOutKind, LeftOutSet, find_left_out_sets
from predrain.models.lab.peers import LEARNERS, peer_scores
from predrain.models.lab.peers.peer_columns import load_peer_columns

if TYPE_CHECKING:
    from predrain.data.history import History
    from predrain.models.lab.peers.peer_columns import SmartColumns

Tell = Callable[[str], None]
Step = Callable[[int, int], None]

KNOWING: Final = f"{OURS} trained on all"
POOLED: Final = "all left-out sets"


@dataclass(frozen=True, slots=True)
class _Answers:
    """One set and the scores that each forecaster gives to its drives."""

    left_out: LeftOutSet
    learned_from: Mapping[str, int]
    scores: Mapping[str, Scores]
    experienced: Scores | None
    """predrain's scores after QUARTER days of experience with the set."""


@dataclass(frozen=True, slots=True)
class _Question:
    """The inputs that all sets of an origin share."""

    fleet: BacktestFleet
    truth: FailureTruth
    learned_from: Sequence[Path]
    tried: Tried
    plan: BacktestPlan
    readings: Path
    history: History
    columns: SmartColumns
    serials: Mapping[str, frozenset[str]]
    """Model -> serial numbers in the files that are learned from."""
    whole: Mapping[str, Scores]
    """Forecaster -> scores of all drives. Forecasters that learn have learned from all drives."""


def try_left_out(
    fleet: BacktestFleet,
    truth: FailureTruth,
    learned_from: Sequence[Path],
    tried: Tried,
    plan: BacktestPlan,
    place: Path,
    left_out: list[str],
    tell: Tell,
    on_step: Step,
) -> list[LeftOutTrial]:
    """Judge each set that the plan leaves out, and all sets of a kind together, at one origin.

    place: the origin's folder, with its `readings.parquet`. left_out: the list to which a sentence is added
    for each set that could not be tried. Raises UnknownLeaveOut.
    """
    origin = tried.trial.origin
    serials = HistoryFiles(learned_from, threads=plan.threads).read_models()
    sets = find_left_out_sets(
        plan.leave_out, truth, origin.landmarks, serials, origin.split, origin.split_day
    )
    empty = {one.kind for one in plan.leave_out} - {one.kind for one in sets}
    left_out += [
        f"{fleet.name}, split {origin.split}, leave out {kind}: no drive at risk belongs to a set."
        for kind in sorted(empty)
    ]
    readings = place / "readings.parquet"
    history = HistoryFiles([readings], threads=plan.threads).read(until=origin.last)
    question = _Question(
        fleet,
        truth,
        learned_from,
        tried,
        plan,
        readings,
        history,
        load_peer_columns([readings], history, threads=plan.threads),
        serials,
        {name: rank_only(read_scores(path)) for name, path in tried.scores.items()},
    )
    trials: list[LeftOutTrial] = []
    for kind in dict.fromkeys(one.kind for one in sets):
        mine = [one for one in sets if one.kind is kind]
        answers: list[_Answers] = []
        for number, one in enumerate(mine, start=1):
            tell(f"{fleet.name}: left-out {kind} {number} of {len(mine)}: {one.name}")
            folder = place / "leave-out" / kind / quote(one.name, safe=" ")
            try:
                answers.append(_ask_forecasters(question, one, folder, tell))
            except TooLittleHistory as error:
                left_out.append(f"{fleet.name}, split {origin.split}, without {kind} {one.name}: {error}")
                tell(left_out[-1])
        trials += _judge_kind(question, answers, on_step)
    return trials


def _ask_forecasters(question: _Question, one: LeftOutSet, folder: Path, tell: Tell) -> _Answers:
    """Train without the set's models and score its drives by every forecaster. Raises TooLittleHistory."""
    tried, plan = question.tried, question.plan
    origin = tried.trial.origin
    if one.kind is LeaveOutKind.ERA:
        # A forecaster trained by the split has seen none of these models, so nothing needs to be trained
        # again.
        return _Answers(one, tried.trial.learned_from, question.whole, None)
    folder.mkdir(parents=True, exist_ok=True)
    judged = one.find_member_drives(question.truth)
    drives = question.truth.serials[judged]
    excluded = frozenset[str]().union(*(question.serials.get(model, frozenset()) for model in one.models))
    bundle = train_bundle(
        question.learned_from,
        folder / "bundle",
        name=f"{question.fleet.name}-{origin.split}-without-{one.kind}-{one.name}",
        until=origin.split,
        exclude=excluded,
        plan=plan,
        tell=tell,
    )
    readings = folder / "readings.parquet"
    _write_drives(question.readings, drives, readings)
    ours = write_scores(readings, bundle, origin, origin.last, folder / f"{OURS}.parquet", plan.threads, tell)
    answers = peer_scores(
        [name for name in plan.peers if name in LEARNERS],
        question.history,
        question.truth.select_drives(~np.isin(question.truth.serials.astype(str), sorted(excluded))),
        origin.landmarks,
        split=origin.split_day,
        seed=plan.seed,
        columns=question.columns,
        drives=drives,
        threads=plan.threads,
        tell=tell,
    )
    learners = {
        answer.name: rank_only(read_scores(write_table(answer.table, folder / f"{answer.name}.parquet")))
        for answer in answers
        if answer.table is not None
    }
    rules = {
        name: scores for name, scores in question.whole.items() if name in plan.peers and name not in LEARNERS
    }
    mine = {OURS: rank_only(read_scores(ours)), KNOWING: question.whole[OURS]}
    told = {name: (learners | rules)[name] for name in plan.peers if name in learners | rules}
    own = count_experience_from_truth(
        question.truth.select_drives(judged), origin.split_day, origin.split_day + QUARTER
    )
    later = replace(origin, first=origin.first + timedelta(QUARTER))
    experienced = None
    if later.first + timedelta(WINDOW) <= later.last:
        scored = write_scores(
            readings,
            bundle.update_rates(own),
            later,
            later.last,
            folder / "experienced.parquet",
            plan.threads,
            tell,
        )
        experienced = rank_only(read_scores(scored))
    return _Answers(one, bundle.facts.counts, mine | told, experienced)


def count_experience_from_truth(truth: FailureTruth, after: int, until: int) -> dict[str, Experience]:
    """Count drives, deaths and quiet years between two days (since 1970-01-01), by model, as a fleet would
    count them."""
    last = np.minimum(np.minimum(truth.last, truth.death), until)
    lived = np.maximum(last - np.maximum(truth.first, after), 0)
    died = (truth.death > after) & (truth.death <= until)
    reading = truth.find_latest_readings(np.arange(len(last)), last - 1)
    symptom = np.append(truth.symptomatic, False)[reading]  # -1: no reading, so none with a symptom
    names, at = np.unique([normalize_model(str(name)) for name in truth.models.tolist()], return_inverse=True)
    seen = np.bincount(at, lived > 0, minlength=len(names))
    deaths = np.bincount(at, died, minlength=len(names))
    quiet_deaths = np.bincount(at, died & ~symptom, minlength=len(names))
    quiet_years = np.bincount(at, lived * ~symptom / YEAR, minlength=len(names))
    return {
        str(name): Experience(int(seen[i]), float(deaths[i]), float(quiet_deaths[i]), float(quiet_years[i]))
        for i, name in enumerate(names)
        if seen[i]
    }


def _judge_kind(question: _Question, answers: Sequence[_Answers], on_step: Step) -> list[LeftOutTrial]:
    """Judge each set by itself and, if there are several, all of them together."""
    found: list[LeftOutTrial] = []
    for each in answers:
        trial = _judge_drives(question, each, each.left_out.find_member_drives(question.truth), on_step)
        found += [trial] if trial else []
    if len(answers) > 1:
        together = _pool_answers(question.truth, answers)
        judged = together.left_out.find_member_drives(question.truth)
        trial = _judge_drives(question, together, judged, on_step)
        found += [trial] if trial else []
    return found


def _pool_answers(truth: FailureTruth, answers: Sequence[_Answers]) -> _Answers:
    """Combine all sets into one: each drive is scored by the forecaster that has not learned from its set."""
    names = [name for name in answers[0].scores if all(name in each.scores for each in answers)]
    kind = answers[0].left_out.kind
    models = frozenset[str]().union(*(each.left_out.models for each in answers))
    parts = {
        name: [
            _of_drives(each.scores[name], truth.serials[each.left_out.find_member_drives(truth)])
            for each in answers
        ]
        for name in names
    }
    late = [
        _of_drives(each.experienced, truth.serials[each.left_out.find_member_drives(truth)])
        for each in answers
        if each.experienced is not None
    ]
    return _Answers(
        LeftOutSet(kind, POOLED, models),
        {},
        {name: _concatenate_scores(part) for name, part in parts.items()},
        _concatenate_scores(late) if len(late) == len(answers) else None,
    )


def _judge_drives(
    question: _Question, answers: _Answers, judged: Bools, on_step: Step
) -> LeftOutTrial | None:
    plan = question.plan
    try:
        report = evaluate_forecasts(
            question.truth.select_drives(judged),
            list(answers.scores.items()),
            resamples=plan.resamples,
            seed=plan.seed,
            landmarks=question.tried.trial.origin.landmarks,
            with_life=False,
            on_step=on_step,
        )
    except NothingToJudge:
        return None
    experienced = None
    if answers.experienced is not None:
        try:
            experienced = evaluate_forecasts(
                question.truth.select_drives(judged),
                [(OURS, answers.experienced)],
                resamples=plan.resamples,
                seed=plan.seed,
                landmarks=np.unique(answers.experienced.day),
                with_life=False,
            )
        except NothingToJudge:
            experienced = None
    return LeftOutTrial(answers.left_out, answers.learned_from, report, experienced)


def _of_drives(scores: Scores, serials: np.ndarray) -> Scores:
    mine = np.isin(scores.serials.astype(str), serials.astype(str))
    return Scores(
        scores.serials[mine],
        scores.day[mine],
        {name: values[mine] for name, values in scores.numbers.items()},
        {},
    )


def _concatenate_scores(parts: Sequence[Scores]) -> Scores:
    return Scores(
        np.concatenate([part.serials for part in parts]),
        np.concatenate([part.day for part in parts]),
        {name: np.concatenate([part.numbers[name] for part in parts]) for name in parts[0].numbers},
        {},
    )


def _write_drives(readings: Path, serials: np.ndarray, out: Path) -> None:
    """Write the rows of these drives, in their order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(readings)
    encoded = table["serial_number"].cast(pa.string()).combine_chunks().dictionary_encode()
    wanted = set(serials.tolist())
    kept = np.array([name in wanted for name in encoded.dictionary.to_pylist()], dtype=bool)
    # A row without a serial number belongs to no drive.
    number = encoded.indices.fill_null(len(kept)).to_numpy(zero_copy_only=False)
    pq.write_table(table.filter(pa.array(np.append(kept, False)[number])), out, compression="zstd")

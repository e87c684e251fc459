"""The whole backtest: try every fleet at every origin, then judge all forecasters on the same resamples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from predrain.data.refusal import Refusal
from predrain.models.evaluate import (
    FailureTruth,
    NothingToJudge,
    Report,
    Scores,
    curves_of,
    evaluate_forecasts,
    rank_only,
    read_scores,
    read_truth,
)
from predrain.models.evaluate.arrays import Ints
from predrain.models.forecast.training import TooLittleHistory
from predrain.models.lab.backtest.backtest_origin import Tried, try_origin
from predrain.models.lab.backtest.backtest_plan import Backtest, BacktestPlan, FleetTrial, OriginTrial
from predrain.models.lab.backtest.file_groups import BacktestFleet, fleets_of
from predrain.models.lab.backtest.rolling_origins import origins_of
from predrain.models.lab.backtest.unseen_drives import try_left_out
from predrain.models.lab.peers import refuse_unknown

Tell = Callable[[str], None]
Step = Callable[[int, int], None]


class NothingTried(Refusal):
    """No split has both something to learn from and something to judge."""


def run_backtest(
    paths: Sequence[Path],
    plan: BacktestPlan,
    folder: Path,
    *,
    tell: Tell = lambda _line: None,
    on_step: Step = lambda _done, _of: None,
) -> Backtest:
    """Try the recipe on histories. Bundles, readings and scores of each origin stay in `folder`.

    An origin that cannot be tried is left out, and the result names the reason. Raises UnreadableHistory,
    UnknownPeer, UnknownChallenger, UnknownLeaveOut, NothingTried.
    """
    refuse_unknown(plan.peers)
    if plan.challengers:
        from predrain.models.lab.challengers import members_of

        members_of(plan.challengers)
    fleets = fleets_of(paths, threads=plan.threads)
    left_out: list[str] = []
    trials = [
        trial
        for fleet in fleets
        if (trial := _try_fleet(fleet, fleets, paths, plan, folder / fleet.name, left_out, tell, on_step))
    ]
    if not trials:
        spans = "; ".join(f"{fleet.name} {fleet.start} to {fleet.end}" for fleet in fleets)
        raise NothingTried(
            " ".join(left_out)
            + f" No split could be tried ({spans}); split inside a history, after 20 deaths and 30 days before its end."
        )
    return Backtest(plan, trials, left_out)


def _try_fleet(
    fleet: BacktestFleet,
    fleets: Sequence[BacktestFleet],
    paths: Sequence[Path],
    plan: BacktestPlan,
    place: Path,
    left_out: list[str],
    tell: Tell,
    on_step: Step,
) -> FleetTrial | None:
    origins = origins_of(
        fleet.start,
        fleet.end,
        splits=plan.splits,
        count=plan.origins,
        judge_days=plan.judge_days,
        embargo=plan.embargo,
        every=plan.every,
    )
    truth = read_truth(fleet.truth)
    tried: list[Tried] = []
    for origin in origins:
        tell(f"{fleet.name}: known by {origin.split}, judged {origin.first} to {origin.last}")
        late = {path for other in fleets if other.start > origin.split for path in other.truth}
        known = [path for path in paths if path not in late]
        home = place / origin.split.isoformat()
        try:
            one = try_origin(fleet, truth, known, origin, plan, home, tell)
        except TooLittleHistory as error:
            left_out.append(f"{fleet.name}, split {origin.split}: {error}")
            tell(left_out[-1])
            continue
        if plan.leave_out:
            trials = try_left_out(fleet, truth, known, one, plan, home, left_out, tell, on_step)
            one = replace(one, trial=replace(one.trial, left_out=trials))
        tried.append(one)
    try:
        return _judge_fleet(fleet, truth, tried, plan, place, on_step) if tried else None
    except NothingToJudge as error:
        left_out.append(f"{fleet.name}: {error}")
        return None


def _judge_fleet(
    fleet: BacktestFleet,
    truth: FailureTruth,
    tried: Sequence[Tried],
    plan: BacktestPlan,
    place: Path,
    on_step: Step,
) -> FleetTrial:
    names = [name for name in tried[0].scores if all(name in one.scores for one in tried)]
    pooled = {
        name: _pool_score_files([one.scores[name] for one in tried], place / f"{name}.parquet")
        for name in names
    }
    scores = {name: read_scores(path) for name, path in pooled.items()}
    landmarks = np.concatenate([one.trial.origin.landmarks for one in tried])
    report = _evaluate_scores(truth, scores, landmarks, plan, on_step)
    trials = [one.trial for one in tried]
    if len(tried) > 1:
        trials = [_judge_origin(truth, trial, scores, plan, on_step) for trial in trials]
    notes = {name: note for one in tried for name, note in one.notes.items()}
    also_every = {days: _judge_step(truth, tried, days, plan, place, on_step) for days in plan.also_every}
    return FleetTrial(fleet, trials, report, curves_of(truth, scores, landmarks), notes, also_every)


def _judge_step(
    truth: FailureTruth, tried: Sequence[Tried], days: int, plan: BacktestPlan, place: Path, on_step: Step
) -> Report:
    """Judge all origins together at landmarks that are `days` days apart. Raises NothingToJudge."""
    parts = [one.also_every[days] for one in tried]
    names = [name for name in parts[0] if all(name in part for part in parts)]
    pooled = {
        name: _pool_score_files([part[name] for part in parts], place / f"{name}-every-{days}d.parquet")
        for name in names
    }
    return evaluate_forecasts(
        truth,
        [(name, rank_only(read_scores(path))) for name, path in pooled.items()],
        resamples=plan.resamples,
        seed=plan.seed,
        landmarks=np.concatenate([replace(one.trial.origin, every=days).landmarks for one in tried]),
        with_life=False,
        on_step=on_step,
    )


def _judge_origin(
    truth: FailureTruth, trial: OriginTrial, scores: Mapping[str, Scores], plan: BacktestPlan, on_step: Step
) -> OriginTrial:
    try:
        return replace(trial, report=_evaluate_scores(truth, scores, trial.origin.landmarks, plan, on_step))
    except NothingToJudge:
        return trial


def _evaluate_scores(
    truth: FailureTruth, scores: Mapping[str, Scores], landmarks: Ints, plan: BacktestPlan, on_step: Step
) -> Report:
    return evaluate_forecasts(
        truth,
        list(scores.items()),
        resamples=plan.resamples,
        seed=plan.seed,
        landmarks=landmarks,
        on_step=on_step,
    )


def _pool_score_files(parts: Sequence[Path], out: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.concat_tables([pq.read_table(part) for part in parts]), out, compression="zstd")
    return out

"""The whole protocol over one or more forecasts: every figure with its interval, and paired differences.

Drives are resampled with replacement. The same resamples serve every forecast, so that a difference has an
interval of its own. A difference is called real if its interval excludes 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from predrain.data.refusal import Refusal
from predrain.models.evaluate.alarms import OwnAlarms
from predrain.models.evaluate.arrays import Ints
from predrain.models.evaluate.censoring_weights import CensoredShare
from predrain.models.evaluate.cohort import (
    CENSORED,
    Cohort,
    align_scores,
    gather_cohort,
    group_failures,
    healthy_windows,
)
from predrain.models.evaluate.drive_outcomes import FailureTruth
from predrain.models.evaluate.expectancy_scores import FollowedEnds, LifeJudge, follow_to_data_end, for_years
from predrain.models.evaluate.forecast_scores import NAMED, EvaluationCase, Judge
from predrain.models.evaluate.ranking import RATES, resample_drives
from predrain.models.evaluate.reliability import Bin
from predrain.models.evaluate.score_rows import Scores, landmarks_of

PAIRED = ("pr_auc", "recall_at_0.1pct", "recall_at_1pct", "brier_skill_30d", "ece_30d")


class NothingToJudge(Refusal):
    """No drive is at risk with a known outcome at any landmark."""


@dataclass(frozen=True, slots=True)
class BootstrapInterval:
    """A figure with the 2.5 and 97.5 percentiles of its resamples. NaN (null in JSON) means unknown."""

    value: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """True if a difference is real, because its interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of the drives, rows, failures and windows that are judged."""

    first_landmark: str
    last_landmark: str
    landmarks: int
    last_day: str
    drives: int
    at_risk: int
    """Drives at risk over all landmarks, which is the expected number of rows."""
    rows: int
    """Rows whose 30-day label is known inside the data."""
    positive_rows: int
    censored: int
    failures: int
    silent: int
    windows: int
    left_out: int


@dataclass(frozen=True, slots=True)
class ForecastFigures:
    """The figures of one forecast."""

    name: str
    missing: int
    ignored: int
    figures: Mapping[str, BootstrapInterval]
    false_alarms: Mapping[str, Mapping[str, float]]
    """Operating point -> stratum -> flagged share of its healthy windows."""
    reliability: Mapping[int, Sequence[Bin]]
    life: Mapping[str, CensoredShare]
    less_baseline: Mapping[str, Mapping[str, BootstrapInterval]]
    """Name of the baseline -> figure -> this forecast minus the baseline, on the same resamples."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of `predrain evaluate`."""

    counts: Counts
    failures_by_stratum: Mapping[str, int]
    judged: Sequence[ForecastFigures]
    """The figures of the forecast first, then of its baselines."""
    resamples: int
    seed: int


def _say_nothing(_done: int, _of: int) -> None:
    pass


def evaluate_forecasts(
    truth: FailureTruth,
    forecasts: Sequence[tuple[str, Scores]],
    *,
    resamples: int = 1000,
    seed: int = 0,
    ends: FollowedEnds | None = None,
    landmarks: Ints | None = None,
    with_life: bool = True,
    on_step: Callable[[int, int], None] = _say_nothing,
) -> Report:
    """Judge the first forecast, and the others beside it. The landmarks are the first one's days unless given.

    with_life: judge life expectancies and concordance, too. Raises NothingToJudge.
    """
    days = landmarks_of(forecasts[0][1]) if landmarks is None else landmarks
    cohort = gather_cohort(truth, days)
    if not cohort.has_known_label(30).any():
        raise NothingToJudge(
            "No drive of the truth is at risk at the scores' landmarks with its outcome known 30 days later; "
            f"the truth ends on {_format_day(truth.end)}, so score landmarks up to 30 days before that."
        )
    question = EvaluationCase.from_cohort(truth, cohort)
    aligned = [align_scores(cohort, truth, scores) for _, scores in forecasts]
    judges = [Judge(question, each) for each in aligned]
    alarms = [OwnAlarms(cohort, each) for each in aligned]
    lives = [
        [LifeJudge(*follow_to_data_end(cohort), each, "inside")] if with_life else [] for each in aligned
    ]
    if ends is not None and with_life:
        followed = for_years(cohort, truth, ends)
        if len(followed[1]):
            lives = [
                [*life, LifeJudge(*followed, each, "long")] for life, each in zip(lives, aligned, strict=True)
            ]

    def weights() -> Iterator[Ints]:
        return (resample_drives(seed, number, cohort.drives) for number in range(resamples + 1))

    drawn: list[list[dict[str, float]]] = [[] for _ in forecasts]
    for number, weight in enumerate(weights()):
        for figures, judge, own, life in zip(drawn, judges, alarms, lives, strict=True):
            figures.append(
                judge.measure(weight)
                | own.measure(weight)
                | {k: v for each in life for k, v in each.measure(weight).items()}
            )
        on_step(number, resamples)
    table = [{name: [figures.get(name, np.nan) for figures in each] for name in each[0]} for each in drawn]
    for columns, life in zip(table, lives, strict=True):
        for each in life:
            columns.update(each.concordances(weights()))

    judged = [
        ForecastFigures(
            name,
            each.missing,
            each.ignored,
            {figure: _bootstrap_interval(values) for figure, values in columns.items()},
            {NAMED[rate]: judge.false_alarms_by_stratum(rate) for rate in RATES},
            judge.tables(),
            {
                k: v
                for one in life
                for k, v in one.rests_on({f: values[0] for f, values in columns.items()}).items()
            },
            _bootstrap_differences(columns, [(f[0], c) for f, c in zip(forecasts, table, strict=True)][1:])
            if not place
            else {},
        )
        for place, ((name, _), each, judge, life, columns) in enumerate(
            zip(forecasts, aligned, judges, lives, table, strict=True)
        )
    ]
    return Report(_count_cases(truth, cohort, question), _by_stratum(question), judged, resamples, seed)


def _bootstrap_differences(
    ours: Mapping[str, list[float]], others: Sequence[tuple[str, Mapping[str, list[float]]]]
) -> dict[str, dict[str, BootstrapInterval]]:
    return {
        name: {
            figure: _bootstrap_interval(
                [mine - theirs for mine, theirs in zip(ours[figure], other[figure], strict=True)]
            )
            for figure in PAIRED
            if figure in ours and figure in other
        }
        for name, other in others
    }


def _bootstrap_interval(values: Sequence[float]) -> BootstrapInterval:
    """Return the interval. The first value is the sample's own, and the others are its resamples'."""
    drawn = np.asarray(values[1:])
    drawn = drawn[np.isfinite(drawn)]
    low, high = np.percentile(drawn, (2.5, 97.5)) if len(drawn) else (np.nan, np.nan)
    return BootstrapInterval(float(values[0]), float(low), float(high))


def _count_cases(truth: FailureTruth, cohort: Cohort, question: EvaluationCase) -> Counts:
    known = cohort.has_known_label(30)
    failed = group_failures(cohort)
    silent = question.strata.names.index("silent")
    return Counts(
        first_landmark=_format_day(int(cohort.landmark.min())),
        last_landmark=_format_day(int(cohort.landmark.max())),
        landmarks=len(np.unique(cohort.landmark)),
        last_day=_format_day(truth.end),
        drives=cohort.drives,
        at_risk=len(cohort.drive),
        rows=int(known.sum()),
        positive_rows=int((cohort.label[30][known] == 1).sum()),
        censored=int(((cohort.label[30] == CENSORED) & (cohort.landmark + 30 <= cohort.end)).sum()),
        failures=len(failed),
        silent=int(question.strata.failure[:, silent].sum()),
        windows=len(healthy_windows(cohort)),
        left_out=int(truth.left_out.sum()),
    )


def _by_stratum(question: EvaluationCase) -> dict[str, int]:
    return {
        name: int(number)
        for name, number in zip(question.strata.names, question.strata.failure.sum(axis=0), strict=True)
    }


def _format_day(number: int) -> str:
    return str(np.datetime64(number, "D"))

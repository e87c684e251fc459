"""The recipe of the bundle that ships, on any history.

Landmarks of all sources -> base rates -> boosters on two thirds of the drives, to forecast the other third
-> calibration, effect of base rates, thresholds and fading from those forecasts -> one booster on all drives.

The result is determined by (files, until, seed). No data known only after `until` are read, and random choices are
a hash of the serial number and the day.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from predrain.data.history import EPOCH
from predrain.data.lifespan import HistorySource, sources_of
from predrain.data.refusal import Refusal
from predrain.data.reported_endings import ReportedEnding, apply_reported_endings
from predrain.features.feature_schema import POSITION, schema_hash
from predrain.features.fingerprint import hash_measurements
from predrain.models.evaluate.ranking import compute_average_precision
from predrain.models.forecast.base_rate import BaseRate, fit_base_rate
from predrain.models.forecast.booster_columns import COLUMNS, INTERVAL, has_symptom, select_columns
from predrain.models.forecast.bundle import DEFAULT, Bundle, BundleFacts, read_landmarks, save_bundle
from predrain.models.forecast.calibration import WINDOW, Calibration, Thresholds, thresholds_of
from predrain.models.forecast.drift import DriftReference, reference_of
from predrain.models.forecast.drive_family import (
    Counts,
    DeathRates,
    load_public_counts,
    normalize_model,
    rates_at,
    rates_of,
    whole_lives,
)
from predrain.models.forecast.explanations import compute_failure_shares
from predrain.models.forecast.hazard import (
    INTERVALS,
    Recipe,
    compute_failure_probabilities,
    person_periods,
    predict_hazards,
)
from predrain.models.forecast.landmark_file import decode_landmarks, encode_landmarks
from predrain.models.forecast.landmarks import (
    WEEKLY,
    Landmarks,
    Thinning,
    draw_landmarks,
    hash_serials,
    join_landmarks,
)
from predrain.models.forecast.life_expectancy import fading_of, first_risk
from predrain.models.forecast.part_executor import PartExecutor, ThreadExecutor
from predrain.models.forecast.recent_mortality import log_odds, measure_recent_mortality
from predrain.models.forecast.watched_periods import watches_of

if TYPE_CHECKING:
    import lightgbm as lgb

FOLDS: Final = 3
RECENT: Final = 182
"""Days before the end whose healthy windows set the thresholds."""
ENOUGH_WINDOWS: Final = 10_000
"""Number of healthy windows from which on a continued training sets thresholds of its own: ten of them reach `bad`.

With fewer it keeps the thresholds of the bundle that it continues, which follow the fleet in service
(models.forecast.fleet_thresholds).
"""
WITNESSES: Final = 12_000
"""Largest number of drives for which every landmark in that time is forecast for the thresholds."""


PLAIN: Final = Recipe()


class TooLittleHistory(Refusal):
    """The history holds too few deaths to learn from."""


@dataclass(frozen=True, slots=True)
class TrainingFoundation:
    """The data of another training, to be learned from again together with a fleet's own months."""

    name: str
    landmarks: Landmarks
    thresholds: Thresholds

    @classmethod
    def load_bundle(cls, folder: Path | None = None) -> TrainingFoundation:
        """Load the data from a bundle, by default the one that ships. Raises CorruptBundle, NoFoundation,
        UnusableLandmarks."""
        bundle = Bundle.load(folder)
        raw = read_landmarks(DEFAULT if folder is None else folder)
        if raw is None:
            raise NoFoundation(
                f"Bundle {bundle.name} brings no landmarks to continue from; name another one (--onto), or say --alone."
            )
        return cls(bundle.name, decode_landmarks(raw), bundle.facts.thresholds)


class NoFoundation(Refusal):
    """There is nothing to continue from, or the data to continue from are later than `until`."""


@dataclass(frozen=True, slots=True)
class Trained:
    """The outcome of training."""

    facts: BundleFacts
    booster: lgb.Booster
    reference: DriftReference | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    """Quality of the forecasts by boosters that had not seen the drive (`judge_cross_fitted`)."""
    landmarks: bytes | None = None
    """The data of the training, as `models.forecast.landmark_file` writes them."""


def train_forecaster(
    paths: Sequence[Path],
    *,
    name: str,
    until: date | None = None,
    exclude: frozenset[str] = frozenset(),
    seed: int = 20180630,
    threads: int = 2,
    recipe: Recipe = PLAIN,
    words: Sequence[ReportedEnding] = (),
    today: date | None = None,
    onto: TrainingFoundation | None = None,
    lives: Counts | None = None,
    executor: PartExecutor | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Train on history files.

    words: reported ends of drives (data.reported_endings). today: later days are errors. lives: with `until`, counts of
    whole lives as they were known by then; without `until`, the shipped counts are used. onto: data to learn from
    besides the files. One of its landmarks counts as much as one of the files, no matter how old it is. `executor`: the
    executor of the parts, by default `threads` threads.

    Raises UnreadableHistory, TooLittleHistory, NoFoundation.
    """
    tell("looking at the files")
    executor = ThreadExecutor(threads) if executor is None else executor
    known_by = min((day for day in (until, today) if day is not None), default=None)
    sources = _select_sources(paths, words, exclude, known_by, until, threads)
    drawn = [
        draw_landmarks(
            s, until=known_by, seed=seed, exclude=exclude, threads=threads, executor=executor, tell=tell
        )
        for s in sources
    ]
    recent_weight = [join_landmarks(drawn).compute_decayed_weights(recipe.half_life)]
    if onto is not None:
        _check_past(onto, until)
        drawn.append(onto.landmarks)
        recent_weight.append(onto.landmarks.compute_decayed_weights(recipe.half_life))
    landmarks = join_landmarks(drawn)
    deaths = _count_deaths(landmarks)
    if until is None:
        rates = rates_of(landmarks, WEEKLY.step, whole_lives(), load_public_counts().counts)
    else:
        rates = rates_of(landmarks, WEEKLY.step, lives)
    x = select_columns(landmarks.x, COLUMNS, fill=True)
    rate = rates_at(rates, landmarks.model, landmarks.x[:, POSITION["hours"]])
    recent = replace(landmarks, weight=np.concatenate(recent_weight))
    unseen, boosters = _cross_fitted(recent, x, recipe, seed, threads, executor, tell)
    calibration, base = _fit_calibration(recent, unseen, rate)
    identity = base.log_odds(rate, has_symptom(landmarks.x))
    lately = measure_recent_mortality(landmarks, calibration(unseen, identity)[:, 2], WEEKLY.step)
    died_by = calibration(unseen, identity + log_odds(lately, landmarks.model))
    p_30d = died_by[:, 2]
    fading = fading_of(first_risk(died_by, rate), rate, recent.weight, watches_of(drawn, sources))
    tell("thresholds from healthy windows")
    thresholds = _fit_thresholds(
        sources[0], known_by, seed, exclude, rates, boosters, calibration, base, lately, threads, executor,
        None if onto is None else onto.thresholds,
    )  # fmt: skip
    tell("the booster of all drives")
    booster = _grow_booster(recent, x, np.ones(len(landmarks), dtype=bool), recipe, seed, executor, tell)
    dies, known = landmarks.outcome(30)
    first, last = int(landmarks.day.min()), int((landmarks.day + landmarks.follow).max())
    facts = BundleFacts(
        name=name,
        version=2,
        schema=schema_hash(COLUMNS),
        measured=hash_measurements(COLUMNS),
        columns=(*COLUMNS, INTERVAL),
        base=base,
        filled=True,
        until=None if until is None else until.isoformat(),
        seed=seed,
        calibration=calibration,
        thresholds=thresholds,
        rates=rates,
        lately=lately,
        fading=fading,
        counts=_count_lessons(landmarks, deaths, exclude, onto),
        shares=compute_failure_shares(landmarks.x[known], dies[known], landmarks.weight[known]),
        window=((EPOCH + timedelta(days=first)).isoformat(), (EPOCH + timedelta(days=last)).isoformat()),
    )
    figures = judge_cross_fitted(landmarks, p_30d, thresholds)
    own = np.arange(len(landmarks)) < len(landmarks) - (0 if onto is None else len(onto.landmarks))
    looked = reference_of(landmarks.select_rows(own), p_30d[own], COLUMNS)
    return Trained(facts, booster, looked, figures, encode_landmarks(landmarks))


def _select_sources(
    paths: Sequence[Path],
    words: Sequence[ReportedEnding],
    exclude: frozenset[str],
    known_by: date | None,
    until: date | None,
    threads: int,
) -> list[HistorySource]:
    """Select the sources that hold at least one drive that is not excluded. Raises TooLittleHistory if there is
    none."""
    sources = [
        source
        for source in apply_reported_endings(
            sources_of(paths, until=known_by, threads=threads), words, until=until
        )
        if not exclude.issuperset(source.lifespans.serials)
    ]
    if not sources:
        raise TooLittleHistory(
            "No drive is left to learn from: the history has none with a date, or all are excluded. Exclude fewer, or "
            "give a longer history."
        )
    return sources


def _count_deaths(landmarks: Landmarks) -> int:
    """Count drives that died within 30 days of a landmark. Raises TooLittleHistory if there are fewer than 20."""
    deaths = len(np.unique(landmarks.serial[landmarks.died & (landmarks.follow <= 30)].astype(str)))
    if deaths < 20:
        raise TooLittleHistory(
            f"Only {deaths} deaths have readings in the 30 days before; give a history with 20 or more, or continue "
            "from a bundle (--onto)."
        )
    return deaths


def _count_lessons(
    landmarks: Landmarks, deaths: int, exclude: frozenset[str], onto: TrainingFoundation | None
) -> dict[str, int]:
    """Count the data of a training for the facts of its bundle."""
    counts = {
        "drives": len(np.unique(landmarks.serial.astype(str))),
        "deaths": deaths,
        "landmarks": len(landmarks),
        "models": len({normalize_model(str(name)) for name in np.unique(landmarks.model.astype(str))}),
        "excluded": len(exclude),
    }
    if onto is not None:
        counts["continued_drives"] = len(np.unique(onto.landmarks.serial.astype(str)))
    return counts


def _check_past(onto: TrainingFoundation, until: date | None) -> None:
    last = EPOCH + timedelta(days=int((onto.landmarks.day + onto.landmarks.follow).max()))
    if until is not None and last > until:
        raise NoFoundation(
            f"Bundle {onto.name} knows what came until {last}, which is after {until}; say --alone, or a later --until."
        )


def judge_cross_fitted(
    landmarks: Landmarks, p_30d: NDArray[np.float64], thresholds: Thresholds
) -> dict[str, float]:
    """Compute figures of the cross-fitted forecasts, on the landmarks of the training; NaN if nothing died.

    p_30d: (landmarks,) probabilities by a booster that had not seen the drive. Rows count by their weight, which
    makes up for healthy rows that were left out. `recall_at_bad` and `recall_at_warning` are shares of the drives
    that died with a landmark in the 30 days before. The future is known here, so only `predrain backtest` gives
    honest figures.
    """
    dies, known = landmarks.outcome(30)
    dies = dies & known
    weight, p = landmarks.weight[known], p_30d[known]
    dying = dies[known]
    if not dying.any():
        return dict.fromkeys(
            ("pr_auc", "brier", "expected_over_observed", "recall_at_bad", "recall_at_warning"), math.nan
        )
    _, drive = np.unique(landmarks.serial[dies].astype(str), return_inverse=True)
    worst = np.zeros(int(drive.max()) + 1)
    np.maximum.at(worst, drive, p_30d[dies])
    return {
        "pr_auc": compute_average_precision(dying, p, weight),
        "brier": float(np.average((p - dying) ** 2, weights=weight)),
        "expected_over_observed": float((weight * p).sum() / weight[dying].sum()),
        "recall_at_bad": float((worst >= thresholds.bad).mean()),
        "recall_at_warning": float((worst >= thresholds.warning).mean()),
    }


def save_trained_bundle(trained: Trained, folder: Path, card: str) -> None:
    """Save the outcome of a training as a bundle."""
    save_bundle(folder, trained.facts, trained.booster, card, trained.reference, trained.landmarks)


def _grow_booster(
    landmarks: Landmarks,
    x: NDArray[np.float32],
    which: NDArray[np.bool_],
    recipe: Recipe,
    seed: int,
    executor: PartExecutor,
    tell: Callable[[str], None],
) -> lgb.Booster:
    mine = np.flatnonzero(which)
    chosen = landmarks.select_rows(mine)
    # A landmark without a later death needs only one interval. A hash selects it, and its weight makes up for
    # the others.
    interval = (hash_serials(chosen.serial) // 13 + chosen.day // 7) % INTERVALS
    periods = person_periods(chosen, interval)
    return executor.grow_booster(x[mine], periods, recipe, seed=seed, names=list(COLUMNS), tell=tell)


def _cross_fitted(
    landmarks: Landmarks,
    x: NDArray[np.float32],
    recipe: Recipe,
    seed: int,
    threads: int,
    executor: PartExecutor,
    tell: Callable[[str], None],
) -> tuple[NDArray[np.float64], list[lgb.Booster]]:
    """Return the probability of death by each edge, for every landmark from a booster that has not seen its drive.

    Return the boosters, too.
    """
    fold = landmarks.assign_folds(FOLDS)
    died = np.zeros((len(landmarks), INTERVALS))
    boosters: list[lgb.Booster] = []
    for number in range(FOLDS):
        tell(f"cross-fitting by drive, {number + 1} of {FOLDS}")
        boosters.append(_grow_booster(landmarks, x, fold != number, recipe, seed, executor, tell))
        died[fold == number] = compute_failure_probabilities(
            predict_hazards(boosters[-1], x[fold == number], threads)
        )
    return died, boosters


def _fit_calibration(
    landmarks: Landmarks, unseen: NDArray[np.float64], rate: NDArray[np.float64]
) -> tuple[Calibration, BaseRate]:
    dies, known = landmarks.outcome(30)
    return fit_base_rate(
        unseen[known, 2], dies[known], landmarks.weight[known], rate[known], has_symptom(landmarks.x[known])
    )


def _fit_thresholds(
    source: HistorySource,
    until: date | None,
    seed: int,
    exclude: frozenset[str],
    rates: DeathRates,
    boosters: list[lgb.Booster],
    calibration: Calibration,
    base: BaseRate,
    lately: Mapping[str, float],
    threads: int,
    executor: PartExecutor,
    before: Thresholds | None,
) -> Thresholds:
    serials = source.lifespans.serials
    end = int(source.lifespans.last.max(initial=0))
    alive = source.lifespans.last > end - RECENT
    hashed = hash_serials(serials) // 11
    every = max(1, int(alive.sum()) // WITNESSES)
    barred = exclude | {str(s) for s in serials[~alive | (hashed % every != 0)]}
    witnesses = draw_landmarks(
        source,
        until=until,
        seed=seed,
        exclude=frozenset(barred),
        thinning=Thinning(1, 1),
        threads=threads,
        executor=executor,
    )
    witnesses = witnesses.select_rows(witnesses.day > end - RECENT)
    x = select_columns(witnesses.x, COLUMNS, fill=True)
    rate = rates_at(rates, witnesses.model, witnesses.x[:, POSITION["hours"]])
    identity = base.log_odds(rate, has_symptom(witnesses.x)) + log_odds(lately, witnesses.model)
    fold = witnesses.assign_folds(FOLDS)
    p = np.zeros(len(x))
    for number, booster in enumerate(boosters):
        mine = fold == number
        died = compute_failure_probabilities(predict_hazards(booster, x[mine], threads))
        p[mine] = calibration(died, identity[mine])[:, 2]
    dies, known = witnesses.outcome(30)
    if (
        before is not None
        and len(np.unique(hash_serials(witnesses.serial[known]))) * RECENT / WINDOW < ENOUGH_WINDOWS
    ):
        return before
    return thresholds_of(p, hash_serials(witnesses.serial), witnesses.day, dies & known, known)

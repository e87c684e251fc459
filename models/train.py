"""The recipe of the bundle that ships, on any history.

Landmarks of all sources -> base rates -> boosters on two thirds of the drives, to forecast the other third
-> calibration, what base rates add, thresholds and fading from those forecasts -> one booster on all drives.
Deterministic in (files, until, seed): nothing that was known only after `until` is read, and chance is a hash of the
serial number and the day.
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

from predrain.data.endings import Word, settled
from predrain.data.history import EPOCH
from predrain.data.lifespan import HistorySource, sources_of
from predrain.data.refusal import Refusal
from predrain.features.schema import POSITION, schema_hash
from predrain.models.base_rate import BaseRate, fit_base_rate
from predrain.models.booster_columns import COLUMNS, INTERVAL, has_symptom, select_columns
from predrain.models.bundle import DEFAULT, Bundle, Facts, read_landmarks, save
from predrain.models.calibrate import WINDOW, Calibration, Thresholds, thresholds_of
from predrain.models.drift import Reference, reference_of
from predrain.models.explain import shares
from predrain.models.family import (
    Counts,
    Rates,
    load_public_counts,
    normalize_model,
    rates_at,
    rates_of,
    whole_lives,
)
from predrain.models.hazard import INTERVALS, Recipe, failing, hazards, person_periods
from predrain.models.landmark_file import decode_landmarks, encode_landmarks
from predrain.models.landmarks import WEEKLY, Landmarks, Thinning, crc, draw, joined
from predrain.models.life import fading_of, first_risk
from predrain.models.recent_mortality import lately_of, log_odds
from predrain.models.scale import Crew, Threads
from predrain.models.watches import watches_of

if TYPE_CHECKING:
    import lightgbm as lgb

FOLDS: Final = 3
RECENT: Final = 182
"""Days before the end whose healthy windows set the thresholds."""
ENOUGH_WINDOWS: Final = 10_000
"""Healthy windows from which on a continued training sets thresholds of its own: ten of them reach `bad`. With fewer it
keeps those that it continues from, which follow the fleet in service (models.fleet_thresholds)."""
WITNESSES: Final = 12_000
"""Drives, at most, whose every landmark in that time is forecast for the thresholds."""


PLAIN: Final = Recipe()


class TooLittleHistory(Refusal):
    """The history holds too few deaths to learn from."""


@dataclass(frozen=True, slots=True)
class Foundation:
    """What another training learned from, to be learned from again beside a fleet's own months."""

    name: str
    landmarks: Landmarks
    thresholds: Thresholds

    @classmethod
    def load_bundle(cls, folder: Path | None = None) -> Foundation:
        """Of a bundle, by default the one that ships. Raises CorruptBundle, NoFoundation."""
        bundle = Bundle.load(folder)
        raw = read_landmarks(DEFAULT if folder is None else folder)
        if raw is None:
            raise NoFoundation(
                f"Bundle {bundle.name} brings no landmarks to continue from; name another one (--onto), or say --alone."
            )
        return cls(bundle.name, decode_landmarks(raw), bundle.facts.thresholds)


class NoFoundation(Refusal):
    """There is nothing to continue from, or what is there knows the future."""


@dataclass(frozen=True, slots=True)
class Trained:
    """The outcome of training."""

    facts: Facts
    booster: lgb.Booster
    reference: Reference | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    """How well the boosters that had not seen a drive forecast it (`judge_cross_fitted`)."""
    landmarks: bytes | None = None
    """What was learned from, as `models.landmark_file` writes it."""


def train(
    paths: Sequence[Path],
    *,
    name: str,
    until: date | None = None,
    exclude: frozenset[str] = frozenset(),
    seed: int = 20180630,
    threads: int = 2,
    recipe: Recipe = PLAIN,
    words: Sequence[Word] = (),
    today: date | None = None,
    onto: Foundation | None = None,
    lives: Counts | None = None,
    crew: Crew | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Trained:
    """Train on history files. words: what was said of drives' ends (data.endings). today: later days are errors.
    lives: with `until`, counts of whole lives as they were known by then; without `until` those that ship are used.
    onto: what is learned from beside the files; a landmark of it counts as much as one of theirs, however long ago it
    was. crew: who works on the parts, by default `threads` threads.

    Raises UnreadableHistory, TooLittleHistory, NoFoundation.
    """
    tell("looking at the files")
    crew = Threads(threads) if crew is None else crew
    known_by = min((day for day in (until, today) if day is not None), default=None)
    sources = [
        source
        for source in settled(sources_of(paths, until=known_by, threads=threads), words, until=until)
        if not exclude.issuperset(source.lifespans.serials)
    ]
    if not sources:
        raise TooLittleHistory(
            "No drive is left to learn from: the history has none with a date, or all are excluded. Exclude fewer, or "
            "give a longer history."
        )
    drawn = [
        draw(s, until=known_by, seed=seed, exclude=exclude, threads=threads, crew=crew, tell=tell)
        for s in sources
    ]
    recent_weight = [joined(drawn).aged(recipe.half_life)]
    if onto is not None:
        _check_past(onto, until)
        drawn.append(onto.landmarks)
        recent_weight.append(onto.landmarks.aged(recipe.half_life))
    landmarks = joined(drawn)
    deaths = _count_deaths(landmarks)
    if until is None:
        rates = rates_of(landmarks, WEEKLY.step, whole_lives(), load_public_counts().counts)
    else:
        rates = rates_of(landmarks, WEEKLY.step, lives)
    x = select_columns(landmarks.x, COLUMNS, fill=True)
    rate = rates_at(rates, landmarks.model, landmarks.x[:, POSITION["hours"]])
    recent = replace(landmarks, weight=np.concatenate(recent_weight))
    unseen, boosters = _cross_fitted(recent, x, recipe, seed, threads, crew, tell)
    calibration, base = _calibration(recent, unseen, rate)
    identity = base.log_odds(rate, has_symptom(landmarks.x))
    lately = lately_of(landmarks, calibration(unseen, identity)[:, 2], WEEKLY.step)
    died_by = calibration(unseen, identity + log_odds(lately, landmarks.model))
    p_30d = died_by[:, 2]
    fading = fading_of(first_risk(died_by, rate), rate, recent.weight, watches_of(drawn, sources))
    tell("thresholds from healthy windows")
    thresholds = _thresholds(
        sources[0], known_by, seed, exclude, rates, boosters, calibration, base, lately, threads, crew,
        None if onto is None else onto.thresholds,
    )  # fmt: skip
    tell("the booster of all drives")
    booster = _grow(recent, x, np.ones(len(landmarks), dtype=bool), recipe, seed, crew, tell)
    dies, known = landmarks.outcome(30)
    told = shares(landmarks.x[known], dies[known], landmarks.weight[known])
    first, last = int(landmarks.day.min()), int((landmarks.day + landmarks.follow).max())
    facts = Facts(
        name=name,
        version=2,
        schema=schema_hash(COLUMNS),
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
        shares=told,
        window=((EPOCH + timedelta(days=first)).isoformat(), (EPOCH + timedelta(days=last)).isoformat()),
    )
    figures = judge_cross_fitted(landmarks, p_30d, thresholds)
    own = np.arange(len(landmarks)) < len(landmarks) - (0 if onto is None else len(onto.landmarks))
    looked = reference_of(landmarks.only(own), p_30d[own], COLUMNS)
    return Trained(facts, booster, looked, figures, encode_landmarks(landmarks))


def _count_deaths(landmarks: Landmarks) -> int:
    """Drives that died within 30 days of a landmark. Raises TooLittleHistory where they are fewer than 20."""
    deaths = len(np.unique(landmarks.serial[landmarks.died & (landmarks.follow <= 30)].astype(str)))
    if deaths < 20:
        raise TooLittleHistory(
            f"Only {deaths} deaths have readings in the 30 days before; give a history with 20 or more, or continue "
            "from a bundle (--onto)."
        )
    return deaths


def _count_lessons(
    landmarks: Landmarks, deaths: int, exclude: frozenset[str], onto: Foundation | None
) -> dict[str, int]:
    """What a bundle says that it was learned from."""
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


def _check_past(onto: Foundation, until: date | None) -> None:
    last = EPOCH + timedelta(days=int((onto.landmarks.day + onto.landmarks.follow).max()))
    if until is not None and last > until:
        raise NoFoundation(
            f"Bundle {onto.name} knows what came until {last}, which is after {until}; say --alone, or a later --until."
        )


def judge_cross_fitted(
    landmarks: Landmarks, p_30d: NDArray[np.float64], thresholds: Thresholds
) -> dict[str, float]:
    """Figures of the cross-fitted forecasts, on the landmarks that are learned from; NaN where nothing died.

    p_30d: (landmarks,) chances by a booster that had not seen the drive. Rows count by their weight, so that healthy
    rows that were left out are made up for. `recall_at_bad` and `recall_at_warning` are shares of the drives that died
    with a landmark in the 30 days before. The future is known here: `predrain backtest` is the honest judge.
    """
    from sklearn.metrics import average_precision_score

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
        "pr_auc": float(average_precision_score(dying, p, sample_weight=weight)),
        "brier": float(np.average((p - dying) ** 2, weights=weight)),
        "expected_over_observed": float((weight * p).sum() / weight[dying].sum()),
        "recall_at_bad": float((worst >= thresholds.bad).mean()),
        "recall_at_warning": float((worst >= thresholds.warning).mean()),
    }


def write(trained: Trained, folder: Path, card: str) -> None:
    """Save what was trained as a bundle."""
    save(folder, trained.facts, trained.booster, card, trained.reference, trained.landmarks)


def _grow(
    landmarks: Landmarks,
    x: NDArray[np.float32],
    which: NDArray[np.bool_],
    recipe: Recipe,
    seed: int,
    crew: Crew,
    tell: Callable[[str], None],
) -> lgb.Booster:
    mine = np.flatnonzero(which)
    chosen = landmarks.only(mine)
    # Of a landmark that nobody died after, one interval is enough: a hash says which, its weight makes up.
    interval = (crc(chosen.serial) // 13 + chosen.day // 7) % INTERVALS
    periods = person_periods(chosen, interval)
    return crew.grow(x[mine], periods, recipe, seed=seed, names=list(COLUMNS), tell=tell)


def _cross_fitted(
    landmarks: Landmarks,
    x: NDArray[np.float32],
    recipe: Recipe,
    seed: int,
    threads: int,
    crew: Crew,
    tell: Callable[[str], None],
) -> tuple[NDArray[np.float64], list[lgb.Booster]]:
    """Chance to have died by each edge, for every landmark by a booster that has not seen its drive."""
    fold = landmarks.fold(FOLDS)
    died = np.zeros((len(landmarks), INTERVALS))
    boosters: list[lgb.Booster] = []
    for number in range(FOLDS):
        tell(f"cross-fitting by drive, {number + 1} of {FOLDS}")
        boosters.append(_grow(landmarks, x, fold != number, recipe, seed, crew, tell))
        died[fold == number] = failing(hazards(boosters[-1], x[fold == number], threads))
    return died, boosters


def _calibration(
    landmarks: Landmarks, unseen: NDArray[np.float64], rate: NDArray[np.float64]
) -> tuple[Calibration, BaseRate]:
    dies, known = landmarks.outcome(30)
    return fit_base_rate(
        unseen[known, 2], dies[known], landmarks.weight[known], rate[known], has_symptom(landmarks.x[known])
    )


def _thresholds(
    source: HistorySource,
    until: date | None,
    seed: int,
    exclude: frozenset[str],
    rates: Rates,
    boosters: list[lgb.Booster],
    calibration: Calibration,
    base: BaseRate,
    lately: Mapping[str, float],
    threads: int,
    crew: Crew,
    before: Thresholds | None,
) -> Thresholds:
    serials = source.lifespans.serials
    end = int(source.lifespans.last.max(initial=0))
    alive = source.lifespans.last > end - RECENT
    hashed = crc(serials) // 11
    every = max(1, int(alive.sum()) // WITNESSES)
    barred = exclude | {str(s) for s in serials[~alive | (hashed % every != 0)]}
    witnesses = draw(
        source,
        until=until,
        seed=seed,
        exclude=frozenset(barred),
        thinning=Thinning(1, 1),
        threads=threads,
        crew=crew,
    )
    witnesses = witnesses.only(witnesses.day > end - RECENT)
    x = select_columns(witnesses.x, COLUMNS, fill=True)
    rate = rates_at(rates, witnesses.model, witnesses.x[:, POSITION["hours"]])
    identity = base.log_odds(rate, has_symptom(witnesses.x)) + log_odds(lately, witnesses.model)
    fold = witnesses.fold(FOLDS)
    p = np.zeros(len(x))
    for number, booster in enumerate(boosters):
        mine = fold == number
        died = failing(hazards(booster, x[mine], threads))
        p[mine] = calibration(died, identity[mine])[:, 2]
    dies, known = witnesses.outcome(30)
    if before is not None and len(np.unique(crc(witnesses.serial[known]))) * RECENT / WINDOW < ENOUGH_WINDOWS:
        return before
    return thresholds_of(p, crc(witnesses.serial), witnesses.day, dies & known, known)

"""The periodic check of the forecast: drift, calibration and the challenger, with one alert per cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog

from predrain.data.scorebook import Scorebook
from predrain.data.store.store_port import Store
from predrain.service.forecasting.fleet_experience import save_experience
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.forecasting.known_fates import lives_of

if TYPE_CHECKING:
    from predrain.models.deploy.model_comparison import Calibrated, Comparison
    from predrain.models.forecast.drift import FamilyDrift

COMPARED = timedelta(days=180)
"""The period over which forecasts are compared with outcomes."""


class ForecastFault(StrEnum):
    """The faults that a forecast may have; each gives one alert, for any number of families."""

    DRIFT = "drift"
    CALIBRATION = "calibration"
    CHALLENGER = "challenger"


@dataclass(frozen=True, slots=True)
class Concern:
    """An alert about the forecast itself."""

    cause: ForecastFault
    since: datetime
    families: tuple[str, ...]
    sentence: str
    cure: str


@dataclass(frozen=True, slots=True)
class ForecastHealth:
    """The quality of the forecast at one time."""

    at: datetime
    drift: tuple[FamilyDrift, ...] = ()
    calibration: tuple[Calibrated, ...] = ()
    comparison: Comparison | None = None
    """Champion first, then the challenger, if there is one."""
    concerns: tuple[Concern, ...] = field(default=())

    def merge_earlier_concerns(self, before: ForecastHealth | None) -> ForecastHealth:
        """Return a copy in which concerns that existed before keep the time at which they began. Changes are
        logged.
        """
        known = {one.cause: one for one in before.concerns} if before else {}
        log = structlog.get_logger()
        for cause in known.keys() - {one.cause for one in self.concerns}:
            log.info("a concern about the forecast is over", cause=cause.value)
        for one in self.concerns:
            if one.cause not in known:
                log.warning("a concern about the forecast", cause=one.cause.value, reason=one.sentence)
        kept = (
            replace(one, since=known[one.cause].since) if one.cause in known else one for one in self.concerns
        )
        return replace(self, concerns=tuple(kept))


def assess_forecast(
    champion: Forecaster[Any],
    challenger: Forecaster[Any] | None,
    states: Mapping[Any, Any],
    scorebook: Scorebook | None,
    store: Store,
    now: datetime,
) -> ForecastHealth:
    """Judge the forecast by the drives in service and by the outcomes of drives, and let it learn from them."""
    drift = champion.measure_family_drift(states.values())
    found = ForecastHealth(now, drift)
    if scorebook is not None:
        comparison, calibrated = compare_with_challenger(
            champion, challenger, scorebook, store, now, learn=True
        )
        found = replace(found, calibration=calibrated, comparison=comparison)
    return replace(found, concerns=tuple(concerns_of(found)))


def compare_with_challenger(
    champion: Forecaster[Any],
    challenger: Forecaster[Any] | None,
    scorebook: Scorebook,
    store: Store,
    now: datetime,
    *,
    learn: bool = False,
) -> tuple[Comparison, tuple[Calibrated, ...]]:
    """Compare both bundles on the same disks and days over COMPARED; also return the champion's calibration by
    family.

    learn: each bundle's base rates and thresholds follow the drives that it scored
    (models.forecast.experience), and the store keeps this experience, so that a process that starts later
    scores with the same.
    """
    from predrain.data.history import EPOCH
    from predrain.models.deploy.model_comparison import compare_bundles, measure_family_calibration

    first = (now - COMPARED).astimezone(UTC).date()
    lives = lives_of(store, first)
    line = [one for one in (champion, challenger) if one is not None]
    books = {one.fingerprint: scorebook.read(one.fingerprint, (first - EPOCH).days) for one in line}
    if learn:
        for one in line:
            today = (now.astimezone(UTC).date() - EPOCH).days
            experience = one.count_experience(books[one.fingerprint], lives, today)
            save_experience(store, one.fingerprint, experience)
            one.learn_experience(experience)
    calibrated = measure_family_calibration(books[champion.fingerprint], lives, champion.find_family)
    return compare_bundles(books, lives), calibrated


def concerns_of(health: ForecastHealth) -> list[Concern]:
    """Return the concerns to alert, one per cause."""
    found: list[Concern] = []
    moved = [one for one in health.drift if one.drifted_features or one.score_drifted]
    if moved:
        worst = max(moved, key=lambda one: one.features[0].psi if one.features else 0.0)
        names = ", ".join(shift.name for shift in worst.drifted_features[:3]) or "what is forecast of them"
        found.append(
            Concern(
                ForecastFault.DRIFT,
                health.at,
                tuple(one.family for one in moved),
                f"Drives of {_format_families([one.family for one in moved])} no longer look like those "
                "that the bundle was "
                f"trained on (most: {worst.family} in {names}, stability index {worst.features[0].psi:.2f} over "
                f"{worst.drives} drives).",
                "See whether collector or firmware changed; else train on newer readings.",
            )
        )
    off = [one for one in health.calibration if one.is_off]
    if off:
        worst_off = max(off, key=lambda one: max(one.expected, one.observed))
        found.append(
            Concern(
                ForecastFault.CALIBRATION,
                health.at,
                tuple(one.family for one in off),
                f"Chances of {_format_families([one.family for one in off])} are off (most drives: {worst_off.family}, "
                f"{worst_off.expected:.1f} failures expected and {worst_off.observed} seen).",
                "Train again with outcomes (`predrain train --state`).",
            )
        )
    comparison = health.comparison
    if comparison is not None and comparison.is_second_better:
        found.append(
            Concern(
                ForecastFault.CHALLENGER,
                health.at,
                (),
                comparison.sentence(),
                "Consider `predrain models promote`.",
            )
        )
    return found


def _format_families(names: list[str]) -> str:
    return (
        ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more families"
    )

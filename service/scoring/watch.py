"""Is the forecast still right? Drift, calibration and the challenger, looked at now and then, one alert a cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog

from predrain.data.scorebook import Scorebook
from predrain.data.store.port import Store
from predrain.service.scoring.fates import lives_of
from predrain.service.scoring.fleet_experience import save_experience
from predrain.service.scoring.forecasting import Forecaster

if TYPE_CHECKING:
    from predrain.models.drift import FamilyDrift
    from predrain.models.model_comparison import Calibrated, Comparison

COMPARED = timedelta(days=180)
"""How far back forecasts are held against what happened."""


class ForecastFault(StrEnum):
    """What may be wrong with a forecast; each is alerted once, whatever the number of families."""

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
class Health:
    """How good the forecast was found to be at one time."""

    at: datetime
    drift: tuple[FamilyDrift, ...] = ()
    calibration: tuple[Calibrated, ...] = ()
    comparison: Comparison | None = None
    """Champion first, then the challenger, if there is one."""
    concerns: tuple[Concern, ...] = field(default=())

    def after(self, before: Health | None) -> Health:
        """The same, with concerns that stood before keeping the time at which they began; changes are logged."""
        known = {one.cause: one for one in before.concerns} if before else {}
        log = structlog.get_logger()
        for cause in known.keys() - {one.cause for one in self.concerns}:
            log.info("a concern about the forecast is over", cause=cause.value)
        for one in self.concerns:
            if one.cause not in known:
                log.warning("a concern about the forecast", cause=one.cause.value, why=one.sentence)
        kept = (
            replace(one, since=known[one.cause].since) if one.cause in known else one for one in self.concerns
        )
        return replace(self, concerns=tuple(kept))


def look(
    champion: Forecaster[Any],
    challenger: Forecaster[Any] | None,
    states: Mapping[Any, Any],
    scorebook: Scorebook | None,
    store: Store,
    now: datetime,
) -> Health:
    """Judge the forecast by the drives in service and by what has become of drives, and let it learn from them."""
    drift = champion.drift(states.values())
    found = Health(now, drift)
    if scorebook is not None:
        comparison, calibrated = compared(champion, challenger, scorebook, store, now, learn=True)
        found = replace(found, calibration=calibrated, comparison=comparison)
    return replace(found, concerns=tuple(concerns_of(found)))


def compared(
    champion: Forecaster[Any],
    challenger: Forecaster[Any] | None,
    scorebook: Scorebook,
    store: Store,
    now: datetime,
    *,
    learn: bool = False,
) -> tuple[Comparison, tuple[Calibrated, ...]]:
    """Both bundles on the same disks and days, and the champion's calibration by family, over COMPARED.

    learn: each bundle's base rates and thresholds follow the drives that it scored (models.experience), and the store
    keeps this experience, so that a process that starts later scores with the same.
    """
    from predrain.data.history import EPOCH
    from predrain.models.model_comparison import calibration, compare

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
    calibrated = calibration(books[champion.fingerprint], lives, champion.group)
    return compare(books, lives), calibrated


def concerns_of(health: Health) -> list[Concern]:
    """What should be alerted, one a cause."""
    found: list[Concern] = []
    moved = [one for one in health.drift if one.drifted or one.score_drifted]
    if moved:
        worst = max(moved, key=lambda one: one.features[0].psi if one.features else 0.0)
        names = ", ".join(shift.name for shift in worst.drifted[:3]) or "what is forecast of them"
        found.append(
            Concern(
                ForecastFault.DRIFT,
                health.at,
                tuple(one.family for one in moved),
                f"Drives of {_listed([one.family for one in moved])} no longer look like those that the bundle was "
                f"trained on (most: {worst.family} in {names}, stability index {worst.features[0].psi:.2f} over "
                f"{worst.drives} drives).",
                "See whether collector or firmware changed; else train on newer readings.",
            )
        )
    off = [one for one in health.calibration if one.off]
    if off:
        worst_off = max(off, key=lambda one: max(one.expected, one.observed))
        found.append(
            Concern(
                ForecastFault.CALIBRATION,
                health.at,
                tuple(one.family for one in off),
                f"Chances of {_listed([one.family for one in off])} are off (most drives: {worst_off.family}, "
                f"{worst_off.expected:.1f} failures expected and {worst_off.observed} seen).",
                "Train again with outcomes (`predrain train --state`).",
            )
        )
    comparison = health.comparison
    if comparison is not None and comparison.better:
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


def _listed(names: list[str]) -> str:
    return (
        ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more families"
    )

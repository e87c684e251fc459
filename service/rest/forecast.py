"""`GET forecast`: which bundle scores and since when, its challenger, and how right both were found to be."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from predrain.data.outlook import Status
from predrain.service.application import House
from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Reader
from predrain.service.rest.within import TheHouse
from predrain.service.scoring import succession
from predrain.service.scoring.forecasting import Forecaster

if TYPE_CHECKING:
    from predrain.models.drift import FamilyDrift, Shift
    from predrain.models.model_comparison import Calibrated, Comparison
    from predrain.service.scoring.watch import Health

router = APIRouter(tags=["forecast"])
TOLD = 3
"""Features of a family that are named, those that moved most first."""


class BundleBody(ResponseBody):
    """A bundle that scores. `fingerprint` tells two of one name apart."""

    name: str
    fingerprint: str


class ShiftBody(ResponseBody):
    """One feature, or the score: stability index, distance of distributions, change of the share that is not
    reported, and the medians then and now."""

    name: str
    psi: float
    ks: float
    missing_more: float
    then: float | None
    now: float | None


class DriftBody(ResponseBody):
    """A family against its training. `judged` is false below 100 drives, or where the bundle has no reference."""

    family: str
    drives: int
    judged: bool
    drifted: list[str]
    score_drifted: bool
    score: ShiftBody | None
    most: list[ShiftBody]


class CalibrationBody(ResponseBody):
    """Failures expected and seen; `ratio` is expected over observed with its 95 % interval."""

    family: str
    expected: float
    observed: int
    ratio: float | None
    low: float
    high: float | None
    off: bool
    verdict: str
    """`fits`, `off`, `doubtful` (differs by more than chance, on too few failures for an alert) or `too_few`."""


class StandingBody(ResponseBody):
    """One bundle on what has happened, by its own thresholds."""

    bundle: str
    foretold: int
    foretold_bad: int
    alarmed: int
    alarmed_bad: int
    brier: float | None
    expected: float
    lead_days: float | None


class ComparisonBody(ResponseBody):
    """Champion first, then the challenger, on the same disks and days. Below 30 failures `enough` is false."""

    standings: list[StandingBody]
    failures: int
    healthy_windows: int
    rows: int
    observed: int
    enough: bool
    recall_gain: tuple[float, float] | None
    brier_gain: tuple[float, float] | None
    only_first: int
    """Failures that the champion alone foretold."""
    only_second: int
    """Failures that the challenger alone foretold."""
    days: int
    evidence: float
    """How many times likelier that is than by chance, if the challenger foretells more; 20 are wanted."""
    days_left: float | None
    """Until the evidence is enough, as failures came so far; 0: it is; null: nothing speaks for the challenger."""
    better: bool
    sentence: str


class ThresholdBody(ResponseBody):
    """What a status means here: the chance to fail within 30 days from which the forecast calls a disk so, and the
    share of healthy disks that reach it in a month."""

    status: str
    p_fail_30d: float
    false_alarm_rate: float
    disk_months: float
    """Months of this fleet's own disks that the threshold rests on; 0: on those that the bundle was trained on."""


class ConcernBody(ResponseBody):
    """An alert about the forecast itself, one a cause."""

    cause: str
    since: datetime
    families: list[str]
    sentence: str
    cure: str


class ForecastHealthBody(ResponseBody):
    """`looked_at`: when drift, calibration and comparison were made; null before the first look."""

    bundle: BundleBody | None
    since: datetime | None
    before: str | None
    quiet_until: datetime | None
    challenger: BundleBody | None
    thresholds: list[ThresholdBody]
    looked_at: datetime | None
    drift: list[DriftBody]
    calibration: list[CalibrationBody]
    comparison: ComparisonBody | None
    concerns: list[ConcernBody]
    troubles: dict[str, str]


@router.get("/forecast", response_model=ForecastHealthBody, responses=caching.polled(401))
def forecast(request: Request, house: TheHouse, _: Reader) -> Response:
    """The forecast's own health."""
    return caching.answer(request, _body(house, house.health))


def _body(house: House, health: Health | None) -> ForecastHealthBody:
    champion, challenger = (house.lineup.champion if house.ready else None), house.lineup.challenger
    reign = succession.reign(house.store) if champion else None
    return ForecastHealthBody(
        bundle=BundleBody(name=champion.name, fingerprint=champion.fingerprint) if champion else None,
        since=reign.at if reign else None,
        before=(reign.seen or None) if reign else None,
        quiet_until=reign.at + house.policy.new_bundle_quiet if reign and reign.seen else None,
        challenger=BundleBody(name=challenger.name, fingerprint=challenger.fingerprint)
        if challenger
        else None,
        thresholds=_thresholds(champion) if champion else [],
        looked_at=health.at if health else None,
        drift=[_drift(one) for one in health.drift] if health else [],
        calibration=[_calibration(one) for one in health.calibration] if health else [],
        comparison=comparison_body(health.comparison) if health and health.comparison else None,
        concerns=[
            ConcernBody(
                cause=one.cause.value,
                since=one.since,
                families=list(one.families),
                sentence=one.sentence,
                cure=one.cure,
            )
            for one in (health.concerns if health else ())
        ],
        troubles=house.troubles,
    )


def comparison_body(comparison: Comparison) -> ComparisonBody:
    """The same, for REST and for `predrain models compare --json`."""
    return ComparisonBody(
        standings=[
            StandingBody(**{name: getattr(one, name) for name in StandingBody.model_fields})
            for one in comparison.standings
        ],
        failures=comparison.failures,
        healthy_windows=comparison.windows,
        rows=comparison.rows,
        observed=comparison.observed,
        enough=comparison.enough,
        recall_gain=comparison.recall_gain,
        brier_gain=comparison.brier_gain,
        only_first=comparison.only_first,
        only_second=comparison.only_second,
        days=comparison.days,
        evidence=comparison.evidence,
        days_left=comparison.days_left,
        better=comparison.better,
        sentence=comparison.sentence(),
    )


def _thresholds(champion: Forecaster[Any]) -> list[ThresholdBody]:
    from predrain.models.calibrate import BAD_RATE, WARNING_RATE

    limits, followed = champion.thresholds, champion.experience.thresholds
    return [
        ThresholdBody(
            status=status.value,
            p_fail_30d=limit,
            false_alarm_rate=rate,
            disk_months=followed.disk_months if followed else 0.0,
        )
        for status, limit, rate in (
            (Status.WARNING, limits.warning, WARNING_RATE),
            (Status.BAD, limits.bad, BAD_RATE),
        )
    ]


def _drift(one: FamilyDrift) -> DriftBody:
    return DriftBody(
        family=one.family or "other",
        drives=one.drives,
        judged=one.score is not None,
        drifted=[shift.name for shift in one.drifted],
        score_drifted=one.score_drifted,
        score=_shift(one.score) if one.score else None,
        most=[_shift(shift) for shift in one.features[:TOLD]],
    )


def _shift(one: Shift) -> ShiftBody:
    return ShiftBody(
        name=one.name, psi=one.psi, ks=one.ks, missing_more=one.missing, then=one.then, now=one.now
    )


def _calibration(one: Calibrated) -> CalibrationBody:
    named = {name: getattr(one, name) for name in CalibrationBody.model_fields if name != "family"}
    return CalibrationBody(family=one.family or "other", **named)

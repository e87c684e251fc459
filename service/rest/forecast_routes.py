"""`GET forecast`: the bundle that scores and since when, its challenger, and the measured accuracy of both."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Request
from starlette.responses import Response

from predrain.data.outlook import Status
from predrain.service.app.application import Application
from predrain.service.forecasting import model_succession
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.shared_bodies import ResponseBody

if TYPE_CHECKING:
    from predrain.models.deploy.model_comparison import Calibrated, Comparison
    from predrain.models.forecast.drift import DriftShift, FamilyDrift
    from predrain.service.forecasting.forecast_health import ForecastHealth

router = APIRouter(tags=["forecast"])
TOLD = 3
"""The number of features of a family that are named, those with the largest drift first."""


class BundleBody(ResponseBody):
    """A bundle that scores. `fingerprint` distinguishes two bundles of one name."""

    name: str
    fingerprint: str


class ShiftBody(ResponseBody):
    """One feature, or the score: stability index, distance of distributions, change of the share that is not
    reported, and the medians in training and now."""

    name: str
    psi: float
    ks: float
    missing_increase: float
    reference: float | None
    current: float | None


class DriftBody(ResponseBody):
    """A family against its training. `judged` is false below 100 drives, or where the bundle has no reference."""

    family: str
    drives: int
    judged: bool
    drifted: list[str]
    score_drifted: bool
    score: ShiftBody | None
    top_features: list[ShiftBody]


class CalibrationBody(ResponseBody):
    """Failures expected and seen; `ratio` is expected over observed with its 95 % interval."""

    family: str
    expected: float
    observed: int
    ratio: float | None
    low: float
    high: float | None
    off: bool
    verdict: Literal["fits", "off", "doubtful", "too_few"]
    """`doubtful`: the ratio differs from 1 by more than chance, on too few failures for an alert."""


class BundlePerformanceBody(ResponseBody):
    """The performance of one bundle on past days, by its own thresholds."""

    bundle: str
    detected: int
    detected_bad: int
    false_alarms: int
    false_alarms_bad: int
    brier: float | None
    expected: float
    lead_days: float | None


class ComparisonBody(ResponseBody):
    """Champion first, then the challenger, on the same disks and days. Below 30 failures `enough` is false."""

    bundles: list[BundlePerformanceBody]
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
    """The factor by which these counts are likelier if the challenger foretells more than by chance; 20 is wanted."""
    days_left: float | None
    """Days until the evidence is enough, at the rate of failures so far; 0: it is enough; null: nothing speaks for
    the challenger."""
    better: bool
    sentence: str


class ThresholdBody(ResponseBody):
    """The threshold of a status on this fleet: the lowest probability of failure within 30 days at which the forecast
    gives a disk this status, and the share of healthy disks that reach it in a month."""

    status: str
    p_fail_30d: float
    false_alarm_rate: float
    disk_months: float
    """Months of this fleet's own disks from which the threshold is computed; 0: from the bundle's training data."""


class ConcernBody(ResponseBody):
    """An alert about the forecast itself, one a cause."""

    cause: str
    since: datetime
    families: list[str]
    sentence: str
    cure: str


class ForecastHealthBody(ResponseBody):
    """`checked_at`: the time of the last check of drift, calibration and comparison; null before the first check."""

    bundle: BundleBody | None
    since: datetime | None
    previous_bundle: str | None
    quiet_until: datetime | None
    challenger: BundleBody | None
    thresholds: list[ThresholdBody]
    checked_at: datetime | None
    drift: list[DriftBody]
    calibration: list[CalibrationBody]
    comparison: ComparisonBody | None
    concerns: list[ConcernBody]
    errors: dict[str, str]


@router.get(
    "/forecast", response_model=ForecastHealthBody, responses=http_caching.declare_polled_responses(401)
)
def get_forecast_health(request: Request, application: TheApplication, _: Reader) -> Response:
    """The forecast's own health."""
    return http_caching.build_etag_response(
        request, _build_forecast_health_body(application, application.health)
    )


def _build_forecast_health_body(
    application: Application, health: ForecastHealth | None
) -> ForecastHealthBody:
    champion, challenger = (
        (application.deployed_models.champion if application.ready else None),
        application.deployed_models.challenger,
    )
    deployment = model_succession.find_last_deployment(application.store) if champion else None
    return ForecastHealthBody(
        bundle=BundleBody(name=champion.name, fingerprint=champion.fingerprint) if champion else None,
        since=deployment.at if deployment else None,
        previous_bundle=(deployment.seen or None) if deployment else None,
        quiet_until=deployment.at + application.policy.new_bundle_quiet
        if deployment and deployment.seen
        else None,
        challenger=BundleBody(name=challenger.name, fingerprint=challenger.fingerprint)
        if challenger
        else None,
        thresholds=_build_threshold_bodies(champion) if champion else [],
        checked_at=health.at if health else None,
        drift=[_build_drift_body(one) for one in health.drift] if health else [],
        calibration=[_build_calibration_body(one) for one in health.calibration] if health else [],
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
        errors=application.troubles,
    )


def comparison_body(comparison: Comparison) -> ComparisonBody:
    """Return a comparison of bundles for REST and for `predrain models compare --json`."""
    return ComparisonBody(
        bundles=[
            BundlePerformanceBody(**{name: getattr(one, name) for name in BundlePerformanceBody.model_fields})
            for one in comparison.standings
        ],
        failures=comparison.failures,
        healthy_windows=comparison.windows,
        rows=comparison.rows,
        observed=comparison.observed,
        enough=comparison.has_enough_failures,
        recall_gain=comparison.recall_gain,
        brier_gain=comparison.brier_gain,
        only_first=comparison.only_first,
        only_second=comparison.only_second,
        days=comparison.days,
        evidence=comparison.evidence,
        days_left=comparison.days_left,
        better=comparison.is_second_better,
        sentence=comparison.sentence(),
    )


def _build_threshold_bodies(champion: Forecaster[Any]) -> list[ThresholdBody]:
    from predrain.models.forecast.calibration import BAD_RATE, WARNING_RATE

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


def _build_drift_body(one: FamilyDrift) -> DriftBody:
    return DriftBody(
        family=one.family or "other",
        drives=one.drives,
        judged=one.score is not None,
        drifted=[shift.name for shift in one.drifted_features],
        score_drifted=one.score_drifted,
        score=_build_shift_body(one.score) if one.score else None,
        top_features=[_build_shift_body(shift) for shift in one.features[:TOLD]],
    )


def _build_shift_body(one: DriftShift) -> ShiftBody:
    return ShiftBody(
        name=one.name,
        psi=one.psi,
        ks=one.ks,
        missing_increase=one.missing,
        reference=one.then,
        current=one.now,
    )


def _build_calibration_body(one: Calibrated) -> CalibrationBody:
    named = {name: getattr(one, name) for name in CalibrationBody.model_fields if name != "family"}
    return CalibrationBody(family=one.family or "other", **named)

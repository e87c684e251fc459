"""Metrics of the forecast's own health: bundles, drift and calibration by family, the comparison.

Families are models and makers of the bundle's reference, so that their number is bounded (models.forecast.drift).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import Metric

from predrain.data.outlook import Status
from predrain.service.app.application import Application
from predrain.service.forecasting import model_succession
from predrain.service.rest.metrics import metric_catalogue as c
from predrain.service.rest.metrics.metric_family import OTHER, MetricFamily
from predrain.service.rest.metrics.process_metrics import MeasuredProcess

ROLES = ("champion", "challenger")
CAUSES = ("drift", "calibration", "challenger")


def collect_bundle_metrics(process: MeasuredProcess, now: datetime) -> Iterator[Metric]:
    """Yield the bundle that scores, its age and its thresholds. Raises what the store raises."""
    # The query runs before the process is ready, too: without it the metrics would not show whether the store
    # answers.
    deployment = model_succession.find_last_deployment(process.store)
    challenger = process.deployed_models.challenger
    yield c.BUNDLE.build_labelled_metric({process.bundle_name or "none": 1})
    yield c.CHALLENGER.build_labelled_metric({challenger.name if challenger else "none": 1})
    if deployment is not None and process.ready:
        yield c.REIGN.build_single_metric((now - deployment.at).total_seconds())
    champion = process.deployed_models.champion
    if champion is not None and process.ready:
        limits = champion.thresholds
        yield c.THRESHOLD.build_labelled_metric(
            {Status.WARNING.value: limits.warning, Status.BAD.value: limits.bad}
        )


def collect_forecast_metrics(application: Application) -> Iterator[Metric]:
    """Yield the accuracy of the forecast as of the last check; nothing before the first."""
    health = application.health
    if health is None:
        return
    stands = {one.cause.value for one in health.concerns}
    yield c.CONCERN.build_labelled_metric({cause: float(cause in stands) for cause in CAUSES})
    judged = [one for one in health.drift if one.features]
    yield _by_family(c.DRIFT, {one.family: one.features[0].psi for one in judged})
    yield _by_family(c.DRIFTED, {one.family: len(one.drifted_features) for one in judged})
    yield _by_family(c.SCORE_DRIFT, {one.family: one.score.psi for one in health.drift if one.score})
    seen = health.calibration
    yield _by_family(c.EXPECTED_BY, {one.family: one.expected for one in seen})
    yield _by_family(c.OBSERVED_BY, {one.family: one.observed for one in seen})
    yield _by_family(c.CALIBRATED_LOW, {one.family: one.low for one in seen})
    yield _by_family(c.CALIBRATED_HIGH, {one.family: one.high for one in seen if one.high is not None})
    yield from _collect_comparison_metrics(application)


def _collect_comparison_metrics(application: Application) -> Iterator[Metric]:
    comparison = application.health.comparison if application.health else None
    if comparison is None:
        return
    yield c.COMPARED_FAILURES.build_single_metric(comparison.failures)
    yield c.COMPARED_WINDOWS.build_single_metric(comparison.windows)
    standings = dict(zip(ROLES, comparison.standings, strict=False))
    yield c.FORETOLD.build_labelled_metric({role: one.detected for role, one in standings.items()})
    yield c.ALARMED.build_labelled_metric({role: one.false_alarms for role, one in standings.items()})
    yield c.BRIER.build_labelled_metric(
        {role: one.brier for role, one in standings.items() if one.brier is not None}
    )


def _by_family(family: MetricFamily, values: dict[str, float]) -> Metric:
    return family.build_labelled_metric({key or OTHER: value for key, value in sorted(values.items())})

"""What Prometheus sees of the forecast's own health: bundles, drift and calibration by family, the comparison.

Families are models and makers of the bundle's reference, so that their number is bounded (models.drift).
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from service.house import House

ROLES = ("champion", "challenger")
CAUSES = ("drift", "calibration", "challenger")


def upkeep(house: House) -> Iterator[Metric]:
    """Every series, those of the last look; none before the first."""
    yield from _bundles(house)
    health = house.health
    if health is None:
        return
    stands = {one.cause.value for one in health.concerns}
    concern = GaugeMetricFamily("predrain_forecast_concern", "1 while an alert stands.", labels=["cause"])
    for cause in CAUSES:
        concern.add_metric([cause], float(cause in stands))
    yield concern
    yield _by_family(
        "predrain_forecast_drift_index",
        "Stability index of the feature that moved most since training; above 0.25 is much.",
        {one.family: one.features[0].psi for one in health.drift if one.features},
    )
    yield _by_family(
        "predrain_forecast_drifted_features",
        "Features that stability index and Kolmogorov-Smirnov test both call changed.",
        {one.family: len(one.drifted) for one in health.drift if one.features},
    )
    yield _by_family(
        "predrain_forecast_score_drift_index",
        "Stability index of the forecast chance to fail within 30 days.",
        {one.family: one.score.psi for one in health.drift if one.score},
    )
    told: dict[str, tuple[str, dict[str, float]]] = {
        "expected_failures": (
            "Failures that were expected.",
            {c.family: c.expected for c in health.calibration},
        ),
        "observed_failures": ("Failures that were seen.", {c.family: c.observed for c in health.calibration}),
        "calibration_low": (
            "Lower end of the 95 % interval of expected over observed.",
            {c.family: c.low for c in health.calibration},
        ),
        "calibration_high": (
            "Upper end of it; no series while nothing has failed.",
            {c.family: c.high for c in health.calibration if c.high is not None},
        ),
    }
    for name, (words, values) in told.items():
        yield _by_family(f"predrain_forecast_{name}", words, values)
    yield from _comparison(house)


def _bundles(house: House) -> Iterator[Metric]:
    info = GaugeMetricFamily("predrain_bundle_info", "The bundle that scores.", labels=["bundle"])
    info.add_metric([house.bundle_name or "none"], 1)
    yield info
    shadow = GaugeMetricFamily("predrain_challenger_info", "The bundle in its shadow.", labels=["bundle"])
    shadow.add_metric([house.lineup.challenger.name if house.lineup.challenger else "none"], 1)
    yield shadow


def _comparison(house: House) -> Iterator[Metric]:
    comparison = house.health.comparison if house.health else None
    if comparison is None:
        return
    yield GaugeMetricFamily(
        "predrain_forecast_failures", "Failures that bundles are compared on.", value=comparison.failures
    )
    yield GaugeMetricFamily(
        "predrain_forecast_healthy_windows", "Healthy windows of 30 days likewise.", value=comparison.windows
    )
    for name, told in (
        ("foretold", "Failures called warning or bad in the 30 days before."),
        ("alarmed", "Healthy windows called warning or bad."),
        ("brier", "Mean squared error of the chance to fail within 30 days."),
    ):
        family = GaugeMetricFamily(f"predrain_forecast_{name}", told, labels=["role"])
        for role, standing in zip(ROLES, comparison.standings, strict=False):
            value = getattr(standing, name)
            if value is not None:
                family.add_metric([role], value)
        yield family


def _by_family(name: str, told: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=["family"])
    for key, value in sorted(values.items()):
        family.add_metric([key or "other"], value)
    return family

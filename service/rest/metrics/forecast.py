"""The forecast's own health: bundles, drift and calibration by family, the comparison.

Families are models and makers of the bundle's reference, so that their number is bounded (models.drift).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prometheus_client.core import Metric

from predrain.data.outlook import Status
from predrain.service.application import House
from predrain.service.rest.metrics import catalogue as c
from predrain.service.rest.metrics.family import OTHER, MetricFamily
from predrain.service.rest.metrics.process import Process
from predrain.service.scoring import succession

ROLES = ("champion", "challenger")
CAUSES = ("drift", "calibration", "challenger")


def bundles(process: Process, now: datetime) -> Iterator[Metric]:
    """Who scores, and since when. Raises what the store raises."""
    # Asked for before it is ready too: without a question nobody would know whether the store answers.
    reign = succession.reign(process.store)
    challenger = process.lineup.challenger
    yield c.BUNDLE.by({process.bundle_name or "none": 1})
    yield c.CHALLENGER.by({challenger.name if challenger else "none": 1})
    if reign is not None and process.ready:
        yield c.REIGN.one((now - reign.at).total_seconds())
    champion = process.lineup.champion
    if champion is not None and process.ready:
        limits = champion.thresholds
        yield c.THRESHOLD.by({Status.WARNING.value: limits.warning, Status.BAD.value: limits.bad})


def forecast(house: House) -> Iterator[Metric]:
    """How well it does: series of the last look; none before the first."""
    health = house.health
    if health is None:
        return
    stands = {one.cause.value for one in health.concerns}
    yield c.CONCERN.by({cause: float(cause in stands) for cause in CAUSES})
    judged = [one for one in health.drift if one.features]
    yield _by_family(c.DRIFT, {one.family: one.features[0].psi for one in judged})
    yield _by_family(c.DRIFTED, {one.family: len(one.drifted) for one in judged})
    yield _by_family(c.SCORE_DRIFT, {one.family: one.score.psi for one in health.drift if one.score})
    seen = health.calibration
    yield _by_family(c.EXPECTED_BY, {one.family: one.expected for one in seen})
    yield _by_family(c.OBSERVED_BY, {one.family: one.observed for one in seen})
    yield _by_family(c.CALIBRATED_LOW, {one.family: one.low for one in seen})
    yield _by_family(c.CALIBRATED_HIGH, {one.family: one.high for one in seen if one.high is not None})
    yield from _comparison(house)


def _comparison(house: House) -> Iterator[Metric]:
    comparison = house.health.comparison if house.health else None
    if comparison is None:
        return
    yield c.COMPARED_FAILURES.one(comparison.failures)
    yield c.COMPARED_WINDOWS.one(comparison.windows)
    standings = dict(zip(ROLES, comparison.standings, strict=False))
    yield c.FORETOLD.by({role: one.foretold for role, one in standings.items()})
    yield c.ALARMED.by({role: one.alarmed for role, one in standings.items()})
    yield c.BRIER.by({role: one.brier for role, one in standings.items() if one.brier is not None})


def _by_family(family: MetricFamily, values: dict[str, float]) -> Metric:
    return family.by({key or OTHER: value for key, value in sorted(values.items())})

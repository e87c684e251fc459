"""Ten minutes of an OSD's latencies as one summary, for windows that are no longer needed one by one.

Counts are summed, and gauges are means over time. A median is the median of the windows' medians, weighted by their
operations. The 99th percentile cannot be computed from those of the windows: its field holds the highest of them,
which the true value never exceeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from predrain.data.latency_windows import LatencySummary

SECONDS = 600

T = TypeVar("T", float, int, bool)


def merge_latency_summaries(windows: Sequence[LatencySummary], start: datetime) -> LatencySummary:
    """Merge an OSD's windows (at least one, oldest first) that began in the ten minutes from `start` on."""
    operations = [one.operations for one in windows]
    seconds = [one.window_seconds for one in windows]

    def median(value: Callable[[LatencySummary], float | None]) -> float | None:
        return _compute_weighted_median([value(one) for one in windows], operations)

    def highest(value: Callable[[LatencySummary], float | None]) -> float | None:
        return max(_drop_unknown_values([value(one) for one in windows]), default=None)

    def mean(value: Callable[[LatencySummary], float | None], weights: Sequence[float]) -> float | None:
        return _compute_weighted_mean([value(one) for one in windows], weights)

    def ever(value: Callable[[LatencySummary], bool | None]) -> bool | None:
        known = _drop_unknown_values([value(one) for one in windows])
        return any(known) if known else None

    slow = _drop_unknown_values([one.slow_ops for one in windows])
    allowed = _drop_unknown_values([one.backfills_max for one in windows])
    return LatencySummary(
        windows[-1].osd,
        windows[-1].host,
        start,
        float(SECONDS),
        sum(operations),
        read_ms_p50=median(lambda one: one.read_ms_p50),
        read_ms_p99=highest(lambda one: one.read_ms_p99),
        write_ms_p50=median(lambda one: one.write_ms_p50),
        write_ms_p99=highest(lambda one: one.write_ms_p99),
        commit_ms_p50=median(lambda one: one.commit_ms_p50),
        commit_ms_p99=highest(lambda one: one.commit_ms_p99),
        device_await_ms=mean(lambda one: one.device_await_ms, operations),
        iops=mean(lambda one: one.iops, seconds),
        queue=mean(lambda one: one.queue, seconds),
        slow_ops=max(slow, default=None),
        backfills_max=allowed[-1] if allowed else None,
        recovering=ever(lambda one: one.recovering),
        scrubbing=ever(lambda one: one.scrubbing),
        cluster=windows[-1].cluster,
    )


def _drop_unknown_values(values: Sequence[T | None]) -> list[T]:
    return [value for value in values if value is not None]


def _pair_known_weights(
    values: Sequence[float | None], weights: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the known values with their weights; if all weights are 0, each weight becomes 1."""
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    return pairs if any(weight > 0 for _, weight in pairs) else [(value, 1.0) for value, _ in pairs]


def _compute_weighted_mean(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    pairs = _pair_known_weights(values, weights)
    return sum(v * w for v, w in pairs) / sum(w for _, w in pairs) if pairs else None


def _compute_weighted_median(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    pairs = sorted(_pair_known_weights(values, weights))
    left = sum(weight for _, weight in pairs) / 2
    for value, weight in pairs:
        left -= weight
        if left <= 0:
            return value
    return None

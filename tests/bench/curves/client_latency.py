"""The latency of the clients, computed from each operation: windows, ratios with intervals, and PGs held up at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tests.bench.curves.load import Op

SLOW_MS = 250.0


@dataclass(frozen=True, slots=True)
class Window:
    """One stretch of time."""

    seconds: float
    offered: int
    """Operations due in it."""
    served: int
    """Operations that came back in it, of those or of earlier ones."""
    p50_ms: float
    p99_ms: float
    p999_ms: float
    worst_ms: float
    slow: int
    """Operations over 250 ms."""
    pgs_held_up: int
    """The most PGs with an operation over 250 ms at one moment."""


def window(ops: Sequence[Op], begin: float, end: float) -> Window:
    """Return the clients' figures in [begin, end). `ops` also holds operations that were due some seconds earlier."""
    due = [op for op in ops if begin <= op.due < end]
    took = np.array([op.ms for op in due] or [0.0])
    return Window(
        seconds=end - begin,
        offered=len(due),
        served=sum(begin <= op.back < end for op in ops),
        p50_ms=float(np.quantile(took, 0.5)),
        p99_ms=float(np.quantile(took, 0.99)),
        p999_ms=float(np.quantile(took, 0.999)),
        worst_ms=float(took.max()),
        slow=int((took > SLOW_MS).sum()),
        pgs_held_up=held_up_at_once(due),
    )


def held_up_at_once(ops: Sequence[Op]) -> int:
    """The most PGs that held up an operation for over 250 ms at the same moment.

    A PG's held-up operations that overlap are one stall. Stalls of different PGs count together where they overlap.
    """
    stalls: dict[str, list[list[float]]] = {}
    for op in sorted(op for op in ops if op.ms > SLOW_MS):
        mine = stalls.setdefault(op.pg, [])
        if mine and op.due <= mine[-1][1]:
            mine[-1][1] = max(mine[-1][1], op.back)
        else:
            mine.append([op.due, op.back])
    edges = sorted(
        edge for mine in stalls.values() for begin, end in mine for edge in ((begin, 1), (end, -1))
    )
    most = now = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most


def pooled(windows: Sequence[Sequence[Op]], spans: Sequence[tuple[float, float]]) -> Window:
    """Several windows as one: quantiles over all of their operations, and the worst of each count that is a peak."""
    each = [window(ops, *span) for ops, span in zip(windows, spans, strict=True)]
    took = np.array(
        [
            op.ms
            for ops, (begin, end) in zip(windows, spans, strict=True)
            for op in ops
            if begin <= op.due < end
        ]
        or [0.0]
    )
    return Window(
        seconds=sum(one.seconds for one in each),
        offered=sum(one.offered for one in each),
        served=sum(one.served for one in each),
        p50_ms=float(np.quantile(took, 0.5)),
        p99_ms=float(np.quantile(took, 0.99)),
        p999_ms=float(np.quantile(took, 0.999)),
        worst_ms=float(took.max()),
        slow=sum(one.slow for one in each),
        pgs_held_up=max((one.pgs_held_up for one in each), default=0),
    )


@dataclass(frozen=True, slots=True)
class Ratio:
    """A median over pairs with its 95 % bootstrap interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


def paired(
    drained: Sequence[Window], held: Sequence[Window], of: Callable[[Window], float], seed: int = 1
) -> Ratio:
    """The median over pairs of drained to held."""
    ratios = np.array([of(one) / of(other) for one, other in zip(drained, held, strict=True)])
    draws = np.random.default_rng(seed).choice(ratios, size=(10_000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return Ratio(float(np.median(ratios)), float(low), float(high))


def by_second(ops: Sequence[Op], begin: float, end: float) -> list[tuple[float, int, float]]:
    """For each second since `begin`: (second, operations that came back, the worst of those due in it in ms)."""
    count = int(end - begin)
    back, worst = np.zeros(count, dtype=int), np.zeros(count)
    for op in ops:
        if 0 <= (second := int(op.back - begin)) < count and op.back >= begin:
            back[second] += 1
        if 0 <= (second := int(op.due - begin)) < count and op.due >= begin:
            worst[second] = max(worst[second], op.ms)
    return [(float(n), int(back[n]), float(worst[n])) for n in range(count)]

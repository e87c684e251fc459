"""Tests of the figures that the bench of the three curves computes from the times of operations."""

from __future__ import annotations

import pytest

from tests.bench.curves.client_latency import Window, by_second, held_up_at_once, paired, pooled, window
from tests.bench.curves.load import Op


def steady(seconds: float = 10.0, a_second: int = 100, ms: float = 2.0) -> list[Op]:
    return [Op(n / a_second, ms, f"1.{n % 8}") for n in range(int(seconds * a_second))]


def test_an_operation_counts_from_when_it_was_due_in_the_window_where_it_was_due() -> None:
    ops = sorted([*steady(), Op(4.9, 2000.0, "1.0")])
    before, after = window(ops, 0, 5), window(ops, 5, 10)
    assert (before.worst_ms, after.worst_ms) == (2000.0, 2.0)
    assert (before.slow, after.slow) == (1, 0)


def test_an_operation_that_comes_back_late_is_served_in_a_later_window() -> None:
    ops = [Op(n / 10, 3000.0 if n < 50 else 1.0, "1.0") for n in range(100)]
    first, second = window(ops, 0, 5), window(ops, 5, 10)
    assert (first.offered, second.offered) == (50, 50)
    assert first.served < 50 < second.served


def test_pgs_are_held_up_at_once_only_where_their_stalls_overlap() -> None:
    apart = [Op(0.0, 900.0, "1.0"), Op(2.0, 900.0, "1.1")]
    together = [Op(0.0, 900.0, "1.0"), Op(0.5, 900.0, "1.1"), Op(0.6, 300.0, "1.1"), Op(0.1, 100.0, "1.2")]
    assert held_up_at_once(apart) == 1
    assert held_up_at_once(together) == 2
    assert held_up_at_once(steady()) == 0


def test_windows_are_pooled_by_their_operations_and_not_by_their_quantiles() -> None:
    calm, stirred = steady(ms=2.0), sorted([*steady(ms=2.0), Op(5.0, 900.0, "1.0")])
    both = pooled([calm, stirred], [(0.0, 10.0), (0.0, 10.0)])
    assert (both.offered, both.slow, both.worst_ms) == (2001, 1, 900.0)
    assert both.p99_ms == 2.0
    assert both.seconds == 20.0


def made(p99_ms: float) -> Window:
    return Window(10, 100, 100, 2.0, p99_ms, p99_ms, 20.0, 0, 0)


def test_the_ratio_is_the_median_of_pairs_and_its_interval_holds_it() -> None:
    held = [made(10.0)] * 5
    drained = [made(ms) for ms in (10.0, 11.0, 12.0, 13.0, 90.0)]
    ratio = paired(drained, held, lambda found: found.p99_ms)
    assert ratio.median == pytest.approx(1.2)
    assert 1.0 <= ratio.low <= 1.2 <= ratio.high <= 9.0
    assert paired(held, held, lambda found: found.p99_ms) == paired(held, held, lambda found: found.p99_ms)


def test_each_second_tells_how_much_came_back_and_the_worst_that_was_due() -> None:
    rows = by_second([*steady(), Op(3.5, 700.0, "1.0")], 0, 10)
    assert [second for second, _, _ in rows] == [float(n) for n in range(10)]
    assert [worst for _, _, worst in rows] == [2.0] * 3 + [700.0] + [2.0] * 6
    assert rows[4][1] == 101

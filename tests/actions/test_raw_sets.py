"""CRUSH is asked for a PG once while the map, the overrides and the pool stay the same, and again after a change that
can affect the PG.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.crush import raw_sets
from predrain.actions.crush.crush_reweight import with_crush_weight
from predrain.actions.crush.crush_rules import FULL_WEIGHT, Chooser, Ints
from predrain.actions.crush.raw_sets import RawSets, compute_raw_sets, fix_overrides
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_world
from tests.actions.made import calm_view

VIEW = calm_view()
POOL = next(iter(VIEW.pools.values()))
WHOLE = {int(osd): FULL_WEIGHT for osd in VIEW.osds}
SEEDS = st.lists(st.integers(0, POOL.pg_num - 1), min_size=1, max_size=12)


@given(st.lists(st.tuples(SEEDS, st.booleans(), st.booleans(), st.booleans()), max_size=6))
def test_in_whatever_order_it_is_asked_it_says_what_crush_says(
    questions: list[tuple[list[int], bool, bool, bool]],
) -> None:
    known = RawSets(limit=2)
    light = with_crush_weight(VIEW.crush, 0, 0.5)
    for seeds, out, lighter, smaller in questions:
        crush = light if lighter else VIEW.crush
        overrides = WHOLE | {1: 0} if out else WHOLE
        pool = replace(POOL, size=2) if smaller else POOL
        rows = np.array(seeds, dtype=np.int64)
        said = known.find(crush, fix_overrides(overrides), pool, rows)
        assert said.tolist() == compute_raw_sets(Chooser(crush, overrides), crush, pool, rows).tolist()


@pytest.mark.parametrize("world", ["tiny", "ec_two_a_host", "ec_no_spare"])
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
def test_sets_that_are_kept_while_overrides_fall_and_rise_are_what_crush_says(world: str, seed: int) -> None:
    cluster, chance, known = SimulatedCluster(build_world(world, seed), seed), Random(seed), RawSets(limit=4)
    view = cluster.view()
    weights = {int(osd): FULL_WEIGHT for osd in view.osds}
    for _ in range(12):
        for osd in chance.sample(list(weights), chance.choice([1, 1, 2])):
            weights[osd] = chance.choice([0, 0, FULL_WEIGHT // 3, FULL_WEIGHT // 2, FULL_WEIGHT])
        for pool in view.pools.values():
            rows = np.array(chance.sample(range(pool.pg_num), pool.pg_num // 2), dtype=np.int64)
            said = known.find(view.crush, fix_overrides(dict(weights)), pool, rows)
            fresh = compute_raw_sets(Chooser(view.crush, weights), view.crush, pool, rows)
            assert said.tolist() == fresh.tolist()


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that CRUSH was asked for, in turn."""
    asked: list[int] = []

    def compute(*question: object) -> Ints:
        asked.extend(question[3].tolist())  # type: ignore[attr-defined]
        return compute_raw_sets(*question)  # type: ignore[arg-type]

    monkeypatch.setattr(raw_sets, "compute_raw_sets", compute)
    return asked


def test_a_pg_is_computed_once_while_nothing_changes(computed: list[int]) -> None:
    known = RawSets(limit=2)
    known.find(VIEW.crush, fix_overrides(WHOLE), POOL, np.array([3, 4]))
    known.find(VIEW.crush, fix_overrides(dict(WHOLE)), POOL, np.array([4, 5, 4]))
    assert computed == [3, 4, 5]


def test_when_an_osd_goes_out_only_the_pgs_that_it_holds_are_computed(computed: list[int]) -> None:
    known, rows = RawSets(limit=2), np.arange(POOL.pg_num)
    before = known.find(VIEW.crush, fix_overrides(WHOLE), POOL, rows)
    computed.clear()
    known.find(VIEW.crush, fix_overrides(WHOLE | {1: 0}), POOL, rows)
    assert computed == [row for row in range(POOL.pg_num) if 1 in before[row]]
    assert 0 < len(computed) < POOL.pg_num


def test_when_an_osd_comes_in_again_every_pg_is_computed(computed: list[int]) -> None:
    known, rows = RawSets(limit=2), np.arange(POOL.pg_num)
    known.find(VIEW.crush, fix_overrides(WHOLE | {1: 0}), POOL, rows)
    computed.clear()
    known.find(VIEW.crush, fix_overrides(WHOLE), POOL, rows)
    assert computed == rows.tolist()


def test_only_the_last_maps_are_kept(computed: list[int]) -> None:
    known = RawSets(limit=2)
    for heavy in (0, 1, 2, 0):
        known.find(VIEW.crush, fix_overrides(dict.fromkeys(WHOLE, 0) | {heavy: 1}), POOL, np.array([3]))
    assert computed == [3, 3, 3, 3]


def test_a_pg_beyond_the_pools_number_is_placed_as_its_parent_is_while_pgs_merge() -> None:
    known, beyond = RawSets(limit=2), np.array([POOL.pg_num + 1])
    known.find(VIEW.crush, fix_overrides(WHOLE), POOL, np.array([1]))
    said = known.find(VIEW.crush, fix_overrides(WHOLE), POOL, beyond)
    assert said.tolist() == compute_raw_sets(Chooser(VIEW.crush, WHOLE), VIEW.crush, POOL, beyond).tolist()

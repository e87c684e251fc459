"""The time that a plan predicts for a drain and the simulated time agree within a factor of 1.3 either way, under each
kind of bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import BoundKind, DrainState
from tests.actions.made import ec_spec, wide_spec
from tests.actions.run import Run

SHAPES: dict[str, Callable[[], ClusterSpec]] = {
    "large PGs, the suspect leads most": lambda: wide_spec(hosts=12, racks=0, pg_num=64),
    "small PGs, steps are what takes time": lambda: wide_spec(hosts=12, racks=0, pg_num=512, used=0.1),
    "few hosts in racks": lambda: wide_spec(hosts=6, per_host=4, racks=3, pg_num=256, used=0.6),
    "shards, few targets": lambda: ec_spec(hosts=8, k=4, m=2, pg_num=64),
}


@pytest.mark.slow
@pytest.mark.parametrize("tick", [10.0, 60.0, 300.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_drain_takes_as_long_as_its_plan_says(shape: str, tick: float) -> None:
    policy = Policy(out_share_max=0.5, tick_seconds=tick)
    with Run(SHAPES[shape](), policy=policy, tick_seconds=tick) as run:
        run.tick()
        drain, began = run.drain("osd.0"), run.elapsed
        done = run.until(drain, DrainState.VERIFIED)
        assert done.plan is not None
        assert done.plan.eta_hours is not None
        taken = (run.elapsed - began) / 3600
        assert 1 / 1.3 < taken / done.plan.eta_hours < 1.3


def test_a_plan_says_what_comes_after_the_data_has_left() -> None:
    policy = replace(Policy(), tick_seconds=60.0)
    with Run(wide_spec(hosts=12, racks=0), policy=policy, tick_seconds=60.0) as run:
        run.tick()
        plan = run.drain("osd.0").plan
        assert plan is not None
        after = [bound for bound in plan.bounds if bound.kind.follows_data]
        assert [(bound.kind, bound.polls) for bound in after] == [
            (BoundKind.POLLS, 6),
            (BoundKind.OVERRIDE_ZERO, 0),
        ]
        longest = max(bound.hours for bound in plan.bounds if bound not in after)
        assert plan.eta_hours == pytest.approx(longest + sum(bound.hours for bound in after))

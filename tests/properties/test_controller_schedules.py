"""No sequence of outlooks, faults and words makes a step of the controller unsafe.

Unsafe: it reduces a PG's redundancy, overfills an OSD, exceeds a budget, or is sent under a halt. One seed is one
schedule (`tests.properties.schedules`): the cluster and what happens when are drawn from it. The checkers
(`tests.actions.checkers`) sit between engine and cluster and read the simulator's truth. A failure prints its seed.

`PREDRAIN_SIM_SEED=n` plays only schedule n, again and exactly; `PREDRAIN_SIM_SEEDS=n` plays the long form of schedules
0 to n-1 instead of the first 30. `make sim` sets them (`SEED=n`, `RANDOM_SEEDS=n`).
"""

from __future__ import annotations

import os

import pytest

from tests.properties.schedules import play

ONE = os.environ.get("PREDRAIN_SIM_SEED")
MANY = int(os.environ.get("PREDRAIN_SIM_SEEDS") or 30)
SHORT = 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [int(ONE)] if ONE else range(MANY))
def test_no_schedule_of_faults_makes_an_unsafe_step(seed: int) -> None:
    play(seed, turns=80)


@pytest.mark.parametrize("seed", [int(ONE)] if ONE else range(SHORT))
def test_a_short_schedule_of_faults_makes_no_unsafe_step(seed: int) -> None:
    play(seed, turns=40)


@pytest.mark.slow
def test_two_pgs_that_a_last_override_sends_to_one_disk_must_find_room_there_together() -> None:
    """Of this schedule, both change shards with one OSD, which has room for one."""
    play(1028, turns=80)

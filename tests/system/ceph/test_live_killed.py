"""A controller killed at each of its writes on a real cluster: nothing lost, the same end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.runner import Death
from tests.system.ceph.surviving import POOL, World, done, small

ORDER = ("approved", "preparing", "draining", "drained", "verified")
KINDS = {"save_drain", "add_journal", "write"}


@pytest.fixture(scope="module")
def kept(release: str) -> Iterator[MiniCluster]:
    yield from small(release, pgs=16)


def killed_at_every_write(world: World, state: str, then: tuple[str, ...]) -> set[Death]:
    """Lives that each die at a write of the state at which none has died yet, until one outlives the state."""
    deaths: set[Death] = set()
    while True:
        life = world.life(
            die_in=state, outlived=sorted(deaths), until=list(then), lease_seconds=3.0, tick_seconds=0.5
        )
        died = [line for line in life.rest() if line["what"] == "dying"]
        if not died:
            return deaths
        kind, number, side = died[0]["death"]
        assert (kind, number, side) not in deaths
        deaths.add((kind, number, side))


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_every_write_of_every_state_the_drain_ends_the_same_and_so_does_its_cancel(
    world: World,
) -> None:
    drain = world.propose(0)
    for state, then in pairwise(ORDER):
        deaths = killed_at_every_write(world, state, ORDER[ORDER.index(then) :])
        kinds = KINDS | {"command"} if state in ("preparing", "draining") else KINDS
        assert {(kind, "before") for kind in kinds} <= {(kind, side) for kind, _, side in deaths}, (
            state,
            deaths,
        )
        if "command" in kinds:
            assert ("command", 1, "after") in deaths
    world.life(lease_seconds=3.0, tick_seconds=0.5).until(done, "the drain ends")
    world.check_drained(drain)
    world.cancel(drain)
    deaths = killed_at_every_write(world, "cancelling", ("cancelled",))
    assert KINDS | {"command"} <= {kind for kind, _, _ in deaths}
    world.life(until=["cancelled"], lease_seconds=3.0, tick_seconds=0.5).until(done, "cancelled")
    world.cluster.wait_clean()
    assert world.map() == world.before
    assert world.cluster.find_wrong_objects(POOL, world.written) == {}

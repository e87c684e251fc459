"""A halt that is lifted while the controller looks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from actions.cluster.view import ClusterView
from tests.service.conftest import Place
from tests.service.test_drains import World, made


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    yield from made(place)


def test_a_halt_lifted_while_the_cluster_is_looked_at_is_not_shown_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, look = world.house, world.reach.view
    house.halt("storm", "till")

    def long_look() -> ClusterView:
        assert house.halt(None, "till") is None
        return look()

    monkeypatch.setattr(world.reach, "view", long_look)
    world.tick()
    assert house.halted() is None
    assert house.controlling() == "running"

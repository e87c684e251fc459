"""The views and requests of a person while the controller polls the cluster, drafts a drain, and ends."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import Intent, Mechanic
from predrain.data.ids import HostName, OsdId
from predrain.data.slow_osd import Slowness, SlowOsd
from predrain.service.drains.slow_osds import SlowOsds
from tests.service.conftest import Place
from tests.service.person_requests import propose_drain
from tests.service.test_drains import World, made


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    yield from made(place)


def test_a_halt_lifted_while_the_cluster_is_looked_at_is_not_shown_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    application, look = world.application, world.reach.view
    application.halt("storm", "till")

    def long_look() -> ClusterView:
        assert application.halt(None, "till") is None
        return look()

    monkeypatch.setattr(world.reach, "view", long_look)
    world.tick()
    assert application.find_halt_reason() is None
    assert application.describe_controller() == "running"


def test_the_draft_for_a_slow_disk_has_the_same_plan_as_its_drain(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    application, now = world.application, world.cluster.now
    slow = SlowOsd(
        OsdId(0), HostName("h"), now - timedelta(hours=2), now, 1.6, lasting=False, reason="slow for 2 h"
    )
    monkeypatch.setattr(SlowOsds, "poll_slowness", lambda *_: Slowness(now, {OsdId(0): slow}))
    world.tick(2)
    would = application.control.draft("osd.0", Intent.REPLACE, world.cluster.now).plan
    does = propose_drain(application, "osd.0", "till", "slow").plan
    assert would is not None
    assert does is not None
    assert (would.mechanic, would.why) == (Mechanic.REBUILD, does.why)


def test_an_application_that_ends_lets_the_step_that_has_begun_end(world: World) -> None:
    with ThreadPoolExecutor() as threads:
        with world.application.control._controller._lead.begin_step():
            ending = threads.submit(world.application.stop)
            wait([ending], 0.3)
            assert not ending.done()
        ending.result(30)

"""A plan that is only looked at is the one that would be made."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from data.drain import Intent, Mechanic
from data.ids import HostName, OsdId
from data.slow import Slowness, SlowOsd
from service.slowness import SlowOsds
from tests.service.conftest import Place
from tests.service.test_drains import World, made


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    yield from made(place)


def test_what_draining_a_slow_disk_would_do_is_what_its_drain_does(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    house, now = world.house, world.cluster.now
    slow = SlowOsd(
        OsdId(0), HostName("h"), now - timedelta(hours=2), now, 1.6, lasting=False, reason="slow for 2 h"
    )
    monkeypatch.setattr(SlowOsds, "look", lambda *_: Slowness(now, {OsdId(0): slow}))
    world.tick(2)
    would = house.control.draft("osd.0", Intent.REPLACE, world.cluster.now).plan
    does = house.propose("osd.0", "till", "slow", Intent.REPLACE).plan
    assert would is not None
    assert does is not None
    assert (would.mechanic, would.why) == (Mechanic.REBUILD, does.why)

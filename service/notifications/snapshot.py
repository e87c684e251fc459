"""The scene as a house sees it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from predrain.data.clock import lately
from predrain.data.ids import HostName
from predrain.service.lifecycle.keeping import age_lives
from predrain.service.notifications.cause import Scene, Worry

if TYPE_CHECKING:
    from predrain.service.application import House

SETTLES = timedelta(minutes=10)
"""After a start: by then collectors have found the service again and delivered."""
REMEMBERED = timedelta(minutes=15)
"""Longer than a collector waits until it sends again what was refused for its token."""


class Misnamed:
    """Hosts whose token comes with readings that name another host, as after one was renamed. Any thread may use it."""

    def __init__(self) -> None:
        self._noted: dict[HostName, tuple[HostName, datetime]] = {}

    def note(self, own: str, named: str, now: datetime) -> None:
        """The token of `own` came with what names `named`, and was refused."""
        self._noted[HostName(own)] = HostName(named), now

    def now(self, now: datetime) -> Mapping[HostName, HostName]:
        """By the host of the token: the one that was named last, where that was not long ago."""
        noted = self._noted.copy()
        return {own: named for own, (named, at) in noted.items() if lately(at, now, REMEMBERED)}


def scene_of(house: House, began: datetime) -> Scene:
    """What is known now. began: since when this process is up."""
    now = house.clock.now()
    broken = {**house.faults, **house.troubles}
    health = house.health
    age_lives(house)
    return Scene(
        house.sight(),
        house.announcements.last(),
        now,
        house.stale_after,
        house.policy,
        tuple(Worry(part, why) for part, why in sorted(broken.items())),
        tuple(Worry(one.cause.value, one.sentence, one.cure) for one in health.concerns) if health else (),
        # Readings that nobody takes out of the log have come all the same.
        now - began > SETTLES and "worker" not in broken,
        house.misnamed.now(now),
        house.settings.forecast.residence_limits,
    )

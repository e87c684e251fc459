"""Make the snapshot for notifications from an application."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from predrain.data.clock import is_within_last
from predrain.data.ids import HostName
from predrain.service.app.cluster_numbers import build_own_overview
from predrain.service.app.life_cycle_schedule import age_lives
from predrain.service.notifications.cause import AlertSnapshot, ClustersInView, ForecastConcern

if TYPE_CHECKING:
    from predrain.service.app.application import Application

SETTLES = timedelta(minutes=10)
"""The time after a start by which collectors have reached the service again and delivered."""
REMEMBERED = timedelta(minutes=15)
"""Longer than a collector waits before it sends again what was refused for its token."""


class HostMismatches:
    """Hosts whose token comes with readings of another host, as after a rename. Any thread may use it."""

    def __init__(self) -> None:
        self._noted: dict[HostName, tuple[HostName, datetime]] = {}

    def record_mismatch(self, own: str, named: str, now: datetime) -> None:
        """Record that readings of `named` came with the token of `own`, and were refused."""
        self._noted[HostName(own)] = HostName(named), now

    def find_recent_mismatches(self, now: datetime) -> Mapping[HostName, HostName]:
        """Return the recent mismatches: the host that was named last, by the host of the token."""
        noted = self._noted.copy()
        return {own: named for own, (named, at) in noted.items() if is_within_last(at, now, REMEMBERED)}


def build_alert_snapshot(application: Application, began: datetime) -> AlertSnapshot:
    """Build the snapshot of the present. began: the time since which this process runs."""
    now = application.clock.now()
    broken = {**application.faults, **application.troubles}
    health = application.health
    age_lives(application)
    return AlertSnapshot(
        application.get_snapshot(),
        application.announcements.list_announced_outlooks(),
        now,
        application.stale_after,
        application.policy,
        tuple(ForecastConcern(part, why) for part, why in sorted(broken.items())),
        tuple(ForecastConcern(one.cause.value, one.sentence, one.cure) for one in health.concerns)
        if health
        else (),
        # Readings that were not consumed from the log have arrived nevertheless.
        now - began > SETTLES and "worker" not in broken,
        application.host_mismatches.find_recent_mismatches(now),
        application.settings.forecast.residence_limits,
        _build_clusters_in_view(application),
    )


def _build_clusters_in_view(application: Application) -> ClustersInView | None:
    if not application.other_clusters:
        return None
    others = application.other_clusters.list_recent_overviews(application.clock.now())
    return ClustersInView(build_own_overview(application), others)

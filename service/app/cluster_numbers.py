"""The overview of the own cluster, made once for each change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from predrain.service.fleet.cluster_overview import ClusterOverview, build_cluster_overview
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.fleet_counts import count_fleet_disks

if TYPE_CHECKING:
    from predrain.service.app.application import Application


def build_own_overview(application: Application) -> ClusterOverview:
    """Return the overview of the own cluster; the same object until something changes."""

    def build(snapshot: FleetSnapshot) -> ClusterOverview:
        now = application.clock.now()
        known = snapshot.view.fsid if snapshot.view is not None else None
        return build_cluster_overview(
            snapshot,
            count_fleet_disks(snapshot, now, application.stale_after),
            application.announcements.list_announced_outlooks(),
            name=application.settings.service.cluster_name,
            fsid=known or application.store.get_cluster(),
            now=now,
            window=application.policy.mass_suspicion_window,
        )

    return application.derive_from_snapshot("overview", build)

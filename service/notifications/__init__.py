"""Notifications: one message for each cause, by mail, webhook or another channel.

`find_alert_causes` finds the causes in a snapshot of the present. `NotificationLog` selects what is new on a
channel, by its route and under silences. A channel (`mail`, `webhook`, a receiver such as Slack) delivers. All but
the channels is pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from predrain.data.ids import HostName

if TYPE_CHECKING:
    from predrain.service.notifications.cause import AlertCause, AlertSnapshot


def find_alert_causes(snapshot: AlertSnapshot) -> tuple[AlertCause, ...]:
    """Return every cause that is present now, urgent ones first."""
    # Imported late: the settings import channels from this package, and they start without the controller.
    from predrain.service.notifications.disk_causes import sick_disks
    from predrain.service.notifications.heat_causes import hot_disks
    from predrain.service.notifications.model_causes import find_models_sick_in_other_clusters
    from predrain.service.notifications.operational_causes import find_operational_causes

    found = [
        *sick_disks(snapshot),
        *hot_disks(snapshot),
        *find_operational_causes(snapshot),
        *find_models_sick_in_other_clusters(snapshot),
    ]
    racks = snapshot.fleet.racks_of_hosts()
    placed = [_with_racks(cause, racks) for cause in found]
    return tuple(sorted(placed, key=lambda cause: (cause.severity.value == "notice", cause.key)))


def _with_racks(cause: AlertCause, racks: Mapping[HostName, str]) -> AlertCause:
    """Return the cause with the rack of each point's host, for routes and silences."""
    points = tuple(
        replace(point, rack=racks.get(HostName(point.host or cause.host or ""))) for point in cause.points
    )
    return replace(cause, points=points)

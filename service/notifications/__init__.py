"""Notifications: one message for each cause, by mail, webhook or another channel.

`find_alert_causes` finds the causes in a snapshot of the present. `NotificationLog` selects what is new on a
channel, under silences. A channel (`mail`, `webhook`) delivers. All but the channels is pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from predrain.service.notifications.cause import AlertCause, AlertSnapshot


def find_alert_causes(scene: AlertSnapshot) -> tuple[AlertCause, ...]:
    """Return every cause that is present now, urgent ones first."""
    # Imported late: the settings import channels from this package, and they start without the controller.
    from predrain.service.notifications.disk_causes import sick_disks
    from predrain.service.notifications.heat_causes import hot_disks
    from predrain.service.notifications.model_causes import find_models_sick_in_other_clusters
    from predrain.service.notifications.operational_causes import find_operational_causes

    found = [
        *sick_disks(scene),
        *hot_disks(scene),
        *find_operational_causes(scene),
        *find_models_sick_in_other_clusters(scene),
    ]
    return tuple(sorted(found, key=lambda cause: (cause.severity.value == "notice", cause.key)))

"""What people are told without asking: one message a cause, by mail or webhook.

`causes` makes of a scene (what is known now) what a person may have to hear of; `NotificationLog` says what of it is
news on a channel, under silences; a channel (`mail`, `webhook`) delivers. All but the channels is pure.
"""

from predrain.service.notifications.around import around
from predrain.service.notifications.cause import AlertCause, Scene
from predrain.service.notifications.disks import sick_disks
from predrain.service.notifications.heat import hot_disks


def causes(scene: Scene) -> tuple[AlertCause, ...]:
    """Everything that stands now, urgent things first."""
    found = [*sick_disks(scene), *hot_disks(scene), *around(scene)]
    return tuple(sorted(found, key=lambda cause: (cause.severity.value == "notice", cause.key)))

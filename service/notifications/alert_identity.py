"""The name under which a receiver keeps the alert of a cause: the same for its beginning and its end.

A receiver keeps the urgency that an alert began with. A cause that becomes urgent is therefore a new alert there, and
the alert of the notice ends.
"""

from __future__ import annotations

import hashlib

from predrain.service.notifications.cause import Severity
from predrain.service.notifications.notification_log import Message


def name_alert(message: Message, cluster: str, severity: Severity, limit: int) -> str:
    """Return the name of the cause's alert of `severity`, in at most `limit` characters."""
    name = f"predrain/{cluster}/{severity.value}/{message.cause.key}"
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return f"{name[: limit - len(digest) - 1]}/{digest}"


def list_ended_severities(message: Message) -> tuple[Severity, ...]:
    """Return the severities whose alert ends with `message`: all when the cause is over, else the others."""
    return tuple(one for one in Severity if message.over or one is not message.cause.severity)

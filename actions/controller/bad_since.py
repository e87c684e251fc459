"""Since when each device has been called bad without a break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from predrain.actions.core.policy import Policy
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.data.store.port import Store


@dataclass(slots=True)
class Suspicion:
    """Followed from look to look; after a start read back from the store."""

    since: dict[DeviceId, datetime] = field(default_factory=dict)

    def follow(
        self, outlooks: Mapping[DeviceId, Outlook], store: Store, policy: Policy, now: datetime
    ) -> None:
        """Forget who is no longer bad, find out since when the others are."""
        bad = {device for device, outlook in outlooks.items() if outlook.severity is Status.BAD}
        for device in self.since.keys() - bad:
            del self.since[device]
        for device in bad - self.since.keys():
            since = outlooks[device].as_of
            history = store.outlooks(device, now - 2 * max(policy.suspicion_window, timedelta(days=1)))
            for outlook in reversed(history):
                if outlook.severity is not Status.BAD:
                    break
                since = min(since, outlook.as_of)
            self.since[device] = since

"""The controller's data about its disks between two polls: since when they are bad, past forecasts, the pace of
drains.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.cost_assessment import find_disks_at_risk, weigh_disks
from predrain.actions.core.drain_cost import weigh_drain
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_history import ForecastHistory
from predrain.actions.core.outlook_index import find_outlook_index
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import ENDED
from predrain.data.drain import Drain, JournalEvent
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.data.store.store_port import Store

MEASURED_DRAINS: Final = 5
"""The pace is the median of this many drains, the last ones that ended."""
MEASURED_BYTES_MIN: Final = 10**10
"""The least data of a drain, in B, that is used for the pace: a smaller drain ends before it reaches its full speed."""


@dataclass(slots=True)
class PaceMeter:
    """The pace of past drains, from their journals: bytes over the time from the start to the last copy that was
    counted.
    """

    paces: dict[str, float | None] = field(default_factory=dict)
    """The pace in B/s of each drain that ended; None: its journal does not show it."""

    def measure_pace(self, drains: Iterable[Drain], store: Store) -> float | None:
        """Return the pace in B/s; None before a drain has ended. Hours in which drains were held or the window was
        closed count.
        """
        ended = [
            drain for drain in drains if drain.is_emptied and drain.progress.moved_bytes >= MEASURED_BYTES_MIN
        ]
        last = sorted(ended, key=lambda drain: (drain.created_at, drain.id))[-MEASURED_DRAINS:]
        self.paces = {
            drain.id: self.paces[drain.id] if drain.id in self.paces else _read_pace(drain, store)
            for drain in last
        }
        known = [pace for pace in self.paces.values() if pace is not None]
        return median(known) if known else None


def _read_pace(drain: Drain, store: Store) -> float | None:
    begun, counted = None, None
    for entry in store.journal(drain.id):
        if entry.event is JournalEvent.BEGUN:
            begun = entry.at
        elif entry.event is JournalEvent.COUNTED:
            counted = entry.at
    if begun is None or counted is None or counted <= begun:
        return None
    return drain.progress.moved_bytes / (counted - begun).total_seconds()


@dataclass(slots=True)
class SuspectHistory:
    """The start of each device's bad period, updated at each poll; after a start it is read back from the store."""

    since: dict[DeviceId, datetime] = field(default_factory=dict)

    def update_suspects(
        self, outlooks: Mapping[DeviceId, Outlook], store: Store, policy: Policy, now: datetime
    ) -> None:
        """Remove devices that are no longer bad, and find the start of the bad period of the others."""
        bad = find_outlook_index(outlooks).bad
        for device in self.since.keys() - bad:
            del self.since[device]
        for device in bad - self.since.keys():
            since = outlooks[device].as_of
            history = store.outlooks(device, now - 2 * max(policy.mass_suspicion_window, timedelta(days=1)))
            for outlook in reversed(history):
                if outlook.severity is not Status.BAD:
                    break
                since = min(since, outlook.as_of)
            self.since[device] = since


@dataclass(slots=True)
class DiskEvidence:
    """The evidence about disks, updated at each poll; after a start it is read back from the store."""

    suspicion: SuspectHistory = field(default_factory=SuspectHistory)
    history: ForecastHistory = field(default_factory=ForecastHistory)
    meter: PaceMeter = field(default_factory=PaceMeter)
    bytes_per_second: float | None = None

    def update_evidence(self, view: ClusterView, context: Context, store: Store, policy: Policy) -> Context:
        """Update the evidence. Return the context with all of it."""
        self.suspicion.update_suspects(context.outlooks, store, policy, context.now)
        self.bytes_per_second = self.meter.measure_pace(context.drains, store)
        disks = find_disks_at_risk(view, policy, self.fill_in(context))
        wanted = {device for device, disk in disks.items() if weigh_drain(disk).pays}
        wanted |= {drain.device for drain in context.drains if drain.device and drain.state not in ENDED}
        self.history.update_forecasts(wanted, context.outlooks, store, policy, context.now)
        known = self.fill_in(context)
        return replace(known, weighed=weigh_disks(disks, policy, known))

    def fill_in(self, context: Context) -> Context:
        """Return the context with the present evidence; its disks are not weighed."""
        return replace(
            context,
            bad_since=self.suspicion.since,
            forecasts=self.history.points,
            bytes_per_second=self.bytes_per_second,
            weighed={},
        )

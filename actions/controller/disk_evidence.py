"""What the controller keeps of its disks between two looks: since when they are bad, what was forecast, the pace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from predrain.actions.cluster.view import ClusterView
from predrain.actions.controller.bad_since import Suspicion
from predrain.actions.core.cost_assessment import find_disks_at_risk, weigh_disks
from predrain.actions.core.drain_cost import weigh_drain
from predrain.actions.core.forecast_history import ForecastHistory
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.state_machine import BEGUN, COUNTED, ENDED
from predrain.data.drain import Drain
from predrain.data.store.port import Store

MEASURED_DRAINS: Final = 5
"""The pace is the median of so many drains that ended last."""
MEASURED_BYTES_MIN: Final = 10**10
"""A drain of less says nothing of the pace: it is over before it has sped up."""


@dataclass(slots=True)
class PaceMeter:
    """How fast drains went here, from their journals: bytes over the time from the start to the last copy counted."""

    paces: dict[str, float | None] = field(default_factory=dict)
    """Bytes/s of each drain that ended; None: its journal does not say."""

    def measure_pace(self, drains: Iterable[Drain], store: Store) -> float | None:
        """Bytes/s; None before a drain has ended. Hours in which drains were held or the window was closed count."""
        ended = [
            drain for drain in drains if drain.emptied and drain.progress.moved_bytes >= MEASURED_BYTES_MIN
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
        if entry.decided.startswith(BEGUN):
            begun = entry.at
        elif entry.decided.startswith(COUNTED):
            counted = entry.at
    if begun is None or counted is None or counted <= begun:
        return None
    return drain.progress.moved_bytes / (counted - begun).total_seconds()


@dataclass(slots=True)
class DiskEvidence:
    """Followed from look to look; after a start read back from the store."""

    suspicion: Suspicion = field(default_factory=Suspicion)
    history: ForecastHistory = field(default_factory=ForecastHistory)
    meter: PaceMeter = field(default_factory=PaceMeter)
    bytes_per_second: float | None = None

    def follow(self, view: ClusterView, context: Context, store: Store, policy: Policy) -> Context:
        """Take in what is new; the context with all of it."""
        self.suspicion.follow(context.outlooks, store, policy, context.now)
        self.bytes_per_second = self.meter.measure_pace(context.drains, store)
        disks = find_disks_at_risk(view, policy, self.fill_in(context))
        wanted = {device for device, disk in disks.items() if weigh_drain(disk).pays}
        wanted |= {drain.device for drain in context.drains if drain.device and drain.state not in ENDED}
        self.history.follow(wanted, context.outlooks, store, policy, context.now)
        known = self.fill_in(context)
        return replace(known, weighed=weigh_disks(disks, policy, known))

    def fill_in(self, context: Context) -> Context:
        """The context with what is known so far; its disks are not weighed."""
        return replace(
            context,
            bad_since=self.suspicion.since,
            forecasts=self.history.points,
            bytes_per_second=self.bytes_per_second,
            weighed={},
        )

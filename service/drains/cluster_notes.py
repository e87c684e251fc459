"""Notes that a poll of the cluster leaves in the store: hosts of contested disks, disks whose OSD went down, and
events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import OsdLayout, find_osd_layout
from predrain.actions.core.decision_answers import TickReport
from predrain.data.cluster_event import CONTROLLER_SUBJECT, ClusterEvent, ClusterEventKind, tell_halt
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outcome import DriveFate, Outcome, OutcomeRule
from predrain.data.residence import Residence
from predrain.data.store.store_port import Store
from predrain.service.drains.acting_process import ActingController
from predrain.service.fleet.residents import note_listed
from predrain.service.runtime.process_identity import name_process


@dataclass(slots=True)
class ClusterNotes:
    """The notes of one controller. Each method raises what the store raises."""

    store: Store
    _down: set[DeviceId] = field(init=False)
    _noted: OsdLayout | None = None
    """The OSDs of the last poll whose suspicions are stored."""
    _osds_down: frozenset[OsdId] | None = None
    """OSDs that are down by the stored events; None before the first poll."""
    _told: tuple[ClusterEvent, ...] = ()
    """The last stored events of the halt and of the acting controller."""
    _listed: bool = True
    """True if the store may hold notes of hosts in the cluster's device list."""

    def __post_init__(self) -> None:
        self._down = {one.device for one in self.store.outcomes() if one.source == OutcomeRule.OSD_DOWN}

    def note_hosts(self, view: ClusterView, residences: Mapping[DeviceId, Residence]) -> None:
        """Store where the cluster has the disks that several hosts claim, for the worker that files their
        readings.
        """
        listed = {device: view.hosts_of(device) for device, known in residences.items() if known.claims}
        if listed or self._listed:
            note_listed(self.store, {device: hosts for device, hosts in listed.items() if hosts})
        self._listed = bool(listed)

    def note_suspects(self, view: ClusterView, now: datetime, *, writes: bool) -> None:
        """Store a suspicion for each disk whose OSD went down while it was in: the disk may be dead.

        The suspicion is stored once, until a person or a rule states the outcome. An OSD that was taken out
        first, or has no weight, was emptied by hand: its disk is not suspected.

        writes: whether this controller is the one that writes; another one only remembers the OSDs that are down.
        """
        if (layout := find_osd_layout(view.osds)) is self._noted:
            return
        for osd in view.osds.values():
            if osd.device is None:
                continue
            if osd.up:
                self._down.discard(osd.device)
            elif osd.device not in self._down:
                self._down.add(osd.device)
                if writes and osd.reweight > 0 and osd.crush_weight > 0:
                    note = f"osd.{osd.id} is down in epoch {view.epoch}"
                    self.store.add_outcome(
                        Outcome(osd.device, now, DriveFate.SUSPECTED, OutcomeRule.OSD_DOWN, note)
                    )
        self._noted = layout

    def note_events(
        self, report: TickReport, acting: ActingController, now: datetime, *, writes: bool
    ) -> None:
        """Store events for the differences from the last poll: OSDs down or up, the halt, the process that acts
        on drains.

        writes: as for `note_suspects`.
        """
        if not writes:
            self._osds_down, self._told = None, ()  # another controller writes the events now
            return
        events = [*self._osd_events(report.view, now), *self._standing_events(report, acting, now)]
        self.store.add_cluster_events(events)
        if report.view is not None:
            self._osds_down = find_osd_layout(report.view.osds).down

    def _osd_events(self, view: ClusterView | None, now: datetime) -> Iterator[ClusterEvent]:
        if view is None:
            return
        before = self._osds_down
        if before is None:
            last = self.store.last_cluster_events(ClusterEventKind.OSD_DOWN).values()
            before = frozenset(osd for event in last for osd in event.osds)
        if before == find_osd_layout(view.osds).down:
            return
        for osd in view.osds.values():
            if osd.up == (osd.id in before):
                kind = ClusterEventKind.OSD_UP if osd.up else ClusterEventKind.OSD_DOWN
                yield ClusterEvent(
                    f"osd.{osd.id}", now, kind, (osd.id,), osd.host, osd.device, epoch=view.epoch
                )

    def _standing_events(
        self, report: TickReport, acting: ActingController, now: datetime
    ) -> Iterator[ClusterEvent]:
        """Yield the halt and the acting controller, if either differs from its last stored event."""
        unknown = report.halt is not None and report.halt.is_transient
        told = [] if unknown else [tell_halt(report.halted, "", now)]
        if acting.owner is not None:
            name = name_process(acting.owner)
            told.append(ClusterEvent(CONTROLLER_SUBJECT, now, ClusterEventKind.CONTROLLER, by=name))
        if [one.state_key for one in told] != [one.state_key for one in self._told]:
            self._told = tuple(told)
            yield from told

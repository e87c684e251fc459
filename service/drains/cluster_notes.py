"""What a look at the cluster leaves in the store: hosts of contested disks, disks whose OSD went down, and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from predrain.actions.cluster.view import ClusterView
from predrain.actions.controller.leadership import passes
from predrain.actions.controller.tick_report import TickReport
from predrain.data.cluster_event import CONTROLLER_SUBJECT, ClusterEvent, ClusterEventKind, tell_halt
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outcome import Fate, Outcome, OutcomeRule
from predrain.data.residence import Residence
from predrain.data.store.port import Store
from predrain.service.drains.acting import ActingController, name_process
from predrain.service.scoring.residents import note_listed


@dataclass(slots=True)
class ClusterNotes:
    """Notes of one controller. Each method raises what the store raises."""

    store: Store
    _down: set[DeviceId] = field(init=False)
    _osds_down: set[OsdId] | None = None
    """OSDs that the events say are down; None before the first look."""
    _told: tuple[ClusterEvent, ...] = ()
    """The halt and the controller as they were told last."""
    _listed: bool = True
    """Whether the store may hold notes of where the cluster has disks."""

    def __post_init__(self) -> None:
        self._down = {one.device for one in self.store.outcomes() if one.source == OutcomeRule.OSD_DOWN}

    def note_hosts(self, view: ClusterView, residences: Mapping[DeviceId, Residence]) -> None:
        """Keep where the cluster has the disks that several hosts claim, for the worker that files their readings."""
        listed = {device: view.hosts_of(device) for device, known in residences.items() if known.claims}
        if listed or self._listed:
            note_listed(self.store, {device: hosts for device, hosts in listed.items() if hosts})
        self._listed = bool(listed)

    def note_suspects(self, view: ClusterView, now: datetime, *, writes: bool) -> None:
        """A disk whose OSD went down while it was in may be dead. It is noted once, until a person or a rule says
        what it was. An OSD that was taken out first, or has no weight, was emptied by hand: its disk is not suspected.

        writes: whether this controller is the one that writes; another one only remembers what is down.
        """
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
                        Outcome(osd.device, now, Fate.SUSPECTED, OutcomeRule.OSD_DOWN, note)
                    )

    def note_events(
        self, report: TickReport, acting: ActingController, now: datetime, *, writes: bool
    ) -> None:
        """Keep what is otherwise than at the look before: OSDs that are down or up, the halt, the process that acts on
        drains. writes: as for `note_suspects`.
        """
        if not writes:
            self._osds_down, self._told = None, ()  # another controller tells now
            return
        events = [*self._osd_events(report.view, now), *self._standing_events(report, acting, now)]
        self.store.add_cluster_events(events)
        if report.view is not None:
            self._osds_down = {osd.id for osd in report.view.osds.values() if not osd.up}

    def _osd_events(self, view: ClusterView | None, now: datetime) -> Iterator[ClusterEvent]:
        if view is None:
            return
        before = self._osds_down
        if before is None:
            last = self.store.last_cluster_events(ClusterEventKind.OSD_DOWN).values()
            before = {osd for event in last for osd in event.osds}
        for osd in view.osds.values():
            if osd.up == (osd.id in before):
                kind = ClusterEventKind.OSD_UP if osd.up else ClusterEventKind.OSD_DOWN
                yield ClusterEvent(
                    f"osd.{osd.id}", now, kind, (osd.id,), osd.host, osd.device, epoch=view.epoch
                )

    def _standing_events(
        self, report: TickReport, acting: ActingController, now: datetime
    ) -> Iterator[ClusterEvent]:
        """The halt and who acts, where either is otherwise than it was told last."""
        told = [] if passes(report.halted) else [tell_halt(report.halted, "", now)]
        if acting.owner is not None:
            name = name_process(acting.owner)
            told.append(ClusterEvent(CONTROLLER_SUBJECT, now, ClusterEventKind.CONTROLLER, by=name))
        if [one.standing for one in told] != [one.standing for one in self._told]:
            self._told = tuple(told)
            yield from told

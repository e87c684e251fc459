"""What a look at the cluster leaves in the store: hosts of contested disks, and disks whose OSD went down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from actions.cluster.view import ClusterView
from data.ids import DeviceId
from data.outcome import Fate, Outcome
from data.residence import Residence
from data.store.port import Store
from service.scoring.residents import note_listed

DOWN_RULE = "rule:osd-down"


@dataclass(slots=True)
class ClusterNotes:
    """Notes of one controller. Each method raises what the store raises."""

    store: Store
    _down: set[DeviceId] = field(init=False)
    _listed: bool = True
    """Whether the store may hold notes of where the cluster has disks."""

    def __post_init__(self) -> None:
        self._down = {one.device for one in self.store.outcomes() if one.source == DOWN_RULE}

    def note_hosts(self, view: ClusterView, residences: Mapping[DeviceId, Residence]) -> None:
        """Keep where the cluster has the disks that several hosts claim, for the worker that files their readings."""
        listed = {device: view.hosts_of(device) for device, known in residences.items() if known.claims}
        if listed or self._listed:
            note_listed(self.store, {device: hosts for device, hosts in listed.items() if hosts})
        self._listed = bool(listed)

    def note_suspects(self, view: ClusterView, now: datetime, *, writes: bool) -> None:
        """A disk whose OSD is down may be dead: that is noted once, until a person or a rule says what it was.

        writes: whether this controller is the one that writes; another one only remembers what is down.
        """
        for osd in view.osds.values():
            if osd.device is None:
                continue
            if osd.up:
                self._down.discard(osd.device)
            elif osd.device not in self._down:
                self._down.add(osd.device)
                if writes:
                    note = f"osd.{osd.id} is down in epoch {view.epoch}"
                    self.store.add_outcome(Outcome(osd.device, now, Fate.SUSPECTED, DOWN_RULE, note))

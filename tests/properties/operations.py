"""The adversary with what operators do: disks are replaced and filled, OSDs purged, the balancer moves PGs, the store
is lost, another controller takes over with a store of its own, and the mons are silent for a while.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    Command,
    CommandResult,
    CrushReweight,
    Reweight,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.request_execution import ConcurrentDrainChange
from predrain.actions.core.state_machine import NotInTable
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.actions.simulator.simulated_osdmap import fixed_reweight
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from predrain.data.setting import OsdOverride
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from tests.actions.run import Run
from tests.properties.games import Deaths

_EMPTIED = frozenset({DrainState.VERIFIED, DrainState.HANDED_OVER})


@dataclass
class SilentCluster:
    """The cluster's port while its mons do not answer: so many looks and commands fail, and then none."""

    run: Run
    failures: int

    def view(self) -> ClusterView:
        self._fail()
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        self._fail()
        return self.run.watched.apply(command)

    def _fail(self) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise ClusterUnreachable("the mons do not answer")


class Operations(Deaths):
    """Deaths, and all that operators do beside them."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.disks = 0
        self._stores: list[Store] = []
        self._drains: dict[str, Drain] = {}
        """Also those that ended before the store was lost."""
        self._out_on_shadow: set[OsdId] = set()
        self.events = (
            *self.events, self._empty_disk, self._empty_disk, self._replace_disk, self._replace_disk,
            self._replace_disk, self._fill, self._fill, self._purge, self._purge,
            self._balance, self._balance, self._lose_store, self._take_over, self._silence_mons,
        )  # fmt: skip

    @staticmethod
    def make_spec(seed: int) -> ClusterSpec:
        spec = Deaths.make_spec(seed)
        return replace(spec, settings={"osd/osd_max_backfills": "8"}) if seed % 2 else spec

    def play(self) -> int:
        try:
            return super().play()
        finally:
            for store in self._stores:
                if store is not self.run.store:
                    store.close()

    # ---- what happens

    def _replace_disk(self) -> None:
        """A person takes an emptied disk out and puts a new one in; the OSD keeps its id and stays out."""
        for drain in self._list_drains(DrainState.VERIFIED):
            if drain.intent is not Intent.REPLACE:
                continue
            with suppress(NotInTable, ConcurrentDrainChange, ClusterUnreachable):
                self.run.controller.requests.hand_over(drain.id, "operator", self.run.cluster.now)
                self.disks += 1
                for osd in drain.osds:
                    device = DeviceId(f"ACME_NEW_{self.disks:04d}")
                    self.run.cluster.replace(osd, device, reweight=None)
                    self._replace_on_shadow(osd, device)
                return

    def _replace_on_shadow(self, osd: OsdId, device: DeviceId) -> None:
        """An OSD that the mon has marked out stays out there as well: taken in for a while, it would void upmaps."""
        if is_out := not self.shadow.osdmap.reweights[osd]:
            self._out_on_shadow.add(osd)
        self.shadow.replace(osd, device, reweight=None if is_out else 1.0)

    def _empty_disk(self) -> None:
        """A drain or a removal is let go on to its end, as far as it comes in three hours."""
        self.random.choice([self._drain, self._remove])()
        for _ in range(180):
            if not self._list_living():
                break
            self._tick(60.0)

    def _fill(self) -> None:
        """A new disk is to be filled, or a fill is asked of an OSD that is in."""
        out = [
            f"osd.{osd.id}" for osd in self.run.cluster.view().osds.values() if osd.up and not osd.reweight
        ]
        self._ask(Intent.FILL, self.random.choice(out) if out else "")

    def _purge(self) -> None:
        """A person purges an OSD that was removed and handed over."""
        for drain in self._list_drains(DrainState.HANDED_OVER):
            known = self.run.cluster.view().osds
            if drain.intent is Intent.REMOVE and all(osd in known for osd in drain.osds):
                for osd in drain.osds:
                    self.run.cluster.purge(osd)
                    self.shadow.purge(osd)
                    self.osds.remove(osd)
                return

    def _balance(self) -> None:
        """The balancer changes upmaps, as it may while no drain is under way, alike on both maps."""
        for _ in range(0 if self._list_living() else 4):
            self._pin()

    def _lose_store(self) -> None:
        if not self._stores:
            self._remember_drains()
            self.run.lose_the_store()
        self._survive(partial(self._tick, 2.0))

    def _take_over(self) -> None:
        """Another controller leads, with a store that has not seen what happened, and later the first one again."""
        self._remember_drains()
        if not self._stores:
            self._stores = [self.run.store, SqliteStore(self.run.folder / "other.db")]
        self._stores = [self.run.store if store is self.run.store else store for store in self._stores]
        self.run.store = next(
            (store for store in self._stores if store is not self.run.store), self.run.store
        )
        self._kill()
        self._survive(partial(self._tick, 2.0))

    def _remember_drains(self) -> None:
        self._drains |= {drain.id: drain for drain in self.run.store.drains()}

    def _list_all_drains(self) -> list[Drain]:
        self._remember_drains()
        return list(self._drains.values())

    def _silence_mons(self) -> None:
        self.run.keep = self.keep
        self.run.started(SilentCluster(self.run, self.random.randint(1, 8)))

    # ---- the end

    def _fill_on_shadow(self, drain: Drain, osd: OsdId) -> None:
        """A fill ends at override 1, also of an OSD that was in by half; what a person set afterwards stays."""
        as_found = float(drain.saved.get(OsdOverride(osd), "0"))
        if osd in self.osds and as_found and self.shadow.osdmap.reweights[osd] == fixed_reweight(as_found):
            self.shadow.apply(Reweight(osd, 1.0))

    def _apply_ends(self) -> None:
        out: dict[OsdId, Intent] = {}
        for drain in sorted(self._list_all_drains(), key=lambda drain: drain.created_at):
            for osd in drain.osds if drain.state in _EMPTIED else ():
                if drain.intent is Intent.FILL:
                    out.pop(osd, None)
                    self._fill_on_shadow(drain, osd)
                elif drain.intent is not Intent.QUARANTINE:
                    out[osd] = drain.intent
        for osd in self._out_on_shadow - out.keys():
            if osd in self.osds:
                self.shadow.apply(Reweight(osd, 1.0))
        for osd, intent in out.items():
            if osd in self.osds:
                self.shadow.apply(Reweight(osd, 0.0))
                if intent is Intent.REMOVE:
                    self.shadow.apply(CrushReweight(osd, 0.0))

"""The games of the adversary: what happens on the cluster and on its shadow, and the comparison of both."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from random import Random

from predrain.actions.cluster.cluster_port import (
    ClusterUnreachable,
    Command,
    CrushReweight,
    RemoveUpmap,
    Reweight,
    SetUpmap,
)
from predrain.actions.controller.request_execution import ConcurrentDrainChange
from predrain.actions.core.claimed_settings import (
    collect_upmap_items,
    is_same_setting_value,
    read_setting_value,
    value_of,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.state_machine import ENDED, NotInTable
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import ClusterSpec, Physics
from predrain.data.drain import Drain, DrainStands, DrainState, Intent, NoSuchTarget
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import UpmapItem, ValueBefore
from tests.actions.fuse import Fuse, FusedCluster, FusedKeep, FusedStore, Killed
from tests.actions.made import ec_spec, wide_spec
from tests.actions.run import whole
from tests.actions.test_replication import Kept
from tests.properties.described_map import describe_map

QUICK = Physics(latency_per_stream=0.01)
_TURNS = 20
_MOST_LOST_ANSWERS = 3 * _TURNS
_PATIENT_TICKS = 200
_LAST_TICKS = 1500
"""Ticks after which a drain that has not ended is stuck."""


def _make_copies() -> ClusterSpec:
    """12 hosts of 2 OSDs, 96 PGs of three copies."""
    return replace(wide_spec(hosts=12, per_host=2, racks=0, pg_num=96, used=0.4), physics=QUICK)


def _make_few_hosts() -> ClusterSpec:
    """6 hosts of 2 OSDs, 64 PGs of three copies: drains meet in one PG."""
    return replace(wide_spec(hosts=6, per_host=2, racks=0, pg_num=64, used=0.3), physics=QUICK)


def _make_shards() -> ClusterSpec:
    """9 hosts of 2 OSDs, 48 PGs of 4+2."""
    return replace(ec_spec(hosts=9, per_host=2, k=4, m=2, pg_num=48), physics=QUICK)


CLUSTERS = (_make_copies, _make_few_hosts, _make_shards)


class Adversary:
    """One game, drawn from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.spec = self.make_spec(seed)
        policy = Policy(
            out_share_max=0.5, drains_per_rack=9, drains_per_cluster=9,
            in_flight_max=self.random.choice([4, 16]), peering_max=self.random.choice([3, 8]),
        )  # fmt: skip
        self.run = Kept(self.spec, seed, policy)
        self.keep = self.run.keep
        self.shadow = SimulatedCluster(self.spec, seed)
        self.osds = [OsdId(int(osd.id)) for osd in self.spec.osds]
        self.told: list[str] = []
        self.given_up = 0
        others = self.random.random() < 0.5
        self.events: tuple[Callable[[], None], ...] = (
            self._drain, self._drain, self._drain, self._cancel, self._cancel, self._pause, self._resume,
            self._kill, self._kill_in_step, self._kill_in_step, self._lose_answers, self._restart_mgr, self._wait,
            self._flap,
            *((self._pin, self._pin, self._unpin, self._reweight) if others else ()),
            *((self._remove, self._quarantine, self._hand_over) if self.random.random() < 0.5 else ()),
        )  # fmt: skip

    @staticmethod
    def make_spec(seed: int) -> ClusterSpec:
        """The cluster that a seed is played on."""
        return CLUSTERS[seed % len(CLUSTERS)]()

    def play(self) -> int:
        """Play it, and compare with the shadow; returns how many drains there were. Raises AssertionError."""
        with self.run:
            self._tick(10.0)
            for _ in range(_TURNS):
                event = self.random.choice(self.events)
                self.told.append(event.__name__.strip("_"))
                with suppress(ClusterUnreachable):
                    self._survive(event)
                for _ in range(self.random.choice([0, 1, 1, 3, 10])):
                    self._tick(self.random.choice([2.0, 2.0, 10.0, 10.0, 30.0, 60.0]))
            self._end_all()
            self._compare()
            return len(self.run.store.drains())

    # ---- what happens

    def _drain(self) -> None:
        self._ask(Intent.REPLACE)

    def _remove(self) -> None:
        self._ask(Intent.REMOVE)

    def _quarantine(self) -> None:
        self._ask(Intent.QUARANTINE)

    def _ask(self, intent: Intent, target: str = "") -> None:
        target = target or f"osd.{self.random.choice(self.osds)}"
        with suppress(DrainStands, NoSuchTarget, ClusterUnreachable, NotInTable):
            drain = self.run.controller.requests.propose(
                target, "operator", "test", self.run.cluster.now, intent
            )
            self.run.controller.requests.approve(drain.id, "operator", self.run.cluster.now)

    def _cancel(self) -> None:
        self._say(
            lambda drain: self.run.controller.requests.cancel(drain.id, "operator", self.run.cluster.now)
        )

    def _pause(self) -> None:
        self._say(
            lambda drain: self.run.controller.requests.pause(drain.id, "operator", self.run.cluster.now)
        )

    def _resume(self) -> None:
        self._say(
            lambda drain: self.run.controller.requests.resume(drain.id, "operator", self.run.cluster.now)
        )

    def _hand_over(self) -> None:
        for drain in self._list_drains(DrainState.VERIFIED):
            with suppress(NotInTable, ConcurrentDrainChange, ClusterUnreachable):
                self.run.controller.requests.hand_over(drain.id, "operator", self.run.cluster.now)

    def _say(self, word: Callable[[Drain], object]) -> None:
        if drains := [drain for drain in self.run.store.drains() if drain.state not in ENDED]:
            with suppress(NotInTable, ClusterUnreachable):
                word(self.random.choice(drains))

    def _kill(self) -> None:
        """End the process between two polls, and start another one."""
        self.run.keep = self.keep
        self.run.started()

    def _kill_in_step(self) -> None:
        """The process will end before or after one of its next commands and writes to store and cluster keys."""
        fuse = Fuse(self.random.randint(1, 40), after=self.random.random() < 0.5)
        self.run.keep = FusedKeep(self.keep, fuse)  # type: ignore[assignment]
        self.run.started(FusedCluster(self.run, fuse), FusedStore(self.run, fuse))  # type: ignore[arg-type]

    def _survive(self, act: Callable[[], object]) -> bool:
        """Do it, or start another process where this one dies of it; whether it lived."""
        try:
            act()
        except Killed:
            self.run.watched.cut_short()
            self._kill()
            return False
        return True

    def _lose_answers(self) -> None:
        self.run.cluster.lose_answers(self.random.randint(1, 3), carried_out=self.random.random() < 0.5)

    def _restart_mgr(self) -> None:
        self.run.cluster.restart_mgr()

    def _flap(self) -> None:
        """An OSD goes down for a while and comes back, on both clusters."""
        osd, seconds = self.random.choice(self.osds), self.random.choice([20.0, 120.0, 300.0])
        for cluster in (self.run.cluster, self.shadow):
            cluster.flap(osd, 1, seconds)

    def _wait(self) -> None:
        for _ in range(20):
            self._tick(30.0)

    def _pin(self) -> None:
        """Another person sends one copy of a PG to another OSD, legally on both clusters, where no upmap of ours is.

        Nor where one was sent and did not arrive: what a person sets in its place may be the same, and looks like ours.
        """
        view, other = self.run.cluster.view(), self.shadow.view()
        pg = view.pgs[self.random.choice(sorted(view.pgs))]
        key, standing = UpmapItem(pg.id), view.upmap_items.get(pg.id, ())
        unlike = standing != other.upmap_items.get(pg.id, ()) or pg.up != other.pgs[pg.id].up
        if unlike or any(
            drain.ours.get(ValueBefore(key)) == read_setting_value(view, key)
            for drain in self.run.store.drains()
        ):
            return
        region = find_failure_domains(view.crush, view.pools[pg.pool])
        source = self.random.choice(pg.up)
        targets = sorted(
            osd for osd in region.list_substitutes(pg.up, source) if view.osds[OsdId(osd)].reweight == 1.0
        )
        if targets and not any(source in pair for pair in standing):
            command = SetUpmap(pg.id, (*standing, (source, self.random.choice(targets))))
            if not self._looks_like_ours(key, command):
                self._do_on_both(command)

    def _looks_like_ours(self, key: UpmapItem, command: Command) -> bool:
        """Return whether a drain sent this very list and has not seen it arrive."""
        return any(
            ValueBefore(key) in drain.ours and is_same_setting_value(key, drain.ours[key], value_of(command))
            for drain in self.run.store.drains()
        )

    def _unpin(self) -> None:
        """Let another person remove an upmap item that no drain of ours has changed and that the last poll found.

        The engine does not tell the removal of other upmap items from three other causes. If only some pairs of a list
        of ours are gone, the mon may have tidied them. If a list is gone that we wrote after the last poll, the command
        may not have arrived. A list that our last weight is to make void may have been tidied.
        """
        mine, theirs = self.run.cluster.view().upmap_items, self.shadow.view().upmap_items
        looked = self.run.controller.view
        stood = looked.upmap_items if looked is not None else {}
        void = {
            pg
            for drain in self.run.store.drains()
            for pg, pairs in collect_upmap_items(drain.ours).items()
            if not pairs
        }
        left = {pg for pg, pairs in mine.items() if theirs.get(pg) == pairs == stood.get(pg)}
        if pins := sorted(left - void):
            self._do_on_both(RemoveUpmap(self.random.choice(pins)))

    def _reweight(self) -> None:
        """Another person changes the override of an OSD that no drain is asked of."""
        drained = {osd for drain in self.run.store.drains() for osd in drain.osds}
        if free := [osd for osd in self.osds if osd not in drained]:
            self._do_on_both(Reweight(self.random.choice(free), self.random.choice([0.8, 0.9, 1.0])))

    def _do_on_both(self, command: Command) -> None:
        for _ in range(_MOST_LOST_ANSWERS + 1):  # the person asks again until an answer comes
            with suppress(ClusterUnreachable):
                self.run.cluster.apply(command)
                break
        else:
            raise AssertionError(f"{command}: no answer")
        self.shadow.apply(command)

    # ---- the end

    def _end_all(self) -> None:
        """Every drain is cancelled in a random order, but for some that ended as drained; then the map rests."""
        drains = [drain for drain in self.run.store.drains() if drain.state not in ENDED]
        self.random.shuffle(drains)
        for drain in drains:
            if drain.state is DrainState.VERIFIED and self.random.random() < 0.5:
                continue
            if self.random.random() < 0.3:
                self._kill_in_step()
            while not self._survive(partial(self._cancel_drain, drain)):
                pass
            for _ in range(self.random.choice([0, 0, 3, 30])):
                self._tick(10.0)
        self._wait_for_ends()

    def _wait_for_ends(self) -> None:
        """Let every drain end, and the map rest. A disk that the mon had out may come up and be drained again."""
        self._wait_for_drains()
        self._rest()
        self._wait_for_drains()
        self._apply_ends()
        self._rest()

    def _rest(self) -> None:
        for _ in range(12):
            self._tick(300.0)

    def _wait_for_drains(self) -> None:
        for tick in range(_LAST_TICKS):
            if tick == _LAST_TICKS // 2:
                self._give_up_cancels()
            if not self._list_living():
                break
            for drain in self._list_drains(DrainState.FAILED):  # what it says that a person must do
                resume = partial(
                    self.run.controller.requests.resume, drain.id, "operator", self.run.cluster.now
                )
                self._survive(resume)
            self._tick(30.0)
        assert not self._list_living(), "; ".join(
            f"{drain.id} is {drain.state.value} for ever, held by {list(drain.held_by)}"
            for drain in self._list_living()
        )

    def _give_up_cancels(self) -> None:
        """A person gives up the cancels that cannot end, as they offer it: the map is not compared then."""
        for drain in self._list_drains(DrainState.CANCELLING):
            self.run.controller.requests.give_up_cancel(drain.id, "operator", self.run.cluster.now)
            self.given_up += 1

    def _apply_ends(self) -> None:
        """Give the OSDs of the shadow the weights that emptied ones have."""
        for drain in self.run.store.drains():
            for osd in drain.osds if drain.state in (DrainState.VERIFIED, DrainState.HANDED_OVER) else ():
                if drain.intent in (Intent.REPLACE, Intent.REMOVE):
                    self.shadow.apply(Reweight(osd, 0.0))
                if drain.intent is Intent.REMOVE:
                    self.shadow.apply(CrushReweight(osd, 0.0))

    def _cancel_drain(self, drain: Drain) -> None:
        while True:
            try:
                with suppress(NotInTable):
                    self.run.controller.requests.cancel(drain.id, "operator", self.run.cluster.now)
                return
            except ClusterUnreachable:  # the process has begun, and no mgr answers yet: the person asks again
                self._tick(10.0)

    def _list_living(self) -> list[Drain]:
        over = {*ENDED, DrainState.VERIFIED}
        return [drain for drain in self.run.store.drains() if drain.state not in over]

    def _list_all_drains(self) -> list[Drain]:
        return list(self.run.store.drains())

    def _list_drains(self, state: DrainState) -> list[Drain]:
        return [drain for drain in self.run.store.drains() if drain.state is state]

    def _compare(self) -> None:
        assert whole(self.run), "not every PG has all its copies"
        if self.given_up:
            return
        have, want = describe_map(self.run.cluster.view()), describe_map(self.shadow.view())
        kept = self._list_kept_pgs()
        unlike = [
            f"{key} is {have.get(key)}, on the shadow {want.get(key)}"
            for key in sorted(have.keys() | want.keys())
            if have.get(key) != want.get(key) and key.partition(" ")[2] not in kept
        ]
        assert not unlike, f"{len(unlike)} differences: {'; '.join(unlike[:6])}"

    def _list_kept_pgs(self) -> set[PgId]:
        """PGs whose upmaps a removal leaves to the balancer."""
        return {
            key.pg
            for drain in self._list_all_drains()
            if drain.intent is Intent.REMOVE and drain.state in (DrainState.VERIFIED, DrainState.HANDED_OVER)
            for key in drain.ours
            if isinstance(key, UpmapItem)
        }

    def _tick(self, seconds: float) -> None:
        self.shadow.advance(seconds)
        self._survive(partial(self.run.tick, seconds))


class Deaths(Adversary):
    """The same game with hosts and disks that are lost, for minutes or for ever."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.died = False
        self.events = (*self.events, self._lose_host, self._lose_disk)

    def _lose_host(self) -> None:
        """All OSDs of a host go down: for less or more than the mon waits to mark them out, or once for ever."""
        host = self.random.choice(sorted({osd.host for osd in self.spec.osds}))
        seconds = self.random.choice([300.0, 900.0, 3000.0])
        forever = not self.died and self.random.random() < 0.2
        self.died = self.died or forever
        for osd in [osd.id for osd in self.spec.osds if osd.host == host]:
            for cluster in (self.run.cluster, self.shadow):
                if forever:
                    cluster.stop_osd(osd)
                else:
                    cluster.flap(osd, 1, seconds)

    def _lose_disk(self) -> None:
        """The disk of an OSD dies, one in a game, and rather one that is drained."""
        if self.died:
            return
        self.died = True
        drained = [osd for drain in self.run.store.drains() if drain.state not in ENDED for osd in drain.osds]
        osd = self.random.choice(drained or self.osds)
        for cluster in (self.run.cluster, self.shadow):
            cluster.fail_osd(osd)

    def _wait_for_ends(self) -> None:
        """Let every drain end. A cancelled drain that cannot end needs its OSD up or gone.

        A person starts the OSD, or purges the OSD if its disk is dead.
        """
        for _ in range(_PATIENT_TICKS):
            if not self._list_living():
                break
            self._tick(30.0)
        for osd in {osd for drain in self._list_drains(DrainState.CANCELLING) for osd in drain.osds}:
            held = self.run.cluster.view().osds.get(osd)
            if held is None or held.up:
                continue
            for cluster in (self.run.cluster, self.shadow):
                try:
                    cluster.revive(osd)
                except ValueError:  # its disk is dead
                    cluster.purge(osd)
        super()._wait_for_ends()

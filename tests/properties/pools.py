"""The adversary with a person who changes the pool: PGs are split and merged, and other CRUSH rules place them, on the
cluster and on its shadow, while everything else goes on.
"""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.core.capacity import compute_osd_capacity
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.crush.crush_map import ITEM_NONE, Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import DEFAULT_RULES, ClusterSpec, crush_tree
from predrain.data.drain import DrainState
from predrain.data.ids import HostName, OsdId, PgId
from tests.actions.made import POLICY, ec_spec, wide_spec
from tests.properties.games import QUICK
from tests.properties.operations import Operations

_POOL = 1
_ROOT, _ROOM = -1, -1000
_RACKS = 4
_FEWEST_PGS, _MOST_PGS = 16, 96
_LAST_TICKS = 2000
"""Minutes after which a pool that still changes is stuck."""


def _make_copies() -> ClusterSpec:
    """12 hosts of 2 OSDs, 64 PGs of three copies."""
    return wide_spec(hosts=12, per_host=2, racks=0, pg_num=64, used=0.3)


def _make_few_hosts() -> ClusterSpec:
    """8 hosts of 2 OSDs, 40 PGs of three copies."""
    return wide_spec(hosts=8, per_host=2, racks=0, pg_num=40, used=0.3)


def _make_shards() -> ClusterSpec:
    """12 hosts of 2 OSDs, 32 PGs of 4+2."""
    return ec_spec(hosts=12, per_host=2, k=4, m=2, pg_num=32)


CLUSTERS = (_make_copies, _make_few_hosts, _make_shards)


class Pools(Operations):
    """Operations, and a pool that changes.

    No host is lost, and nobody sets upmaps while an OSD stands empty: it is in on the shadow until the end, so that the
    mon tidies other upmaps there while PGs are placed on OSDs that are seldom chosen.
    """

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        others = tuple(event for event in self.events if event != self._lose_host)
        self.events = (
            *others, self._change_pg_num, self._change_pg_num, self._change_pg_num, self._change_pg_num,
            self._change_rule, self._change_rule, self._change_rule,
        )  # fmt: skip

    @staticmethod
    def make_spec(seed: int) -> ClusterSpec:
        """The hosts stand in four racks, three of them in one room, and there are rules of racks and of that room."""
        spec = CLUSTERS[seed % len(CLUSTERS)]()
        hosts = list(dict.fromkeys(osd.host for osd in spec.osds))
        rack = {HostName(host): f"rack-{at * _RACKS // len(hosts) + 1}" for at, host in enumerate(hosts)}
        osds = tuple(replace(osd, rack=rack[osd.host]) for osd in spec.osds)
        tree = crush_tree(osds, _list_rules(erasure=spec.pools[0].pool.erasure))
        settings = {"osd/osd_max_backfills": "8"} if seed % 2 else {}
        return replace(spec, osds=osds, crush=_with_room(tree), physics=QUICK, settings=settings)

    # ---- what happens

    def _change_pg_num(self) -> None:
        """Another number of PGs, which the mgr of either cluster comes to in its own time.

        Where it turns back midway, the one may have tidied other people's upmaps that the other has not.
        """
        if self._is_settled() or not self.shadow.osdmap.upmaps:
            pool = self.shadow.osdmap.pools[_POOL]
            wanted = pool.pg_num_target + self.random.choice([-12, -5, -1, 1, 5, 12, 24])
            for cluster in self._list_clusters():
                cluster.set_pg_num(_POOL, min(_MOST_PGS, max(_FEWEST_PGS, wanted)))

    def _change_rule(self) -> None:
        now = self.shadow.osdmap.pools[_POOL].rule
        rule = self.random.choice([rule for rule in self.spec.crush.rules if rule != now])
        for cluster in self._list_clusters():
            cluster.set_crush_rule(_POOL, rule)

    def _pin(self) -> None:
        """As ever, but on PGs that both clusters have placed for good: a split or a merge takes upmaps away."""
        emptied = [*self._list_drains(DrainState.VERIFIED), *self._list_drains(DrainState.HANDED_OVER)]
        if self._is_settled() and not emptied:
            super()._pin()

    def _unpin(self) -> None:
        if self._is_settled():
            super()._unpin()

    # ---- the end

    def _wait_for_ends(self) -> None:
        for tick in range(_LAST_TICKS):
            if self._is_settled():
                break
            if (
                tick == _LAST_TICKS // 4
            ):  # a rule of fewer hosts left no room: a person goes back to all hosts
                for cluster in self._list_clusters():
                    cluster.set_crush_rule(_POOL, min(self.spec.crush.rules))
            self._tick(60.0)
        assert self._is_settled(), (
            f"the pool changes for ever: {[cluster.osdmap.pools[_POOL] for cluster in self._list_clusters()]}"
        )
        super()._wait_for_ends()

    def _compare(self) -> None:
        mine, theirs = (cluster.osdmap.pools[_POOL] for cluster in self._list_clusters())
        assert mine == theirs, f"the pool is {mine}, on the shadow {theirs}"
        stray = [pg for pg in self.run.cluster.osdmap.upmaps if pg not in self.run.cluster.osdmap.index]
        assert not stray, f"upmaps of PGs that are no more: {stray}"
        super()._compare()

    def _list_kept_pgs(self) -> set[PgId]:
        """Also PGs that a drain sent on and that stay there: a rule of fewer OSDs left them no room elsewhere."""
        view, wanted = self.run.cluster.view(), self.shadow.view().pgs
        free = compute_osd_capacity(survey_pgs(view), POLICY)
        return super()._list_kept_pgs() | {
            id_
            for id_, pg in view.pgs.items()
            if any(
                not free.fits(OsdId(osd), pg.shard_bytes)
                for osd in set(wanted[id_].up) - set(pg.up) - {ITEM_NONE}
            )
        }

    def _is_settled(self) -> bool:
        return not any(cluster.osdmap.pools[_POOL].changes for cluster in self._list_clusters())

    def _list_clusters(self) -> tuple[SimulatedCluster, SimulatedCluster]:
        return self.run.cluster, self.shadow


def _list_rules(*, erasure: bool) -> dict[int, CrushRule]:
    """By host, and by host within the room; copies by rack, and shards two to a rack, on two hosts of it."""
    mode, head = ("indep", DEFAULT_RULES[1].steps[:2]) if erasure else ("firstn", ())
    leaf = f"chooseleaf_{mode}"
    racks = (
        (RuleStep(f"choose_{mode}", num=3, type="rack"), RuleStep(leaf, num=2, type="host"))
        if erasure
        else (RuleStep(leaf, type="rack"),)
    )
    ways = {
        int(erasure): (RuleStep("take", item=_ROOT), RuleStep(leaf, type="host")),
        2: (RuleStep("take", item=_ROOT), *racks),
        3: (RuleStep("take", item=_ROOM), RuleStep(leaf, type="host")),
    }
    return {
        rule: CrushRule(rule, f"rule{rule}", (*head, *way, RuleStep("emit"))) for rule, way in ways.items()
    }


def _with_room(crush: CrushMap) -> CrushMap:
    """The tree with all racks but the last one in a room."""
    root = crush.buckets[_ROOT]
    room = Bucket(_ROOM, "room", "room", root.items[:-1], root.weights[:-1])
    items, weights = (room.id, root.items[-1]), (sum(room.weights), root.weights[-1])
    return replace(
        crush,
        buckets={**crush.buckets, _ROOM: room, _ROOT: replace(root, items=items, weights=weights)},
    )

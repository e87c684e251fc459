"""The PGs that a lower CRUSH weight affects are the same whether every draw is computed or only those of candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.crush import affected_pgs as affected
from predrain.actions.crush.affected_pgs import KnownMembers, find_affected_pgs
from predrain.actions.crush.crush_map import COMPAT_SET, ITEM_NONE, ChooseArg, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.crush_reweight import find_bounds, with_crush_weight
from predrain.actions.crush.crush_rules import Chooser, Ints
from predrain.actions.crush.draw_candidates import find_choice
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.actions.crush.raw_sets import compute_raw_sets
from predrain.actions.placement.what_if import apply_crush_weights, compute_up_sets, find_weight_affected_pgs
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import OsdSpec
from predrain.actions.simulator.worlds.shapes import build_osd_specs, class_tree
from predrain.data.ids import OsdId, PgId, pg_seed
from tests.actions.made import calm_view, ec_spec, tiny_spec, wide_spec
from tests.actions.test_crush_place import RECORDED, recording

CLASSES = ("hdd", "ssd")
TAKE, EMIT = RuleStep("take", item=-1), RuleStep("emit")
ONE_STEP = {
    "copies on hosts": (RuleStep("chooseleaf_firstn", type="host"),),
    "copies on OSDs": (RuleStep("choose_firstn", type="osd"),),
    "copies on racks": (RuleStep("chooseleaf_firstn", type="rack"),),
    "shards on hosts": (RuleStep("set_chooseleaf_tries", item=5), RuleStep("chooseleaf_indep", type="host")),
    "shards on OSDs": (RuleStep("set_choose_tries", item=100), RuleStep("chooseleaf_indep", type="osd")),
}
TWO_STEPS = {
    "shards on racks and hosts": (
        RuleStep("choose_indep", num=2, type="rack"),
        RuleStep("chooseleaf_indep", num=2, type="host"),
    ),
}


def make_osds() -> tuple[OsdSpec, ...]:
    """24 disks in 12 hosts and 4 racks; two hosts have disks of the second class only."""
    return tuple(
        replace(osd, device_class=CLASSES[osd.id >= 20 or osd.id % 5 == 0])
        for osd in build_osd_specs(hosts=12, per_host=2, size_bytes=10**12, racks=4)
    )


def make_map() -> CrushMap:
    """A map with device classes, two rules of which take one class, and each kind of rule above."""
    crush = class_tree(make_osds(), copies={1: "hdd"}, shards={2: "hdd"})
    others = enumerate({**ONE_STEP, **TWO_STEPS}.items(), start=3)
    rules = {id_: CrushRule(id_, name, (TAKE, *steps, EMIT)) for id_, (name, steps) in others}
    return replace(crush, rules={**crush.rules, **rules})


MAP = make_map()
POOLS = {
    id_: Pool(
        id_, f"pool-{id_}", 3 + id_ % 2, 2, 24, 24, id_, any("indep" in step.op for step in rule.steps), pgp_num=20
    )
    for id_, rule in MAP.rules.items()
}  # fmt: skip


def list_members(
    crush: CrushMap, pools: Mapping[int, Pool], overrides: Mapping[OsdId, float], down: frozenset[OsdId]
) -> dict[PgId, tuple[int, ...]]:
    """The members of every PG as a cluster reports them: without the OSDs that are down."""
    return {
        pg: tuple(set(up) - {ITEM_NONE}) for pg, up in place_pgs(crush, pools, overrides, {}, down).items()
    }


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.sampled_from(sorted(POOLS)),
    st.lists(st.integers(0, 23), min_size=1, max_size=3),
    st.lists(st.sampled_from([1.0, 1.0, 1.0, 0.6, 0.0]), min_size=24, max_size=24),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=3, max_size=3),
    st.frozensets(st.integers(0, 23), max_size=2),
    st.integers(1, 5),
    st.booleans(),
)
def test_known_members_change_nothing_of_the_affected_pgs(
    rule: int,
    lowered: list[int],
    overrides: list[float],
    weights: list[float],
    down: frozenset[int],
    every: int,
    has_sets: bool,
) -> None:
    crush = with_crush_weight(MAP, 23 - lowered[0], 0.3)
    if has_sets:
        sets = {id_: ChooseArg((b.weights, b.weights[::-1])) for id_, b in crush.buckets.items()}
        crush = replace(crush, choose_args={COMPAT_SET: sets})
    lowest = crush
    for osd, weight in zip(lowered, weights, strict=False):
        now = next(
            w for b in crush.buckets.values() for i, w in zip(b.items, b.weights, strict=True) if i == osd
        )
        lowest = with_crush_weight(lowest, osd, now / 0x10000 * weight)
    lowest, crush = find_bounds([crush, lowest])
    reweights = {OsdId(osd): override for osd, override in enumerate(overrides)}
    fallen, pools = frozenset(map(OsdId, down)), {rule: POOLS[rule]}
    members = list_members(crush, pools, reweights, fallen)
    some = {pg: osds for at, (pg, osds) in enumerate(members.items()) if at % every or every == 1}
    known = KnownMembers(some, fallen)
    assert find_affected_pgs(crush, lowest, pools, reweights, known) == find_affected_pgs(
        crush, lowest, pools, reweights
    )


@pytest.mark.parametrize("down", [frozenset[OsdId](), frozenset({OsdId(11), OsdId(16), OsdId(18)})])
def test_several_pools_are_computed_side_by_side(down: frozenset[OsdId]) -> None:
    lowest = with_crush_weight(MAP, 3, 0.0)
    pools = {id_: replace(pool, size=3, pg_num=128, pgp_num=None) for id_, pool in POOLS.items()}
    reweights = {osd.id: 0.6 if osd.id == 9 else 1.0 for osd in make_osds()}
    known = KnownMembers(list_members(MAP, pools, reweights, down), down)
    found = find_affected_pgs(MAP, lowest, pools, reweights, known)
    assert {pg.partition(".")[0] for pg in found} == set(map(str, pools))
    assert found == find_affected_pgs(MAP, lowest, pools, reweights)


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_known_members_of_a_recorded_cluster_change_nothing(path: Path) -> None:
    document = json.loads(path.read_bytes())
    real = recording(
        json.dumps(document["osd_crush_dump"]).encode(), document["osd_dump"], document["pg_dump"]
    )
    members = {pg: (*up, *(source for source, _ in real.upmaps.get(pg, ()))) for pg, up in real.up.items()}
    affected: list[int] = []
    for osd in list(real.reweights)[:4]:
        lowest = with_crush_weight(real.crush, osd, 0.0)
        whole = find_affected_pgs(real.crush, lowest, real.pools, real.reweights)
        affected.append(len(whole))
        assert (
            find_affected_pgs(
                real.crush, lowest, real.pools, real.reweights, KnownMembers(members, real.down)
            )
            == whole
        )
    assert any(affected)


def view_with_upmaps() -> ClusterView:
    """Return a view at rest in which an upmap item maps each third PG away from its first OSD."""
    view = calm_view()
    upmaps = {
        pg.id: ((pg.up[0], next(osd for osd in view.osds if osd not in pg.up)),)
        for pg in list(view.pgs.values())[::3]
    }
    view = replace(view, upmap_items=upmaps)
    up = compute_up_sets(view)
    assert any(up[id_] != pg.up for id_, pg in view.pgs.items())
    return replace(view, pgs={id_: replace(pg, up=up[id_], acting=up[id_]) for id_, pg in view.pgs.items()})


@pytest.mark.parametrize(
    "view",
    [
        SimulatedCluster(tiny_spec(), 1).view(),
        SimulatedCluster(wide_spec(), 1).view(),
        SimulatedCluster(ec_spec(hosts=6, per_host=3), 1).view(),
        view_with_upmaps(),
    ],
    ids=["copies", "wide", "shards", "upmaps"],
)
def test_relying_on_what_pgs_report_changes_nothing_of_the_affected_pgs(view: ClusterView) -> None:
    some = frozenset(list(view.pgs)[::5])
    for osd in list(view.osds)[:3]:
        whole = find_weight_affected_pgs(view, (osd,), {})
        assert find_weight_affected_pgs(view, (osd,), {}, ()) == whole
        assert find_weight_affected_pgs(view, (osd,), {}, some) == whole
        assert find_weight_affected_pgs(
            view, (osd,), {osd: view.osds[osd].crush_weight * 2}, ()
        ) == find_weight_affected_pgs(view, (osd,), {osd: view.osds[osd].crush_weight * 2})


def test_a_pg_that_is_mapped_away_from_every_lowered_osd_is_found_by_the_source_of_its_pair() -> None:
    view = view_with_upmaps()
    hosts = {
        osd: {one.id for one in view.osds.values() if one.host == row.host} for osd, row in view.osds.items()
    }
    apart = [
        (id_, OsdId(source))
        for id_, ((source, _),) in view.upmap_items.items()
        if hosts[OsdId(source)].isdisjoint(view.pgs[id_].up)
    ]
    assert apart
    found = {source: find_weight_affected_pgs(view, (source,), {}, ()) for _, source in apart}
    assert all(found[source] == find_weight_affected_pgs(view, (source,), {}) for source in found)
    assert any(id_ in found[source] for id_, source in apart)


def test_a_weight_that_is_reported_with_another_last_digit_costs_no_more_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view = SimulatedCluster(wide_spec(), 1).view()
    osd = next(iter(view.osds))
    whole = find_weight_affected_pgs(view, (osd,), {})
    rounded = replace(view.osds[osd], crush_weight=view.osds[osd].crush_weight - 1e-6)
    computed = record_computed_seeds(monkeypatch)
    assert find_weight_affected_pgs(replace(view, osds={**view.osds, osd: rounded}), (osd,), {}, ()) == whole
    assert 0 < len(computed) < len(view.pgs)


def test_a_hand_written_weight_of_a_host_is_inside_the_bounds() -> None:
    view = SimulatedCluster(wide_spec(), 1).view()
    osd = next(iter(view.osds))
    host = next(id_ for id_, bucket in view.crush.buckets.items() if osd in bucket.items)
    buckets = {
        id_: replace(
            bucket,
            weights=tuple(
                weight // 3 if item == host else weight
                for item, weight in zip(bucket.items, bucket.weights, strict=True)
            ),
        )
        for id_, bucket in view.crush.buckets.items()
    }
    written = replace(view, crush=replace(view.crush, buckets=buckets))
    up = compute_up_sets(written)
    written = replace(
        written, pgs={id_: replace(pg, up=up[id_], acting=up[id_]) for id_, pg in view.pgs.items()}
    )
    emptied = compute_up_sets(written, crush=apply_crush_weights(written, {osd: 0.0}))
    moved = {id_ for id_ in up if up[id_] != emptied[id_]}
    assert moved
    assert moved <= find_weight_affected_pgs(written, (osd,), {}, ())


def record_computed_seeds(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Record the seeds of all PGs that are placed from now on."""
    computed: set[int] = set()

    def compute(watch: Chooser, crush: CrushMap, pool: Pool, seeds: Ints) -> Ints:
        computed.update(seeds.tolist())
        return compute_raw_sets(watch, crush, pool, seeds)

    monkeypatch.setattr(affected, "compute_raw_sets", compute)
    return computed


def test_pgs_whose_members_are_elsewhere_are_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    pools, reweights = {3: replace(POOLS[3], size=2)}, {osd.id: 1.0 for osd in make_osds()}
    members = list_members(MAP, pools, reweights, frozenset())
    computed = record_computed_seeds(monkeypatch)
    find_affected_pgs(MAP, with_crush_weight(MAP, 0, 0.0), pools, reweights, KnownMembers(members))
    rack = set(range(6))  # OSDs below the item of the root whose weight is lowered too
    assert computed == {pg_seed(pg)[1] for pg, osds in members.items() if not rack.isdisjoint(osds)}
    assert len(computed) < len(members)


def test_only_a_rule_of_one_choice_of_osds_has_candidates() -> None:
    named = {rule.name: find_choice(MAP, rule) for rule in MAP.rules.values()}
    assert {name for name, choice in named.items() if choice is None} == set(TWO_STEPS)
    assert named["copies on hosts"] == (-1, "host")

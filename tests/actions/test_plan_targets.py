"""Targets of a plan: only legal ones, within their limit, never across roots or classes, and no two members of a PG on
one shared device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from predrain.actions.cluster.cluster_view import ClusterView, Osd, Pg
from predrain.actions.crush.crush_map import Bucket, CrushMap, CrushRule, RuleStep
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.guards import Refuse
from predrain.actions.guards.safety_guards import check_redundancy
from predrain.actions.placement.failure_domains import apply_upmap_pairs, find_failure_domains, pairs_for
from predrain.actions.placement.what_if import compute_up_sets
from predrain.actions.planning.map_diff import list_plan_lines
from predrain.actions.simulator.cluster_spec import crush_tree
from predrain.actions.simulator.worlds import GB, build_osd_specs
from predrain.data.drain import Drain, Mechanic, Move, Plan
from predrain.data.ids import DeviceId, OsdId
from predrain.data.messages import describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusalKind
from tests.actions.made import NOW, POLICY, a_context, a_drain, a_plan, changed_osd

HOST = CrushRule(
    0, "by host", (RuleStep("take", item=-1), RuleStep("chooseleaf_firstn", type="host"), RuleStep("emit"))
)
EC_HOST = CrushRule(
    0, "ec", (RuleStep("take", item=-1), RuleStep("chooseleaf_indep", type="host"), RuleStep("emit"))
)
BY_OSD = CrushRule(
    0, "by osd", (RuleStep("take", item=-1), RuleStep("choose_firstn", type="osd"), RuleStep("emit"))
)
TWO_RACKS = CrushRule(
    0,
    "two racks, two hosts each",
    (
        RuleStep("take", item=-1),
        RuleStep("choose_firstn", num=2, type="rack"),
        RuleStep("chooseleaf_firstn", num=2, type="host"),
        RuleStep("emit"),
    ),
)


def view_of(
    rule: CrushRule = HOST,
    size: int = 3,
    hosts: int = 6,
    per_host: int = 2,
    racks: int = 0,
    erasure: bool = False,
    used: float = 0.5,
    classes: Mapping[int, str] | None = None,
    crush: CrushMap | None = None,
) -> ClusterView:
    """A view at rest, as a rule places 64 PGs on equal disks."""
    osds = build_osd_specs(hosts=hosts, per_host=per_host, size_bytes=100 * GB, racks=racks)
    tree = crush or crush_tree(osds, rules={0: rule})
    pool = Pool(1, "pool", size, size - 1, 64, 64, 0, erasure)
    up = place_pgs(tree, {1: pool}, {osd.id: 1.0 for osd in osds}, {})
    shard = int(used * len(osds) * 100 * GB / (64 * size))
    clean = frozenset({"active", "clean"})
    return ClusterView(
        as_of=NOW,
        epoch=10,
        release="reef",
        osds={
            osd.id: Osd(
                osd.id, osd.host, osd.rack, DeviceId(f"D_{osd.id}"), True, 1.0, 0.09,
                size_bytes=100 * GB, used_bytes=int(used * 100 * GB),
                device_class=(classes or {}).get(osd.id, "hdd"),
            )
            for osd in osds
        },
        pools={1: pool},
        pgs={id_: Pg(id_, 1, clean, members, members, shard, reported_epoch=10) for id_, members in up.items()},
        crush=tree,
        upmap_items={},
    )  # fmt: skip


def drained(osds: tuple[int, ...] = (0,)) -> Drain:
    return replace(a_drain(osds[0]), device=DeviceId(f"D_{osds[0]}"), osds=tuple(OsdId(osd) for osd in osds))


def filled(view: ClusterView, osd: int, fill: float) -> ClusterView:
    return changed_osd(view, osd, used_bytes=int(fill * 100 * GB))


def check_legal(view: ClusterView, made: Plan) -> None:
    """Every line of the plan ends on a legal set that upmaps can express."""
    pool = view.pools[1]
    region = find_failure_domains(view.crush, view.pools[1])
    raw = compute_up_sets(view, (), with_upmaps=False)
    for line in list_plan_lines(view, made):
        assert region.is_legal(line.after), line
        pairs = pairs_for(raw[line.pg], line.after, view.upmap_items.get(line.pg, ()), ordered=pool.erasure)
        assert pairs is not None, line
        assert set(apply_upmap_pairs(raw[line.pg], pairs)) == set(line.after)


@pytest.mark.parametrize(
    ("rule", "size", "racks", "erasure"),
    [(HOST, 3, 0, False), (EC_HOST, 4, 0, True), (TWO_RACKS, 4, 3, False), (BY_OSD, 3, 0, False)],
    ids=["hosts", "erasure code", "racks then hosts", "by osd"],
)
def test_full_targets_give_way_to_legal_ones_under_every_rule(
    rule: CrushRule, size: int, racks: int, erasure: bool
) -> None:
    view = view_of(rule, size, hosts=9, racks=racks, erasure=erasure)
    natural = a_plan(view, drained())
    crowded = {natural.moves[0].target}
    for target in crowded:
        view = filled(view, target, 0.849)
    made = a_plan(view, drained())
    assert made.refusals == ()
    assert not crowded & {move.target for move in made.moves}
    assert {move.pg for move in made.moves} == {move.pg for move in natural.moves}
    check_legal(view, made)


def test_where_the_mon_keeps_no_upmap_under_the_rule_the_plan_refuses_and_says_so() -> None:
    pairs_of_osds = CrushRule(
        0,
        "two racks, a host each, two OSDs of it",
        (
            RuleStep("take", item=-1),
            RuleStep("choose_firstn", num=2, type="rack"),
            RuleStep("choose_firstn", num=1, type="host"),
            RuleStep("choose_firstn", num=2, type="osd"),
            RuleStep("emit"),
        ),
    )
    made = a_plan(view_of(pairs_of_osds, 4, hosts=9, per_host=3, racks=3), drained())
    assert made.refusals
    assert {one.kind for one in made.refusals} == {PlanRefusalKind.UPMAP_NOT_KEPT}


def test_a_shard_that_cannot_leave_its_rack_finds_no_room_in_another() -> None:
    view = view_of(TWO_RACKS, 4, hosts=9, racks=3)
    near = [osd.id for osd in view.osds.values() if osd.rack == view.osds[OsdId(0)].rack and osd.id != 0]
    for osd in near:
        view = filled(view, osd, 0.849)
    made = a_plan(view, drained())
    inside = {move.target for move in made.moves} & set(near)
    assert inside == set()
    assert PlanRefusalKind.NO_LESS_FULL_TARGET in {one.kind for one in made.refusals}


def test_a_full_target_gives_way_to_another_host_of_its_site_where_a_rule_takes_two_sites() -> None:
    osds = build_osd_specs(hosts=8, per_host=1, size_bytes=100 * GB, racks=2)
    plain = crush_tree(osds)
    sites = [bucket.id for bucket in plain.buckets.values() if bucket.type == "rack"]
    of_each = [
        (RuleStep("take", item=site), RuleStep("chooseleaf_firstn", num=2, type="host"), RuleStep("emit"))
        for site in sites
    ]
    rule = CrushRule(0, "two sites, two hosts each", (*of_each[0], *of_each[1]))
    view = view_of(rule, 4, hosts=8, per_host=1, racks=2, crush=replace(plain, rules={0: rule}))
    full = a_plan(view, drained()).moves[0].target
    view = filled(view, full, 0.849)
    made = a_plan(view, drained())
    assert made.refusals == ()
    assert full not in {move.target for move in made.moves}
    assert {view.osds[move.target].rack for move in made.moves} == {view.osds[OsdId(0)].rack}
    check_legal(view, made)


def with_classes() -> ClusterView:
    """Even OSDs are disks, odd ones flash; the rule takes the disks' shadow tree."""
    osds = build_osd_specs(hosts=6, per_host=2, size_bytes=100 * GB)
    plain = crush_tree(osds)
    buckets = dict(plain.buckets)
    hosts = [bucket for bucket in plain.buckets.values() if bucket.type == "host"]
    for host in hosts:
        kept = [(i, w) for i, w in zip(host.items, host.weights, strict=True) if i % 2 == 0]
        buckets[host.id - 100] = Bucket(
            host.id - 100, f"{host.name}~hdd", "host", tuple(i for i, _ in kept), tuple(w for _, w in kept)
        )
    shadows = tuple(host.id - 100 for host in hosts)
    buckets[-200] = Bucket(
        -200, "default~hdd", "root", shadows, tuple(sum(buckets[s].weights) for s in shadows)
    )
    rule = CrushRule(
        0,
        "disks",
        (RuleStep("take", item=-200), RuleStep("chooseleaf_firstn", type="host"), RuleStep("emit")),
    )
    kinds = {osd: "ssd" if osd % 2 else "hdd" for osd in range(12)}
    tree = CrushMap(buckets, {0: rule}, classes=kinds)
    return view_of(rule, classes=kinds, crush=tree)


def test_no_shard_goes_to_another_device_class_however_full_its_own_is() -> None:
    view = with_classes()
    assert {move.target % 2 for move in a_plan(view, drained()).moves} == {0}
    for osd in range(2, 12, 2):
        view = filled(view, osd, 0.849)
    made = a_plan(view, drained())
    assert made.moves == ()
    assert made.refusals


def shared(view: ClusterView, groups: Mapping[str, tuple[int, ...]]) -> ClusterView:
    for name, members in groups.items():
        for osd in members:
            view = changed_osd(view, osd, shared_devices=(DeviceId(name),))
    return view


def test_no_two_members_of_a_pg_are_sent_to_osds_of_one_flash_device() -> None:
    plain = view_of(BY_OSD, hosts=4, per_host=3)
    natural = a_plan(plain, drained())
    groups = {f"NVME_{host}": tuple(range(3 * host, 3 * host + 3)) for host in range(4)}
    view = shared(plain, groups)
    region = {osd: name for name, members in groups.items() for osd in members}

    def crowding(made: Plan) -> int:
        worse = 0
        for line in list_plan_lines(view, made):
            before, after = [[region[osd] for osd in side] for side in (line.before, line.after)]
            worse += any(after.count(name) > max(1, before.count(name)) for name in after)
        return worse

    assert crowding(natural) > 0
    assert crowding(a_plan(view, drained())) == 0


def test_a_move_that_leaves_too_few_when_the_flash_dies_is_refused_by_the_plan_and_by_the_guard() -> None:
    view = view_of(BY_OSD, hosts=4, per_host=3)
    everything = tuple(range(1, 12))
    view = shared(view, {"NVME_A": everything[:5], "NVME_B": everything[5:]})
    pg = next(pg for pg in view.pgs.values() if 0 in pg.up)
    others = [osd for osd in pg.up if osd != 0]
    fate = view.osds[OsdId(others[0])].shared_devices
    target = next(o.id for o in view.osds.values() if o.shared_devices == fate and o.id not in pg.up)
    move = Move(pg.id, OsdId(0), target, pg.shard_bytes)
    drain = drained()
    drain = replace(drain, plan=replace(a_plan(view, drain), moves=(move,)))
    answer = check_redundancy(view, drain, POLICY, a_context(view, drain))
    assert isinstance(answer, Refuse)
    assert "which die together" in answer.sentence


def test_a_shared_device_is_one_plan_over_all_its_osds_with_space_for_all_together() -> None:
    view = view_of(hosts=8, per_host=2)
    one, both = a_plan(view, drained((0,))), a_plan(view, drained((0, 1)))
    assert {move.source for move in both.moves} == {0, 1}
    assert not {move.target for move in both.moves} & {0, 1}
    assert both.bytes > 1.5 * one.bytes
    for osd in range(2, 16):
        view = filled(view, osd, 0.84 - 0.5 * one.bytes / (14 * 100 * GB))
    assert a_plan(view, drained((0,))).refusals or a_plan(view, drained((0, 1))).refusals


def test_the_diff_names_each_pg_with_what_it_becomes_and_skips_what_is_done() -> None:
    view = view_of()
    made = a_plan(view, drained())
    lines = list_plan_lines(view, made)
    assert [line.pg for line in lines] == [move.pg for move in made.moves]
    assert sum(line.bytes for line in lines) == made.bytes
    first = lines[0]
    assert 0 in first.before
    assert 0 not in first.after
    assert str(first).startswith(f"PG {first.pg}: [")
    assert str(first).endswith(" GiB")
    pg = view.pgs[first.pg]
    done = replace(view, pgs={**view.pgs, pg.id: replace(pg, up=first.after, acting=first.after)})
    assert list_plan_lines(done, made) == lines[1:]


def test_a_sick_disk_stops_leading_first_and_the_plan_says_what_of_it_is_still_read() -> None:
    view = view_of()
    made = a_plan(view, replace(drained(), spare_reads=True))
    assert made.mechanic is Mechanic.REBUILD
    assert "becomes the primary of no PG" in made.why
    assert any("would be at min_size or below" in sentence for sentence in made.rejected)
    coded = view_of(EC_HOST, 4, erasure=True)
    assert "its shards are read all the same" in a_plan(coded, replace(drained(), spare_reads=True)).why


def test_where_a_whole_host_would_have_to_go_the_plan_says_that_a_host_cannot_be_evacuated() -> None:
    view = view_of(EC_HOST, 4, hosts=4, per_host=1, erasure=True)
    made = plan_drain(view, drained(), POLICY, a_context(view, drained()))
    (refusal,) = made.refusals
    assert refusal.kind is PlanRefusalKind.ZERO_OF_LAST_OSD
    assert "a host cannot be evacuated without a spare one" in describe_plan_refusal(refusal)
    assert "no spare failure domain" in describe_plan_refusal(refusal)

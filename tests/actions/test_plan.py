"""Plans: where each PG goes, in which order, by which mechanic, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.engine.plan_building import is_different_plan, plan_drain
from predrain.actions.engine.plan_comparison import read_alike
from predrain.actions.placement.failure_domains import apply_upmap_pairs, find_failure_domains, pairs_for
from predrain.actions.placement.what_if import compute_map_fingerprint
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState, Intent, Mechanic
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import describe_bottleneck, describe_bound, describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from tests.actions.made import (
    NOW,
    POLICY,
    a_context,
    a_drain,
    a_plan,
    bad_outlook,
    calm_view,
    changed_osd,
    device,
    wide_spec,
)


def wide_view(**changes: object) -> ClusterView:
    return replace(SimulatedCluster(wide_spec(**changes), 1).view(), as_of=NOW)  # type: ignore[arg-type]


def test_only_the_suspects_pgs_move_and_each_to_the_place_of_the_final_map() -> None:
    view = wide_view(used=0.3)
    made = a_plan(view, a_drain())
    final = place_pgs(view.crush, view.pools, {osd: float(osd != 0) for osd in view.osds}, view.upmap_items)
    on_it = {pg.id for pg in view.pgs.values() if 0 in pg.up}
    assert {move.pg for move in made.moves} == on_it
    for pg in on_it:
        went = {move.source: move.target for move in made.moves if move.pg == pg}
        assert {went.get(osd, osd) for osd in view.pgs[pg].up} == set(final[pg])  # type: ignore[call-overload]


def test_no_pg_of_the_final_map_has_two_members_on_one_host() -> None:
    view = wide_view(hosts=8, racks=0, pg_num=128, used=0.55)
    made = a_plan(view, a_drain())
    for move in made.moves:
        hosts = [view.osds[OsdId(osd)].host for osd in view.pgs[move.pg].up if osd != move.source]
        assert view.osds[move.target].host not in hosts


def test_the_figures_of_a_plan_add_up() -> None:
    view = wide_view(used=0.3)
    made = a_plan(view, a_drain())
    assert made.bytes == sum(view.pgs[move.pg].shard_bytes for move in made.moves)
    assert made.fullest_osd is not None
    arriving = sum(move.bytes for move in made.moves if move.target == made.fullest_osd)
    used = view.osds[made.fullest_osd].used_bytes or 0
    assert made.fullest_after == pytest.approx((used + arriving) / 100e9)
    assert made.eta_hours is not None
    assert made.eta_hours > 0
    longest = max(
        (bound for bound in made.bounds if not bound.kind.follows_data), key=lambda bound: bound.hours
    )
    assert made.bounds[0] == longest
    assert describe_bottleneck(made) == describe_bound(longest)


def test_a_full_target_gives_way_and_without_any_the_plan_refuses_with_the_numbers() -> None:
    view = wide_view(used=0.3)
    target = a_plan(view, a_drain()).moves[0].target
    fuller = changed_osd(view, target, used_bytes=int(84.9e9))
    assert target not in {move.target for move in a_plan(fuller, a_drain()).moves}
    full = replace(view, osds={id_: replace(osd, used_bytes=int(84.9e9)) for id_, osd in view.osds.items()})
    made = a_plan(full, a_drain())
    assert made.moves == ()
    kind = PlanRefusalKind.NO_LESS_FULL_TARGET
    assert {(one.kind, one.limit_percent) for one in made.refusals} == {(kind, 85)}
    assert "limit 85%; no less full legal target is left." in describe_plan_refusal(made.refusals[0])


def test_other_drains_and_pending_backfill_count_against_the_room() -> None:
    view = wide_view(used=0.3)
    other = a_drain(2)
    other = replace(other, plan=a_plan(view, other))
    mine = a_drain(0)
    policy = replace(POLICY, backfillfull_margin=0.0)
    assert other.plan is not None
    alone = plan_drain(view, mine, policy, a_context(view, mine))
    both = plan_drain(view, mine, policy, a_context(view, mine, other))
    shared = {move.target for move in alone.moves} & {move.target for move in other.plan.moves}
    assert shared
    assert 2 not in {move.target for move in both.moves}


def test_pgs_with_another_suspect_leave_first() -> None:
    view = wide_view(used=0.3)
    drain = a_drain()
    context = a_context(view, drain, outlooks={device(5): bad_outlook(5)})
    order = list(dict.fromkeys(move.pg for move in plan_drain(view, drain, POLICY, context).moves))
    with_suspect = [5 in view.pgs[pg].acting for pg in order]
    assert any(with_suspect)
    assert with_suspect == sorted(with_suspect, reverse=True)


def test_old_clients_get_rungs_of_the_override_and_the_plan_says_why() -> None:
    view = replace(wide_view(used=0.3), require_min_compat_client="jewel")
    made = a_plan(view, a_drain())
    assert made.mechanic is Mechanic.OVERRIDE_LADDER
    assert "require_min_compat_client is jewel" in made.why
    full_pins = replace(wide_view(used=0.3), has_full_upmaps=True)
    assert "full pg_upmap entries stand" in a_plan(full_pins, a_drain()).why


def test_a_map_that_cannot_be_computed_is_refused() -> None:
    view = calm_view()
    buckets = {id_: replace(bucket, algorithm="list") for id_, bucket in view.crush.buckets.items()}
    made = a_plan(replace(view, crush=replace(view.crush, buckets=buckets)), a_drain())
    (refusal,) = made.refusals
    assert (refusal.kind, refusal.step) == (PlanRefusalKind.BUCKET_ALGORITHM, "list")
    assert "uses list; only straw2 is computed" in describe_plan_refusal(refusal)
    assert "neither a walk by upmap nor a ladder by override reweight" in describe_plan_refusal(refusal)
    assert made.moves == ()


def test_a_fingerprint_changes_with_the_map_and_not_with_what_drains_set() -> None:
    view, drain = calm_view(), a_drain()
    mark = compute_map_fingerprint(view, drain, frozenset())
    assert compute_map_fingerprint(changed_osd(view, 0, reweight=0.5), drain, frozenset()) == mark
    assert (
        compute_map_fingerprint(replace(view, upmap_items={PgId("1.0"): ((0, 4),)}), drain, frozenset())
        == mark
    )
    assert compute_map_fingerprint(changed_osd(view, 5, reweight=0.5), drain, frozenset()) != mark
    assert compute_map_fingerprint(changed_osd(view, 5, up=False), drain, frozenset()) != mark


def test_a_plan_made_half_way_keeps_what_has_moved() -> None:
    view = wide_view(used=0.3)
    drain = a_drain(state=DrainState.DRAINING)
    drain = replace(drain, plan=a_plan(view, drain))
    assert drain.plan is not None
    first = drain.plan.moves[0]
    pg = view.pgs[first.pg]
    moved = replace(pg, up=tuple(first.target if osd == 0 else osd for osd in pg.up))
    later = replace(view, pgs={**view.pgs, pg.id: replace(moved, acting=moved.up)})
    again = plan_drain(later, drain, Policy(), a_context(later, drain))
    assert again.moves[0] == first
    assert {move.pg for move in again.moves} == {move.pg for move in drain.plan.moves}


SETS = st.lists(st.integers(0, 9), min_size=3, max_size=3, unique=True).map(tuple)


@given(SETS, SETS)
def test_pairs_turn_a_replicated_set_into_the_wanted_one(raw: tuple[int, ...], want: tuple[int, ...]) -> None:
    pairs = pairs_for(raw, want, (), ordered=False)
    assert pairs is not None
    assert set(apply_upmap_pairs(raw, pairs)) == set(want)


@given(SETS, SETS)
def test_pairs_put_every_shard_in_its_place_or_say_that_they_cannot(
    raw: tuple[int, ...], want: tuple[int, ...]
) -> None:
    pairs = pairs_for(raw, want, (), ordered=True)
    if pairs is None:
        assert set(raw) & set(want)
    else:
        assert apply_upmap_pairs(raw, pairs) == want


def test_a_shard_whose_new_osd_still_holds_another_waits_for_it_to_leave() -> None:
    assert pairs_for((6, 4, 3), (3, 4, 1), (), ordered=True) == ((3, 1), (6, 3))


def test_a_standing_pair_that_still_serves_is_kept() -> None:
    assert pairs_for((1, 2, 3), (4, 5, 3), ((2, 5),), ordered=False) == ((2, 5), (1, 4))


def test_domains_are_the_hosts_of_the_rule() -> None:
    view = calm_view()
    region = find_failure_domains(view.crush, view.pools[1])
    assert region.is_legal((0, 3, 6))
    assert not region.is_legal((0, 1, 6))
    assert len(set(region.leaf.values())) == 4


def test_the_cluster_after_a_fill_has_the_new_disk_in_it_as_soon_as_its_size_is_known() -> None:
    view = changed_osd(calm_view(), 0, reweight=0.5)
    fill = a_drain(intent=Intent.FILL)
    assert a_plan(view, fill).cluster_after == pytest.approx(full_without(view))
    unsized = changed_osd(view, 0, reweight=0.0, size_bytes=None, used_bytes=None)
    assert a_plan(unsized, fill).cluster_after is None


def test_the_cluster_after_a_drain_lacks_all_that_drains() -> None:
    view = calm_view()
    first, second = a_drain(), a_drain(5, id="second")
    made = plan_drain(view, first, POLICY, a_context(view, first, second))
    assert made.cluster_after == pytest.approx(full_without(view, 0, 5))


def full_without(view: ClusterView, *gone: int) -> float:
    """Fullness of the cluster once all of its data is on the others."""
    used = sum(osd.used_bytes or 0 for osd in view.osds.values())
    return used / sum(osd.size_bytes or 0 for osd in view.osds.values() if osd.id not in gone)


def test_plans_differ_by_the_kind_and_the_figures_of_their_refusals() -> None:
    plain = a_plan(calm_view(), a_drain())
    full = PlanRefusal(PlanRefusalKind.TARGET_TOO_FULL, osd=OsdId(4), percent=86, limit_percent=85)
    refused = replace(plain, refusals=(full,))
    assert read_alike(refused, replace(refused, refusals=(replace(full),)))
    for other in (
        plain,
        replace(refused, refusals=(replace(full, osd=OsdId(5)),)),
        replace(refused, refusals=(replace(full, percent=87),)),
        replace(refused, refusals=(replace(full, kind=PlanRefusalKind.NO_LESS_FULL_TARGET),)),
    ):
        assert not read_alike(refused, other)
        assert is_different_plan(refused, other)

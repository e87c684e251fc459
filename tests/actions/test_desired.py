"""The upmap items of a PG after a cancel: the items that others left there, and those that the other drains need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_port import RemoveUpmap, SetUpmap
from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.claimed_settings import claim_settings, find_base, is_ours, write_pairs
from predrain.actions.engine.map_claims import fold_base_pairs, follow_map
from predrain.actions.mechanics.desired_upmaps import find_desired_upmaps, list_claims_for_others
from predrain.actions.placement.failure_domains import find_failure_domains
from predrain.data.drain import Drain, DrainState, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.setting import OsdFlag, UpmapItem, ValueBefore
from tests.actions.made import NOW, a_context, a_drain, calm_view, changed_pg

S = DrainState


def first_pg() -> Pg:
    view = calm_view()
    return view.pgs[min(view.pgs)]


def targets_of(pg: Pg, source: int) -> Iterator[int]:
    view = calm_view()
    return iter(sorted(find_failure_domains(view.crush, view.pools[pg.pool]).list_substitutes(pg.up, source)))


def draining(osd: int, pg: PgId, target: int, *, age: int = 1, **changes: object) -> Drain:
    """A drain that has sent the PG from its OSD to the target."""
    move = Move(pg, OsdId(osd), OsdId(target), 1)
    plan = Plan(Mechanic.UPMAP_WALK, "", 1, (move,), None, None, None, None)
    key = UpmapItem(pg)
    book = {"saved": {key: ""}, "ours": {key: f"{osd}>{target}"}}
    return a_drain(osd, plan=plan, created_at=NOW - timedelta(hours=age), **{**book, **changes})


def pinned_view(pg: Pg, *pairs: tuple[int, int]) -> ClusterView:
    """The calm view with these pairs, and the PG where they send it."""
    target = dict(pairs)
    up = tuple(target.get(osd, osd) for osd in pg.up)
    return replace(changed_pg(calm_view(), pg.id, up=up, acting=up), upmap_items={pg.id: pairs})


def test_a_drain_that_sends_a_pg_on_takes_over_what_others_had_left_before_the_first_drain() -> None:
    pg = first_pg()
    one, two = pg.up[:2]
    target = next(targets_of(pg, one))
    first = draining(one, pg.id, target)
    view = pinned_view(pg, (one, target))
    other = next(osd for osd in targets_of(pg, two) if osd != target)
    command = SetUpmap(pg.id, ((one, target), (two, other)))
    second = claim_settings(a_drain(two), view, (command,), {pg.id}, (first,))
    assert second.saved[UpmapItem(pg.id)] == ""
    alone = claim_settings(a_drain(two), view, (command,), {pg.id})
    assert alone.saved[UpmapItem(pg.id)] == f"{one}>{target}"


@pytest.mark.parametrize("cancelled", ["first", "second"])
def test_whichever_of_two_drains_is_cancelled_the_pair_of_the_other_stays(cancelled: str) -> None:
    pg = first_pg()
    one, two = pg.up[:2]
    region = find_failure_domains(calm_view().crush, calm_view().pools[pg.pool])
    one_to, two_to = next(
        (a, b)
        for a in targets_of(pg, one)
        for b in targets_of(pg, two)
        if region.is_legal(tuple({one: a, two: b}.get(osd, osd) for osd in pg.up))
        and region.is_legal(tuple({two: b}.get(osd, osd) for osd in pg.up))
    )
    first = draining(one, pg.id, one_to, age=2)
    both = f"{one}>{one_to} {two}>{two_to}"
    second = draining(two, pg.id, two_to, ours={UpmapItem(pg.id): both})
    view = pinned_view(pg, (one, one_to), (two, two_to))
    gone, stays = (first, second) if cancelled == "first" else (second, first)
    gone = replace(gone, state=S.CANCELLING)
    context = a_context(view, gone, stays)
    left = ((two, two_to),) if cancelled == "first" else ((one, one_to),)
    assert find_desired_upmaps(view, gone, context, [pg.id]) == {pg.id: left}
    ended = replace(context, drains=(gone, replace(stays, state=S.CANCELLING)))
    assert find_desired_upmaps(view, gone, ended, [pg.id]) == {pg.id: ()}


def test_an_upmap_that_a_cancelled_drain_leaves_for_another_drain_counts_as_predrains_own() -> None:
    pg = first_pg()
    one, two = pg.up[:2]
    one_to = next(targets_of(pg, one))
    key = UpmapItem(pg.id)
    stays = draining(one, pg.id, one_to, ours={key: ""})
    gone = draining(two, pg.id, two, state=S.CANCELLING)
    view = pinned_view(pg, (one, one_to))
    claims = list_claims_for_others(view, gone, a_context(view, gone, stays))
    assert claims == {key: f"{one}>{one_to}"}
    assert is_ours((stays, replace(gone, state=S.CANCELLED, ours=claims)), key, f"{one}>{one_to}")


def test_of_books_of_version_0_1_0_what_another_drain_had_sent_is_not_the_base() -> None:
    pg = first_pg()
    key = UpmapItem(pg.id)
    first = a_drain(1, saved={key: "7>8"}, ours={key: "7>8 1>4"})
    second = a_drain(2, saved={key: "7>8 1>4"}, ours={key: "7>8 1>4 2>5"})
    for order in ((first, second), (second, first)):
        assert find_base(order, key, "7>8 1>4 2>5") == "7>8"
    assert find_base((), key, "") is None


def test_a_pair_that_the_mon_tidied_comes_back_and_one_that_a_person_took_off_does_not() -> None:
    pg = first_pg()
    one, two = pg.up[:2]
    target = next(targets_of(pg, one))
    key = UpmapItem(pg.id)
    stranger = next(osd for osd in calm_view().osds if osd not in pg.up)
    could_stand = a_drain(two, saved={key: f"{one}>{target}"}, ours={key: f"{one}>{target}"})
    tidied = a_drain(two, saved={key: f"{stranger}>{target}"}, ours={key: f"{stranger}>{target}"})
    view = calm_view()
    assert fold_base_pairs(view, (could_stand,))[0].saved[key] == ""
    kept = fold_base_pairs(view, (tidied,))[0]
    assert (kept.saved[key], kept.ours[key]) == (f"{stranger}>{target}", "")
    assert fold_base_pairs(view, (kept,))[0] is kept
    taken_off_by_us = a_drain(target, saved={key: f"{one}>{target}"}, ours={key: ""})
    assert fold_base_pairs(view, (could_stand, taken_off_by_us))[0].saved == could_stand.saved


def test_a_book_whose_pairs_all_stand_is_left_as_it_is() -> None:
    pg = first_pg()
    one = pg.up[0]
    target = next(targets_of(pg, one))
    pairs = write_pairs(((one, target),))
    drain = a_drain(one, saved={UpmapItem(pg.id): pairs}, ours={UpmapItem(pg.id): pairs})
    assert fold_base_pairs(pinned_view(pg, (one, target)), (drain,))[0] is drain
    assert claim_settings(drain, calm_view(), (RemoveUpmap(pg.id),)).saved == drain.saved


def test_a_command_that_did_not_arrive_is_no_persons_hand_but_once_it_stood_its_loss_is_one() -> None:
    pg = first_pg()
    one = pg.up[0]
    target = next(targets_of(pg, one))
    key, pairs = UpmapItem(pg.id), f"{one}>{target}"
    sent = a_drain(one, saved={key: pairs}, ours={key: pairs, ValueBefore(key): ""})
    assert fold_base_pairs(calm_view(), (sent,))[0] is sent
    stood = fold_base_pairs(pinned_view(pg, (one, target)), (sent,))[0]
    assert ValueBefore(key) not in stood.ours
    assert fold_base_pairs(calm_view(), (stood,))[0].saved[key] == ""


def test_a_drain_that_loses_a_flag_and_a_pair_at_one_look_is_one_revision_on() -> None:
    pg = first_pg()
    one = pg.up[0]
    target = next(targets_of(pg, one))
    key, pairs = UpmapItem(pg.id), f"{one}>{target}"
    drain = a_drain(one, saved={key: pairs}, ours={key: pairs, OsdFlag("norebalance"): "on"})
    (followed,) = follow_map(calm_view(), (drain,))
    assert followed.revision == drain.revision + 1
    assert OsdFlag("norebalance") not in followed.ours
    assert followed.saved[key] == ""
    assert follow_map(calm_view(), (followed,))[0] is followed

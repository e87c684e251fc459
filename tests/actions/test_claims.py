"""The claims of drains follow the map: a change to another person's upmap item that one drain learns of holds for all
drains.
"""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.engine.map_claims import fold_base_pairs, follow_map, hand_on_blocked_pairs
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import OsdId, PgId, pg_id
from predrain.data.setting import OsdOverride, UpmapItem, ValueBefore
from tests.actions.made import a_drain, calm_view, changed_osd

VIEW = calm_view()
PG = min(VIEW.pgs)
ONE, TWO = VIEW.pgs[PG].up[:2]
FREE = [
    int(osd.id)
    for osd in VIEW.osds.values()
    if osd.host not in {VIEW.osds[other].host for other in VIEW.osds if other in VIEW.pgs[PG].up}
]
KEY, THEIRS = UpmapItem(PG), f"{ONE}>{FREE[0]}"


def show(*pairs: tuple[int, int]) -> ClusterView:
    """The view with these pairs on the PG."""
    return replace(VIEW, upmap_items={PgId(PG): tuple(pairs)} if pairs else {})


def fold(view: ClusterView, *drains: Drain) -> tuple[Drain, ...]:
    return fold_base_pairs(view, drains)


def test_a_pair_that_a_weight_was_to_make_void_and_that_stands_is_not_put_back_once_a_person_took_it_off() -> (
    None
):
    drain = a_drain(ONE, saved={KEY: THEIRS}, ours={KEY: ""})
    (drain,) = fold(show((ONE, FREE[0])), drain)
    assert drain.ours[KEY] == THEIRS
    (drain,) = fold(show(), drain)
    assert drain.saved[KEY] == ""


def test_a_removed_pair_that_one_drain_notices_counts_as_removed_for_every_drain_that_found_it() -> None:
    left = a_drain(TWO, saved={KEY: THEIRS}, ours={KEY: THEIRS})
    moved = a_drain(FREE[0], saved={KEY: THEIRS}, ours={KEY: f"{ONE}>{FREE[1]}"})
    for drain in fold(show(), left, moved):
        assert drain.saved[KEY] == ""


def test_another_drains_command_that_did_not_arrive_is_no_persons_hand() -> None:
    both = f"{THEIRS} {TWO}>{FREE[1]}"
    first = a_drain(TWO, saved={KEY: THEIRS}, ours={KEY: both})
    returning = a_drain(FREE[0], saved={KEY: THEIRS}, ours={KEY: both, ValueBefore(KEY): f"{TWO}>{FREE[1]}"})
    folded = fold(show((TWO, FREE[1])), first, returning)
    assert [drain.saved[KEY] for drain in folded] == [THEIRS, THEIRS]


def test_a_drain_that_was_handed_over_learns_of_a_pair_that_a_person_took_off_while_its_osd_is_out() -> None:
    drain = a_drain(TWO, DrainState.HANDED_OVER, saved={KEY: THEIRS}, ours={KEY: THEIRS})
    assert fold(show(), drain)[0] is drain
    out = changed_osd(show(), TWO, reweight=0.0)
    (followed,) = follow_map(out, (drain,))
    assert followed.saved[KEY] == ""
    assert followed.revision == drain.revision + 1


def test_a_pair_that_another_drain_took_off_before_the_mon_tidied_the_rest_comes_back() -> None:
    """Two drains sent the PG on in turn; the second one left the pair of another person out."""
    first = a_drain(TWO, saved={KEY: THEIRS}, ours={KEY: f"{THEIRS} {TWO}>{FREE[1]}"})
    second = a_drain(FREE[1], saved={KEY: THEIRS}, ours={KEY: f"{TWO}>{FREE[0]}"})
    stood = fold(show((TWO, FREE[0])), first, second)
    assert [drain.ours[KEY] for drain in stood] == [second.ours[KEY]] * 2
    for drain in fold(show(), *stood):
        assert drain.saved[KEY] == THEIRS


def test_a_list_that_no_drain_explains_is_what_every_drain_found() -> None:
    cancelled = a_drain(TWO, DrainState.CANCELLING, saved={KEY: ""}, ours={KEY: f"{TWO}>{FREE[1]}"})
    draining = a_drain(FREE[0], saved={KEY: ""}, ours={KEY: f"{TWO}>{FREE[1]}"})
    for drain in fold(show((ONE, FREE[0])), cancelled, draining):
        assert drain.saved[KEY] == drain.ours[KEY] == THEIRS


def test_a_list_that_was_sent_and_may_still_arrive_is_no_persons() -> None:
    drain = a_drain(TWO, saved={KEY: ""}, ours={KEY: THEIRS, ValueBefore(KEY): f"{TWO}>{FREE[1]}"})
    assert fold(show((TWO, FREE[1])), drain) == (drain,)


def test_a_list_that_comes_again_after_it_was_taken_off_is_another_partys() -> None:
    sent = a_drain(TWO, saved={KEY: ""}, ours={KEY: f"{TWO}>{FREE[0]}"})
    (taken_off,) = fold(show(), sent)
    assert taken_off.ours[KEY] == ""
    (again,) = fold(show((TWO, FREE[0])), taken_off)
    assert again.saved[KEY] == f"{TWO}>{FREE[0]}"


def test_a_list_that_has_not_arrived_yet_is_still_the_drains() -> None:
    drain = a_drain(TWO, saved={KEY: ""}, ours={KEY: f"{TWO}>{FREE[0]}", ValueBefore(KEY): ""})
    assert fold(show(), drain) == (drain,)


def test_claims_on_a_pg_that_was_merged_are_forgotten_so_that_a_later_split_gets_no_old_upmap_back() -> None:
    drain = a_drain(TWO, saved={KEY: THEIRS}, ours={KEY: f"{TWO}>{FREE[1]}", ValueBefore(KEY): THEIRS})
    pool = VIEW.pools[1]
    last = UpmapItem(pg_id(1, pool.pg_num - 1))
    drain = replace(
        drain, saved={**drain.saved, last: THEIRS}, ours={**drain.ours, last: "", ValueBefore(last): ""}
    )
    (followed,) = follow_map(replace(VIEW, pools={1: replace(pool, pg_num=pool.pg_num - 1)}), (drain,))
    assert last not in followed.saved
    assert {last, ValueBefore(last)}.isdisjoint(followed.ours)
    assert KEY in followed.saved


def test_claims_of_a_pool_that_was_deleted_are_forgotten() -> None:
    drain = a_drain(TWO, saved={KEY: THEIRS}, ours={KEY: f"{TWO}>{FREE[1]}"})
    (followed,) = follow_map(replace(VIEW, pools={}, pgs={}), (drain,))
    assert not followed.saved
    assert not followed.ours


def emptying(osd: int) -> Drain:
    """A drain that has set the override of its OSD to 0."""
    key = OsdOverride(OsdId(osd))
    return a_drain(osd, saved={key: "1.0"}, ours={key: "0.0"})


def test_a_cancelled_drain_hands_the_pair_that_another_drains_weight_forbids_on_to_that_drain() -> None:
    """The mon drops the pair while its target is out. The cancelled drain ends before the other one does."""
    returning = a_drain(TWO, DrainState.CANCELLING, saved={KEY: THEIRS}, ours={KEY: f"{TWO}>{FREE[1]}"})
    out = changed_osd(show(), FREE[0], reweight=0.0)
    kept, heir = hand_on_blocked_pairs(out, (returning, emptying(FREE[0])))
    assert kept is returning
    assert (heir.saved[KEY], heir.ours[KEY]) == (THEIRS, "")
    assert hand_on_blocked_pairs(out, (returning, heir)) == (returning, heir)


def test_a_cancelled_drain_hands_nothing_on_that_it_can_set_again_itself() -> None:
    returning = a_drain(TWO, DrainState.CANCELLING, saved={KEY: THEIRS}, ours={KEY: ""})
    out = changed_osd(show(), FREE[1], reweight=0.0)
    drains = (returning, emptying(FREE[1]))
    assert hand_on_blocked_pairs(out, drains) == drains


def test_a_pair_that_a_person_made_void_is_handed_on_to_no_drain() -> None:
    """A person took its target out, and no drain holds the weight."""
    returning = a_drain(TWO, DrainState.CANCELLING, saved={KEY: THEIRS}, ours={KEY: ""})
    out = changed_osd(changed_osd(show(), FREE[0], reweight=0.0), FREE[1], reweight=0.0)
    drains = (returning, emptying(FREE[1]))
    assert hand_on_blocked_pairs(out, drains) == drains

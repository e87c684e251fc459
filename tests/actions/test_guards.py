"""Each guard passes a calm cluster and refuses its own danger, with a sentence that has the numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.guards import GUARDS, Pass, Refuse, evaluate_guards, list_refusals
from predrain.data.drain import Drain, DrainState, Mechanic, Move, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.outlook import Status
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from predrain.data.setting import UpmapItem
from tests.actions.guarded import (
    a_member_down,
    automatic,
    believed,
    first_pg,
    planned,
    ruled,
    verdict,
    with_states,
    world,
)
from tests.actions.made import (
    NOW,
    POLICY,
    a_context,
    a_drain,
    bad_outlook,
    calm_view,
    changed_osd,
    changed_pg,
    device,
)
from tests.settings_by_text import by_setting

PAGES = Path(__file__).resolve().parents[2] / "docs" / "guards"
S = DrainState
NONE = 0x7FFFFFFF


NO_PLACE = PlanRefusal(PlanRefusalKind.NO_LEGAL_TARGET, pg=PgId("1.0"), members=(1, 2))


@dataclass(frozen=True)
class Danger:
    """One thing that a guard must see."""

    code: str
    says: str
    make: Callable[[], tuple[ClusterView, Drain, Policy, Context]]


def one_name_on_two_hosts() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    elsewhere = next(osd.id for osd in view.osds.values() if osd.host != view.osds[OsdId(0)].host)
    view = changed_osd(view, elsewhere, device=device(0))
    return world(view, automatic(osds=(OsdId(0), elsewhere)), outlooks={device(0): bad_outlook(0)})


def full_target() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    drain = planned(view)
    assert drain.plan is not None
    target = drain.plan.moves[0].target
    return world(changed_osd(view, target, used_bytes=int(84.9e9)), drain)


def unknown_target() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    drain = planned(view)
    assert drain.plan is not None
    return world(changed_osd(view, drain.plan.moves[0].target, size_bytes=None, used_bytes=None), drain)


def other_drains() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    mine, other = a_drain(0, S.APPROVED), a_drain(1)
    return view, mine, POLICY, a_context(view, mine, other)


def many_out() -> tuple[ClusterView, Drain, Policy, Context]:
    view = changed_osd(calm_view(), 9, reweight=0.0)
    return world(view, a_drain(state=S.APPROVED))


def mass() -> tuple[ClusterView, Drain, Policy, Context]:
    return world(drain=automatic(), bad_since={device(osd): NOW - timedelta(days=1) for osd in range(5)})


def short_of_copies() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    pg = first_pg(view)
    gone = next(osd for osd in view.pgs[pg].acting if osd != 0)
    states = frozenset({"active", "undersized", "degraded"})
    return world(changed_osd(changed_pg(view, pg, states=states), gone, up=False))


def late() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    drain = planned(view)
    assert drain.plan is not None
    silent = drain.plan.moves[0].pg
    memory = SentMemory(
        NOW - timedelta(minutes=5), view.mgr_id, view.dump_version, changed={silent: view.epoch + 9}
    )
    return world(drain=drain, memory=memory)


def new_mgr() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    memory = SentMemory(NOW - timedelta(minutes=1), view.mgr_id, view.dump_version)
    fresh = replace(view, mgr_id="y", dump_version=2)
    return world(fresh, memory=memory.after_poll(fresh, NOW, POLICY))


def version_fell() -> tuple[ClusterView, Drain, Policy, Context]:
    view = replace(calm_view(), dump_version=4000)
    memory = SentMemory(NOW - timedelta(minutes=1), view.mgr_id, 4000)
    fresh = replace(view, dump_version=2)
    return world(fresh, memory=memory.after_poll(fresh, NOW, POLICY))


DANGERS = [
    Danger("halt", "Halted: smoke in the room", lambda: world(halted="smoke in the room")),
    Danger(
        "stale-view",
        "100 s ago, limit 60 s",
        lambda: world(replace(calm_view(), as_of=NOW - timedelta(seconds=100))),
    ),
    Danger("stale-view", "nothing is known", lambda: world(replace(calm_view(), statistics_known=False))),
    Danger("stale-view", "1 PG did not report", late),
    Danger("stale-view", "Another mgr (y)", new_mgr),
    Danger("stale-view", "Another mgr", version_fell),
    Danger("unhealthy", "undersized", lambda: with_states("active", "undersized", "degraded")),
    Danger("unhealthy", "peering", lambda: with_states("peering")),
    Danger("unhealthy", "is unknown", lambda: with_states("unknown")),
    Danger("unhealthy", "is unknown", lambda: with_states()),
    Danger("unhealthy", "purring", lambda: with_states("active", "clean", "purring")),
    Danger("unhealthy", "unknown", lambda: with_states("unknown", mine=True)),
    Danger("unhealthy", "osd.7 is down", lambda: a_member_down(beside=True)),
    Danger("unhealthy", "1 PG not whole (PG", lambda: with_states("peering", elsewhere=1)),
    Danger(
        "unhealthy",
        "of all, limit 5.0% while data moves",
        lambda: with_states("active", "degraded", "undersized", elsewhere=12),
    ),
    Danger("whole", "none", lambda: world(changed_pg(calm_view(), "1.0", up=(0, 2, NONE), acting=(0, 2, 3)))),
    Danger("whole", "one twice", lambda: world(changed_pg(calm_view(), "1.0", acting=(0, 5, 5)))),
    Danger("whole", "3 wanted", lambda: world(changed_pg(calm_view(), "1.0", up=(0, 5)))),
    Danger(
        "plan",
        "no other legal target",
        lambda: world(drain=a_drain(plan=refused_plan(NO_PLACE))),
    ),
    Danger("operator-flags", "noout", lambda: world(replace(calm_view(), flags=frozenset({"noout"})))),
    Danger(
        "operator-flags",
        "norecover on osd.0",
        lambda: world(replace(calm_view(), osd_flags={OsdId(0): frozenset({"norecover"})})),
    ),
    Danger("redundancy", "has 2 of 3, serves from 2", short_of_copies),
    Danger("space", "limit 85%", full_target),
    Danger("space", "reports no sizes", unknown_target),
    Danger("budget", "1 drain under way in host", other_drains),
    Danger("budget", "2 OSDs of 12 would be out or draining, limit 1", many_out),
    Danger(
        "mass-suspicion",
        "5 of 12 disks of model D100 turned bad, or worth a drain, within 7 days, limit 3",
        mass,
    ),
    Danger(
        "autoscale",
        "pg_num of pool rbd goes from 64 to 128",
        lambda: world(replace(calm_view(), pools=grown())),
    ),
    Danger("upgrade", "different releases", lambda: world(replace(calm_view(), mixed_versions=True))),
    Danger("upgrade", "`ceph orch upgrade stop`", lambda: world(replace(calm_view(), upgrade_running=True))),
    Danger(
        "scrub-errors", "1 PG of the plan", lambda: with_states("active", "clean", "inconsistent", mine=True)
    ),
    Danger("unknown-release", "'umbra'", lambda: world(replace(calm_view(), release="umbra"))),
    Danger(
        "window", "22:00 to 06:00 UTC; it is 12:00", lambda: world(policy=replace(POLICY, window=(22, 6)))
    ),
    Danger("lease", "under the controller that holds the lease", lambda: world(lease_held=False)),
    Danger(
        "conflict",
        "is now 0.5",
        lambda: world(
            changed_osd(calm_view(), 0, reweight=0.5), a_drain(ours=by_setting({"osd.0/reweight": "1.0"}))
        ),
    ),
    Danger("conflict", "is not in the map", lambda: world(drain=a_drain(77))),
    Danger("conflict", "3 times and the map never shows it", lambda: dropped_pin()),
    Danger("conflict", "is now 1>9", lambda: foreign_pin()),
    Danger("balancer", "turned on again", lambda: world(replace(calm_view(), balancer_active=True))),
    Danger("throttle", "is erasure-coded, and nothing bounds its backfills", lambda: torrent()),
    Danger("trust", "no outlook", lambda: world(drain=automatic())),
    Danger("trust", "is warning, not bad", lambda: ruled(automatic(), status=Status.WARNING)),
    Danger("trust", "48 h old, limit 36 h", lambda: believed(automatic(), at=NOW - timedelta(hours=48))),
    Danger(
        "trust",
        "1 reading over 0.0 h bear it out, 3 over 24 h",
        lambda: ruled(automatic(), readings=1, span_hours=0.0),
    ),
    Danger("trust", "2 over 1 h", lambda: ruled(automatic(), readings=1, span_hours=0.0, hard=True)),
    Danger("trust", "another 48 h", lambda: new_bundle()),
    Danger("trust", "two drives go by one name", lambda: one_name_on_two_hosts()),
    Danger("safe-to-destroy", "PGs still name osd.0", lambda: world(drain=a_drain(state=S.VERIFIED))),
]


def refused_plan(refusal: PlanRefusal) -> Plan:
    return Plan(Mechanic.UPMAP_WALK, "", 1, (), None, None, None, None, (refusal,))


def grown() -> dict[int, object]:
    return {id_: replace(pool, pg_num_target=128) for id_, pool in calm_view().pools.items()}


def dropped_pin() -> tuple[ClusterView, Drain, Policy, Context]:
    view = calm_view()
    pg = first_pg(view)
    memory = replace(a_context(view).memory, attempts={UpmapItem(pg): 3})
    return world(view, a_drain(ours=by_setting({f"upmap/{pg}": "0>9"})), memory=memory)


def foreign_pin() -> tuple[ClusterView, Drain, Policy, Context]:
    view = replace(calm_view(), upmap_items={PgId("1.0"): ((1, 9),)})
    return world(view, a_drain(ours=by_setting({"upmap/1.0": "0>9"})))


def torrent() -> tuple[ClusterView, Drain, Policy, Context]:
    view = replace(
        calm_view(), release="pacific", scheduler="mclock_scheduler", backfills_in_force={OsdId(0): 1000}
    )
    coded = {id_: replace(pool, erasure=True) for id_, pool in view.pools.items()}
    drain = planned(view)
    assert drain.plan is not None
    ladder = replace(drain, plan=replace(drain.plan, mechanic=Mechanic.OVERRIDE_LADDER))
    return world(replace(view, pools=coded), ladder)


def new_bundle() -> tuple[ClusterView, Drain, Policy, Context]:
    view, drain, policy, context = believed(automatic())
    return view, drain, policy, replace(context, bundle_since=NOW - timedelta(hours=24))


@pytest.mark.parametrize("danger", DANGERS, ids=lambda danger: f"{danger.code}: {danger.says}")
def test_a_danger_is_refused_by_its_guard_with_a_sentence(danger: Danger) -> None:
    answer = verdict(danger.code, *danger.make())
    assert isinstance(answer, Refuse)
    assert answer.code == danger.code
    assert danger.says in answer.sentence
    assert answer.sentence.endswith(".") or answer.code == "halt"


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.code)
def test_every_guard_has_a_danger_that_it_was_seen_to_refuse(guard: object) -> None:
    assert any(danger.code == guard.code for danger in DANGERS)  # type: ignore[attr-defined]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.code)
def test_every_guard_is_explained(guard: object) -> None:
    assert (PAGES / f"{guard.code}.md").read_text().startswith(f"# {guard.code}: ")  # type: ignore[attr-defined]


@pytest.mark.parametrize("state", [S.PROPOSED, S.APPROVED, S.PREPARING, S.DRAINING, S.HOLDING])
def test_a_calm_cluster_is_refused_by_nobody(state: DrainState) -> None:
    assert list_refusals(*world(drain=planned(calm_view(), state))) == ()


def test_all_refusals_are_given_not_only_the_first() -> None:
    view = replace(calm_view(), flags=frozenset({"noout"}), release="umbra", upgrade_running=True)
    codes = [refuse.code for refuse in list_refusals(*world(view, halted="stop"))]
    assert codes == ["halt", "operator-flags", "upgrade", "unknown-release"]


def test_a_guard_answers_with_what_it_found_when_it_passes() -> None:
    answers = evaluate_guards(*world(drain=planned(calm_view())))
    assert all(answer.sentence for _, answer in answers)


def test_degradation_of_our_own_pg_with_all_its_members_up_is_log_recovery_and_passes() -> None:
    arguments = with_states("active", "recovering", "degraded", "remapped", mine=True)
    assert isinstance(verdict("unhealthy", *arguments), Pass)


def test_degradation_of_our_own_pg_with_a_member_down_is_not_excused() -> None:
    view, drain, policy, _ = with_states("active", "undersized", "degraded", mine=True)
    gone = next(osd for osd in view.pgs[first_pg(view)].acting if osd != 0)
    view = changed_osd(view, gone, up=False)
    answer = verdict("unhealthy", view, drain, policy, a_context(view, drain))
    assert isinstance(answer, Refuse)
    assert "1 PG not whole" in answer.sentence


def test_misplaced_pgs_of_somebody_else_do_not_refuse() -> None:
    assert isinstance(verdict("unhealthy", *with_states("active", "remapped", "backfilling")), Pass)


def test_a_person_may_drain_against_the_forecast() -> None:
    drain = a_drain(state=S.APPROVED, asked_by="operator")
    assert isinstance(verdict("trust", *world(drain=drain)), Pass)
    suspects = {device(osd): NOW for osd in range(9)}
    assert isinstance(verdict("mass-suspicion", *world(drain=drain, bad_since=suspects)), Pass)


def test_a_host_that_crush_splits_in_two_may_share_one_nvme_for_db_and_wal() -> None:
    view = calm_view()
    elsewhere = next(osd.id for osd in view.osds.values() if osd.host != view.osds[OsdId(0)].host)
    view = changed_osd(view, elsewhere, shared_devices=(device(0),))
    drain = automatic(osds=(OsdId(0), elsewhere))
    assert isinstance(verdict("trust", *world(view, drain, outlooks={device(0): bad_outlook(0)})), Pass)


def test_a_lost_command_is_no_conflict() -> None:
    drain = a_drain(ours=by_setting({"osd.0/reweight": "0.9", "osd.0/reweight~": "1.0"}))
    assert isinstance(verdict("conflict", *world(drain=drain)), Pass)


def test_a_pair_that_the_mon_took_away_is_no_conflict() -> None:
    view = replace(calm_view(), upmap_items={PgId("1.0"): ((1, 9),)})
    drain = a_drain(ours=by_setting({"upmap/1.0": "1>9 0>3"}))
    assert isinstance(verdict("conflict", *world(view, drain)), Pass)


def test_the_elder_of_two_drains_on_one_host_goes_and_the_younger_waits() -> None:
    view = calm_view()
    elder = a_drain(0, created_at=NOW - timedelta(hours=2))
    younger = a_drain(1, created_at=NOW - timedelta(hours=1))
    context = a_context(view, elder, younger)
    wide = replace(POLICY, out_share_max=0.5)
    assert isinstance(verdict("budget", view, elder, wide, context), Pass)
    assert isinstance(verdict("budget", view, younger, wide, context), Refuse)


def test_a_drain_that_is_paused_keeps_its_place_in_the_budget() -> None:
    view = calm_view()
    paused, waiting = a_drain(0, S.PAUSED, resume_to=S.DRAINING), a_drain(1, S.APPROVED)
    wide = replace(POLICY, out_share_max=0.5)
    assert isinstance(verdict("budget", view, waiting, wide, a_context(view, paused, waiting)), Refuse)


def test_our_own_flag_does_not_stop_us() -> None:
    view = replace(calm_view(), flags=frozenset({"norebalance"}))
    assert isinstance(verdict("operator-flags", *world(view)), Refuse)
    assert isinstance(
        verdict("operator-flags", *world(view, a_drain(ours=by_setting({"flag/norebalance": "on"})))), Pass
    )


def test_space_counts_what_other_drains_have_still_to_move() -> None:
    view = calm_view()
    mine = planned(view)
    assert mine.plan is not None
    target = mine.plan.moves[0].target
    foreign = next(pg for pg in view.pgs.values() if not {0, target} & set(pg.up))
    source = OsdId(foreign.up[0])
    move = Move(foreign.id, source, target, 40_000_000_000)
    other = a_drain(source, plan=replace(mine.plan, moves=(move,)))
    answer = verdict("space", view, mine, POLICY, a_context(view, mine, other))
    assert isinstance(answer, Refuse)
    assert f"osd.{target} would be" in answer.sentence


def test_a_pin_that_another_drain_moved_on_is_no_conflict() -> None:
    view = replace(calm_view(), upmap_items={PgId("1.0"): ((0, 9),)})
    mine = a_drain(0, ours=by_setting({"upmap/1.0": "0>5"}), saved=by_setting({"upmap/1.0": ""}))
    other = a_drain(5, ours=by_setting({"upmap/1.0": "0>9"}), saved=by_setting({"upmap/1.0": "0>5"}))
    assert isinstance(verdict("conflict", view, mine, POLICY, a_context(view, mine, other)), Pass)
    assert isinstance(verdict("conflict", view, mine, POLICY, a_context(view, mine)), Refuse)

"""Throttles: what each release and scheduler obeys, what is in force, and that everything is given back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.actions.cluster.cluster_port import Reweight, SetOption
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.held_throttles import (
    OPTIONS,
    THROTTLES,
    SchedulerSupport,
    determine_scheduler_support,
    explain_unreliable_throttle,
    lowered_to,
)
from predrain.actions.guards import Pass, Refuse, evaluate_guards
from predrain.data.drain import DrainState, Mechanic
from predrain.data.ids import OsdId
from tests.actions.made import POLICY, a_context, a_drain, a_plan, calm_view, ec_spec, tiny_spec, wide_spec
from tests.actions.run import Run, whole

S = DrainState
BACKFILLS = "osd/osd_max_backfills"
OVERRIDE = "osd/osd_mclock_override_recovery_settings"
MCLOCK = "mclock_scheduler"


def a_view(scheduler: str = "wpq", release: str = "reef", **settings: str) -> ClusterView:
    rows = {f"osd/{name}": value for name, value in settings.items()}
    return replace(calm_view(), scheduler=scheduler, release=release, settings=rows)


def lowered(view: ClusterView) -> Mapping[str, str]:
    return lowered_to(view, view.settings)


# -- the table


@pytest.mark.parametrize("release", ["pacific", "quincy", "reef", "squid", "tentacle"])
@pytest.mark.parametrize("scheduler", ["wpq", MCLOCK, "mixed", ""])
def test_on_a_cluster_with_cephs_defaults_nothing_is_set(release: str, scheduler: str) -> None:
    assert lowered(a_view(scheduler, release)) == {}


def test_wpq_is_lowered_to_the_seeds_values() -> None:
    found = lowered(a_view(osd_max_backfills="8", osd_recovery_max_active="9", osd_recovery_op_priority="63"))
    assert found == {
        "osd_max_backfills": "1",
        "osd_recovery_max_active": "3",
        "osd_recovery_op_priority": "3",
    }


def test_recovery_max_active_of_0_leaves_it_to_the_device_classes() -> None:
    found = lowered(a_view(osd_recovery_max_active="0", osd_recovery_max_active_hdd="6"))
    assert found == {"osd_recovery_max_active_hdd": "3"}


def test_a_value_set_for_everything_is_lowered_for_the_osds_alone() -> None:
    view = replace(a_view(), settings={"global/osd_max_backfills": "8"})
    assert lowered(view) == {"osd_max_backfills": "1"}


def test_mclock_ignores_values_without_the_override_so_none_is_set() -> None:
    assert lowered(a_view(MCLOCK, "tentacle", osd_max_backfills="8")) == {}


def test_mclock_with_the_override_on_is_lowered_and_the_override_is_left_alone() -> None:
    on = {"osd_mclock_override_recovery_settings": "true"}
    found = lowered(a_view(MCLOCK, "reef", osd_max_backfills="8", osd_recovery_op_priority="63", **on))
    assert found == {"osd_max_backfills": "1"}


@pytest.mark.parametrize(
    ("release", "profile", "lower"),
    [
        ("pacific", "high_recovery_ops", "high_client_ops"),
        ("pacific", "balanced", "high_client_ops"),
        ("pacific", "custom", None),
        ("reef", "high_recovery_ops", "balanced"),
        ("reef", "high_client_ops", None),
        ("quincy", "high_recovery_ops", None),
    ],
)
def test_a_profile_is_lowered_to_the_releases_default_and_never_raised(
    release: str, profile: str, lower: str | None
) -> None:
    found = lowered(a_view(MCLOCK, release, osd_mclock_profile=profile, osd_max_backfills="8"))
    assert found == ({"osd_mclock_profile": lower} if lower else {})


@given(
    st.sampled_from(["pacific", "quincy", "reef", "squid", "tentacle", "unheard-of"]),
    st.sampled_from(["wpq", MCLOCK, "mixed", ""]),
    st.dictionaries(
        st.sampled_from([option.name for option in THROTTLES] + ["osd_recovery_op_priority"]),
        st.one_of(st.integers(0, 2000).map(str), st.sampled_from(["", "-1", "inf", "1e3", "x"])),
    ),
    st.booleans(),
)
def test_the_throttle_never_raises_and_sets_only_what_the_key_allows(
    release: str, scheduler: str, values: dict[str, str], override: bool
) -> None:
    on = {"osd_mclock_override_recovery_settings": "true"} if override else {}
    defaults = {option.name: option.default for option in THROTTLES} | {"osd_recovery_op_priority": 3}
    view = a_view(scheduler, release, **values, **on)
    for name, value in lowered(view).items():
        assert name in OPTIONS
        assert int(value) < int(values.get(name, defaults[name]))
        assert int(value) > 0


# -- what is in force


def in_force(view: ClusterView, **backfills: int) -> ClusterView:
    return replace(view, backfills_in_force={OsdId(int(k[1:])): n for k, n in backfills.items()})


def test_reservations_at_the_cap_hold() -> None:
    assert explain_unreliable_throttle(in_force(a_view(), o0=1, o3=1), [OsdId(0), OsdId(3)]) is None


def test_reservations_that_nobody_read_are_not_verified_and_named() -> None:
    why = explain_unreliable_throttle(in_force(a_view(), o0=1), [OsdId(0), OsdId(3), OsdId(4)])
    assert why == "the reservations of osd.3 and 1 more were not read, so what is in force is not verified"


def test_reservations_above_the_cap_do_not_hold_whatever_is_configured() -> None:
    why = explain_unreliable_throttle(
        in_force(a_view(osd_max_backfills="1"), o0=1, o3=8), [OsdId(0), OsdId(3)]
    )
    assert why == "8 backfills at once are in force at osd.3, cap 1"


@pytest.mark.parametrize("section", ["osd.3", "osd/host:a", "osd/class:hdd"])
def test_a_row_that_passes_over_ours_does_not_hold(section: str) -> None:
    view = replace(in_force(a_view(), o0=1), settings={f"{section}/osd_recovery_max_active": "8"})
    why = explain_unreliable_throttle(view, [OsdId(0)])
    assert why == f"{section}/osd_recovery_max_active 8 passes over what is set for all OSDs"


@pytest.mark.parametrize(("scheduler", "release"), [("mixed", "reef"), ("", "reef"), (MCLOCK, "quincy")])
def test_an_unknown_scheduler_does_not_hold_even_with_good_reservations(scheduler: str, release: str) -> None:
    view = in_force(a_view(scheduler, release), o0=1)
    assert determine_scheduler_support(view) is SchedulerSupport.NONE
    assert explain_unreliable_throttle(view, [OsdId(0)]) == SchedulerSupport.NONE.value


# -- a drain under a throttle that does not hold


def most_in_flight(run: Run, osd: int) -> int:
    """Drain it and count how many PGs were on their way at once, at most."""
    drain = run.drain(f"osd.{osd}")
    most = 0
    while run.known(drain).state is not S.VERIFIED:
        run.tick()
        most = max(most, sum(pg.up != pg.acting for pg in run.cluster.truth().pgs.values()))
    assert whole(run)
    return most


@pytest.mark.slow
def test_a_throttle_that_is_not_verified_moves_one_pg_at_a_time_and_the_journal_says_so() -> None:
    with Run(replace(wide_spec(pg_num=32), reservations_read=False)) as run:
        assert most_in_flight(run, 0) == 1
        said = run.transcript(run.store.drains()[0])
        assert "one PG at a time, for the reservations of osd." in said


def test_a_throttle_that_holds_lets_more_than_one_pg_move() -> None:
    with Run(wide_spec(pg_num=32)) as run:
        assert most_in_flight(run, 0) > 1


@pytest.mark.slow
def test_pacifics_mclock_moves_one_pg_at_a_time_and_names_what_is_in_force() -> None:
    with Run(replace(wide_spec(pg_num=32), release="pacific", scheduler="mclock")) as run:
        assert most_in_flight(run, 0) == 1
        said = run.transcript(run.store.drains()[0])
        assert "one PG at a time, for 1000 backfills at once are in force at osd." in said
        assert not any(isinstance(command, SetOption) for command in run.watched.commands)


@pytest.mark.slow
def test_two_drains_share_the_one_pg_that_may_move() -> None:
    spec = replace(wide_spec(hosts=8, pg_num=64), reservations_read=False)
    with Run(spec, policy=Policy(out_share_max=0.5)) as run:
        run.drain("osd.0")
        assert most_in_flight(run, 9) == 1


# -- erasure-coded pools where nothing bounds backfills


def ladder(release: str, scheduler: str, mechanic: Mechanic, *, erasure: bool = True) -> Pass | Refuse:
    with Run(ec_spec() if erasure else tiny_spec()) as run:
        view = replace(run.cluster.view(), release=release, scheduler=scheduler, backfills_in_force={})
    drain = a_drain(state=S.DRAINING)
    drain = replace(drain, plan=replace(a_plan(view, drain), mechanic=mechanic))
    return dict(evaluate_guards(view, drain, POLICY, a_context(view, drain)))["throttle"]


@pytest.mark.parametrize("mechanic", [Mechanic.OVERRIDE_LADDER, Mechanic.CRUSH_LADDER])
def test_no_weight_is_touched_under_erasure_codes_where_nothing_bounds_backfills(mechanic: Mechanic) -> None:
    refused = ladder("pacific", MCLOCK, mechanic)
    assert isinstance(refused, Refuse)
    assert "Pool archive is erasure-coded, and nothing bounds its backfills" in refused.sentence


def test_single_pgs_still_walk_under_erasure_codes() -> None:
    assert isinstance(ladder("pacific", MCLOCK, Mechanic.UPMAP_WALK), Pass)


def test_replicated_pools_and_schedulers_that_obey_may_use_a_ladder() -> None:
    assert isinstance(ladder("pacific", "wpq", Mechanic.OVERRIDE_LADDER), Pass)
    assert isinstance(ladder("pacific", MCLOCK, Mechanic.OVERRIDE_LADDER, erasure=False), Pass)


def test_an_erasure_coded_drain_on_old_clients_and_pacifics_mclock_never_reweights() -> None:
    with Run(replace(ec_spec(hosts=5), release="pacific", scheduler="mclock")) as run:
        seen = run.cluster.view

        def with_old_clients() -> ClusterView:
            return replace(seen(), require_min_compat_client="jewel")

        run.cluster.view = with_old_clients  # type: ignore[method-assign]
        drain = run.drain("osd.0")
        run.ticks(30)
        assert not any(isinstance(command, Reweight) for command in run.watched.commands)
        assert any("nothing bounds its backfills" in sentence for sentence in run.known(drain).held_by)

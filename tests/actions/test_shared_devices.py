"""A DB or WAL device is one drain over all its OSDs, one by one, the least redundant first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.decision_answers import DrainProposal
from predrain.actions.core.priority import (
    find_exposed_drains,
    most_endangered_first,
    p_fail_30d,
    riskiest_first,
)
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.engine.proposals import propose_drains, target_of
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import GRID_DAYS, SurvivalCurve
from tests.actions.made import (
    NOW,
    POLICY,
    a_context,
    a_drain,
    bad_outlook,
    calm_view,
    changed_osd,
    device,
)

NVME = DeviceId("INTEL SSDPE 2KX_S 1")


def with_flash() -> ClusterView:
    """OSDs 0, 1 and 2 of the first host keep their DB on one NVMe device."""
    view = calm_view()
    for osd in range(3):
        view = changed_osd(view, osd, shared_devices=(NVME,))
    return view


def test_the_device_is_a_target_by_its_name_and_means_all_its_osds() -> None:
    assert target_of(with_flash(), NVME) == (NVME, (OsdId(0), OsdId(1), OsdId(2)))


def test_a_bad_flash_device_is_proposed_as_one_drain_and_every_osd_on_it_is_at_risk() -> None:
    view = with_flash()
    outlooks = {NVME: bad_outlook(0, device=NVME)}
    answers = propose_drains(view, POLICY, a_context(view, outlooks=outlooks))
    (made,) = [answer.drain for answer in answers if isinstance(answer, DrainProposal)]
    assert made.device == NVME
    assert set(made.osds) == {OsdId(0), OsdId(1), OsdId(2)}
    assert p_fail_30d(view, OsdId(1), outlooks) > 0.6
    assert p_fail_30d(view, OsdId(3), outlooks) < 0.01


def test_the_plan_says_how_long_it_takes_and_how_likely_the_device_lives_that_long() -> None:
    view = with_flash()
    drain = replace(a_drain(), device=NVME, osds=(OsdId(0),))
    curve = SurvivalCurve(max(0.0, 1.0 - day / 10) for day in GRID_DAYS)
    context = a_context(view, drain, outlooks={NVME: bad_outlook(0, device=NVME, survival=curve)})
    made = plan_drain(view, drain, POLICY, context)
    assert made.survives is not None
    assert made.eta_hours is not None
    assert abs(made.survives - (1 - made.eta_hours / 24 / 10)) < 1e-6
    assert f"{made.survives:.1%}" in made.why


def test_no_plan_calls_it_certain_that_a_device_lives_on() -> None:
    view = with_flash()
    drain = replace(a_drain(), device=NVME, osds=(OsdId(0),))
    curve = SurvivalCurve(1.0 - day / 100_000 for day in GRID_DAYS)
    context = a_context(view, drain, outlooks={NVME: bad_outlook(0, device=NVME, survival=curve)})
    assert plan_drain(view, drain, POLICY, context).why.endswith("outlives with a chance of over 99.9%")


def test_the_osd_whose_pgs_share_another_suspect_is_emptied_first() -> None:
    view = with_flash()
    partner = next(osd for pg in view.pgs.values() if 2 in pg.up for osd in pg.up if osd != 2)
    outlooks = {device(partner): bad_outlook(partner)}
    first, *_ = riskiest_first(view, (OsdId(0), OsdId(1), OsdId(2)), outlooks)
    held = [pg for pg in view.pgs.values() if first in pg.up and partner in pg.up]
    assert held


def drain_of(osd: int, minutes: int) -> Drain:
    return replace(a_drain(osd, DrainState.DRAINING), created_at=NOW + timedelta(minutes=minutes))


def test_drains_whose_pgs_hold_two_suspects_go_before_others_however_late_they_came() -> None:
    view = calm_view()
    pg = next(iter(view.pgs.values()))
    one, two = pg.up[0], pg.up[1]
    lone = next(
        osd
        for osd in view.osds
        if not any(osd in other.up and {one, two} & set(other.up) for other in view.pgs.values())
        or osd not in (one, two)
    )
    drains = [drain_of(lone, 0), drain_of(one, 5), drain_of(two, 6)]
    exposed = find_exposed_drains(view, drains, {})
    assert drains[1].id in exposed
    ordered = most_endangered_first(view, drains, {}, POLICY)
    ranks = [drain.id in exposed for drain in ordered]
    assert ranks == sorted(ranks, reverse=True)


def test_a_drain_is_exposed_exactly_if_one_of_its_pgs_serves_from_another_suspect_too() -> None:
    view = calm_view()
    suspect = max(view.osds)
    outlooks = {device(suspect): bad_outlook(suspect)}
    expected = {osd: any({osd, suspect} <= set(pg.acting) for pg in view.pgs.values()) for osd in view.osds}
    del expected[suspect]
    found = {
        osd: find_exposed_drains(view, [a_drain(osd)], outlooks) == {a_drain(osd).id} for osd in expected
    }
    assert found == expected
    assert set(expected.values()) == {False, True}


def test_a_lone_drain_endangers_nobody() -> None:
    view = calm_view()
    assert find_exposed_drains(view, [a_drain(0)], {}) == frozenset()

"""A plan is refused where the cluster's PGs are elsewhere than the computed map puts them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState, Plan
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import describe_plan_refusal
from predrain.data.plan_refusal import PlanRefusalKind
from tests.actions.made import a_drain, a_plan, changed_osd, changed_pg, wide_spec
from tests.actions.recordings import NAMES, sample, view_of
from tests.actions.run import Run


@cache
def view() -> ClusterView:
    return SimulatedCluster(wide_spec(used=0.3), 1).view()


def otherwise(seen: ClusterView) -> ClusterView:
    """Return the same cluster with each PG where CRUSH places the PG of another pool, so that the reported placement
    differs from the computed one.
    """
    pool = replace(seen.pools[1], id=7)
    ups = place_pgs(seen.crush, {7: pool}, {osd.id: osd.reweight for osd in seen.osds.values()}, {})
    pgs = {id_: ups[PgId(id_.replace("1.", "7.", 1))] for id_ in seen.pgs}
    return replace(seen, pgs={id_: replace(pg, up=pgs[id_], acting=pgs[id_]) for id_, pg in seen.pgs.items()})


def refused(made: Plan) -> bool:
    return [one.kind for one in made.refusals] == [PlanRefusalKind.PLACEMENT_DIFFERS]


def test_pgs_that_are_elsewhere_than_computed_refuse_the_plan_with_numbers() -> None:
    seen = otherwise(view())
    on_it = [pg for pg in seen.pgs.values() if 0 in pg.up]
    made = a_plan(seen, a_drain())
    assert refused(made)
    (refusal,) = made.refusals
    assert (refusal.others, refusal.osds) == (len(on_it), (0,))
    assert 0 < refusal.pgs <= len(on_it)
    assert refusal.pg is not None
    assert refusal.members == seen.pgs[refusal.pg].up
    assert refusal.computed != refusal.members
    told = describe_plan_refusal(refusal)
    assert f"{refusal.pgs} of {len(on_it)} PGs of osd.0 differ, e.g. PG 1." in told
    assert f"is on {list(refusal.members)} and not [" in told
    assert made.moves == ()


def test_one_pg_that_is_elsewhere_is_enough() -> None:
    pg = next(pg for pg in view().pgs.values() if 0 in pg.up)
    other = next(osd for osd in view().osds if osd not in pg.up)
    up = tuple(osd if osd == 0 else other if osd == max(pg.up) else osd for osd in pg.up)
    assert not refused(a_plan(view(), a_drain()))
    assert refused(a_plan(changed_pg(view(), pg.id, up=up, acting=up), a_drain()))


def test_the_primary_of_a_pg_is_not_compared_with_the_computed_one() -> None:
    pg = next(pg for pg in view().pgs.values() if 0 in pg.up)
    turned = (*pg.up[1:], pg.up[0])
    assert not refused(a_plan(changed_pg(view(), pg.id, up=turned, acting=turned), a_drain()))


@pytest.mark.parametrize("epoch", [-1, 1])
def test_a_report_of_another_epoch_than_the_maps_is_not_compared(epoch: int) -> None:
    """A map newer than the statistics, or a map that changed after it was read."""
    seen = otherwise(view())
    told = {id_: replace(pg, reported_epoch=seen.epoch + epoch) for id_, pg in seen.pgs.items()}
    assert not refused(a_plan(replace(seen, pgs=told), a_drain()))


@pytest.mark.parametrize(
    "change",
    [
        {"states": frozenset({"active", "remapped", "backfilling"})},
        {"states": frozenset({"active", "undersized", "degraded"})},
        {"states": frozenset({"peering"})},
        {"acting": (1, 4, 8)},
    ],
)
def test_a_pg_that_is_not_at_rest_is_not_compared(change: dict[str, object]) -> None:
    seen = otherwise(view())
    moving = {id_: replace(pg, **change) for id_, pg in seen.pgs.items()}  # type: ignore[arg-type]
    assert not refused(a_plan(replace(seen, pgs=moving), a_drain()))


def test_where_full_upmap_entries_stand_nothing_is_compared() -> None:
    assert not refused(a_plan(replace(otherwise(view()), has_full_upmaps=True), a_drain()))


def as_it_is(run: Run) -> ClusterView:
    """Return the view that the cluster would give if each PG were clean and had reported its present `up` at once."""
    seen, clean = run.cluster.view(), frozenset({"active", "clean"})
    ups = {id_: pg.up for id_, pg in run.cluster.truth().pgs.items()}
    pgs = {
        id_: replace(pg, up=ups[id_], acting=ups[id_], states=clean, reported_epoch=seen.epoch)
        for id_, pg in seen.pgs.items()
    }
    return replace(seen, pgs=pgs)


@pytest.mark.slow
@pytest.mark.parametrize("cancelled", [False, True])
def test_no_weight_and_no_pin_of_a_drain_is_taken_for_another_map(*, cancelled: bool) -> None:
    with Run(wide_spec(used=0.15)) as run:
        drain = run.drain("osd.0")
        end = DrainState.CANCELLED if cancelled else DrainState.VERIFIED
        while run.known(drain).state is not end:
            run.tick()
            if cancelled and run.known(drain).state is DrainState.DRAINED:
                run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
            for seen in (run.cluster.view(), as_it_is(run)):
                assert not any(refused(a_plan(seen, a_drain(osd))) for osd in (0, 5))


@pytest.mark.slow
def test_no_recorded_cluster_is_refused_for_its_placement() -> None:
    for name in NAMES:
        seen = view_of(sample(name).answers)
        for osd in seen.osds:
            assert not refused(a_plan(seen, a_drain(osd))), name


def test_a_recorded_cluster_whose_weight_is_read_wrongly_is_refused() -> None:
    seen = view_of(sample("tentacle-clean").answers)
    wrong = changed_osd(seen, 1, reweight=0.3)
    assert any(refused(a_plan(wrong, a_drain(osd))) for osd in wrong.osds)
    assert OsdId(1) in wrong.osds

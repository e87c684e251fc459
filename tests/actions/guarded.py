"""The arguments of guards in tests: a cluster at rest, except for the changes that a test makes."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.guards import AUTOMATIC, GUARDS, Pass, Refuse
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import OsdId, PgId
from tests.actions.made import (
    POLICY,
    a_context,
    a_drain,
    a_plan,
    bad_outlook,
    calm_view,
    changed_osd,
    changed_pg,
    device,
)
from tests.settings_by_text import by_setting


def verdict(code: str, view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    return next(guard for guard in GUARDS if guard.code == code)(view, drain, policy, context)


def world(
    view: ClusterView | None = None, drain: Drain | None = None, policy: Policy = POLICY, **context: object
) -> tuple[ClusterView, Drain, Policy, Context]:
    view = view or calm_view()
    drain = drain or a_drain()
    return view, drain, policy, a_context(view, drain, **context)


def automatic(**changes: object) -> Drain:
    return a_drain(state=DrainState.APPROVED, asked_by=AUTOMATIC, **changes)


def believed(drain: Drain, **changes: object) -> tuple[ClusterView, Drain, Policy, Context]:
    outlook = bad_outlook(0, **changes)
    return world(drain=drain, outlooks={outlook.device: outlook})


def ruled(drain: Drain, **changes: object) -> tuple[ClusterView, Drain, Policy, Context]:
    """An outlook that gives no chance."""
    none = dict.fromkeys(("p_fail_7d", "p_fail_14d", "p_fail_30d"))
    return believed(drain, source="rule:test", **none, **changes)


def chancy(within_30d: float, **changes: object) -> tuple[ClusterView, Drain, Policy, Context]:
    """A forecast of a steady risk."""
    steady = {f"p_fail_{days}d": 1 - (1 - within_30d) ** (days / 30) for days in (7, 14)}
    return believed(automatic(), p_fail_30d=within_30d, **steady, **changes)


def unsized() -> tuple[ClusterView, Drain, Policy, Context]:
    view = changed_osd(calm_view(), 0, used_bytes=None)
    return world(view, automatic(), outlooks={device(0): bad_outlook(0)})


def first_pg(view: ClusterView, osd: int = 0) -> PgId:
    return min(pg.id for pg in view.pgs.values() if osd in pg.up)


def other_pg(view: ClusterView, osd: int = 0) -> PgId:
    return min(pg.id for pg in view.pgs.values() if osd not in pg.up)


def planned(view: ClusterView, state: DrainState = DrainState.DRAINING) -> Drain:
    drain = a_drain(state=state)
    return replace(drain, plan=a_plan(view, drain))


def with_states(
    *states: str, mine: bool = False, elsewhere: int = 0
) -> tuple[ClusterView, Drain, Policy, Context]:
    """Return the arguments with one PG of the suspect in these states. With `mine`, the drain has set an upmap item on
    this PG. `elsewhere`: instead, so many PGs that have no shard on the suspect are in these states.
    """
    view = calm_view()
    pgs = [pg.id for pg in view.pgs.values() if 0 not in pg.up][:elsewhere] or [first_pg(view)]
    drain = a_drain(ours=by_setting({f"upmap/{pgs[0]}": "0>3"})) if mine else a_drain()
    for pg in pgs:
        view = changed_pg(view, pg, states=frozenset(states))
    return world(view, drain)


def a_member_down(*, beside: bool) -> tuple[ClusterView, Drain, Policy, Context]:
    """An OSD down that shares a PG with the suspect, or shares none."""
    view = calm_view()
    members = {OsdId(osd) for pg in view.pgs.values() if 0 in pg.up for osd in pg.up}
    drain = a_drain()
    if not beside:
        view = replace(
            view, pgs={id_: pg for id_, pg in view.pgs.items() if 0 not in pg.up or 7 not in pg.up}
        )
    assert OsdId(7) in members
    return world(changed_osd(view, 7, up=False), drain)

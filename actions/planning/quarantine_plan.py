"""The plan of a quarantine: the PGs that a slow OSD stops being primary of, and the effect on clients."""

from __future__ import annotations

import math
from dataclasses import replace

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.crush.crush_rules import CannotPlace
from predrain.actions.mechanics.primary_affinity import find_primary_pgs
from predrain.actions.planning.plan_figures import steps_seconds
from predrain.data.drain import Bound, BoundKind, Drain, Mechanic, Plan
from predrain.data.messages import format_count
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind


def plan_quarantine(view: ClusterView, drain: Drain, policy: Policy, _context: Context) -> Plan:
    """Plan to lower the primary affinity of the drain's OSDs, which moves nothing.

    The plan is refused if the affected PGs are not known.
    """
    known = [osd for osd in drain.osds if osd in view.osds]
    refusals: tuple[PlanRefusal, ...] = ()
    try:
        affected = sorted({pg for osd in known for pg in find_primary_pgs(view, osd)})
    except CannotPlace as trouble:
        cause = trouble.refusal
        affected, refusals = [], (replace(cause, kind=PlanRefusalKind.PRIMARIES_UNKNOWN, cause=cause.kind),)
    if len(known) < len(drain.osds):
        refusals = (*refusals, PlanRefusal(PlanRefusalKind.OSD_GONE))
    coded = sum(1 for pg in affected if view.pools[view.pgs[pg].pool].erasure)
    copied = len(affected) - coded
    why = "it stops being the primary of its PGs, a few at a time, and no data moves"
    if copied:
        why += f": reads of {format_count(copied, 'replicated PG')} go to other copies, writes wait for it all the same"
    if coded:
        why += f"; of {format_count(coded, 'erasure-coded PG')} it is spared the primary's role only: "
        why += "its shards are still read"
    hours = steps_seconds(len(affected), policy) / 3600
    return Plan(
        mechanic=Mechanic.PRIMARY_AFFINITY,
        why=why,
        epoch=view.epoch,
        moves=(),
        fullest_osd=None,
        fullest_after=None,
        cluster_after=None,
        eta_hours=hours,
        refusals=refusals,
        bounds=(Bound(BoundKind.PEERING, hours, at_once=policy.peering_max),) if affected else (),
        ticks=math.ceil(hours * 3600 / policy.tick_seconds),
        affected_pgs=tuple(affected),
    )

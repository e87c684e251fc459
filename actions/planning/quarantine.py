"""The plan of a quarantine: which PGs a slow OSD stops leading, and what that spares clients."""

from __future__ import annotations

import math

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.mechanics.affinity import led
from predrain.actions.planning.figures import steps_seconds
from predrain.data.drain import Drain, Mechanic, Plan


def plan_quarantine(view: ClusterView, drain: Drain, policy: Policy, _context: Context) -> Plan:
    """What lowering the primary affinity of the drain's OSDs does; it moves nothing. Refused where it is not known."""
    known = [osd for osd in drain.osds if osd in view.osds]
    refusals: tuple[str, ...] = ()
    try:
        stirred = sorted({pg for osd in known for pg in led(view, osd)})
    except CannotPlace as trouble:
        stirred, refusals = [], (f"Which PGs it leads cannot be computed: {trouble}",)
    if len(known) < len(drain.osds):
        refusals = (*refusals, "An OSD of it is not in the map any more.")
    coded = sum(1 for pg in stirred if view.pools[view.pgs[pg].pool].erasure)
    copied = len(stirred) - coded
    why = "it stops leading PGs, a few at a time, and no data moves"
    if copied:
        why += (
            f": reads of {count(copied, 'replicated PG')} go to other copies, writes wait for it all the same"
        )
    if coded:
        why += f"; of {count(coded, 'erasure-coded PG')} it is spared the primary's role only: "
        why += "its shards are still read"
    hours = steps_seconds(len(stirred), policy) / 3600
    return Plan(
        mechanic=Mechanic.PRIMARY_AFFINITY,
        why=why,
        epoch=view.epoch,
        moves=(),
        fullest_osd=None,
        fullest_after=None,
        cluster_after=None,
        eta_hours=hours,
        bottleneck=f"{policy.peering_max} PGs peering at once" if stirred else "nothing to change",
        refusals=refusals,
        ticks=math.ceil(hours * 3600 / policy.tick_seconds),
        stirred=tuple(stirred),
    )

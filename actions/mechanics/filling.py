"""How a fill goes on: which OSD takes in its share now, and how many PGs come next."""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.capacity import remaining
from predrain.actions.core.in_flight import Allowance, in_flight
from predrain.actions.core.pacing import Pace
from predrain.actions.core.situation import Context
from predrain.actions.mechanics import override
from predrain.actions.mechanics.batch import CommandBatch
from predrain.data.drain import Drain, Plan
from predrain.data.ids import OsdId

FULL = 1.0
"""The override at which an OSD has its whole share."""


def find_osd_to_fill(view: ClusterView, drain: Drain, context: Context) -> OsdId | None:
    """The OSD that is filled now: one by one, in the order of the drain; None when all have their share."""
    arriving = {move.target for move in remaining(view, drain)} | {
        OsdId(osd) for pg in in_flight(drain, context) for osd in pg.up
    }
    return next(
        (
            id_
            for id_ in drain.osds
            if id_ in view.osds and (view.osds[id_].reweight < FULL or id_ in arriving)
        ),
        None,
    )


def next_filling_batch(
    view: ClusterView,
    drain: Drain,
    _plan: Plan,
    osd: OsdId,
    now: Pace,
    flying: int,
    _context: Context,
    allowance: Allowance,
) -> CommandBatch:
    """The next reweight step up. flying: PGs of the fill that are on their way."""
    if view.osds[osd].reweight == FULL:
        return CommandBatch(waits_for="what is on its way must arrive")
    starts = allowance.starts(now.budget, flying)
    return override.give_back(view, drain, osd, FULL, allowance, starts, idle=not flying)

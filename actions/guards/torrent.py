"""The guard that keeps whole OSDs of erasure-coded pools in place where nothing bounds their backfills."""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.in_flight import at_work
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.throttle_options import Grip, grip
from predrain.actions.core.throttles import unheld
from predrain.actions.core.verdicts import Pass, Refuse
from predrain.data.drain import Drain, Mechanic

_LADDERS = frozenset({Mechanic.OVERRIDE_LADDER, Mechanic.CRUSH_LADDER})


def throttle(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """No weight of an OSD is touched that holds erasure-coded PGs while its backfills cannot be bounded: a rung may
    move several PGs, each is read from k disks, and up to 1000 would run at once. Single PGs may go by upmap.
    """
    why = unheld(view, at_work(drain))
    if (
        drain.plan is None
        or drain.plan.mechanic not in _LADDERS
        or grip(view) not in (Grip.PROFILE, Grip.NONE)
    ):
        return Pass(f"one PG at a time, for {why}" if why else "one backfill at a time is in force")
    moved = {pg.pool for move in drain.plan.moves if (pg := view.pgs.get(move.pg)) is not None}
    coded = sorted(view.pools[pool].name for pool in moved if view.pools[pool].erasure)
    if not coded or why is None:
        return Pass("no erasure-coded PG moves by a weight")
    return Refuse(
        "throttle",
        f"Pool {coded[0]} is erasure-coded, and nothing bounds its backfills ({why}): no weight is touched. Run the "
        "OSDs with osd_op_queue wpq, or let upmaps be used (require_min_compat_client luminous).",
        {"pool": coded[0], "pools": len(coded)},
    )

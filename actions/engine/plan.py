"""A plan: where every PG of the suspect goes, in which order, by which mechanic and why, computed before
anything moves.
"""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.crush.choose import CannotPlace
from predrain.actions.engine.strategies import STRATEGIES
from predrain.actions.planning.figures import unplaceable
from predrain.data.drain import Drain, Plan


def plan(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Plan:
    """The plan of a drain that has not begun, or of what is left of one: moves already made stay at
    its head. Refused with the reason where the map cannot be computed; never raises for it.
    """
    try:
        return STRATEGIES[drain.intent].draw_plan(view, drain, policy, context)
    except CannotPlace as why:
        return unplaceable(view, drain, str(why))


def unlike(old: Plan | None, new: Plan) -> bool:
    """Whether a new plan differs in what it does from the old one."""
    return old is None or _deeds(old) != _deeds(new)


def _deeds(made: Plan) -> tuple[object, ...]:
    return made.mechanic, made.moves, made.refusals, made.stirred, made.fullest_after

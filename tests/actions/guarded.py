"""What guards are asked in tests: a world that is calm but for what a test changes."""

from __future__ import annotations

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.guards import AUTOMATIC, GUARDS, Pass, Refuse
from actions.policy import Policy
from data.drain import Drain, DrainState
from tests.actions.made import POLICY, a_context, a_drain, bad_outlook, calm_view, changed_osd, device


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

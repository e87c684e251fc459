"""Guards that ask whose hand is on the cluster: ours by lease and hour, nobody else's behind our back."""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import found, is_ours
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.throttles import shared
from predrain.actions.core.verdicts import Pass, Refuse, count
from predrain.data.drain import Drain
from predrain.data.setting import Before, OsdFlag, OsdOverride, UpmapItem


def lease(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """One controller at a time."""
    if context.lease_held:
        return Pass("this controller leads")
    return Refuse("lease", "This process does not hold the lease.")


def window(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """The hours in which the policy lets data move."""
    if policy.window is None:
        return Pass("no hours are set")
    if not drain.intent.moves_data:
        return Pass("a quarantine moves no data")
    start, end = policy.window
    hours = f"{start:02d}:00 to {end:02d}:00 UTC"
    if policy.open_at(context.now):
        return Pass(f"inside {hours}")
    return Refuse(
        "window", f"Data moves only from {hours}; it is {context.now:%H:%M}.", {"from": start, "to": end}
    )


def balancer(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """The balancer refills what a drain empties (ceph.md e); we turned it off, somebody turned it on
    again.
    """
    if not view.balancer_active:
        return Pass("the balancer is off")
    if not drain.intent.moves_data:
        return Pass("the balancer does not touch who leads a PG")
    return Refuse("balancer", "The balancer was turned on again while draining.")


def conflict(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Somebody changed what this drain set, or the mon drops the same pin again and again."""
    for osd in drain.osds:
        if osd not in view.osds:
            return Refuse("conflict", f"osd.{osd} is not in the map any more.", {"osd": osd})
    for key, value in drain.ours.items():
        if shared(key) or isinstance(key, Before):
            continue  # an option that somebody else set is left to them (throttle.py)
        now = found(view, key)
        if isinstance(key, OsdOverride) and view.osds[key.osd].is_down_and_out:
            continue
        if not is_ours((drain,), key, now) and not (
            isinstance(key, UpmapItem) and is_ours(context.drains, key, now)
        ):
            return Refuse(
                "conflict",
                f"{key} was set to {value or 'nothing'} by this drain and is now {now or 'nothing'}; "
                "somebody else changed it.",
                {"key": str(key), "ours": value, "found": now},
            )
    for sent, attempts in context.memory.attempts.items():
        wanted = drain.ours.get(sent)
        in_one_step = isinstance(sent, OsdFlag)  # set and cleared again before anybody looks
        if attempts >= policy.pin_attempts and wanted and not shared(sent) and not in_one_step:
            return Refuse(
                "conflict",
                f"{sent} was set to {wanted} {count(attempts, 'time')} and the map never shows it.",
                {"key": str(sent), "attempts": attempts},
            )
    return Pass("what this drain set still stands")

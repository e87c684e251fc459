"""Guards that ask which party changes the cluster: predrain by its lease and hours, and no other party's
changes.
"""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.claimed_settings import is_ours, read_setting_value
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import Pass, Refuse
from predrain.actions.core.held_throttles import is_cluster_setting
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain
from predrain.data.hold_reason import HoldReason
from predrain.data.messages import format_count
from predrain.data.setting import OsdFlag, OsdOverride, UpmapItem, ValueBefore


def check_lease(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Require the lease: only one controller acts at a time."""
    if context.lease_held:
        return Pass("this controller leads")
    return Refuse(HoldReason.LEASE, "This process does not hold the lease.")


def check_move_window(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse outside the hours in which the policy lets data move."""
    if policy.window is None:
        return Pass("no hours are set")
    if not drain.intent.moves_data:
        return Pass("a quarantine moves no data")
    start, end = policy.window
    hours = f"{start:02d}:00 to {end:02d}:00 UTC"
    if policy.open_at(context.now):
        return Pass(f"inside {hours}")
    return Refuse(
        HoldReason.WINDOW,
        f"Data moves only from {hours}; it is {context.now:%H:%M}.",
        {"from": start, "to": end},
    )


def check_balancer(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse if the balancer is on: predrain turned it off, and another party turned it on again.

    The balancer refills the OSDs that a drain empties (ceph.md e).
    """
    if not view.balancer_active:
        return Pass("the balancer is off")
    if not drain.intent.moves_data:
        return Pass("the balancer does not change the primary of a PG")
    return Refuse(HoldReason.BALANCER, "The balancer was turned on again while draining.")


def check_setting_conflict(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> Pass | Refuse:
    """Refuse if another party changed a setting of this drain, or if the mon drops the same upmap item
    repeatedly.
    """
    for osd in drain.osds:
        if osd not in view.osds:
            return Refuse(HoldReason.CONFLICT, f"osd.{osd} is not in the map any more.", osd=osd)
    for key, value in drain.ours.items():
        if is_cluster_setting(key) or isinstance(key, ValueBefore):
            continue  # another party's option stays theirs (throttles.py)
        now = read_setting_value(view, key)
        if isinstance(key, OsdOverride) and view.osds[key.osd].is_down_and_out:
            continue
        if not is_ours((drain,), key, now) and not (
            isinstance(key, UpmapItem) and is_ours(context.drains, key, now)
        ):
            return Refuse(
                HoldReason.CONFLICT,
                f"{key} was set to {value or 'nothing'} by this drain and is now {now or 'nothing'}; "
                "another party changed it.",
                {"key": str(key), "ours": value, "found": now},
            )
    for sent, attempts in context.memory.attempts.items():
        wanted = drain.ours.get(sent)
        in_one_step = isinstance(sent, OsdFlag)  # set and cleared again between two polls
        if attempts >= policy.upmap_attempts and wanted and not is_cluster_setting(sent) and not in_one_step:
            return Refuse(
                HoldReason.CONFLICT,
                f"{sent} was set to {wanted} {format_count(attempts, 'time')} and the map never shows it.",
                {"key": str(sent), "attempts": attempts},
            )
    return Pass("the settings of this drain still stand")

"""Throttles and the balancer: settings of the whole cluster that a drain holds, shares with other
drains, and gives back.

The throttle caps: where the operator runs with more than the seed's values it lowers them, it never raises.
Under mClock the OSDs ignore these settings unless the override is on (ceph.md b), so without it nothing is
written.
"""

from __future__ import annotations

from collections.abc import Mapping

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.ledger import found
from data.drain import Drain

CAPS: Mapping[str, int] = {
    "osd_max_backfills": 1,
    "osd_recovery_max_active": 3,
    "osd_recovery_op_priority": 3,
}
"""Source: a talk on a 450-OSD cluster, 2016 ("Stabilizing Petabyte Ceph Cluster in OpenStack Cloud"): with these
its clients lost less than 10 % while a disk was rebuilt.
"""


def shared(key: str) -> bool:
    """Whether a key belongs to the whole cluster, not to one drain."""
    return key == "balancer" or key.startswith("option/")


def wanted(view: ClusterView, drain: Drain, context: Context) -> dict[str, tuple[str, str]]:
    """Shared keys that this drain must hold: key -> (as it was before any drain touched it, as it
    must be).
    """
    held: dict[str, tuple[str, str]] = {}
    original = {
        key: _original(view, drain, context, key)
        for key in ("balancer", *(f"option/{name}" for name in CAPS))
    }
    if original["balancer"] == "on":
        held["balancer"] = ("on", "off")
    if obeyed(view):
        for name, cap in CAPS.items():
            was = original[f"option/{name}"]
            if was.isdigit() and int(was) > cap:
                held[f"option/{name}"] = (was, str(cap))
    return held


def obeyed(view: ClusterView) -> bool:
    """Whether the scheduler at hand listens to these settings at all."""
    if not view.settings.get("osd/osd_op_queue", "wpq").startswith("mclock"):
        return True
    return view.settings.get("osd/osd_mclock_override_recovery_settings") == "true"


def lowered(drain: Drain) -> dict[str, str]:
    """Throttles that this drain holds down now, with the operator's values."""
    return {
        key: drain.saved[key]
        for key, value in drain.ours.items()
        if key.startswith("option/") and key in drain.saved and drain.saved[key] != value
    }


def to_give_back(drain: Drain, context: Context) -> dict[str, str]:
    """Shared keys to restore when this drain ends: those that no other engaged drain holds as well."""
    kept = {key for other in context.others(drain) for key in other.ours if shared(key)}
    return {
        key: drain.saved[key] for key in drain.ours if shared(key) and key in drain.saved and key not in kept
    }


def _original(view: ClusterView, drain: Drain, context: Context, key: str) -> str:
    for holder in (drain, *context.others(drain)):
        if key in holder.ours and key in holder.saved:
            return holder.saved[key]
    return found(view, key)

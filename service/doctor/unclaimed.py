"""Settings that look like what a drain leaves, while no drain is known.

A drain's record lies in the store and in the cluster's keys. Where both are lost, nothing tells what is ours: nothing
is changed then, and a person is told where to look.
"""

from __future__ import annotations

from collections.abc import Iterator

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.view import BALANCER, ClusterView
from predrain.actions.core.throttle_options import KNOBS
from predrain.service.doctor.finding import Finding

_WHAT = "unclaimed settings"
_DRAINS = "drain/"
_SHOWN = 5
_CURE = "set back by hand what no person has set (docs/explanation/durability.md)"


def examine_unclaimed(channel: CommandChannel, view: ClusterView) -> Finding:
    """What looks like ours while no drain is known to the cluster. A drain that is known claims its settings itself."""
    from predrain.actions.cluster.config_key_store import ConfigKeys

    try:
        drains = ConfigKeys(channel).names(_DRAINS)
    except ClusterUnreachable as refused:
        return Finding(_WHAT, "note", f"not known, since the cluster's keys cannot be listed: {refused}")
    if drains:
        return Finding(_WHAT, "ok", f"{len(drains)} drains are known to the cluster, and claim what they set")
    found = tuple(list_likely_ours(view))
    if not found:
        return Finding(_WHAT, "ok", "nothing looks like what a drain leaves")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    told = f"no drain is known, and these look like what one leaves: {', '.join(found[:_SHOWN])}{more}"
    return Finding(_WHAT, "note", f"{told}; {_CURE}")


def list_likely_ours(view: ClusterView) -> Iterator[str]:
    """What people seldom set and drains do, each in words: settings at a drain's own value, the balancer turned off,
    overrides that are no round number, and primary affinities below 1.
    """
    for knob in KNOBS:
        if view.settings.get(f"osd/{knob.name}") == str(knob.cap):
            yield f"{knob.name} {knob.cap} for all OSDs"
    if view.settings.get(f"mgr/{BALANCER}") == "false":
        yield "the balancer is off"
    for osd in sorted(view.osds.values(), key=lambda osd: osd.id):
        if abs(osd.reweight * 20 - round(osd.reweight * 20)) > 1e-3:
            yield f"override {osd.reweight:.4f} of osd.{osd.id}"
        if osd.primary_affinity < 1.0:
            yield f"primary affinity {osd.primary_affinity:g} of osd.{osd.id}"

"""A summary of a cluster for people, counted from one view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.capacity import compute_fullness_limit
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.held_throttles import OPTIONS, determine_scheduler_support
from predrain.data.ids import OsdId

ALWAYS_SET = frozenset({"sortbitwise", "recovery_deletes", "purged_snapdirs", "pglog_hardlimit"})
"""Flags that every recent cluster has and that need no action."""


@dataclass(frozen=True, slots=True)
class ClusterFullness:
    """Shares in [0, 1] of the OSDs that report their size; `limit` is the most that a drain's target may reach."""

    median: float
    highest: float
    highest_osd: OsdId
    limit: float


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """The counts of one view."""

    as_of: datetime
    health: str
    release: str
    mixed_versions: bool
    upgrade_running: bool
    epoch: int
    osds: int
    up: int
    inside: int
    pgs: Mapping[str, int]
    """Number of PGs by state, the most frequent first."""
    statistics_known: bool
    fullness: ClusterFullness | None
    scheduler: str
    obeys: str
    """The recovery settings that the OSDs obey, in words."""
    throttles: Mapping[str, str]
    """Rows of the mon's config that affect recovery; empty: the release's defaults."""
    balancer_active: bool
    flags: tuple[str, ...]
    osd_flags: Mapping[OsdId, tuple[str, ...]]
    upmaps: int


def summarize_cluster(view: ClusterView, policy: Policy) -> ClusterSummary:
    """Count the contents of a view."""
    states = Counter("+".join(sorted(pg.states)) or "unknown" for pg in view.pgs.values())
    options = {*OPTIONS, "osd_mclock_override_recovery_settings"}
    return ClusterSummary(
        as_of=view.as_of,
        health=view.health,
        release=view.release,
        mixed_versions=view.mixed_versions,
        upgrade_running=view.upgrade_running,
        epoch=view.epoch,
        osds=len(view.osds),
        up=sum(osd.up for osd in view.osds.values()),
        inside=sum(osd.reweight > 0 for osd in view.osds.values()),
        pgs=dict(states.most_common()),
        statistics_known=view.statistics_known,
        fullness=_measure_fullness(view, policy),
        scheduler=view.scheduler,
        obeys=determine_scheduler_support(view).value,
        throttles={key: value for key, value in view.settings.items() if key.rpartition("/")[2] in options},
        balancer_active=view.balancer_active,
        flags=tuple(sorted(view.flags - ALWAYS_SET)),
        osd_flags={osd: tuple(sorted(flags)) for osd, flags in sorted(view.osd_flags.items())},
        upmaps=len(view.upmap_items),
    )


def _measure_fullness(view: ClusterView, policy: Policy) -> ClusterFullness | None:
    fills = {
        osd.id: osd.used_bytes / osd.size_bytes
        for osd in view.osds.values()
        if osd.used_bytes is not None and osd.size_bytes
    }
    if not fills:
        return None
    fullest = max(fills, key=lambda osd: (fills[osd], osd))
    return ClusterFullness(
        median(fills.values()), fills[fullest], fullest, compute_fullness_limit(view, policy)
    )

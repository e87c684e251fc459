"""Order and urgency: which PG leaves first, and how long the disk has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from actions.cluster.view import ClusterView, Pg
from actions.policy import Policy
from data.drain import Drain
from data.ids import DeviceId, OsdId
from data.outlook import Outlook, Status

BASE_RATE_30D = 0.001
"""What a disk without a forecast is taken for: about 1.2 % a year, the long-run rate of drives in service."""


def p_fail_30d(view: ClusterView, osd: OsdId, outlooks: Mapping[DeviceId, Outlook]) -> float:
    """Chance in [0, 1] that the OSD's disk fails within 30 days; a rule's "bad" counts as one in two."""
    found = view.osds.get(osd)
    outlook = outlooks.get(found.device) if found is not None and found.device is not None else None
    if outlook is None:
        return BASE_RATE_30D
    if outlook.p_fail_30d is not None:
        return outlook.p_fail_30d
    return {Status.BAD: 0.5, Status.WARNING: 0.05}.get(outlook.status, BASE_RATE_30D)


def by_risk(
    view: ClusterView, pgs: Iterable[Pg], leaving: frozenset[OsdId], outlooks: Mapping[DeviceId, Outlook]
) -> list[Pg]:
    """Most endangered first: another suspect in the same PG, then little margin over `min_size`, then
    likely loss.
    """
    risks: dict[int, float] = {}

    def rank(pg: Pg) -> tuple[int, int, float, str]:
        pool = view.pools[pg.pool]
        beside = [member for member in pg.acting if member not in leaving and member in view.osds]
        for member in beside:
            if member not in risks:
                risks[member] = p_fail_30d(view, OsdId(member), outlooks)
        suspects = sum(1 for member in beside if risks[member] >= 0.05)
        margin = len(beside) + 1 - pool.min_size
        return (-suspects, margin, -sum(risks[member] for member in beside), pg.id)

    return sorted(pgs, key=rank)


def urgent(drain: Drain, outlooks: Mapping[DeviceId, Outlook], policy: Policy) -> bool:
    """Whether the disk has only days: its median life is below `urgent_days`, or the forecast gives
    it a week at most.
    """
    outlook = outlooks.get(drain.device) if drain.device is not None else None
    if outlook is None:
        return False
    life = outlook.life
    if life is not None and life.p50_days is not None:
        return life.p50_days < policy.urgent_days
    return outlook.p_fail_7d is not None and outlook.p_fail_7d > 0.5

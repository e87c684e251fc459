"""Order and urgency: which PG leaves first, and how many days the disk has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.cluster.osd_layout import OsdLayout, find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.outlook_index import OutlookIndex, find_outlook_index
from predrain.data.drain import Drain
from predrain.data.identity_memo import remember_results
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import Outlook, Status

BASE_RATE_30D = 0.001
"""The assumed chance to fail of a disk without a forecast: about 1.2 % a year, the long-run rate of drives in
service.
"""

SUSPECT = 0.05
"""The chance to fail within 30 days from which a disk counts as a suspect beside another one."""


def p_fail_30d(view: ClusterView, osd: OsdId, outlooks: Mapping[DeviceId, Outlook]) -> float:
    """Return the chance in [0, 1] that one of the devices that the OSD needs fails within 30 days."""
    return _combine_chances(find_osd_layout(view.osds).devices.get(osd, ()), outlooks)


def list_risks(view: ClusterView, outlooks: Mapping[DeviceId, Outlook]) -> Mapping[OsdId, float]:
    """Return `p_fail_30d` of every OSD of the view."""
    return _list_risks(find_osd_layout(view.osds), find_outlook_index(outlooks))


@remember_results(limit=2)
def _list_risks(layout: OsdLayout, index: OutlookIndex) -> Mapping[OsdId, float]:
    return {osd: _combine_chances(devices, index.outlooks) for osd, devices in layout.devices.items()}


@remember_results(limit=2)
def _find_suspects(risks: Mapping[OsdId, float]) -> frozenset[OsdId]:
    return frozenset(osd for osd, risk in risks.items() if risk >= SUSPECT)


def _combine_chances(devices: Collection[DeviceId], outlooks: Mapping[DeviceId, Outlook]) -> float:
    """Return the chance in [0, 1] that one of the devices fails within 30 days; no device counts as an unknown one."""
    survives = 1.0
    for device in devices or (None,):
        survives *= 1.0 - _estimate_failure_chance(outlooks.get(device) if device is not None else None)
    return 1.0 - survives


def _estimate_failure_chance(outlook: Outlook | None) -> float:
    """Return the 30-day chance to fail in [0, 1]; a rule's "bad" counts as 0.5."""
    if outlook is None:
        return BASE_RATE_30D
    if outlook.p_fail_30d is not None:
        return outlook.p_fail_30d
    return {Status.BAD: 0.5, Status.WARNING: 0.05}.get(outlook.severity, BASE_RATE_30D)


def by_risk(
    view: ClusterView, pgs: Iterable[Pg], leaving: frozenset[OsdId], outlooks: Mapping[DeviceId, Outlook]
) -> list[Pg]:
    """Sort PGs, most endangered first.

    The order is: another suspect in the same PG, then few members left over `min_size` when the device dies,
    then likely loss.
    """
    risks = list_risks(view, outlooks)

    def rank(pg: Pg) -> tuple[int, int, float, str]:
        pool = view.pools[pg.pool]
        beside = [member for member in pg.acting if member not in leaving and member in view.osds]
        chances = [risks[OsdId(member)] for member in beside]
        suspects = sum(1 for chance in chances if chance >= SUSPECT)
        margin = len(beside) - pool.min_size
        return (-suspects, margin, -sum(chances), pg.id)

    return sorted(pgs, key=rank)


def most_endangered_first(
    view: ClusterView, drains: Iterable[Drain], outlooks: Mapping[DeviceId, Outlook], policy: Policy
) -> list[Drain]:
    """Sort drains by risk and redundancy.

    The order is: another suspect in one of its PGs, urgency, chance to fail, age of the drain.
    """
    every = list(drains)
    if len(every) < 2:
        return every
    exposed = find_exposed_drains(view, every, outlooks)

    def rank(drain: Drain) -> tuple[bool, bool, float, datetime, str]:
        risk = max((p_fail_30d(view, osd, outlooks) for osd in drain.osds), default=0.0)
        urgent = is_drain_urgent(drain, outlooks, policy)
        return (drain.id not in exposed, not urgent, -risk, drain.created_at, drain.id)

    return sorted(every, key=rank)


def find_exposed_drains(
    view: ClusterView, drains: Sequence[Drain], outlooks: Mapping[DeviceId, Outlook]
) -> frozenset[str]:
    """Return the ids of the drains that have a PG with another suspect, or another drain's OSD, among its acting
    OSDs.
    """
    known = {osd for drain in drains for osd in drain.osds if osd in view.osds}
    suspects, index = _find_suspects(list_risks(view, outlooks)) | known, find_pg_index(view.pgs)

    def is_exposed(drain: Drain) -> bool:
        others = suspects.difference(drain.osds)
        return any(
            osd in pg.acting and not others.isdisjoint(pg.acting)
            for osd in drain.osds
            for pg in index.list_pgs(osd)
        )

    return frozenset(drain.id for drain in drains if is_exposed(drain))


def riskiest_first(
    view: ClusterView, osds: Iterable[OsdId], outlooks: Mapping[DeviceId, Outlook]
) -> tuple[OsdId, ...]:
    """Return the OSDs of one device in the order in which they are emptied: those with the least redundant
    PGs first.
    """
    leaving = frozenset(osds)
    if len(leaving) < 2:
        return tuple(leaving)
    named = find_pg_index(view.pgs).list_pgs_of_any(leaving)
    at_risk = [pg for pg in named if not leaving.isdisjoint(pg.acting)]
    place: dict[OsdId, int] = {}
    for rank, pg in enumerate(by_risk(view, at_risk, leaving, outlooks)):
        for osd in sorted(leaving.intersection(OsdId(member) for member in pg.acting)):
            place.setdefault(osd, rank)
    return tuple(sorted(leaving, key=lambda osd: (place.get(osd, len(at_risk)), osd)))


def is_drain_urgent(drain: Drain, outlooks: Mapping[DeviceId, Outlook], policy: Policy) -> bool:
    """Return whether the disk has only days left.

    Its median life is below `urgent_days`. Without a median, its chance to fail within 7 days is above 0.5.
    """
    outlook = outlooks.get(drain.device) if drain.device is not None else None
    if outlook is None:
        return False
    life = outlook.life
    if life is not None and life.p50_days is not None:
        return life.p50_days < policy.urgent_days
    return outlook.p_fail_7d is not None and outlook.p_fail_7d > 0.5

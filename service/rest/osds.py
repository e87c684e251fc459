"""`GET osds`: one row an OSD with everything the map, the list and the tooltip show."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from actions.cluster.view import ClusterView, Osd
from data.drain import Drain, DrainState
from data.ids import OsdId
from data.outlook import Advice, Status
from service.fleet import Sight
from service.rest import caching, problems
from service.rest.bodies import Body, UnreadableBody, smart_of, unreadable_body
from service.rest.guarding import Reader
from service.rest.within import TheHouse

router = APIRouter(tags=["osds"])
SLOW_RULE = "rule:slow"


class OsdDrainBody(Body):
    """The drain that concerns an OSD now."""

    id: str
    state: DrainState
    moved_bytes: int
    planned_bytes: int
    held_by: list[str]


class OsdBody(Body):
    """One OSD, its disk, its forecast. `slot` counts a host's OSDs from 0 in order of their ids."""

    osd: int
    host: str
    rack: str | None
    slot: int
    device: str | None
    model: str | None
    up: bool
    in_: bool = Field(serialization_alias="in")
    reweight: float
    size_bytes: int | None
    used_bytes: int | None
    status: Status
    source: str | None
    p_fail_30d: float | None
    p_fail_30d_week_ago: float | None
    life_p10_days: float | None
    life_p50_days: float | None
    life_p90_days: float | None
    why: list[str]
    prescription: str | None
    advice: Advice | None
    rule_score: float | None
    """A rule's evidence, 0 to 1: no probability."""
    as_of: datetime | None
    age_days: float | None
    latency_ratio: float | None
    slow: bool
    """Whether a rule for slow disks made the outlook."""
    unreadable: UnreadableBody | None
    drain: OsdDrainBody | None


class OsdPage(Body):
    """All OSDs, in order of their ids."""

    items: list[OsdBody]
    next: str | None = None


@router.get("/osds", response_model=OsdPage, responses=problems.declared(401))
def osds(request: Request, house: TheHouse, _: Reader) -> Response:
    """Every OSD of the cluster; empty while no cluster is configured."""
    return caching.answer(request, house.derived("osds", _page))


def _page(sight: Sight) -> OsdPage:
    view = sight.view
    if view is None:
        return OsdPage(items=[])
    slots, drains = _slots(view), sight.drain_of()
    return OsdPage(
        items=[_row(osd, slots[osd.id], sight, drains.get(osd.id)) for _, osd in sorted(view.osds.items())]
    )


def _slots(view: ClusterView) -> dict[OsdId, int]:
    hosts: dict[str, list[OsdId]] = defaultdict(list)
    for osd in sorted(view.osds):
        hosts[view.osds[osd].host].append(osd)
    return {osd: slot for osds in hosts.values() for slot, osd in enumerate(osds)}


def _row(osd: Osd, slot: int, sight: Sight, drain: Drain | None) -> OsdBody:
    outlook = sight.outlooks.get(osd.device) if osd.device else None
    reading = sight.readings.get(osd.device) if osd.device else None
    smart = smart_of(reading)
    hours = smart.power_on_hours if smart else None
    life = outlook.life if outlook else None
    return OsdBody(
        osd=osd.id,
        host=osd.host,
        rack=osd.rack,
        slot=slot,
        device=osd.device,
        model=osd.model or (smart.identity.model if smart else None),
        up=osd.up,
        in_=osd.reweight > 0,
        reweight=osd.reweight,
        size_bytes=osd.size_bytes,
        used_bytes=osd.used_bytes,
        status=outlook.status if outlook else Status.UNKNOWN,
        source=outlook.source if outlook else None,
        p_fail_30d=outlook.p_fail_30d if outlook else None,
        p_fail_30d_week_ago=sight.week_ago.get(outlook.device) if outlook else None,
        life_p10_days=life.p10_days if life else None,
        life_p50_days=life.p50_days if life else None,
        life_p90_days=life.p90_days if life else None,
        why=[reason.sentence for reason in outlook.reasons] if outlook else [],
        prescription=outlook.prescription if outlook else None,
        advice=outlook.advice if outlook else None,
        rule_score=outlook.rule_score if outlook else None,
        as_of=outlook.as_of if outlook else None,
        age_days=hours / 24 if hours is not None else None,
        latency_ratio=sight.view.latency_ratio.get(osd.id) if sight.view else None,
        slow=outlook is not None and outlook.source.startswith(SLOW_RULE),
        unreadable=unreadable_body(reading),
        drain=_drain(drain) if drain else None,
    )


def _drain(drain: Drain) -> OsdDrainBody:
    progress = drain.progress
    return OsdDrainBody(
        id=drain.id,
        state=drain.state,
        moved_bytes=progress.moved_bytes,
        planned_bytes=progress.planned_bytes,
        held_by=list(drain.held_by),
    )

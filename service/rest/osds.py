"""`GET osds`: one row an OSD with everything the map, the list and the tooltip show."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from predrain.actions.cluster.view import ClusterView, Osd
from predrain.actions.core.messages import describe_state
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.life_cycle import DiskLife, LifeState
from predrain.data.outlook import Advice, Outlook, Status
from predrain.data.reading import Reading
from predrain.service.application import House
from predrain.service.fleet import FleetSnapshot
from predrain.service.fleet_counts import BACKGROUND
from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody, UnreadableBody, smart_of, unreadable_body
from predrain.service.rest.guarding import Reader
from predrain.service.rest.listing import IncrementalList, MadeOf, differing
from predrain.service.rest.outlooks import Cursor
from predrain.service.rest.within import in_turn, kept

router = APIRouter(tags=["osds"])
SLOW_RULE = "rule:slow"
MOST = 10_000


class OsdDrainBody(ResponseBody):
    """The drain that concerns an OSD now."""

    id: str
    state: DrainState
    state_text: str
    intent: Intent
    moved_bytes: int
    planned_bytes: int
    held_by: list[str]


class OsdBody(ResponseBody):
    """One OSD, the disk that stands in it, and its forecast. `slot` counts a host's OSDs from 0 in order of their ids.

    `state`: of the disk; null where no disk is known. `status` is its `severity`, and `unknown` where none is asked:
    of a disk that failed or is retired nothing is forecast.
    """

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
    state: LifeState | None
    severity: Status | None
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


class OsdPage(ResponseBody):
    """A page of OSDs in order of their ids, as of the change `at`; `whole` is false where only what changed is told."""

    items: list[OsdBody]
    next: str | None
    at: str
    whole: bool
    gone: list[OsdId]
    """OSDs that are there no longer since `since`."""


def _listing(house: House) -> IncrementalList[int]:
    return IncrementalList(house, _touched, row, int)


@router.get("/osds", response_model=OsdPage, responses=caching.polled(401, 422))
async def osds(
    request: Request,
    listing: Annotated[IncrementalList[int], Depends(kept("osds", _listing))],
    _: Reader,
    limit: Annotated[int, Query(ge=1, le=MOST, description="How many a page.")] = MOST,
    cursor: Cursor = None,
    since: Annotated[
        str | None, Query(max_length=64, description="`at` of an earlier answer: only what changed since.")
    ] = None,
) -> Response:
    """Every OSD of the cluster, or what changed of them; empty while no cluster is configured."""
    return await in_turn(
        request,
        "osds",
        lambda: listing.followed_ready(limit, cursor, since),
        lambda: listing.followed(limit, cursor, since),
    )


def _touched(sight: FleetSnapshot, before: FleetSnapshot | None) -> Mapping[int, MadeOf | None]:
    view = sight.view
    if view is None:
        return {}
    drains, touched = sight.drain_of(), set[OsdId]()
    if before is None or before.view is not view:
        touched.update(view.osds, before.view.osds if before and before.view else ())
    else:
        osds = sight.osds_of()
        pairs = (
            (sight.readings, before.readings),
            (sight.outlooks, before.outlooks),
            (sight.lives, before.lives),
        )
        for now, then in pairs:
            touched.update(osd for device in differing(now, then) for osd in osds.get(device, ()))
        touched |= (drains.keys() | before.drain_of().keys()) & view.osds.keys()
    return {id_: made_of(sight, view, id_, drains.get(id_)) if id_ in view.osds else None for id_ in touched}


def made_of(sight: FleetSnapshot, view: ClusterView, id_: OsdId, drain: Drain | None) -> MadeOf:
    """What the row of an OSD is made of."""
    osd = view.osds[id_]
    return (
        osd,
        sight.slots()[id_],
        sight.lives.get(osd.device) if osd.device else None,
        sight.outlooks.get(osd.device) if osd.device and sight.is_living(osd.device) else None,
        sight.readings.get(osd.device) if osd.device else None,
        sight.week_ago.get(osd.device) if osd.device else None,
        view.latency_ratio.get(id_),
        _drain(drain) if drain else None,
    )


def row(
    osd: Osd,
    slot: int,
    standing: DiskLife | None,
    outlook: Outlook | None,
    reading: Reading | None,
    week_ago: float | None,
    latency_ratio: float | None,
    drain: OsdDrainBody | None,
) -> OsdBody:
    """An OSD as it is answered."""
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
        state=standing.state if standing else None,
        severity=standing.severity if standing else None,
        status=(standing.severity if standing else None) or Status.UNKNOWN,
        source=outlook.source if outlook else None,
        p_fail_30d=outlook.p_fail_30d if outlook else None,
        p_fail_30d_week_ago=week_ago if outlook else None,
        life_p10_days=life.p10_days if life else None,
        life_p50_days=life.p50_days if life else None,
        life_p90_days=life.p90_days if life else None,
        # Nearly all disks are quiet: that their model has a rate is told on a disk's own page.
        why=[reason.sentence for reason in outlook.reasons if reason.code not in BACKGROUND]
        if outlook
        else [],
        prescription=outlook.prescription if outlook else None,
        advice=outlook.advice if outlook else None,
        rule_score=outlook.rule_score if outlook else None,
        as_of=outlook.as_of if outlook else None,
        age_days=hours / 24 if hours is not None else None,
        latency_ratio=latency_ratio,
        slow=outlook is not None and outlook.source.startswith(SLOW_RULE),
        unreadable=unreadable_body(reading),
        drain=drain,
    )


def _drain(drain: Drain) -> OsdDrainBody:
    progress = drain.progress
    return OsdDrainBody(
        id=drain.id,
        state=drain.state,
        state_text=describe_state(drain.state, drain.intent),
        intent=drain.intent,
        moved_bytes=progress.moved_bytes,
        planned_bytes=progress.planned_bytes,
        held_by=list(drain.held_by),
    )

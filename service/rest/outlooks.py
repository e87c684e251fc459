"""`GET outlooks`: the newest forecast of every device; `GET alerts`: those that were worth telling."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.actions.core.messages import WORDS, describe_state
from predrain.data.drain import Drain
from predrain.data.ids import OsdId
from predrain.data.life_cycle import DiskLife, LifeState
from predrain.data.outlook import Status
from predrain.service.application import House
from predrain.service.fleet import FleetSnapshot
from predrain.service.lifecycle.sentences import describe_life
from predrain.service.outlook_announcements import Alert
from predrain.service.probability_text import sure
from predrain.service.rest import caching
from predrain.service.rest.bodies import OutlookPage, ResponseBody, outlook_body
from predrain.service.rest.guarding import Reader
from predrain.service.rest.listing import IncrementalList, MadeOf, differing
from predrain.service.rest.within import TheHouse, in_turn, kept

router = APIRouter(tags=["outlooks"])
Limit = Annotated[int, Query(ge=1, le=10_000, description="How many a page.")]
USUAL = 200
"""Alerts a page, where nobody says how many; every open page asks for these."""
Cursor = Annotated[str | None, Query(max_length=512, description="`next` of the page before.")]


class AlertBody(ResponseBody):
    """One announcement: what, why, how sure, and what predrain does about it. `status`: the severity that it announced;
    `severity` and `state`: how the disk stands now."""

    at: datetime
    device: str
    osd: int | None
    status: Status
    severity: Status | None
    state: LifeState | None
    why: str
    sure: str
    doing: str


class AlertPage(ResponseBody):
    """Alerts, newest first."""

    items: list[AlertBody]
    next: str | None


def _listing(house: House) -> IncrementalList[str]:
    return IncrementalList(
        house,
        _touched,
        outlook_body,
        str,
        group=lambda outlook: outlook.severity,
    )


@router.get("/outlooks", response_model=OutlookPage, responses=caching.polled(401, 422))
async def outlooks(
    request: Request,
    listing: Annotated[IncrementalList[str], Depends(kept("outlooks", _listing))],
    _: Reader,
    status: Status | None = None,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """Forecasts in order of device id, of one status or of all."""
    return await in_turn(
        request,
        "outlooks",
        lambda: listing.ready(limit, cursor, status),
        lambda: listing.page(limit, cursor, status),
    )


@router.get("/alerts", response_model=AlertPage, responses=caching.polled(401, 422))
async def alerts(
    request: Request, house: TheHouse, _: Reader, limit: Limit = USUAL, cursor: Cursor = None
) -> Response:
    """Announcements, newest first."""
    if limit == USUAL and cursor is None:
        return await in_turn(
            request,
            "alerts",
            lambda: house.made("alerts"),
            lambda: house.derived("alerts", lambda sight: _alerts(house, sight, limit, None)),
        )
    return await run_in_threadpool(lambda: _alerts(house, house.sight(), limit, cursor).to(request))


def _alerts(house: House, sight: FleetSnapshot, limit: int, cursor: str | None) -> caching.CachedContent:
    osds, drains = sight.osds_of(), sight.drain_of()
    shown, following = caching.older(house.announcements.newest(), limit, cursor, _name)
    items = []
    for alert in shown:
        osd = next(iter(osds.get(alert.outlook.device, ())), None)
        drain = drains.get(osd) if osd is not None else None
        items.append(_alert(alert, osd, drain, sight.lives.get(alert.outlook.device)))
    return caching.written(AlertPage(items=items, next=following))


def _touched(sight: FleetSnapshot, before: FleetSnapshot | None) -> Mapping[str, MadeOf | None]:
    found = differing(sight.outlooks, before.outlooks if before else {})
    found |= differing(sight.lives, before.lives if before else {})
    return {
        device: (sight.outlooks[device],) if device in sight.outlooks and sight.is_living(device) else None
        for device in found
    }


def _name(alert: Alert) -> str:
    return f"{alert.outlook.as_of.isoformat()} {alert.outlook.device}"


def _describe_drain(drain: Drain) -> str:
    return (
        f"{WORDS[drain.intent].noun.capitalize()} {drain.id} is {describe_state(drain.state, drain.intent)}."
    )


def _alert(alert: Alert, osd: OsdId | None, drain: Drain | None, life: DiskLife | None) -> AlertBody:
    outlook = alert.outlook
    doing = _describe_drain(drain) if drain else outlook.prescription
    if life is not None and not life.is_living:
        doing = describe_life(life.change)
    return AlertBody(
        at=outlook.as_of,
        device=outlook.device,
        osd=osd,
        status=outlook.severity,
        severity=life.severity if life is not None else None,
        state=life.state if life is not None else None,
        why=outlook.reasons[0].sentence if outlook.reasons else f"Now {outlook.severity}.",
        sure=sure(outlook),
        doing=doing,
    )

"""`GET outlooks`: the newest forecast of every device; `GET alerts`: those that were worth telling."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from data.drain import Drain
from data.ids import OsdId
from data.outlook import Life, Outlook, Status
from service.alerts import Alert
from service.rest import caching, problems
from service.rest.bodies import Body, OutlookPage, outlook_body
from service.rest.guarding import Reader
from service.rest.within import TheHouse

router = APIRouter(tags=["outlooks"])
Limit = Annotated[int, Query(ge=1, le=10_000, description="How many a page.")]
Cursor = Annotated[str | None, Query(max_length=512, description="`next` of the page before.")]


class AlertBody(Body):
    """One announcement: what, why, how sure, and what predrain does about it."""

    at: datetime
    device: str
    osd: int | None
    status: Status
    why: str
    sure: str
    doing: str


class AlertPage(Body):
    """Alerts, newest first."""

    items: list[AlertBody]
    next: str | None = None


@router.get("/outlooks", response_model=OutlookPage, responses=problems.declared(401, 422))
def outlooks(
    request: Request,
    house: TheHouse,
    _: Reader,
    status: Status | None = None,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """Forecasts in order of device id, of one status or of all."""
    found = sorted(house.sight().outlooks.items())
    shown, following = caching.page_of(
        [(device, outlook) for device, outlook in found if status in (None, outlook.status)], limit, cursor
    )
    return caching.answer(request, OutlookPage(items=[outlook_body(one) for one in shown], next=following))


@router.get("/alerts", response_model=AlertPage, responses=problems.declared(401, 422))
def alerts(request: Request, house: TheHouse, _: Reader, limit: Limit = 200) -> Response:
    """Announcements, newest first."""
    sight = house.sight()
    osds, drains = sight.osds_of(), sight.drain_of()
    items = []
    for alert in house.announcements.newest()[:limit]:
        osd = next(iter(osds.get(alert.outlook.device, ())), None)
        items.append(_alert(alert, osd, drains.get(osd) if osd is not None else None))
    return caching.answer(request, AlertPage(items=items))


def _alert(alert: Alert, osd: OsdId | None, drain: Drain | None) -> AlertBody:
    outlook = alert.outlook
    return AlertBody(
        at=outlook.as_of,
        device=outlook.device,
        osd=osd,
        status=outlook.status,
        why=outlook.reasons[0].sentence if outlook.reasons else f"Now {outlook.status}.",
        sure=sure(outlook),
        doing=f"Drain {drain.id} is {drain.state}." if drain else outlook.prescription,
    )


def sure(outlook: Outlook) -> str:
    """How sure, in words: never a probability without its horizon, never one for a rule."""
    if outlook.p_fail_30d is None:
        evidence = "" if outlook.rule_score is None else f", evidence {outlook.rule_score:.2f} of 1"
        return f"By rule ({outlook.source.removeprefix('rule:')}){evidence}, no probability."
    told = f"{percent(outlook.p_fail_30d)} within 30 days"
    return f"{told}, likely {span(outlook.life)}" if outlook.life is not None else told


def span(life: Life) -> str:
    """Life expectancy from p10 to p90 in whole days, "over a year" beyond that: "9 days to over a year"."""
    short, long = _end(life.p10_days), _end(life.p90_days)
    if short == long:
        return short
    return f"{short.split()[0]} to {long}" if long[0].isdigit() else f"{short} to {long}"


def _end(days: float | None) -> str:
    if days is None or days > 365:
        return "over a year"
    return f"{days:.0f} {'day' if round(days) == 1 else 'days'}"


def percent(p: float) -> str:
    """Whole percents, one decimal below 1, bounded at both ends."""
    if p < 0.001:
        return "under 0.1 %"
    if p > 0.95:
        return "over 95 %"
    return f"{p * 100:.1f} %" if p < 0.0095 else f"{p * 100:.0f} %"

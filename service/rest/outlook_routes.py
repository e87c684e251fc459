"""`GET outlooks`: the newest forecast of every device; `GET alerts`: the forecasts that were announced."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from predrain.actions.core.messages import INTENT_TEXTS, describe_state
from predrain.data.drain import Drain
from predrain.data.ids import OsdId
from predrain.data.life_cycle import DiskLife, LifeState
from predrain.data.outlook import Status
from predrain.service.app.application import Application
from predrain.service.fleet.differing_keys import find_differing_keys
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.life_sentences import describe_life
from predrain.service.fleet.probability_text import describe_failure_chance
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication, create_singleton_dependency, in_turn
from predrain.service.rest.list_answers import IncrementalList, MadeOf
from predrain.service.rest.shared_bodies import OutlookPage, ResponseBody, outlook_body
from predrain.service.streams.outlook_announcements import Alert

router = APIRouter(tags=["outlooks"])
Limit = Annotated[int, Query(ge=1, le=10_000, description="The most items of a page.")]
USUAL = 200
"""The alerts per page if a request names no number; every open page requests these."""
Cursor = Annotated[str | None, Query(max_length=512, description="The field `next` of the page before.")]


class AlertBody(ResponseBody):
    """One announcement: the finding, the reason, its certainty, and what predrain does about it. `status`: the severity
    that was announced; `severity` and `state`: those of the disk now."""

    at: datetime
    device: str
    osd: int | None
    status: Status
    severity: Status | None
    state: LifeState | None
    reason: str
    confidence: str
    action: str


class AlertPage(ResponseBody):
    """Alerts, newest first."""

    items: list[AlertBody]
    next: str | None


def _create_outlook_list(application: Application) -> IncrementalList[str]:
    return IncrementalList(
        application,
        _find_changed_outlooks,
        outlook_body,
        str,
        group=lambda outlook: outlook.severity,
    )


@router.get("/outlooks", response_model=OutlookPage, responses=http_caching.declare_list_responses(401, 422))
async def list_outlooks(
    request: Request,
    listing: Annotated[
        IncrementalList[str], Depends(create_singleton_dependency("outlooks", _create_outlook_list))
    ],
    _: Reader,
    status: Status | None = None,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """List forecasts in order of device id, of one status or of all."""
    return await in_turn(
        request,
        "outlooks",
        lambda: listing.find_ready_page(limit, cursor, status),
        lambda: listing.build_page(limit, cursor, status),
    )


@router.get("/alerts", response_model=AlertPage, responses=http_caching.declare_polled_responses(401, 422))
async def list_alerts(
    request: Request, application: TheApplication, _: Reader, limit: Limit = USUAL, cursor: Cursor = None
) -> Response:
    """Announcements, newest first."""
    if limit == USUAL and cursor is None:
        return await in_turn(
            request,
            "alerts",
            lambda: application.find_derived("alerts"),
            lambda: application.derive_from_snapshot(
                "alerts", lambda snapshot: _build_alert_page(application, snapshot, limit, None)
            ),
        )
    return await run_in_threadpool(
        lambda: _build_alert_page(application, application.get_snapshot(), limit, cursor).build_response(
            request
        )
    )


def _build_alert_page(
    application: Application, snapshot: FleetSnapshot, limit: int, cursor: str | None
) -> http_caching.CachedContent:
    osds, drains = snapshot.osds_of(), snapshot.drain_of()
    shown, following = http_caching.paginate_newest_first(
        application.announcements.list_newest_alerts(), limit, cursor, _build_alert_key
    )
    items = []
    for alert in shown:
        osd = next(iter(osds.get(alert.outlook.device, ())), None)
        drain = drains.get(osd) if osd is not None else None
        items.append(_build_alert_body(alert, osd, drain, snapshot.lives.get(alert.outlook.device)))
    return http_caching.encode_cached_content(AlertPage(items=items, next=following))


def _find_changed_outlooks(
    snapshot: FleetSnapshot, before: FleetSnapshot | None
) -> Mapping[str, MadeOf | None]:
    found = find_differing_keys(snapshot.outlooks, before.outlooks if before else {})
    found |= find_differing_keys(snapshot.lives, before.lives if before else {})
    return {
        device: (snapshot.outlooks[device],)
        if device in snapshot.outlooks and snapshot.is_living(device)
        else None
        for device in found
    }


def _build_alert_key(alert: Alert) -> str:
    return f"{alert.outlook.as_of.isoformat()} {alert.outlook.device}"


def _describe_drain(drain: Drain) -> str:
    return f"{INTENT_TEXTS[drain.intent].noun.capitalize()} {drain.id} is {describe_state(drain.state, drain.intent)}."


def _build_alert_body(
    alert: Alert, osd: OsdId | None, drain: Drain | None, life: DiskLife | None
) -> AlertBody:
    outlook = alert.outlook
    action = _describe_drain(drain) if drain else outlook.prescription
    if life is not None and not life.is_living:
        action = describe_life(life.change)
    return AlertBody(
        at=outlook.as_of,
        device=outlook.device,
        osd=osd,
        status=outlook.severity,
        severity=life.severity if life is not None else None,
        state=life.state if life is not None else None,
        reason=outlook.reasons[0].sentence if outlook.reasons else f"Now {outlook.severity}.",
        confidence=describe_failure_chance(outlook),
        action=action,
    )

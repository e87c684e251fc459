"""`GET history`: the events, newest first: of OSDs, disks, outlooks, drains, halts, controllers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime
from starlette.responses import Response

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outside_text import PATTERN
from predrain.service.app.current_places import find_current_places
from predrain.service.events.event import HistoryEvent
from predrain.service.events.event_kinds import HistoryGroup, HistoryKind, group_of
from predrain.service.events.event_query import HistoryCursor, HistoryQuery, read_history
from predrain.service.events.event_sentences import describe_event, link_event
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.outlook_routes import Cursor
from predrain.service.rest.problem_answers import HttpProblem
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["history"])

_OSD = re.compile(r"(?:osd\.)?(\d{1,9})", re.ASCII)
Limit = Annotated[int, Query(ge=1, le=1_000, description="The most items of a page.")]
Text = Annotated[str | None, Query(min_length=1, max_length=PATTERN.limit)]


class HistoryEventBody(ResponseBody):
    """One event. `href`: the view of the page with details. A field that the event does not concern, or whose value is
    not known, is null."""

    at: datetime
    kind: HistoryKind
    group: HistoryGroup
    host: str | None
    device: str | None
    osd: int | None
    drain: str | None
    sentence: str
    href: str


class HistoryPageBody(ResponseBody):
    """Events, newest first. `next` leads to older events. A page with few events, or none, may have a `next` if many
    events had to be left out.
    """

    items: list[HistoryEventBody]
    next: str | None


@router.get(
    "/history", response_model=HistoryPageBody, responses=http_caching.declare_polled_responses(401, 422)
)
def list_events(
    request: Request,
    application: TheApplication,
    _: Reader,
    *,
    since: Annotated[AwareDatetime | None, Query(description="Only events at or after this time.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Only events before this time.")] = None,
    kind: Annotated[
        list[HistoryKind | HistoryGroup] | None,
        Query(description="Kinds or groups of events; several may be given."),
    ] = None,
    host: Annotated[Text, Query(description="The host's name.")] = None,
    disk: Annotated[Text, Query(description="A device id, or `osd.N`.")] = None,
    q: Annotated[Text, Query(description="Words, all of which the event's text contains.")] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """List events, newest first."""
    osd = _OSD.fullmatch(disk) if disk else None
    asked = HistoryQuery(
        since,
        until,
        _expand_event_kinds(kind or []),
        HostName(host) if host else None,
        DeviceId(disk) if disk and not osd else None,
        OsdId(int(osd[1])) if osd else None,
        tuple(q.split()) if q else (),
    )
    after = _decode_history_cursor(cursor) if cursor else None
    page = read_history(
        application.store, find_current_places(application.get_snapshot()), asked, limit, after
    )
    following = _cursor_at(page.next) if page.next is not None else None
    return http_caching.build_etag_response(
        request, HistoryPageBody(items=[*map(_build_event_body, page.events)], next=following)
    )


def _expand_event_kinds(asked: list[HistoryKind | HistoryGroup]) -> frozenset[HistoryKind]:
    groups = {one for one in asked if isinstance(one, HistoryGroup)}
    return frozenset(kind for kind in HistoryKind if kind in asked or group_of(kind) in groups)


def _cursor_at(after: HistoryCursor) -> str:
    return http_caching.cursor_after("\x00".join((after.at.isoformat(), *after.key)))


def _decode_history_cursor(cursor: str) -> HistoryCursor:
    at, *key = http_caching.decode_cursor(cursor, str).split("\x00")
    try:
        return HistoryCursor(datetime.fromisoformat(at).astimezone(UTC), tuple(key))
    except ValueError:
        raise HttpProblem(
            422, "The cursor is not one of this list; take `next` of the page before."
        ) from None


def _build_event_body(event: HistoryEvent) -> HistoryEventBody:
    return HistoryEventBody(
        at=event.at,
        kind=event.kind,
        group=group_of(event.kind),
        host=event.host,
        device=event.device,
        osd=event.osd,
        drain=event.drain,
        sentence=describe_event(event),
        href=link_event(event),
    )

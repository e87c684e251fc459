"""`GET history`: what happened, newest first: OSDs, disks, outlooks, drains, halts, controllers."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime
from starlette.responses import Response

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outside_text import PATTERN
from predrain.service.fleet import FleetSnapshot
from predrain.service.history.event import CurrentPlaces, HistoryEvent
from predrain.service.history.kinds import HistoryGroup, HistoryKind, group_of
from predrain.service.history.query import HistoryCursor, HistoryQuery, read_history
from predrain.service.history.sentences import describe_event, link_event
from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Reader
from predrain.service.rest.outlooks import Cursor
from predrain.service.rest.problems import HttpProblem
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["history"])

_OSD = re.compile(r"(?:osd\.)?(\d{1,9})", re.ASCII)
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many a page.")]
Text = Annotated[str | None, Query(min_length=1, max_length=PATTERN.limit)]


class HistoryEventBody(ResponseBody):
    """One event. `href`: where the page tells more; what an event does not concern, or is not known, is null."""

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
    """Events, newest first. `next` leads to older ones; a page with few events, or none, may have a `next`, where many
    events had to be left out.
    """

    items: list[HistoryEventBody]
    next: str | None


@router.get("/history", response_model=HistoryPageBody, responses=caching.polled(401, 422))
def list_events(
    request: Request,
    house: TheHouse,
    _: Reader,
    *,
    since: Annotated[AwareDatetime | None, Query(description="The oldest time that is wanted.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="The first time that is too late.")] = None,
    kind: Annotated[
        list[HistoryKind | HistoryGroup] | None,
        Query(description="Kinds or groups of events; several may be given."),
    ] = None,
    host: Annotated[Text, Query(description="The host's name.")] = None,
    disk: Annotated[Text, Query(description="A device id, or `osd.N`.")] = None,
    q: Annotated[Text, Query(description="Words that all stand in what is told of the event.")] = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    """What happened, newest first."""
    osd = _OSD.fullmatch(disk) if disk else None
    asked = HistoryQuery(
        since,
        until,
        _kinds(kind or []),
        HostName(host) if host else None,
        DeviceId(disk) if disk and not osd else None,
        OsdId(int(osd[1])) if osd else None,
        tuple(q.split()) if q else (),
    )
    after = _after(cursor) if cursor else None
    page = read_history(house.store, _places(house.sight()), asked, limit, after)
    following = _cursor_at(page.next) if page.next is not None else None
    return caching.answer(request, HistoryPageBody(items=[*map(_body, page.events)], next=following))


def _kinds(asked: list[HistoryKind | HistoryGroup]) -> frozenset[HistoryKind]:
    groups = {one for one in asked if isinstance(one, HistoryGroup)}
    return frozenset(kind for kind in HistoryKind if kind in asked or group_of(kind) in groups)


def _cursor_at(after: HistoryCursor) -> str:
    return caching.cursor_after("\x00".join((after.at.isoformat(), *after.key)))


def _after(cursor: str) -> HistoryCursor:
    at, *key = caching.opened(cursor, str).split("\x00")
    try:
        return HistoryCursor(datetime.fromisoformat(at).astimezone(UTC), tuple(key))
    except ValueError:
        raise HttpProblem(
            422, "The cursor is not one of this list; take `next` of the page before."
        ) from None


def _places(sight: FleetSnapshot) -> CurrentPlaces:
    """Where disks and OSDs are; of a disk that has ended where it stood last."""
    osds = sight.view.osds.values() if sight.view is not None else ()
    lives = {device: life.change for device, life in sight.lives.items()}
    last_slots = {device: change.osds[0] for device, change in lives.items() if change.osds}
    last_hosts = {device: change.host for device, change in lives.items() if change.host is not None}
    return CurrentPlaces(
        {osd.id: osd.host for osd in osds},
        {osd.id: osd.device for osd in osds if osd.device is not None},
        last_slots | {device: of[0] for device, of in sight.osds_of().items() if of},
        last_hosts | {device: reading.host for device, reading in sight.readings.items()},
    )


def _body(event: HistoryEvent) -> HistoryEventBody:
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

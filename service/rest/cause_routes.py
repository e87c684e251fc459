"""`causes`: the causes that need a person now; `silences`: causes that send no notification for a while.

A preview of a silence reads only, so it is a GET.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.outside_text import HALT_WHY, PATTERN
from predrain.service.notifications import find_alert_causes as standing
from predrain.service.notifications.cause import AlertCauseKind, Severity
from predrain.service.notifications.notifier import remove_silence, save_silence, silences_of
from predrain.service.notifications.silences import Silence, preview_silence
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Actor, Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.idempotency import Once
from predrain.service.rest.outlook_routes import Cursor, Limit
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody, clean_field

router = APIRouter(tags=["causes"])
PREVIEWED = 1000
"""The most points, and the most disks, that a preview lists."""


class CausePointBody(ResponseBody):
    """One disk, host, drain or part of a cause. `silence`: the id of the silence that covers it, if any."""

    name: str
    sentence: str
    severity: Severity
    silence: str | None


class CauseBody(ResponseBody):
    """A cause that stands now: the finding, the reason, its certainty, predrain's action and a person's action."""

    key: str
    severity: Severity
    title: str
    points: list[CausePointBody]
    action: str
    path: str
    host: str | None
    model: str | None
    kind: AlertCauseKind | None


class CausePage(ResponseBody):
    """A page of the causes that stand, urgent ones first."""

    items: list[CauseBody]
    next: str | None


class SilenceBody(ResponseBody):
    """A silence: its causes send no message before `until`. Patterns are the shell's; an empty one covers all."""

    id: str
    until: datetime
    by: str
    reason: str
    cause: str
    host: str
    model: str
    name: str
    rack: str
    severity: Severity | None


class SilencedPointBody(ResponseBody):
    """A point that a silence would cover now, with the key and the title of its cause."""

    cause: str
    title: str
    name: str
    sentence: str
    severity: Severity


class SilencePreviewBody(ResponseBody):
    """The points of present causes that a silence would cover now, and the disks about which no message would be sent.

    `points` and `disks` hold the first 1000; the totals count all.
    """

    points: list[SilencedPointBody]
    total_points: int
    disks: list[str]
    total_disks: int


class SilencePage(ResponseBody):
    """A page of the silences that stand, in order of their ends."""

    items: list[SilenceBody]
    next: str | None


Pattern = Annotated[str, Field(max_length=PATTERN.limit), clean_field(PATTERN, must_remain=True)]


class SilenceRequest(BaseModel):
    """At least one of `cause`, `host`, `model`, `name` and `rack`."""

    model_config = ConfigDict(extra="forbid")

    hours: float = Field(gt=0, le=24 * 30, description="How many hours the silence stands, 30 days at most.")
    reason: Annotated[
        str, Field(min_length=1, max_length=HALT_WHY.limit), clean_field(HALT_WHY, must_remain=True)
    ]
    cause: Pattern = Field(default="", description="Pattern of causes' keys: `silent:*`.")
    host: Pattern = Field(default="", description="Pattern of host names.")
    model: Pattern = Field(default="", description="Pattern of drive models.")
    name: Pattern = Field(default="", description="Pattern of points: `disk:ST4000DM000*`.")
    rack: Pattern = Field(default="", description="Pattern of racks.")
    severity: Severity | None = Field(
        default=None,
        description="Severity of the points; null: both. A notice that becomes urgent is reported.",
    )


PreviewPattern = Annotated[str, Query(max_length=PATTERN.limit)]


@router.get("/causes", response_model=CausePage, responses=http_caching.declare_polled_responses(401, 422))
def list_causes(
    request: Request, application: TheApplication, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """List the causes that need a person now."""
    snapshot = application.build_alert_snapshot()
    silences = silences_of(application.store, snapshot.now)
    found = [
        (f"{cause.severity is not Severity.URGENT:d} {cause.key}", cause) for cause in standing(snapshot)
    ]
    shown, following = http_caching.page_of(found, limit, cursor)
    items = [
        CauseBody(
            key=cause.key,
            severity=cause.severity,
            title=cause.title,
            points=[
                CausePointBody(
                    name=point.name,
                    sentence=point.line,
                    severity=point.severity,
                    silence=next((one.id for one in silences if one.covers(cause, point)), None),
                )
                for point in cause.points
            ],
            action=cause.todo,
            path=cause.path,
            host=cause.host,
            model=cause.model,
            kind=cause.kind,
        )
        for cause in shown
    ]
    return http_caching.build_etag_response(request, CausePage(items=items, next=following))


@router.get(
    "/silences", response_model=SilencePage, responses=http_caching.declare_polled_responses(401, 422)
)
def list_silences(
    request: Request, application: TheApplication, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """List the silences: causes of which no message is sent now."""
    found = [
        (f"{one.until.isoformat()} {one.id}", one)
        for one in silences_of(application.store, application.clock.now())
    ]
    shown, following = http_caching.page_of(found, limit, cursor)
    return http_caching.build_etag_response(
        request, SilencePage(items=[_build_silence_body(one) for one in shown], next=following)
    )


@router.get(
    "/silences/preview", response_model=SilencePreviewBody, responses=declare_problem_responses(401, 422)
)
def preview_silence_now(
    application: TheApplication,
    _: Reader,
    cause: PreviewPattern = "",
    host: PreviewPattern = "",
    model: PreviewPattern = "",
    name: PreviewPattern = "",
    rack: PreviewPattern = "",
    severity: Severity | None = None,
) -> SilencePreviewBody:
    """Return what a silence with these patterns would cover now. Nothing is silenced."""
    snapshot = application.build_alert_snapshot()
    wanted = _require_matcher(Silence("", snapshot.now, "", "", cause, host, model, name, rack, severity))
    found = preview_silence(wanted, snapshot, standing(snapshot))
    points = [
        SilencedPointBody(
            cause=cause_.key,
            title=cause_.title,
            name=point.name,
            sentence=point.line,
            severity=point.severity,
        )
        for cause_, point in found.points[:PREVIEWED]
    ]
    return SilencePreviewBody(
        points=points,
        total_points=len(found.points),
        disks=list(found.disks[:PREVIEWED]),
        total_disks=len(found.disks),
    )


@router.post(
    "/silences",
    status_code=201,
    response_model=SilenceBody,
    responses=declare_problem_responses(401, 403, 409, 422),
)
def add_silence(application: TheApplication, caller: Actor, once: Once, wanted: SilenceRequest) -> Response:
    """Send no message of the causes that this silence covers until it ends. Nothing else changes: drains go on."""
    now = application.clock.now()
    one = _require_matcher(
        Silence(
            secrets.token_hex(4),
            now + timedelta(hours=wanted.hours),
            caller.name,
            wanted.reason,
            wanted.cause,
            wanted.host,
            wanted.model,
            wanted.name,
            wanted.rack,
            wanted.severity,
        )
    )

    def keep() -> SilenceBody:
        save_silence(application.store, one, now)
        return _build_silence_body(one)

    return once.respond_once(keep, 201)


@router.delete(
    "/silences/{id}",
    status_code=204,
    response_class=Response,
    responses=declare_problem_responses(401, 403, 404, 409, 422),
)
def lift_silence(application: TheApplication, _: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """End a silence now."""

    def end() -> None:
        if not remove_silence(application.store, id):
            raise HttpProblem(404, f"There is no silence {id}.", listed_at="/api/v1/silences")

    return once.respond_once(end, 204)


def _require_matcher(one: Silence) -> Silence:
    """Return the silence. Raises HttpProblem if it covers everything."""
    if not (one.cause or one.host or one.model or one.name or one.rack):
        raise HttpProblem(
            422,
            "Say what to silence: cause, host, model, name or rack; one for everything is not taken.",
        )
    return one


def _build_silence_body(one: Silence) -> SilenceBody:
    return SilenceBody(
        id=one.id,
        until=one.until,
        by=one.by,
        reason=one.why,
        cause=one.cause,
        host=one.host,
        model=one.model,
        name=one.name,
        rack=one.rack,
        severity=one.severity,
    )

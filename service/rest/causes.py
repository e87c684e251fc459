"""`causes`: what needs a person now, one a cause; `silences`: what nobody wants to hear of for a while."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.outside_text import HALT_WHY, PATTERN
from predrain.service.notifications import causes as standing
from predrain.service.notifications.cause import Severity
from predrain.service.notifications.notifier import lift, silence, silences_of
from predrain.service.notifications.silence import Silence
from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody, clean_field
from predrain.service.rest.guarding import Actor, Reader
from predrain.service.rest.once import Once
from predrain.service.rest.outlooks import Cursor, Limit
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["causes"])


class CausePointBody(ResponseBody):
    """One disk, host, drain or part of a cause. `silenced`: by which silence, if any."""

    name: str
    line: str
    severity: Severity
    silenced: str | None


class CauseBody(ResponseBody):
    """Something that stands now: what, why, how sure, what predrain does about it, what to do."""

    key: str
    severity: Severity
    title: str
    points: list[CausePointBody]
    todo: str
    path: str
    host: str | None
    model: str | None


class CausePage(ResponseBody):
    """A page of what stands, urgent things first."""

    items: list[CauseBody]
    next: str | None


class SilenceBody(ResponseBody):
    """What is not told until then. Patterns are the shell's; an empty one covers all."""

    id: str
    until: datetime
    by: str
    why: str
    cause: str
    host: str
    model: str
    name: str


class SilencePage(ResponseBody):
    """A page of the silences that stand, those that end first first."""

    items: list[SilenceBody]
    next: str | None


Pattern = Annotated[str, Field(max_length=PATTERN.limit), clean_field(PATTERN, must_remain=True)]


class SilenceRequest(BaseModel):
    """At least one of `cause`, `host`, `model` and `name`."""

    model_config = ConfigDict(extra="forbid")

    hours: float = Field(gt=0, le=24 * 30, description="How long it stands, 30 days at most.")
    why: Annotated[
        str, Field(min_length=1, max_length=HALT_WHY.limit), clean_field(HALT_WHY, must_remain=True)
    ]
    cause: Pattern = Field(default="", description="Pattern of causes' keys: `silent:*`.")
    host: Pattern = Field(default="", description="Pattern of host names.")
    model: Pattern = Field(default="", description="Pattern of drive models.")
    name: Pattern = Field(default="", description="Pattern of points: `disk:ST4000DM000*`.")


@router.get("/causes", response_model=CausePage, responses=caching.polled(401, 422))
def causes(
    request: Request, house: TheHouse, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """What needs a person now."""
    scene = house.scene()
    silences = silences_of(house.store, scene.now)
    found = [(f"{cause.severity is not Severity.URGENT:d} {cause.key}", cause) for cause in standing(scene)]
    shown, following = caching.page_of(found, limit, cursor)
    items = [
        CauseBody(
            key=cause.key,
            severity=cause.severity,
            title=cause.title,
            points=[
                CausePointBody(
                    name=point.name,
                    line=point.line,
                    severity=point.severity,
                    silenced=next((one.id for one in silences if one.covers(cause, point)), None),
                )
                for point in cause.points
            ],
            todo=cause.todo,
            path=cause.path,
            host=cause.host,
            model=cause.model,
        )
        for cause in shown
    ]
    return caching.answer(request, CausePage(items=items, next=following))


@router.get("/silences", response_model=SilencePage, responses=caching.polled(401, 422))
def silences(
    request: Request, house: TheHouse, _: Reader, limit: Limit = 1000, cursor: Cursor = None
) -> Response:
    """What is not told now."""
    found = [
        (f"{one.until.isoformat()} {one.id}", one) for one in silences_of(house.store, house.clock.now())
    ]
    shown, following = caching.page_of(found, limit, cursor)
    return caching.answer(request, SilencePage(items=[_body(one) for one in shown], next=following))


@router.post("/silences", status_code=201, response_model=SilenceBody, responses=declared(401, 403, 409, 422))
def add_silence(house: TheHouse, caller: Actor, once: Once, wanted: SilenceRequest) -> Response:
    """Do not tell of what this covers until it ends. Nothing else changes: drains go on."""
    if not (wanted.cause or wanted.host or wanted.model or wanted.name):
        raise HttpProblem(
            422, "Say what to silence: cause, host, model or name; one for everything is not taken."
        )
    now = house.clock.now()
    one = Silence(
        secrets.token_hex(4),
        now + timedelta(hours=wanted.hours),
        caller.name,
        wanted.why,
        wanted.cause,
        wanted.host,
        wanted.model,
        wanted.name,
    )

    def keep() -> SilenceBody:
        silence(house.store, one, now)
        return _body(one)

    return once.answer(keep, 201)


@router.delete(
    "/silences/{id}", status_code=204, response_class=Response, responses=declared(401, 403, 404, 409, 422)
)
def lift_silence(house: TheHouse, _: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """End a silence now."""

    def end() -> None:
        if not lift(house.store, id):
            raise HttpProblem(404, f"There is no silence {id}.", listed_at="/api/v1/silences")

    return once.answer(end, 204)


def _body(one: Silence) -> SilenceBody:
    return SilenceBody(
        id=one.id,
        until=one.until,
        by=one.by,
        why=one.why,
        cause=one.cause,
        host=one.host,
        model=one.model,
        name=one.name,
    )

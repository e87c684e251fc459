"""`drains/ID`: the ways out of a drain that cannot end, and insisting past a guard."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.actions.controller.person_request import PersonRequest, RequestKind
from predrain.data.outside_text import CALLER, PATTERN, REASON
from predrain.service.rest.authentication import Actor, Admin
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.drain_routes import REQUESTED, answer_request
from predrain.service.rest.idempotency import Once
from predrain.service.rest.shared_bodies import clean_field

router = APIRouter(tags=["drains"])


class InsistRequest(BaseModel):
    """Guards that refuse now and are to be overruled for this drain and its step alone."""

    model_config = ConfigDict(extra="forbid")

    guards: list[Annotated[str, Field(min_length=1, max_length=CALLER.limit)]] = Field(
        min_length=1, max_length=20, description="Codes of guards, as `guards` of the drain has them."
    )
    reason: Annotated[str, clean_field(REASON, must_remain=True)] = Field(
        min_length=1, max_length=REASON.limit, description="Kept in the journal and in the audit."
    )
    minutes: float = Field(
        default=60.0, gt=0, le=60, description="The most minutes that the insistence holds."
    )
    confirm: Annotated[str, clean_field(PATTERN)] = Field(
        min_length=1, max_length=PATTERN.limit, description="The drain's OSD, typed: `osd.12`."
    )


@router.post("/drains/{id}/stay_drained", **REQUESTED)
def stay_drained(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Take back a cancel whose data cannot go back: moved data stays where it is, and the rest follows."""
    return answer_request(
        application,
        once,
        PersonRequest(RequestKind.STAY_DRAINED, application.clock.now(), caller.name, id),
    )


@router.post("/drains/{id}/choose_other_targets", **REQUESTED)
def choose_other_targets(application: TheApplication, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Plan again without the targets that are full, down, out or of unknown size."""
    return answer_request(
        application,
        once,
        PersonRequest(RequestKind.CHOOSE_OTHER_TARGETS, application.clock.now(), caller.name, id),
    )


@router.post("/drains/{id}/give_up_cancel", **REQUESTED)
def give_up_cancel(application: TheApplication, caller: Admin, once: Once, id: str) -> Response:  # noqa: A002
    """End a cancel: balancer, throttles and affinity go back, upmaps and weights stay as they are and are listed."""
    return answer_request(
        application,
        once,
        PersonRequest(RequestKind.GIVE_UP_CANCEL, application.clock.now(), caller.name, id),
    )


@router.post("/drains/{id}/insist", **REQUESTED)
def insist_past_guards(
    application: TheApplication,
    caller: Admin,
    once: Once,
    id: str,  # noqa: A002
    said: InsistRequest,
) -> Response:
    """Let the drain pass guards that refuse it now, for its step and for at most an hour."""
    return answer_request(
        application,
        once,
        PersonRequest(
            RequestKind.INSIST,
            application.clock.now(),
            caller.name,
            id,
            reason=said.reason,
            guards=tuple(said.guards),
            minutes=said.minutes,
            confirm=said.confirm,
        ),
    )

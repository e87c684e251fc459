"""`drains/ID`: the ways out of a drain that cannot end, and insisting past a guard."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.actions.controller.forwarded_requests import Wish
from predrain.data.outside_text import CALLER, PATTERN, REASON
from predrain.service.rest.bodies import clean_field
from predrain.service.rest.drains import WISHED, answer_wish
from predrain.service.rest.guarding import Actor, Admin
from predrain.service.rest.once import Once
from predrain.service.rest.within import TheHouse

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
    minutes: float = Field(default=60.0, gt=0, le=60, description="How long it stands at most.")
    confirm: Annotated[str, clean_field(PATTERN)] = Field(
        min_length=1, max_length=PATTERN.limit, description="The drain's OSD, typed: `osd.12`."
    )


@router.post("/drains/{id}/stay_drained", **WISHED)
def stay_drained(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Take back a cancel whose data cannot go back: what has moved stays, and the rest follows."""
    return answer_wish(
        house, once, id, lambda control, now: control.take_way_out(id, Wish.STAY_DRAINED, caller.name, now)
    )


@router.post("/drains/{id}/choose_other_targets", **WISHED)
def choose_other_targets(house: TheHouse, caller: Actor, once: Once, id: str) -> Response:  # noqa: A002
    """Plan anew without the targets that are full, down, out or of unknown size."""
    return answer_wish(
        house,
        once,
        id,
        lambda control, now: control.take_way_out(id, Wish.CHOOSE_OTHER_TARGETS, caller.name, now),
    )


@router.post("/drains/{id}/give_up_cancel", **WISHED)
def give_up_cancel(house: TheHouse, caller: Admin, once: Once, id: str) -> Response:  # noqa: A002
    """End a cancel: balancer, throttles and affinity go back, upmaps and weights stay as they are and are listed."""
    return answer_wish(
        house, once, id, lambda control, now: control.take_way_out(id, Wish.GIVE_UP_CANCEL, caller.name, now)
    )


@router.post("/drains/{id}/insist", **WISHED)
def insist(house: TheHouse, caller: Admin, once: Once, id: str, said: InsistRequest) -> Response:  # noqa: A002
    """Let the drain pass guards that refuse it now, for its step and for at most an hour."""
    return answer_wish(
        house,
        once,
        id,
        lambda control, now: control.insist(
            id, tuple(said.guards), said.reason, said.minutes, said.confirm, caller.name, now
        ),
    )

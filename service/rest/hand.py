"""`hand`: sealed steps for the mgr module, and its answers; only where a service drains by the mgr's hand."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from predrain.actions.cluster.port import CommandResult
from predrain.data.outside_text import CLUSTER_WORDS, HALT_WHY, clean_text
from predrain.service.application import House
from predrain.service.drains.mgr_executor import HandCluster, MgrExecutor, NobodyWaits
from predrain.service.rest.bodies import ResponseBody, clean_field
from predrain.service.rest.guarding import Handler
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["hand"])


class StepBody(ResponseBody):
    """A step as JSON text, and HMAC-SHA256 over that text in hex."""

    step: str
    signature: str


class StepPage(ResponseBody):
    """Steps that wait, oldest first."""

    items: list[StepBody]


class AnswerRequest(BaseModel):
    """What became of a step. `refused`: by the hand's own guards, before anything was sent."""

    model_config = ConfigDict(extra="forbid")

    ok: bool
    text: Annotated[str, Field(max_length=CLUSTER_WORDS.limit), clean_field(CLUSTER_WORDS)]
    epoch: int | None = Field(default=None, ge=0)
    refused: bool = False


class TakenBody(ResponseBody):
    """The answer has reached who waits for it."""

    id: str


@router.get("/hand/steps", responses=declared(401, 403, 409))
def steps(
    house: TheHouse,
    caller: Handler,
    halted: Annotated[str | None, Query(max_length=600, description="The cluster's own halt.")] = None,
) -> StepPage:
    """Steps to carry out now. A halt that stands in the cluster halts the service too."""
    hand = _hand(house)
    if halted is not None and house.store.halt_reason() is None:
        why = clean_text(halted, HALT_WHY.limit) or "no reason given"
        house.halt(f"in the cluster: {why}", caller.name)
    waiting = (one for one in hand.taken() if halted is None or one.gives_back)
    return StepPage(items=[StepBody(step=one.text, signature=one.signature) for one in waiting])


@router.post("/hand/steps/{id}/answer", responses=declared(401, 403, 404, 409, 422))
def answer(
    house: TheHouse,
    _: Handler,
    id: Annotated[str, Path(max_length=64)],  # noqa: A002
    said: AnswerRequest,
) -> TakenBody:
    """What became of a step."""
    try:
        _hand(house).answered(id, CommandResult(said.ok, said.text, said.epoch))
    except NobodyWaits as nobody:
        raise HttpProblem(404, str(nobody)) from nobody
    return TakenBody(id=id)


def _hand(house: House) -> MgrExecutor:
    cluster = house.control.live.cluster if house.has_cluster else None
    if not isinstance(cluster, HandCluster):
        raise HttpProblem(
            409,
            "This service does not drain by the mgr's hand; set hand_key of [ceph], or the module's mode to mirror.",
        )
    return cluster.hand

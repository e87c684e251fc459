"""`halt`: one word stops every command to the cluster and stays until a person lifts it."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from service.rest import problems
from service.rest.bodies import Body
from service.rest.guarding import Actor, Reader
from service.rest.within import TheHouse

router = APIRouter(tags=["halt"])


class HaltBody(Body):
    """Why everything is halted; null when it is not."""

    halted: str | None


class HaltRequest(BaseModel):
    """A reason halts, null lifts."""

    model_config = ConfigDict(extra="forbid")

    why: str | None = Field(max_length=500)


@router.get("/halt", responses=problems.declared(401))
def halted(house: TheHouse, _: Reader) -> HaltBody:
    """Whether and why everything is halted."""
    return HaltBody(halted=house.store.halt_reason())


@router.post("/halt", responses=problems.declared(401, 403, 422))
def halt(house: TheHouse, caller: Actor, wanted: HaltRequest) -> HaltBody:
    """Halt everything, or lift the halt."""
    why = wanted.why.strip() or "no reason given" if wanted.why is not None else None
    return HaltBody(halted=house.halt(why, caller.name))

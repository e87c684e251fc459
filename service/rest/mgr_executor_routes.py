"""`executor`: signed steps for the mgr module, and its answers; only if a service drains through the mgr executor."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from predrain.actions.cluster.cluster_port import CommandResult
from predrain.data.outside_text import CLUSTER_WORDS, HALT_WHY, clean_text
from predrain.service.app.application import Application
from predrain.service.drains.mgr_executor import MgrExecutor, MgrExecutorCluster, StepNotAwaited
from predrain.service.rest.authentication import Handler
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody, clean_field

router = APIRouter(tags=["executor"])


class StepBody(ResponseBody):
    """A step as JSON text, and HMAC-SHA256 over that text in hex."""

    step: str
    signature: str


class StepPage(ResponseBody):
    """Steps that wait, oldest first."""

    items: list[StepBody]


class StepResultRequest(BaseModel):
    """The result of a step. `refused`: by the mgr executor's own guards, before anything was sent."""

    model_config = ConfigDict(extra="forbid")

    ok: bool
    text: Annotated[str, Field(max_length=CLUSTER_WORDS.limit), clean_field(CLUSTER_WORDS)]
    epoch: int | None = Field(default=None, ge=0)
    refused: bool = False


class StepReceiptBody(ResponseBody):
    """The answer has reached the controller that waits for it."""

    id: str


@router.get("/executor/steps", responses=declare_problem_responses(401, 403, 409))
def fetch_executor_steps(
    application: TheApplication,
    caller: Handler,
    halted: Annotated[str | None, Query(max_length=600, description="The cluster's own halt.")] = None,
) -> StepPage:
    """List the steps to carry out now. A halt that stands in the cluster halts the service too."""
    hand = _require_mgr_executor(application)
    if halted is not None and application.store.halt_reason() is None:
        why = clean_text(halted, HALT_WHY.limit) or "no reason given"
        application.halt(f"in the cluster: {why}", caller.name)
    waiting = (one for one in hand.fetch_waiting_steps() if halted is None or one.gives_back)
    return StepPage(items=[StepBody(step=one.text, signature=one.signature) for one in waiting])


@router.post("/executor/steps/{id}/result", responses=declare_problem_responses(401, 403, 404, 409, 422))
def report_step_result(
    application: TheApplication,
    _: Handler,
    id: Annotated[str, Path(max_length=64)],  # noqa: A002
    said: StepResultRequest,
) -> StepReceiptBody:
    """Take the result of a step."""
    try:
        _require_mgr_executor(application).record_answer(id, CommandResult(said.ok, said.text, said.epoch))
    except StepNotAwaited as nobody:
        raise HttpProblem(404, str(nobody)) from nobody
    return StepReceiptBody(id=id)


def _require_mgr_executor(application: Application) -> MgrExecutor:
    cluster = application.control.live.cluster if application.has_cluster else None
    if not isinstance(cluster, MgrExecutorCluster):
        raise HttpProblem(
            409,
            "This service does not drain through the mgr executor; set executor_key of [ceph], or the module's mode "
            "to mirror.",
        )
    return cluster.hand

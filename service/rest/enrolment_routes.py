"""`enrolment`: a collector exchanges its one-time token for a permanent one."""

from __future__ import annotations

from typing import Annotated

import structlog
from fastapi import APIRouter, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from predrain.data.ids import HostName
from predrain.data.outside_text import HOST, is_clean
from predrain.data.refusal import Refusal
from predrain.service.rest.authentication import access_of
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["enrolment"])


def _host_name(host: str) -> str:
    if not is_clean(host, HOST.limit):
        raise ValueError("a host name is one line without control characters")
    return host


class EnrolmentRequest(BaseModel):
    """The one-time token, and the host's name in its readings."""

    model_config = ConfigDict(extra="forbid")

    token: str = Field(min_length=1, max_length=500)
    host: Annotated[str, Field(min_length=1, max_length=HOST.limit), AfterValidator(_host_name)]


class EnrolmentBody(ResponseBody):
    """The host's own token: scope `ingest`, for its own readings and latencies alone. It is shown once, as is
    `request_key`, with which requests to the host are signed (empty if the service has no signing key that it can use).
    """

    token: str
    host: str
    request_key: str


@router.post("/enrolment", status_code=201, responses=declare_problem_responses(401, 413, 422, 429))
def enrol_collector(request: Request, application: TheApplication, wanted: EnrolmentRequest) -> EnrolmentBody:
    """Exchange a one-time token for the host's own token, once."""
    book = access_of(request).book
    try:
        token = book.exchange_enrolment(wanted.token, wanted.host)
        enrolled = book.find_credential(token)
    except Refusal as refusal:
        raise HttpProblem(401, f"{str(refusal)[:1].upper()}{str(refusal)[1:]}.") from refusal
    request.state.caller = enrolled.to_caller() if enrolled is not None else None
    try:
        key = application.disk_requests.derive_key(HostName(wanted.host))
    except Refusal as refusal:  # the host can deliver all the same
        structlog.get_logger().warning(
            "a host gets no key for requests", host=wanted.host, reason=str(refusal)
        )
        key = ""
    return EnrolmentBody(token=token, host=wanted.host, request_key=key)

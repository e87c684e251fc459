"""Requests of a person to an application, as the REST routes make them."""

from __future__ import annotations

from predrain.actions.controller.person_request import PersonRequest, RequestKind
from predrain.actions.controller.plan_etags import encode_plan_etag
from predrain.data.drain import Drain
from predrain.service.app.application import Application


def propose_drain(application: Application, target: str, caller: str, reason: str = "noisy") -> Drain:
    """A drain that waits for its approval."""
    now = application.clock.now()
    return application.execute_request(
        PersonRequest(RequestKind.PROPOSE, now, caller, target=target, reason=reason)
    )


def approve_drain(application: Application, drain: Drain, caller: str) -> Drain:
    """The plan that is shown, approved."""
    now = application.clock.now()
    return application.execute_request(
        PersonRequest(RequestKind.APPROVE, now, caller, drain.id, encode_plan_etag(drain))
    )

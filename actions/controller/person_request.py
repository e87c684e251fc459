"""A request of a person about a drain: one value from the REST route to the controller that executes the request."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import uuid4

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import ClusterId
from predrain.data.wire_names import name_on_wire


class RequestKind(StrEnum):
    """The kinds of requests."""

    PROPOSE = "propose"
    APPROVE = "approve"
    REJECT = "reject"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    HAND_OVER = "hand_over"
    STAY_DRAINED = "stay_drained"
    GIVE_UP_CANCEL = "give_up_cancel"
    CHOOSE_OTHER_TARGETS = "choose_other_targets"
    INSIST = "insist"


@dataclass(frozen=True, slots=True)
class PersonRequest:
    """One request of one caller. A proposal has a target, every other request a drain.

    The names on the wire are those of the text by which a request is forwarded through the cluster.
    """

    kind: RequestKind = field(metadata=name_on_wire("wish"))
    at: datetime
    caller: str
    drain: str = ""
    plan_etag: str = field(default="", metadata=name_on_wire("seal"))
    """The ETag of the plan that an approval refers to."""
    target: str = ""
    reason: str = ""
    intent: Intent = Intent.REPLACE
    spare_reads: bool = False
    guards: tuple[str, ...] = ()
    """Guards past which the caller insists, for `minutes` minutes, having typed `confirm`."""
    minutes: float = 0.0
    confirm: str = ""
    origin: str = ""
    """The process that knows the caller, as the lease and the step counter name it; "" if no other one hears of it."""
    cluster: ClusterId | None = None
    """The cluster of the drain or the target. None: the one that the executing controller knows."""
    id: str = field(default_factory=lambda: uuid4().hex)
    """Unique among all requests."""


_RUNS = frozenset(
    {
        DrainState.APPROVED,
        DrainState.PREPARING,
        DrainState.DRAINING,
        DrainState.HOLDING,
        DrainState.DRAINED,
        DrainState.VERIFIED,
    }
)
_FULFILLED = {
    RequestKind.APPROVE: _RUNS,
    RequestKind.RESUME: _RUNS,
    RequestKind.REJECT: frozenset({DrainState.CANCELLED}),
    RequestKind.PAUSE: frozenset({DrainState.PAUSED}),
    RequestKind.CANCEL: frozenset({DrainState.CANCELLING, DrainState.CANCELLED}),
    RequestKind.HAND_OVER: frozenset({DrainState.HANDED_OVER}),
    RequestKind.STAY_DRAINED: frozenset({DrainState.PREPARING, DrainState.DRAINING, DrainState.HOLDING}),
}


def is_request_fulfilled(request: PersonRequest, drain: Drain) -> bool:
    """Return whether the drain already is as requested. For a proposal, return whether the drain is the one that it
    made.
    """
    said = drain.insistence
    match request.kind:
        case RequestKind.GIVE_UP_CANCEL:
            return drain.given_up is not None
        case RequestKind.INSIST:
            asked = (request.caller, request.reason, request.guards)
            until = request.at + timedelta(minutes=request.minutes)
            return said is not None and (said.by, said.reason, said.guards) == asked and said.until >= until
        case RequestKind.PROPOSE:
            return _is_proposed(request, drain)
        case _:
            return is_granted(request.kind, drain.state)


def _is_proposed(request: PersonRequest, drain: Drain) -> bool:
    asked = (request.caller, request.reason, request.intent)
    return drain.state is DrainState.PROPOSED and asked == (drain.asked_by, drain.reason, drain.intent)


def is_granted(kind: RequestKind, state: DrainState) -> bool:
    """Return whether a drain in this state already is as requested. False for a proposal, and for requests that no
    state shows.
    """
    return state in _FULFILLED.get(kind, frozenset())

"""The plan that a person approves, as an ETag: nearly equal plans pass, and others name their differences."""

from __future__ import annotations

import base64
import binascii

import msgspec

from predrain.actions.engine.plan_comparison import is_noticeably_different
from predrain.data.drain import Drain
from predrain.data.refusal import Refusal


class PlanChanged(Refusal):
    """The approved plan is no longer the plan of the drain; `drain` has the present plan."""

    def __init__(self, drain: Drain, changes: tuple[str, ...]) -> None:
        self.drain, self.changes = drain, changes
        super().__init__(
            f"Nothing was started, since the plan of {drain.id} has changed: {'; '.join(changes)}. "
            "Look at it again, then approve."
        )


class PlanEtag(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a plan on which an approval rests. None: unknown."""

    state: str
    mechanic: str | None
    bytes: int
    eta_hours: float | None
    fullest_after: float | None
    cluster_after: float | None
    refusals: int


def encode_plan_etag(drain: Drain) -> str:
    """Encode a drain's plan as a tag, quoted like an ETag."""
    return f'"{base64.urlsafe_b64encode(msgspec.json.encode(_summarize_plan(drain))).decode().rstrip("=")}"'


def describe_plan_changes(given: str, drain: Drain) -> tuple[str, ...]:
    """Describe the differences of the plan from the tag `given`; empty if none of them matters."""
    seen = _decode_plan_etag(given)
    if seen is None:
        return ("the tag is not one of this service",)
    now, told = _summarize_plan(drain), []
    if seen.state != now.state:
        told.append(f"it is {now.state}, was {seen.state}")
    if seen.mechanic != now.mechanic:
        told.append(f"mechanic {now.mechanic or 'not planned'}, was {seen.mechanic or 'not planned'}")
    if seen.refusals < now.refusals:
        told.append(f"{now.refusals} reasons against it, was {seen.refusals}")
    for name, before, after in (
        ("bytes to move", seen.bytes, now.bytes),
        ("hours it takes", seen.eta_hours, now.eta_hours),
        ("the fullest target after it", seen.fullest_after, now.fullest_after),
        ("the cluster's fullness after it", seen.cluster_after, now.cluster_after),
    ):
        if is_noticeably_different(before, after):
            told.append(f"{name} {_format_number(after)}, was {_format_number(before)}")
    return tuple(told)


def refuse_changed_plan(given: str, drain: Drain) -> None:
    """Raise PlanChanged if the plan is not the one of the tag `given`."""
    if changes := describe_plan_changes(given, drain):
        raise PlanChanged(drain, changes)


def _summarize_plan(drain: Drain) -> PlanEtag:
    plan = drain.plan
    if plan is None:
        return PlanEtag(drain.state, None, 0, None, None, None, 0)
    return PlanEtag(
        drain.state, plan.mechanic, plan.bytes, plan.eta_hours, plan.fullest_after, plan.cluster_after,
        len(plan.refusals),
    )  # fmt: skip


def _decode_plan_etag(given: str) -> PlanEtag | None:
    text = given.strip().removeprefix("W/").strip('"')
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=PlanEtag)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None


def _format_number(number: float | None) -> str:
    if number is None:
        return "unknown"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.2f}"

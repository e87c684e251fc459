"""What a person saw when approving, as a tag: plans that say nearly the same pass, others name what moved."""

from __future__ import annotations

import base64
import binascii

import msgspec

from predrain.actions.engine.plan_comparison import apart
from predrain.data.drain import Drain


class Seal(msgspec.Struct, frozen=True, array_like=True):
    """The numbers of a plan that an approval rests on. None: not known."""

    state: str
    mechanic: str | None
    bytes: int
    eta_hours: float | None
    fullest_after: float | None
    cluster_after: float | None
    refusals: int


def seal(drain: Drain) -> str:
    """The tag of a drain's plan, quoted as an ETag is."""
    return f'"{base64.urlsafe_b64encode(msgspec.json.encode(_of(drain))).decode().rstrip("=")}"'


def changes(given: str, drain: Drain) -> tuple[str, ...]:
    """What is no longer as in the tag `given`, in words; empty when nothing that matters is."""
    seen = _open(given)
    if seen is None:
        return ("the tag is not one of this service",)
    now, told = _of(drain), []
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
        if apart(before, after):
            told.append(f"{name} {_said(after)}, was {_said(before)}")
    return tuple(told)


def _of(drain: Drain) -> Seal:
    plan = drain.plan
    if plan is None:
        return Seal(drain.state, None, 0, None, None, None, 0)
    return Seal(
        drain.state, plan.mechanic, plan.bytes, plan.eta_hours, plan.fullest_after, plan.cluster_after,
        len(plan.refusals),
    )  # fmt: skip


def _open(given: str) -> Seal | None:
    text = given.strip().removeprefix("W/").strip('"')
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=Seal)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None


def _said(number: float | None) -> str:
    if number is None:
        return "unknown"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.2f}"

"""The hand's own guards: what must hold in the mgr's eyes before a sealed step is carried out.

The service has judged before; this is the second opinion, of the one who is asked to act. A step may pass, be refused,
or wait: a map that is behind, or PGs that peer, settle in a moment, and the step's expiry ends the waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

from .orders import MgrView, Order, meddled, stands
from .steps import EXPIRY_MAX_SECONDS, RequestedStep

STEPS_PER_MINUTE = 60


@dataclass(frozen=True)
class StepVerdict:
    """`go`, `wait` or `refuse`, with the sentence that says why not."""

    word: str
    sentence: str = ""
    already: bool = False
    """The map holds the target value: nothing is to be sent."""


def lasting(step: RequestedStep, now: float) -> StepVerdict:
    """Whether the step is of now."""
    if step.expires_at <= now:
        late = now - step.expires_at
        return _refuse(
            f"the step expired {late:.0f} s ago by this host's clock; are service and mgr in step?"
        )
    if step.expires_at > now + EXPIRY_MAX_SECONDS:
        ahead = step.expires_at - now
        return _refuse(f"the step would be good for {ahead:.0f} s, longer than {EXPIRY_MAX_SECONDS:.0f}")
    return StepVerdict("go")


def judge(
    step: RequestedStep, wanted: Order, world: MgrView, halted: str | None, sent: int, peering_max: int
) -> StepVerdict:
    """Everything but `ok-to-stop`. `sent`: steps carried out within the last minute."""
    if halted is not None and not step.gives_back:
        return _refuse(f"halted: {halted}")
    if world.epoch < step.epoch:
        return _wait(f"the mgr's map is of epoch {world.epoch}, the step of {step.epoch}")
    missing = _missing(wanted, world)
    if missing:
        return _refuse(missing)
    if stands(wanted, step.value, world):
        return StepVerdict("go", already=True)
    if step.expects is not None and meddled(wanted, step.expects, world):
        return _refuse(
            f"{step.key} is no longer {step.expects!r}, as it was in epoch {step.epoch}: somebody changed it"
        )
    if wanted.moves:
        fallen = sorted(id_ for id_, osd in world.osds.items() if not osd.up and osd.down_at > step.epoch)
        if fallen:
            return _refuse(
                f"osd.{fallen[0]} went down after epoch {step.epoch}, on which the step was decided"
            )
        if world.inactive > peering_max:
            return _wait(f"{world.inactive} PGs are not active, more than {peering_max}")
    if sent >= STEPS_PER_MINUTE:
        return _wait(f"{sent} steps were carried out within the last minute")
    return StepVerdict("go")


def _missing(wanted: Order, world: MgrView) -> str:
    """What the step names and the map does not have, or has down."""
    if wanted.osd >= 0 and wanted.osd not in world.osds:
        return f"there is no osd.{wanted.osd}"
    if wanted.kind == "upmap":
        pool, _, seed = wanted.name.partition(".")
        if int(seed, 16) >= world.pools.get(int(pool), 0):
            return f"there is no PG {wanted.name}"
        for _, target in wanted.pairs:
            osd = world.osds.get(target)
            if osd is None or not osd.up or osd.weight == 0.0:
                return f"osd.{target}, where PG {wanted.name} would go, is not up and in"
    return ""


def _refuse(sentence: str) -> StepVerdict:
    return StepVerdict("refuse", sentence)


def _wait(sentence: str) -> StepVerdict:
    return StepVerdict("wait", sentence)

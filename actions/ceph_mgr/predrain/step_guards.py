"""The guards of the mgr executor: conditions that the mgr checks on its own map before it executes a signed step.

The service has already judged the step; these checks are a second opinion where the command is sent. A step may
pass, be refused, or wait. A map that is behind and PGs that peer settle in a moment, and the step's expiry ends
the waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

from .accepted_steps import MgrView, StepOrder, has_foreign_change, is_value_in_map
from .signed_steps import EXPIRY_MAX_SECONDS, RequestedStep

STEPS_PER_MINUTE = 60


@dataclass(frozen=True)
class StepVerdict:
    """The verdict `go`, `wait` or `refuse`, with a sentence that gives the reason."""

    word: str
    sentence: str = ""
    already: bool = False
    """The map already holds the target value, so no command is needed."""


def check_step_expiry(step: RequestedStep, now: float) -> StepVerdict:
    """Check that the step has not expired and does not expire too far in the future."""
    if step.expires_at <= now:
        late = now - step.expires_at
        return _make_refuse_verdict(
            f"the step expired {late:.0f} s ago by this host's clock; are service and mgr in step?"
        )
    if step.expires_at > now + EXPIRY_MAX_SECONDS:
        ahead = step.expires_at - now
        return _make_refuse_verdict(
            f"the step would be good for {ahead:.0f} s, longer than {EXPIRY_MAX_SECONDS:.0f}"
        )
    return StepVerdict("go")


def judge_step(
    step: RequestedStep, wanted: StepOrder, world: MgrView, halted: str | None, sent: int, peering_max: int
) -> StepVerdict:
    """Judge the step by every guard except `ok-to-stop`. `sent`: steps executed within the last minute."""
    if halted is not None and not step.gives_back:
        return _make_refuse_verdict(f"halted: {halted}")
    if world.epoch < step.epoch:
        return _make_wait_verdict(f"the mgr's map is of epoch {world.epoch}, the step of {step.epoch}")
    missing = _find_missing_target(wanted, world)
    if missing:
        return _make_refuse_verdict(missing)
    if is_value_in_map(wanted, step.value, world):
        return StepVerdict("go", already=True)
    if step.expects is not None and has_foreign_change(wanted, step.expects, world):
        return _make_refuse_verdict(
            f"{step.key} is no longer {step.expects!r}, as it was in epoch {step.epoch}: another party changed it"
        )
    if wanted.moves_pgs:
        fallen = sorted(id_ for id_, osd in world.osds.items() if not osd.up and osd.down_at > step.epoch)
        if fallen:
            return _make_refuse_verdict(
                f"osd.{fallen[0]} went down after epoch {step.epoch}, on which the step was decided"
            )
        if world.inactive > peering_max:
            return _make_wait_verdict(f"{world.inactive} PGs are not active, more than {peering_max}")
    if sent >= STEPS_PER_MINUTE:
        return _make_wait_verdict(f"{sent} steps were carried out within the last minute")
    return StepVerdict("go")


def _find_missing_target(wanted: StepOrder, world: MgrView) -> str:
    """Return which target of the step is absent from the map or down, as a sentence; "" if none is."""
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


def _make_refuse_verdict(sentence: str) -> StepVerdict:
    return StepVerdict("refuse", sentence)


def _make_wait_verdict(sentence: str) -> StepVerdict:
    return StepVerdict("wait", sentence)

"""The states of a drain as one table. An event that the table lacks is refused and changes nothing.

Code, tests and `docs/reference/states.md` read `TABLE`. The `guard` of a row says who may cause the event.
Its `action` says what happens on the way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from predrain.actions.core.messages import describe_state
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.refusal import Refusal

S = DrainState


class Event(StrEnum):
    """An event in the life of a drain."""

    APPROVE = "approve"
    REJECT = "reject"
    WITHDRAW = "withdraw"
    START = "start"
    PREPARED = "prepared"
    REFUSED = "refused"
    PASSED = "passed"
    EMPTIED = "emptied"
    COUNTED = "counted"
    HAND_OVER = "hand over"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    IN_USE_AGAIN = "in use again"
    REPLACED = "replaced"
    RESTORED = "restored"
    RECOVERED = "recovered"
    TAKEN_OVER = "taken over"
    BREAK = "break"
    STAY = "stay drained"
    GIVE_UP = "give up the cancel"
    CHOOSE_TARGETS = "choose other targets"
    INSIST = "insist"


@dataclass(frozen=True, slots=True)
class Transition:
    """One row of the table. `next` is None if the drain returns to the state in which it was paused or
    failed.
    """

    state: DrainState
    event: Event
    guard: str
    action: str
    next: DrainState | None


PERSON = "a person's word"
PASS = "every guard passes"  # noqa: S105  (not a password)
_ALIVE = (S.PROPOSED, S.APPROVED, S.PREPARING, S.DRAINING, S.HOLDING, S.DRAINED, S.VERIFIED)

TABLE: tuple[Transition, ...] = (
    Transition(S.PROPOSED, Event.APPROVE, f"{PERSON}, or mode act and {PASS}", "keep the policy", S.APPROVED),
    Transition(S.PROPOSED, Event.REJECT, PERSON, "nothing was touched", S.CANCELLED),
    Transition(
        S.PROPOSED,
        Event.WITHDRAW,
        "no longer bad for long, or dead and out",
        "nothing was touched",
        S.CANCELLED,
    ),
    *(
        Transition(
            state, Event.REPLACED, "another device is in its place", "nothing was touched", S.CANCELLED
        )
        for state in (S.PROPOSED, S.APPROVED)
    ),
    Transition(S.APPROVED, Event.START, PASS, "plan; write down what is found", S.PREPARING),
    Transition(S.PREPARING, Event.PREPARED, "read back", "balancer and throttles are held", S.DRAINING),
    Transition(S.DRAINING, Event.REFUSED, "a guard refuses", "wait, say why", S.HOLDING),
    Transition(S.HOLDING, Event.PASSED, PASS, "go on", S.DRAINING),
    Transition(
        S.DRAINING, Event.EMPTIED, "no PG up or acting on it, override 0", "nothing left to move", S.DRAINED
    ),
    Transition(
        S.DRAINED,
        Event.COUNTED,
        "fresh: all copies counted elsewhere",
        "give back balancer and throttles",
        S.VERIFIED,
    ),
    Transition(
        S.VERIFIED, Event.HAND_OVER, f"{PERSON} and safe-to-destroy", "the disk may be pulled", S.HANDED_OVER
    ),
    Transition(
        S.VERIFIED,
        Event.IN_USE_AGAIN,
        "the same disk came up, and the mon gave it the override that it had",
        "hold balancer and throttles again",
        S.PREPARING,
    ),
    *(Transition(state, Event.PAUSE, PERSON, "no step until resumed", S.PAUSED) for state in _ALIVE),
    *(
        Transition(
            state, Event.REPLACED, "another device is in its place", "put back what was set", S.CANCELLING
        )
        for state in (S.PREPARING, S.DRAINING, S.HOLDING, S.DRAINED)
    ),
    Transition(
        S.VERIFIED,
        Event.REPLACED,
        "another device is in its place",
        "the slot is in use again",
        S.HANDED_OVER,
    ),
    Transition(S.PAUSED, Event.RESUME, PERSON, "go on where it stopped", None),
    Transition(S.FAILED, Event.RESUME, PERSON, "go on where it broke", None),
    *(
        Transition(
            state, Event.CANCEL, PERSON, "put back weights, upmaps, affinity, flags, settings", S.CANCELLING
        )
        for state in (*_ALIVE, S.PAUSED, S.FAILED)
    ),
    Transition(S.CANCELLING, Event.RESTORED, "read back", "all is as it was found", S.CANCELLED),
    *(
        Transition(state, Event.STAY, PERSON, "revoke the cancel; the emptied part stays empty", S.PREPARING)
        for state in (S.CANCELLING, S.FAILED)
    ),
    *(
        Transition(
            state, Event.GIVE_UP, PERSON, "give back what moves no data, list what is left", S.CANCELLING
        )
        for state in (S.CANCELLING, S.FAILED)
    ),
    *(
        Transition(state, Event.CHOOSE_TARGETS, PERSON, "plan again without targets in trouble", state)
        for state in (S.PREPARING, S.DRAINING, S.HOLDING)
    ),
    *(
        Transition(state, Event.INSIST, PERSON, "some guards are overruled for a while, in this step", state)
        for state in (S.PROPOSED, S.APPROVED, S.PREPARING, S.DRAINING, S.HOLDING, S.CANCELLING)
    ),
    Transition(
        S.DRAINING,
        Event.RECOVERED,
        "a quarantined OSD answers like its peers",
        "give back affinity",
        S.CANCELLING,
    ),
    *(
        Transition(
            state, Event.TAKEN_OVER, "a drain of the same OSD holds what it set", "let go of it", S.CANCELLED
        )
        for state in (*_ALIVE, S.CANCELLING, S.PAUSED, S.FAILED)
        if state not in (S.DRAINED, S.VERIFIED)
    ),
    *(
        Transition(
            state, Event.BREAK, "what a retry does not cure", "say for what a person is needed", S.FAILED
        )
        for state in (S.APPROVED, S.PREPARING, S.DRAINING, S.HOLDING, S.DRAINED, S.CANCELLING)
    ),
)

_ROWS = {(row.state, row.event): row for row in TABLE}

_TOLD = (Intent.REPLACE, Intent.FILL, Intent.QUARANTINE)
ACTIVE = frozenset({S.PREPARING, S.DRAINING, S.HOLDING, S.DRAINED, S.CANCELLING})
"""States in which the engine may send commands."""
ENDED = frozenset({S.CANCELLED, S.HANDED_OVER})
"""Final states."""
STEPS = (
    frozenset({S.PROPOSED, S.APPROVED}),
    frozenset({S.PREPARING, S.DRAINING, S.HOLDING}),
    frozenset({S.CANCELLING}),
)
"""The steps of a drain in which a person may insist: before it begins, while data moves, and on the way back.
An insistence ends with its step.
"""


class NotInTable(Refusal):
    """The event is not allowed in the drain's state."""

    def __init__(self, drain: Drain, event: Event) -> None:
        self.drain, self.event = drain, event
        known = [row.event.value for row in TABLE if row.state is drain.state]
        can = f"what it can take is: {', '.join(known)}" if known else "it has ended; propose a new one"
        super().__init__(f"drain {drain.id} is {drain.state.value} and cannot take '{event.value}'; {can}")


def can_take_event(drain: Drain, event: Event) -> bool:
    """Return whether the table has `event` in the drain's state."""
    return (drain.state, event) in _ROWS


def apply_event(drain: Drain, event: Event, now: datetime, *, why: str = "") -> Drain:
    """Return the drain's next revision after the event. Raises NotInTable.

    A resume leads to `resume_to`; any other event clears it.
    """
    row = _ROWS.get((drain.state, event))
    if row is None:
        raise NotInTable(drain, event)
    goal = row.next if row.next is not None else drain.resume_to or S.HOLDING
    leaves = goal in (S.PAUSED, S.FAILED)
    same_step = any({drain.state, goal} <= step for step in STEPS)
    stays_held = leaves or goal in (S.HOLDING, drain.state)
    return replace(
        drain,
        state=goal,
        revision=drain.revision + 1,
        updated_at=now,
        resume_to=drain.state if leaves else None,
        held_by=drain.held_by if stays_held else (),
        held_osd=drain.held_osd if stays_held else None,
        ended_why=why if goal in ENDED or goal is S.FAILED else "",
        held_for=drain.held_for if same_step or leaves else (),
        held_since=drain.held_since if same_step or leaves else None,
        insistence=drain.insistence if same_step else None,
    )


def build_state_reference() -> str:
    """Return the text of `docs/reference/states.md`: the table and a link to the picture of the main paths."""
    rows = [
        f"| {row.state.value} | {row.event.value} | {row.guard} | {row.action} | "
        f"{row.next.value if row.next else 'where it was'} |"
        for row in TABLE
    ]
    told = [
        f"| {state.value} | {' | '.join(describe_state(state, intent) for intent in _TOLD)} |"
        for state in DrainState
    ]
    return "\n".join(
        [
            "# States of a drain",
            "",
            "Written from `actions/core/state_machine.py` by `python -m predrain.actions.core.state_machine`.",
            "An event that the table lacks is refused and changes nothing.",
            "",
            "![From proposed to handed over, and what leads aside](../pictures/states.svg)",
            "",
            "| state | event | guard | action | next |",
            "|---|---|---|---|---|",
            *rows,
            "",
            "`holding` ends by itself when the guards pass; `paused` and a halt do not.",
            "A resume leads back to the state that was left.",
            "",
            "## As people read them",
            "",
            "A fill and a quarantine go through the same states. Programs read `state`; people read `state_text`,",
            "which REST, the command line, the page and the mgr module give.",
            "A quarantine stays in `draining` while other OSDs are the primaries of its PGs, and ends by itself",
            "when the OSD answers like its peers.",
            "",
            "| state | drain | fill | quarantine |",
            "|---|---|---|---|",
            *told,
            "",
        ]
    )


if __name__ == "__main__":
    print(build_state_reference(), end="")

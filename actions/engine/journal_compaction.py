"""Compacts equal holds: a drain held for the same reasons, with other numbers, gets no new journal entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from predrain.actions.core.state_machine import Event, apply_event, can_take_event
from predrain.actions.guards import Refuse
from predrain.data.drain import Drain, DrainState
from predrain.data.hold_reason import HoldReason


def hold_drain(drain: Drain, refusals: Sequence[Refuse], now: datetime) -> Drain:
    """Return the drain held for these reasons, one revision on, or `drain` itself if it is held so already.

    People are notified of a hold that lasts, while the figures in the sentences change at every poll: the start of
    the hold stays as long as the reasons do. It also decides from when on the drain is offered its ways out.
    """
    reasons = list_reasons(refusals)
    started = can_take_event(drain, Event.REFUSED)
    before = apply_event(drain, Event.REFUSED, now) if started else drain
    held = replace(
        before,
        held_by=tuple(dict.fromkeys(refuse.sentence for refuse in refusals)),
        held_for=reasons,
        held_osd=refusals[0].osd,
        held_since=_find_start(drain, reasons, now),
    )
    if started or held == drain:
        return held if started else drain
    since = drain.updated_at if drain.state is DrainState.HOLDING else now
    return replace(held, revision=drain.revision + 1, updated_at=since)


def list_reasons(refusals: Sequence[Refuse]) -> tuple[HoldReason, ...]:
    """Return the reasons of the refusals, each once, in their order."""
    return tuple(dict.fromkeys(refuse.code for refuse in refusals))


def _find_start(drain: Drain, codes: tuple[HoldReason, ...], now: datetime) -> datetime:
    """Return the time since which the drain has been held for these codes; a step between two holds resets
    it.
    """
    return drain.held_since if drain.held_since is not None and drain.held_for == codes else now


def is_new(drain: Drain, drains: tuple[Drain, ...]) -> bool:
    """Return whether the drain differs from the stored one (a hold that says nothing new is not stored
    again).
    """
    old = next((known for known in drains if known.id == drain.id), None)
    return old is None or drain.revision > old.revision


def same_reasons(refusals: tuple[Refuse, ...], drain: Drain, drains: tuple[Drain, ...]) -> bool:
    """Return whether the same guards hold the drain as before, with other numbers only.

    The journal folds such equal holds.
    """
    old = next((known for known in drains if known.id == drain.id), None)
    return old is not None and old.held_for == list_reasons(refusals)

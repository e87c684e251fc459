"""Equal holds are folded: a drain that waits for the same reasons, with other numbers, is not journalled again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from predrain.actions.core.state_machine import Event, after, can
from predrain.actions.guards import Refuse
from predrain.data.drain import Drain, DrainState


def held(drain: Drain, refusals: Sequence[Refuse], now: datetime) -> Drain:
    """The drain as it holds for these reasons, one revision on; itself where it holds for the same already."""
    sentences = tuple(dict.fromkeys(refuse.sentence for refuse in refusals))
    codes = tuple(dict.fromkeys(refuse.code for refuse in refusals))
    if can(drain, Event.REFUSED):
        begun = after(drain, Event.REFUSED, now)
        return replace(begun, held_by=sentences, held_for=codes, held_since=_find_start(drain, codes, now))
    return held_on(drain, sentences, now, codes)


def held_on(drain: Drain, sentences: tuple[str, ...], now: datetime, codes: tuple[str, ...] = ()) -> Drain:
    """The drain as it goes on waiting. How long it holds is counted from where it began to: people are told of a hold
    that lasts, and numbers in the sentences move at every look. For how long it has held for the same codes, too: a
    drain that cannot go on by itself is shown its ways out by that.
    """
    if drain.held_by == sentences:
        return drain
    since = drain.updated_at if drain.state is DrainState.HOLDING else now
    return replace(
        drain,
        held_by=sentences,
        held_for=codes,
        held_since=_find_start(drain, codes, now),
        revision=drain.revision + 1,
        updated_at=since,
    )


def _find_start(drain: Drain, codes: tuple[str, ...], now: datetime) -> datetime:
    """Since when the drain has been held for these codes; a step between two holds begins the count anew."""
    return drain.held_since if drain.held_since is not None and drain.held_for == codes else now


def is_new(drain: Drain, drains: tuple[Drain, ...]) -> bool:
    """Whether the drain differs from what was read (a hold that says nothing new is not written again)."""
    old = next((known for known in drains if known.id == drain.id), None)
    return old is None or drain.revision > old.revision


def same_reasons(refusals: tuple[Refuse, ...], drain: Drain, drains: tuple[Drain, ...]) -> bool:
    """Whether the hold is for the same guards as before, with other numbers: equal holds are folded
    in the journal.
    """
    old = next((known for known in drains if known.id == drain.id), None)
    if old is None or len(old.held_by) != len(refusals):
        return False
    return all(
        _words(was) == _words(refuse.sentence) for was, refuse in zip(old.held_by, refusals, strict=True)
    )


def _words(sentence: str) -> tuple[str, ...]:
    return tuple(word for word in sentence.split() if not any(letter.isdigit() for letter in word))

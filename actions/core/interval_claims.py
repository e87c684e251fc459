"""What drains hold of the monitors' interval between two maps, by what they claim (actions.controller.fast_maps)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from predrain.actions.cluster.view import PROPOSE_INTERVAL, ClusterView
from predrain.actions.core.claimed_settings import ABSENT, FAST_MAPS, found, same
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import Before, Yielded

MOVING = frozenset({DrainState.DRAINING, DrainState.CANCELLING})
"""States in which PGs may move."""


def has_interval_claim(drain: Drain) -> bool:
    """Whether the drain's ledger holds the monitors' interval."""
    return FAST_MAPS in drain.ours and FAST_MAPS in drain.saved


def holds_down(drain: Drain) -> bool:
    """Whether the drain has set it and has not given it back."""
    return has_interval_claim(drain) and not same(FAST_MAPS, drain.ours[FAST_MAPS], drain.saved[FAST_MAPS])


def release_interval(drain: Drain, theirs: str | None = None) -> Drain:
    """The drain without its claim; `theirs`: what another hand has set, which is left alone from now on."""
    keys = {FAST_MAPS, Before(FAST_MAPS)}
    ours = {key: value for key, value in drain.ours.items() if key not in keys}
    if theirs is not None:
        ours[Yielded(FAST_MAPS)] = theirs
    saved = {key: value for key, value in drain.saved.items() if key != FAST_MAPS}
    return replace(drain, ours=ours, saved=saved)


def claim_interval(drain: Drain, value: str, was: str, now: str) -> Drain:
    """The drain as it must be stored before `value` is set, or, where it is `was`, before it is given back."""
    ours = {key: text for key, text in drain.ours.items() if key != Before(FAST_MAPS)}
    ours[FAST_MAPS] = value
    if not same(FAST_MAPS, now, value):
        ours[Before(FAST_MAPS)] = now
    return replace(drain, saved={**drain.saved, FAST_MAPS: was}, ours=ours)


def follow_setting(drain: Drain, now: str) -> Drain:
    """The drain after a look that found `now`: what arrived needs no proof any more, what was given back is no claim,
    and what another hand has set is theirs.
    """
    if not has_interval_claim(drain):
        return drain
    value, was = drain.ours[FAST_MAPS], drain.saved[FAST_MAPS]
    before = drain.ours.get(Before(FAST_MAPS))
    on_its_way = before is not None and same(FAST_MAPS, now, before) and not same(FAST_MAPS, now, value)
    if on_its_way:
        return drain
    if not same(FAST_MAPS, now, value):
        return release_interval(drain, theirs=now)
    if same(FAST_MAPS, value, was):
        return release_interval(drain)
    return drain if before is None else claim_interval(drain, value, was, now)


def describe_left(view: ClusterView, drains: Iterable[Drain], *, moving: bool = False) -> str:
    """What is to be said where a drain's fast maps stand though nothing moves; empty where none do. moving: also where
    something does.
    """
    now = found(view, FAST_MAPS)
    claiming = [drain for drain in drains if has_interval_claim(drain)]
    standing = next((drain for drain in claiming if _stands(drain, now)), None)
    if standing is None or (not moving and any(drain.state in MOVING for drain in claiming)):
        return ""
    return describe_standing(now, standing.saved[FAST_MAPS], f"drain {standing.id}")


def describe_standing(value: str, was: str, setter: str) -> str:
    """What stands, by whom, and the command that gives it back."""
    back = (
        f"config rm mon {PROPOSE_INTERVAL}" if was == ABSENT else f"config set mon {PROPOSE_INTERVAL} {was}"
    )
    return f"{PROPOSE_INTERVAL} of the monitors stands at {value} s, set by {setter}; `ceph {back}` gives it back"


def _stands(drain: Drain, now: str) -> bool:
    was = drain.saved[FAST_MAPS]
    written = {drain.ours[FAST_MAPS], drain.ours.get(Before(FAST_MAPS), was)}
    return now in written and not same(FAST_MAPS, now, was)


def name_interval(value: str) -> str:
    """For a journal."""
    return f"{PROPOSE_INTERVAL} {'as by default' if value == ABSENT else value}"

"""What is seen of all drains when the map has settled: what arrived, and what those that are over left standing, for
whoever comes next to put back.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from predrain.actions.cluster.port import Command
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import command_for, found, key_of, same
from predrain.actions.core.flags import stale_flags
from predrain.actions.core.situation import engaged
from predrain.actions.core.state_machine import ENDED
from predrain.actions.core.throttles import shared
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import Before, Setting


def leftovers(
    drains: Iterable[Drain], view: ClusterView, *, halted: bool = False
) -> tuple[tuple[str, Command], ...]:
    """Commands that put back, each with the drain that set it: flags of any drain, which never outlast a step, and
    throttles and balancer of ended ones, these not under a halt. What shows another value than ours is somebody
    else's by now and stays.
    """
    drains = tuple(drains)
    held = {key for drain in drains if engaged(drain) for key in drain.ours}
    back: dict[Setting, tuple[str, Command]] = {}
    for command in stale_flags(drains, view):
        owner = next(drain.id for drain in drains if key_of(command) in drain.ours)
        back[key_of(command)] = (owner, command)
    for drain in drains:
        if halted or drain.state not in ENDED:
            continue
        for key, value in drain.ours.items():
            was = drain.saved.get(key)
            if was is None or isinstance(key, Before) or not shared(key) or key in held or key in back:
                continue
            now = found(view, key)
            if same(key, now, value) and not same(key, now, was):
                back[key] = (drain.id, command_for(key, was))
    return tuple(back.values())


def arrived(drains: Iterable[Drain], view: ClusterView, attempts: Container[Setting]) -> frozenset[Setting]:
    """Keys of `attempts` that the map shows as a drain set them, or whose drain a person stopped or must help, for it
    begins anew. A cancel that broke does not, so that what the mon always refuses is given up in the end.
    """
    return frozenset(
        key
        for drain in drains
        for key, value in drain.ours.items()
        if key in attempts and (_begins_anew(drain) or same(key, found(view, key), value))
    )


def _begins_anew(drain: Drain) -> bool:
    stopped = drain.state in (DrainState.PAUSED, DrainState.FAILED)
    return stopped and drain.resume_to is not DrainState.CANCELLING

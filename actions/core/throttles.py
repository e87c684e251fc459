"""Throttles and the balancer: settings of the whole cluster that a drain holds, shares with other
drains, and gives back.

In force is what the OSDs' reservations say, not what is configured (ceph.md b). What somebody else sets while a drain
holds it is theirs: it stays, and is not given back over their head.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from predrain.actions.cluster.port import Command
from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import ABSENT, command_for, found, same
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.throttle_options import BACKFILLS_CAP, Grip, above_cap, grip, lowered_to
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import OsdId
from predrain.data.setting import BalancerSwitch, Before, ConfigOption, Setting, Yielded, strip_note

_BALANCER = BalancerSwitch()


def shared(key: Setting) -> bool:
    """Whether a setting belongs to the whole cluster, not to one drain; also a note on such a one."""
    return isinstance(strip_note(key), BalancerSwitch | ConfigOption)


def wanted(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, tuple[str, str]]:
    """Shared keys that this drain must hold: key -> (as it was before any drain touched it, as it
    must be).
    """
    holders = (drain, *context.others(drain))
    balancer = next(
        (
            holder.saved[_BALANCER]
            for holder in holders
            if _BALANCER in holder.ours.keys() & holder.saved.keys()
        ),
        found(view, _BALANCER),
    )
    held: dict[Setting, tuple[str, str]] = {_BALANCER: (balancer, "off")} if balancer != "off" else {}
    settings = _operators(view, holders)
    for name, value in lowered_to(view, settings).items():
        key = ConfigOption(name)
        if not any(Yielded(key) in holder.ours for holder in holders):
            held[key] = (settings.get(key.row, ABSENT), value)
    return held


def lower_settings(
    view: ClusterView,
    drain: Drain,
    policy: Policy,
    context: Context,
    sent: Mapping[Setting, str],
    *,
    trouble: bool,
) -> tuple[Drain, tuple[Command, ...]]:
    """The drain with its claims to all that it must hold, and the commands that hold it; `sent`: what this look's steps
    write. Under `trouble` that is not ours options keep the operator's values, and are lowered when it is over.
    """
    saved, ours = dict(drain.saved), dict(drain.ours)
    commands: list[Command] = []
    for key, (was, low) in wanted(view, drain, context).items():
        if context.memory.attempts.get(key, 0) >= policy.pin_attempts:
            continue  # the mon does not take it
        must = was if trouble and isinstance(key, ConfigOption) else low
        given_back = key in ours and same(key, ours[key], was) and not same(key, was, must)
        if drain.state is not DrainState.PREPARING and not given_back:
            continue
        saved[key] = was
        if {found(view, key), sent.get(key, must)} != {must}:
            commands.append(command_for(key, must))
        ours[key] = must
    return replace(drain, saved=saved, ours=ours), tuple(commands)


def lowered(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, str]:
    """Throttles that this drain holds down now, or whose giving back does not show, with the operator's values."""
    return {
        key: was
        for key, was in _held(drain).items()
        if isinstance(key, ConfigOption)
        and {drain.ours[key], found(view, key)} != {was}
        and not foreign(view, drain, key, context)
    }


def returned(view: ClusterView, drain: Drain) -> Drain:
    """The drain once throttles that it gave back show so: whoever lowers them from then on is somebody else, though
    it be to our value.
    """
    back = {Before(key) for key, was in _held(drain).items() if drain.ours[key] == was == found(view, key)}
    if back.isdisjoint(drain.ours):
        return drain
    return replace(drain, ours={key: value for key, value in drain.ours.items() if key not in back})


def to_give_back(view: ClusterView, drain: Drain, context: Context) -> dict[Setting, str]:
    """Shared keys to restore when this drain ends, with their values: not those that another engaged drain holds as
    well (and has not given back already), nor what somebody else has set since.
    """
    kept = {
        key
        for other in context.others(drain)
        for key, was in _held(other).items()
        if not same(key, other.ours[key], was)
    }
    return {
        key: was
        for key, was in _held(drain).items()
        if key not in kept and not same(key, found(view, key), was) and not foreign(view, drain, key, context)
    }


def foreign(view: ClusterView, drain: Drain, key: Setting, context: Context) -> bool:
    """Whether an option holds what neither the drain set or found nor another one set: somebody else's hand."""
    if not isinstance(key, ConfigOption):
        return False
    known = {drain.ours.get(key), drain.ours.get(Before(key)), drain.saved.get(key)}
    return found(view, key) not in known | {other.ours.get(key) for other in context.others(drain)}


def yielded(view: ClusterView, drain: Drain, context: Context) -> Drain:
    """The drain without a claim to the options that somebody else has set since."""
    theirs = [key for key in _held(drain) if foreign(view, drain, key, context)]
    if not theirs:
        return drain
    gone = {name for key in theirs for name in (key, Before(key))}
    ours = {key: value for key, value in drain.ours.items() if key not in gone}
    return replace(drain, ours={**ours, **{Yielded(key): found(view, key) for key in theirs}})


def unheld(view: ClusterView, osds: Collection[OsdId]) -> str | None:
    """Why the throttle cannot be relied on at these OSDs, as the end of a sentence; None when it holds.

    Without it one PG moves at a time.
    """
    if grip(view) is Grip.NONE:
        return Grip.NONE.value
    serving = sorted(osd for osd in osds if osd in view.osds and view.osds[osd].up)
    above = {osd: n for osd in serving if (n := view.backfills_in_force.get(osd, 0)) > BACKFILLS_CAP}
    if above:
        worst = max(above, key=lambda osd: (above[osd], -osd))
        return f"{above[worst]} backfills at once are in force at osd.{worst}, cap {BACKFILLS_CAP}"
    if rows := above_cap(view):
        return f"{rows[0]} passes over what is set for all OSDs"
    unread = [osd for osd in serving if osd not in view.backfills_in_force]
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        return f"the reservations of osd.{unread[0]}{more} were not read, so what is in force is not verified"
    return None


def _held(drain: Drain) -> dict[Setting, str]:
    return {key: drain.saved[key] for key in drain.ours if shared(key) and key in drain.saved}


def _operators(view: ClusterView, holders: Collection[Drain]) -> Mapping[str, str]:
    """The mon's config as it was before any drain touched it."""
    settings = dict(view.settings)
    for key, was in ((k, w) for holder in reversed(tuple(holders)) for k, w in _held(holder).items()):
        if isinstance(key, ConfigOption):
            settings.pop(key.row, None)
            if was != ABSENT:
                settings[key.row] = was
    return settings

"""The values that a drain found and the values that it set, under the same settings.

The found values are the way back; the set values prove who changed a setting. `Drain.saved` holds the values
as found and `Drain.ours` the values as set, by setting (data.setting):
- override, CRUSH weight and primary affinity: `1.0`
- upmap item: `12>40 7>9`, or empty
- option: `8`, or `-` if the mon had no value
- balancer: `on`, `off`, or `-` if the mon had no value (it is on then)
- flag: `on` while a step of ours may have left it set

The claims to the monitors' interval between two maps (actions.controller.fast_maps) stand at the end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from predrain.actions.cluster.cluster_port import (
    Balancer,
    Command,
    CrushReweight,
    DeviceLight,
    PrimaryAffinity,
    PublishLife,
    RemoveUpmap,
    Reweight,
    SetFlag,
    SetOption,
    SetUpmap,
    WithdrawLife,
)
from predrain.actions.cluster.cluster_view import BALANCER, PROPOSE_INTERVAL, ClusterView, Osd
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import PgId
from predrain.data.setting import (
    BalancerSwitch,
    ConfigOption,
    DeviceLife,
    LocatingLight,
    OsdAffinity,
    OsdCrushWeight,
    OsdFlag,
    OsdOverride,
    OsdSetting,
    Setting,
    UpmapItem,
    ValueBefore,
    YieldedValue,
)

Pairs = tuple[tuple[int, int], ...]
ABSENT = "-"
FAST_MAPS = ConfigOption(PROPOSE_INTERVAL, "mon")
"""The monitors' interval between two maps (actions.controller.fast_maps)."""


def write_pairs(pairs: Pairs) -> str:
    """Format pairs as `12>40 7>9`; no pairs give an empty string."""
    return " ".join(f"{old}>{new}" for old, new in pairs)


@lru_cache(maxsize=1 << 16)  # each poll reads the same lists many times
def read_pairs(text: str) -> Pairs:
    """Parse the output of `write_pairs`."""
    pairs = (item.partition(">") for item in text.split())
    return tuple((int(old), int(new)) for old, _, new in pairs)


def collect_upmap_items(book: Mapping[Setting, str]) -> dict[PgId, Pairs]:
    """Return the pairs of every PG in a book (`saved` or `ours`)."""
    return {key.pg: read_pairs(value) for key, value in book.items() if isinstance(key, UpmapItem)}


def _write_number(value: str) -> str:
    """Return a number in our notation: the mon writes 0.25 as 0.250000. Other text is returned as it is."""
    try:
        return repr(float(value))
    except ValueError:
        return value


def key_of(command: Command) -> Setting:
    """Return the setting that a command writes."""
    match command:
        case SetUpmap(pg=pg) | RemoveUpmap(pg=pg):
            return UpmapItem(pg)
        case Reweight(osd=osd):
            return OsdOverride(osd)
        case CrushReweight(osd=osd):
            return OsdCrushWeight(osd)
        case PrimaryAffinity(osd=osd):
            return OsdAffinity(osd)
        case SetOption(name=name, section=section):
            return ConfigOption(name, section)
        case SetFlag(flag=flag):
            return OsdFlag(flag)
        case Balancer():
            return BalancerSwitch()
        case PublishLife(device=device) | WithdrawLife(device=device):
            return DeviceLife(device)
        case DeviceLight(device=device):
            return LocatingLight(device)


def value_of(command: Command) -> str:
    """Return the value that a command writes."""
    match command:
        case SetUpmap(pairs=pairs):
            return write_pairs(pairs)
        case RemoveUpmap():
            return ""
        case Reweight(weight=value) | CrushReweight(weight=value) | PrimaryAffinity(affinity=value):
            return repr(value)
        case SetOption(value=value):
            return ABSENT if value is None else value
        case Balancer(on=None):
            return ABSENT
        case SetFlag(on=on) | Balancer(on=on) | DeviceLight(on=on):
            return "on" if on else "off"
        case PublishLife(start=start, end=end):
            return f"{start:%Y-%m-%d}..{end:%Y-%m-%d}"
        case WithdrawLife():
            return ABSENT


def read_setting_value(view: ClusterView, key: Setting) -> str:
    """Return the value of a setting in the view. Raises TypeError for a setting that no map shows."""
    if isinstance(key, OsdSetting):
        osd = view.osds.get(key.osd)
        return ABSENT if osd is None else repr(_find_osd_value(osd, key))
    match key:
        case UpmapItem(pg=pg):
            return write_pairs(view.upmap_items.get(pg, ()))
        case ConfigOption():
            value = view.settings.get(key.setting_key, ABSENT)
            return _write_number(value) if key == FAST_MAPS else value
        case OsdFlag(name=name):
            return "on" if name in view.flags else "off"
        case BalancerSwitch():
            unset = view.balancer_active and f"mgr/{BALANCER}" not in view.settings
            return ABSENT if unset else "on" if view.balancer_active else "off"
        case _:
            raise TypeError(f"no map shows {key}")


def _find_osd_value(osd: Osd, key: OsdSetting) -> float:
    if isinstance(key, OsdOverride):
        return osd.override_when_up
    return osd.crush_weight if isinstance(key, OsdCrushWeight) else osd.primary_affinity


def is_same_setting_value(key: Setting, one: str, other: str) -> bool:
    """Return whether two values of a setting mean the same. Ceph keeps weights with a precision of 1/65536
    (16.16).
    """
    if isinstance(key, OsdSetting) and ABSENT not in (one, other):
        return abs(float(one) - float(other)) < 1.5 / 65536
    if isinstance(key, UpmapItem):
        return one == other or sorted(read_pairs(one)) == sorted(read_pairs(other))
    if key == FAST_MAPS:
        return _write_number(one) == _write_number(other)
    return one == other


def command_for(key: Setting, value: str) -> Command:
    """Return the command that writes `value` to a setting. Raises TypeError for a setting that no drain
    writes.
    """
    match key:
        case UpmapItem(pg=pg):
            pairs = read_pairs(value)
            return SetUpmap(pg, pairs) if pairs else RemoveUpmap(pg)
        case ConfigOption(name=name, section=section):
            return SetOption(name, None if value == ABSENT else value, section)
        case OsdFlag(name=name):
            return SetFlag(name, value == "on")
        case BalancerSwitch():
            return Balancer(None if value == ABSENT else value == "on")
        case OsdOverride(osd=osd):
            return Reweight(osd, float(value))
        case OsdCrushWeight(osd=osd):
            return CrushReweight(osd, float(value))
        case OsdAffinity(osd=osd):
            return PrimaryAffinity(osd, float(value))
        case _:
            raise TypeError(f"no drain writes {key}")


def is_in_map(view: ClusterView, key: Setting) -> bool:
    """Return whether the PG or OSD of a setting is in the map; always True for settings of the whole cluster."""
    if isinstance(key, UpmapItem):
        return key.pg in view.pgs
    return not isinstance(key, OsdSetting) or key.osd in view.osds


def is_explained_by_drain(drain: Drain, key: Setting, now: str) -> bool:
    """Return whether this drain explains the value that the map holds under a key.

    The drain explains it if it set the value, or if the mon has removed pairs from it by itself.
    """
    value = drain.ours[key]
    if is_same_setting_value(key, value, now):
        return True
    was = drain.ours.get(ValueBefore(key))
    if was is not None and is_same_setting_value(key, was, now):
        return True  # our last command did not arrive: it is sent again
    if isinstance(key, UpmapItem):
        # The mon removes pairs by itself (target out, source no longer chosen); it never adds any.
        known = {*read_pairs(value), *read_pairs(drain.saved.get(key, "")), *read_pairs(was or "")}
        return set(read_pairs(now)) <= known
    return False


def is_ours(drains: Iterable[Drain], key: Setting, now: str) -> bool:
    """Return whether `drains` together explain the value that the map holds under a key.

    Several drains may move one PG in turn. The list of pairs that each one writes contains those of the
    others. All their books together then explain a list that no single one explains.
    """
    claims = [drain for drain in drains if key in drain.ours]
    if any(is_explained_by_drain(drain, key, now) for drain in claims):
        return True
    if not claims or not isinstance(key, UpmapItem):
        return False
    values = (
        book.get(name, "")
        for drain in claims
        for book in (drain.ours, drain.saved)
        for name in (key, ValueBefore(key))
    )
    return set(read_pairs(now)) <= {pair for value in values for pair in read_pairs(value)}


def find_base(drains: Iterable[Drain], key: Setting, now: str) -> str | None:
    """Return the value that a key had before the first of `drains` wrote it; None if none of them claims the
    key.

    All claims name the same value, with two exceptions. Another person or process may have written between
    two of them; then the last writer knows that value. In version 0.1.0 a drain recorded the value that
    another drain had set as found.
    """
    claims = [drain for drain in drains if key in drain.ours and key in drain.saved]

    def rank_claim(drain: Drain) -> tuple[bool, bool, datetime, str]:
        found = drain.saved[key]
        sent = any(
            other is not drain
            and is_same_setting_value(key, other.ours[key], found)
            and not is_same_setting_value(key, other.saved[key], found)
            for other in claims
        )
        return sent, not is_explained_by_drain(drain, key, now), drain.created_at, drain.id

    return min(claims, key=rank_claim).saved[key] if claims else None


def claim_settings(
    drain: Drain,
    view: ClusterView,
    commands: Collection[Command],
    pgs: Collection[PgId] = (),
    others: Collection[Drain] = (),
    dropped: Collection[PgId] = (),
) -> Drain:
    """Return the drain as it must be stored before `commands` are sent, which change the mapping of `pgs`.

    The first found value is kept and never overwritten. A value that `others`, the other drains under way,
    had set does not count as found. `dropped`: PGs whose upmap items the mon drops because of the commands.
    The drain claims these items as they stand, so that they come back when it is cancelled.
    """
    saved = dict(drain.saved)
    ours = {
        key: value
        for key, value in drain.ours.items()
        if not (
            isinstance(key, ValueBefore)
            and is_same_setting_value(
                key.setting, drain.ours[key.setting], read_setting_value(view, key.setting)
            )
        )
    }

    def claim_key(key: Setting) -> str:
        now = read_setting_value(view, key)
        is_upmap = isinstance(key, UpmapItem)
        inherited = find_base(others, key, now) if is_upmap and is_ours(others, key, now) else None
        saved.setdefault(key, now if inherited is None else inherited)
        return now

    for command in commands:
        key = key_of(command)
        if isinstance(command, SetFlag) and not command.on and key in ours:
            continue  # owned until the map is seen without it: the step may be cut short before this command
        now = claim_key(key)
        ours[key] = value_of(command)
        if not is_same_setting_value(key, now, ours[key]):
            ours[ValueBefore(key)] = now
    for pg in _find_pgs_left_to_crush(drain, view, commands, pgs):
        if (key := UpmapItem(pg)) not in saved:
            claim_key(key)
            ours[key] = ""
    for pg in dropped:
        if (key := UpmapItem(pg)) not in saved:
            ours[key] = claim_key(key)
    return replace(drain, saved=saved, ours=ours)


def _find_pgs_left_to_crush(
    drain: Drain, view: ClusterView, commands: Collection[Command], pgs: Collection[PgId]
) -> frozenset[PgId]:
    """Return the PGs that a weight change leaves to CRUSH.

    The mon removes their upmap items that name that OSD, or they move although no plan names them. The drain
    owns them as if it had removed the upmap items itself.
    """
    weighed = {int(command.osd) for command in commands if isinstance(command, Reweight | CrushReweight)}
    if not weighed:
        return frozenset()
    upmaps = (pg for pg, pairs in view.upmap_items.items() if any(weighed & set(pair) for pair in pairs))
    planned = {move.pg for move in drain.plan.moves} if drain.plan else set()
    return frozenset(upmaps) | (frozenset(pgs) - planned)


MOVING = frozenset({DrainState.DRAINING, DrainState.CANCELLING})
"""States in which PGs may move."""


def has_interval_claim(drain: Drain) -> bool:
    """Return whether the drain claims the monitors' interval."""
    return FAST_MAPS in drain.ours and FAST_MAPS in drain.saved


def holds_down(drain: Drain) -> bool:
    """Return whether the drain has set the interval and has not given it back."""
    return has_interval_claim(drain) and not is_same_setting_value(
        FAST_MAPS, drain.ours[FAST_MAPS], drain.saved[FAST_MAPS]
    )


def release_interval(drain: Drain, theirs: str | None = None) -> Drain:
    """Return the drain without its claim. `theirs` is the value that another party has set, which stays from
    now on.
    """
    keys = {FAST_MAPS, ValueBefore(FAST_MAPS)}
    ours = {key: value for key, value in drain.ours.items() if key not in keys}
    if theirs is not None:
        ours[YieldedValue(FAST_MAPS)] = theirs
    saved = {key: value for key, value in drain.saved.items() if key != FAST_MAPS}
    return replace(drain, ours=ours, saved=saved)


def claim_interval(drain: Drain, value: str, was: str, now: str) -> Drain:
    """Return the drain as it must be stored before `value` is set, or before `was` is given back if `value`
    is `was`.
    """
    ours = {key: text for key, text in drain.ours.items() if key != ValueBefore(FAST_MAPS)}
    ours[FAST_MAPS] = value
    if not is_same_setting_value(FAST_MAPS, now, value):
        ours[ValueBefore(FAST_MAPS)] = now
    return replace(drain, saved={**drain.saved, FAST_MAPS: was}, ours=ours)


def follow_setting(drain: Drain, now: str) -> Drain:
    """Return the drain after a poll that found the value `now`.

    A value that arrived needs no proof any more. A value that was given back is no claim. A value that
    another party has set belongs to that party.
    """
    if not has_interval_claim(drain):
        return drain
    value, was = drain.ours[FAST_MAPS], drain.saved[FAST_MAPS]
    before = drain.ours.get(ValueBefore(FAST_MAPS))
    on_its_way = (
        before is not None
        and is_same_setting_value(FAST_MAPS, now, before)
        and not is_same_setting_value(FAST_MAPS, now, value)
    )
    if on_its_way:
        return drain
    if not is_same_setting_value(FAST_MAPS, now, value):
        return release_interval(drain, theirs=now)
    if is_same_setting_value(FAST_MAPS, value, was):
        return release_interval(drain)
    return drain if before is None else claim_interval(drain, value, was, now)


def describe_left(view: ClusterView, drains: Iterable[Drain], *, moving: bool = False) -> str:
    """Describe a drain's fast maps that are still set while nothing moves; empty if there are none.

    moving: describe them also while PGs move.
    """
    now = read_setting_value(view, FAST_MAPS)
    claiming = [drain for drain in drains if has_interval_claim(drain)]
    standing = next((drain for drain in claiming if _is_claim_in_force(drain, now)), None)
    if standing is None or (not moving and any(drain.state in MOVING for drain in claiming)):
        return ""
    return describe_standing(now, standing.saved[FAST_MAPS], f"drain {standing.id}")


def describe_standing(value: str, was: str, setter: str) -> str:
    """Describe the value in force, the drain or process that set it, and the command that gives it back."""
    back = (
        f"config rm mon {PROPOSE_INTERVAL}" if was == ABSENT else f"config set mon {PROPOSE_INTERVAL} {was}"
    )
    return f"{PROPOSE_INTERVAL} of the monitors stands at {value} s, set by {setter}; `ceph {back}` gives it back"


def _is_claim_in_force(drain: Drain, now: str) -> bool:
    was = drain.saved[FAST_MAPS]
    written = {drain.ours[FAST_MAPS], drain.ours.get(ValueBefore(FAST_MAPS), was)}
    return now in written and not is_same_setting_value(FAST_MAPS, now, was)


def name_interval(value: str) -> str:
    """Format the interval for a journal."""
    return f"{PROPOSE_INTERVAL} {'as by default' if value == ABSENT else value}"

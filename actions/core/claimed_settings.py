"""What a drain found and what it set, under the same settings: the way back, and the proof of who changed what.

Values of `Drain.saved` (as found) and `Drain.ours` (as set), by setting (data.setting): override, CRUSH weight and
primary affinity `1.0` · upmap item `12>40 7>9`, or empty · option `8`, or `-` where the mon had no value · balancer
`on`, `off`, or `-` where the mon had no value (it is on then) · flag `on` while a step of ours may have left it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from predrain.actions.cluster.port import (
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
from predrain.actions.cluster.view import BALANCER, PROPOSE_INTERVAL, ClusterView, Osd
from predrain.data.drain import Drain
from predrain.data.ids import PgId
from predrain.data.setting import (
    BalancerSwitch,
    Before,
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
)

Pairs = tuple[tuple[int, int], ...]
ABSENT = "-"
FAST_MAPS = ConfigOption(PROPOSE_INTERVAL, "mon")
"""The monitors' interval between two maps (actions.controller.fast_maps)."""


def write_pairs(pairs: Pairs) -> str:
    """`12>40 7>9`; empty for no pairs."""
    return " ".join(f"{old}>{new}" for old, new in pairs)


@lru_cache(maxsize=1 << 16)  # each look reads the same lists many times
def read_pairs(text: str) -> Pairs:
    """The inverse of `write_pairs`."""
    pairs = (item.partition(">") for item in text.split())
    return tuple((int(old), int(new)) for old, _, new in pairs)


def pinned(book: Mapping[Setting, str]) -> dict[PgId, Pairs]:
    """Every PG's pairs in a book (`saved` or `ours`)."""
    return {key.pg: read_pairs(value) for key, value in book.items() if isinstance(key, UpmapItem)}


def _write_number(value: str) -> str:
    """A number as we write it: the mon writes 0.25 as 0.250000."""
    try:
        return repr(float(value))
    except ValueError:
        return value


def key_of(command: Command) -> Setting:
    """The setting that a command writes."""
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
    """The value that a command writes."""
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


def found(view: ClusterView, key: Setting) -> str:
    """The value of a setting in the view. Raises TypeError for one that no map shows."""
    if isinstance(key, OsdSetting):
        osd = view.osds.get(key.osd)
        return ABSENT if osd is None else repr(_find_osd_value(osd, key))
    match key:
        case UpmapItem(pg=pg):
            return write_pairs(view.upmap_items.get(pg, ()))
        case ConfigOption():
            value = view.settings.get(key.row, ABSENT)
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


def same(key: Setting, one: str, other: str) -> bool:
    """Whether two values of a setting mean the same: weights to the 16.16 grain in which Ceph keeps them."""
    if isinstance(key, OsdSetting) and ABSENT not in (one, other):
        return abs(float(one) - float(other)) < 1.5 / 65536
    if isinstance(key, UpmapItem):
        return one == other or sorted(read_pairs(one)) == sorted(read_pairs(other))
    if key == FAST_MAPS:
        return _write_number(one) == _write_number(other)
    return one == other


def command_for(key: Setting, value: str) -> Command:
    """The command that writes `value` to a setting. Raises TypeError for one that no drain writes."""
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
    """Whether the PG or OSD of a setting is in the map; settings of the whole cluster always are."""
    if isinstance(key, UpmapItem):
        return key.pg in view.pgs
    return not isinstance(key, OsdSetting) or key.osd in view.osds


def explained(drain: Drain, key: Setting, now: str) -> bool:
    """Whether what the map holds under a key is our own doing, or the mon's tidying of it, and no
    stranger's.
    """
    value = drain.ours[key]
    if same(key, value, now):
        return True
    was = drain.ours.get(Before(key))
    if was is not None and same(key, was, now):
        return True  # our last command did not arrive: it is sent again
    if isinstance(key, UpmapItem):
        # The mon takes pairs away by itself (target out, source no longer chosen); it never adds any.
        known = {*read_pairs(value), *read_pairs(drain.saved.get(key, "")), *read_pairs(was or "")}
        return set(read_pairs(now)) <= known
    return False


def is_ours(drains: Iterable[Drain], key: Setting, now: str) -> bool:
    """Whether what the map holds under a key is the doing of some of `drains` together, or the mon's tidying of it.

    Several drains may send one PG on in turn. The list of pairs that each writes holds those of the others, so that it
    is explained by all their books together where no single one explains it.
    """
    claims = [drain for drain in drains if key in drain.ours]
    if any(explained(drain, key, now) for drain in claims):
        return True
    if not claims or not isinstance(key, UpmapItem):
        return False
    values = (
        book.get(name, "")
        for drain in claims
        for book in (drain.ours, drain.saved)
        for name in (key, Before(key))
    )
    return set(read_pairs(now)) <= {pair for value in values for pair in read_pairs(value)}


def find_base(drains: Iterable[Drain], key: Setting, now: str) -> str | None:
    """What others left under a key before the first of `drains` wrote it; None where none of them claims it.

    All claims name the same value, unless somebody else wrote between two of them (the last writer then knows it), or
    they are of version 0.1.0, where a drain took what another one had sent for what it found.
    """
    claims = [drain for drain in drains if key in drain.ours and key in drain.saved]

    def rank_claim(drain: Drain) -> tuple[bool, bool, datetime, str]:
        found = drain.saved[key]
        sent = any(
            other is not drain
            and same(key, other.ours[key], found)
            and not same(key, other.saved[key], found)
            for other in claims
        )
        return sent, not explained(drain, key, now), drain.created_at, drain.id

    return min(claims, key=rank_claim).saved[key] if claims else None


def booked(
    drain: Drain,
    view: ClusterView,
    commands: Collection[Command],
    pgs: Collection[PgId] = (),
    others: Collection[Drain] = (),
) -> Drain:
    """The drain as it must be stored before `commands` are sent, which change the mapping of `pgs`. What was found
    first is kept, never overwritten: what `others`, the drains under way beside it, had set is not taken for found.
    """
    saved = dict(drain.saved)
    ours = {
        key: value
        for key, value in drain.ours.items()
        if not (
            isinstance(key, Before) and same(key.setting, drain.ours[key.setting], found(view, key.setting))
        )
    }

    def claim_key(key: Setting) -> str:
        now = found(view, key)
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
        if not same(key, now, ours[key]):
            ours[Before(key)] = now
    for pg in _unpinned(drain, view, commands, pgs):
        if (key := UpmapItem(pg)) not in saved:
            claim_key(key)
            ours[key] = ""
    return replace(drain, saved=saved, ours=ours)


def _unpinned(
    drain: Drain, view: ClusterView, commands: Collection[Command], pgs: Collection[PgId]
) -> frozenset[PgId]:
    """PGs that a weight leaves to CRUSH: the mon takes their pins of that OSD away, or they move though no plan names
    them. They are the drain's as if it had unpinned them itself.
    """
    weighed = {int(command.osd) for command in commands if isinstance(command, Reweight | CrushReweight)}
    if not weighed:
        return frozenset()
    pins = (pg for pg, pairs in view.upmap_items.items() if any(weighed & set(pair) for pair in pairs))
    planned = {move.pg for move in drain.plan.moves} if drain.plan else set()
    return frozenset(pins) | (frozenset(pgs) - planned)

"""What a drain found and what it set, under the same keys: the way back, and the proof of who changed what.

Keys and values of `Drain.saved` (as found) and `Drain.ours` (as set):
`osd.3/reweight`: `1.0` · `osd.3/crush_weight`: `3.63` · `osd.3/affinity`: `1.0` · `upmap/3.1f`: `12>40 7>9`
or empty · `option/osd_max_backfills`: `8`, or `-` where the mon had no value (`option/mon/NAME` for one of the section
`mon`) · `balancer`: `on`, `off`, or `-` where the mon had no value (it is on then) · `flag/norebalance`: `on` while a
step of ours may have left it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from actions.cluster.port import (
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
from actions.cluster.view import BALANCER, PROPOSE_INTERVAL, ClusterView
from data.drain import Drain
from data.ids import OsdId, PgId

Pairs = tuple[tuple[int, int], ...]
ABSENT = "-"
BEFORE = "~"
"""Ends the key under which `ours` keeps the value before the last write, until the map shows the write."""
THEIRS = "!"
"""Ends the key under which `ours` notes that somebody else set an option while we held it: hands off."""


FAST_MAPS = f"option/mon/{PROPOSE_INTERVAL}"
"""The key of the monitors' interval between two maps (actions.fast_maps)."""


def upmap_key(pg: PgId) -> str:
    """The key of a PG's list of pairs."""
    return f"upmap/{pg}"


def is_pin(key: str) -> bool:
    """Whether a key is a PG's list of pairs (and not the mark of what stood before)."""
    return key.startswith("upmap/") and not key.endswith(BEFORE)


def write_pairs(pairs: Pairs) -> str:
    """`12>40 7>9`; empty for no pairs."""
    return " ".join(f"{old}>{new}" for old, new in pairs)


@lru_cache(maxsize=1 << 16)  # each look reads the same lists many times
def read_pairs(text: str) -> Pairs:
    """The inverse of `write_pairs`."""
    pairs = (item.partition(">") for item in text.split())
    return tuple((int(old), int(new)) for old, _, new in pairs)


def pinned(book: Mapping[str, str]) -> dict[PgId, Pairs]:
    """Every PG's pairs in a book (`saved` or `ours`)."""
    return {PgId(key[6:]): read_pairs(value) for key, value in book.items() if is_pin(key)}


def setting_of(key: str) -> str:
    """The mon's row behind the key of an option, as `ClusterView.settings` names it: `osd/osd_max_backfills`."""
    name = key.removeprefix("option/")
    return name if "/" in name else f"osd/{name}"


def _write_number(value: str) -> str:
    """A number as we write it: the mon writes 0.25 as 0.250000."""
    try:
        return repr(float(value))
    except ValueError:
        return value


def key_of(command: Command) -> str:
    """The key that a command writes."""
    match command:
        case SetUpmap(pg=pg) | RemoveUpmap(pg=pg):
            return upmap_key(pg)
        case Reweight(osd=osd):
            return f"osd.{osd}/reweight"
        case CrushReweight(osd=osd):
            return f"osd.{osd}/crush_weight"
        case PrimaryAffinity(osd=osd):
            return f"osd.{osd}/affinity"
        case SetOption(name=name, section=section):
            return f"option/{name}" if section == "osd" else f"option/{section}/{name}"
        case SetFlag(flag=flag):
            return f"flag/{flag}"
        case Balancer():
            return "balancer"
        case PublishLife(device=device) | WithdrawLife(device=device):
            return f"life/{device}"
        case DeviceLight(device=device):
            return f"light/{device}"


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


def found(view: ClusterView, key: str) -> str:
    """What the view holds under a key."""
    kind, _, name = key.partition("/")
    if kind == "upmap":
        return write_pairs(view.upmap_items.get(PgId(name), ()))
    if kind == "option":
        value = view.settings.get(setting_of(key), ABSENT)
        return _write_number(value) if key == FAST_MAPS else value
    if kind == "flag":
        return "on" if name in view.flags else "off"
    if kind == "balancer":
        unset = view.balancer_active and f"mgr/{BALANCER}" not in view.settings
        return ABSENT if unset else "on" if view.balancer_active else "off"
    osd = view.osds.get(OsdId(int(kind.removeprefix("osd."))))
    if osd is None:
        return ABSENT
    values = {
        "reweight": osd.override_when_up,
        "crush_weight": osd.crush_weight,
        "affinity": osd.primary_affinity,
    }
    return repr(values[name])


def same(key: str, one: str, other: str) -> bool:
    """Whether two values of a key mean the same: weights to the 16.16 grain in which Ceph keeps them."""
    if key.startswith("osd.") and ABSENT not in (one, other):
        return abs(float(one) - float(other)) < 1.5 / 65536
    if key.startswith("upmap/"):
        return sorted(read_pairs(one)) == sorted(read_pairs(other))
    if key == FAST_MAPS:
        return _write_number(one) == _write_number(other)
    return one == other


def command_for(key: str, value: str) -> Command:
    """The command that writes `value` under `key`."""
    kind, _, name = key.partition("/")
    if kind == "upmap":
        pairs = read_pairs(value)
        return SetUpmap(PgId(name), pairs) if pairs else RemoveUpmap(PgId(name))
    if kind == "option":
        section, _, option = setting_of(key).partition("/")
        return SetOption(option, None if value == ABSENT else value, section)
    if kind == "flag":
        return SetFlag(name, value == "on")
    if kind == "balancer":
        return Balancer(None if value == ABSENT else value == "on")
    osd = OsdId(int(kind.removeprefix("osd.")))
    if name == "reweight":
        return Reweight(osd, float(value))
    return CrushReweight(osd, float(value)) if name == "crush_weight" else PrimaryAffinity(osd, float(value))


def explained(drain: Drain, key: str, now: str) -> bool:
    """Whether what the map holds under a key is our own doing, or the mon's tidying of it, and no
    stranger's.
    """
    value = drain.ours[key]
    if same(key, value, now):
        return True
    was = drain.ours.get(key + BEFORE)
    if was is not None and same(key, was, now):
        return True  # our last command did not arrive: it is sent again
    if key.startswith("upmap/"):
        # The mon takes pairs away by itself (target out, source no longer chosen); it never adds any.
        known = {*read_pairs(value), *read_pairs(drain.saved.get(key, "")), *read_pairs(was or "")}
        return set(read_pairs(now)) <= known
    return False


def is_ours(drains: Iterable[Drain], key: str, now: str) -> bool:
    """Whether what the map holds under a key is the doing of some of `drains` together, or the mon's tidying of it.

    Several drains may send one PG on in turn. The list of pairs that each writes holds those of the others, so that it
    is explained by all their books together where no single one explains it.
    """
    claims = [drain for drain in drains if key in drain.ours]
    if any(explained(drain, key, now) for drain in claims):
        return True
    if not claims or not is_pin(key):
        return False
    values = (
        book.get(name, "")
        for drain in claims
        for book in (drain.ours, drain.saved)
        for name in (key, key + BEFORE)
    )
    return set(read_pairs(now)) <= {pair for value in values for pair in read_pairs(value)}


def find_base(drains: Iterable[Drain], key: str, now: str) -> str | None:
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
        if not key.endswith(BEFORE) or not same(key[:-1], drain.ours[key[:-1]], found(view, key[:-1]))
    }

    def claim_key(key: str) -> str:
        now = found(view, key)
        inherited = find_base(others, key, now) if is_pin(key) and is_ours(others, key, now) else None
        saved.setdefault(key, now if inherited is None else inherited)
        return now

    for command in commands:
        key = key_of(command)
        if isinstance(command, SetFlag) and not command.on and key in ours:
            continue  # owned until the map is seen without it: the step may be cut short before this command
        now = claim_key(key)
        ours[key] = value_of(command)
        if not same(key, now, ours[key]):
            ours[key + BEFORE] = now
    for pg in _unpinned(drain, view, commands, pgs):
        if (key := upmap_key(pg)) not in saved:
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

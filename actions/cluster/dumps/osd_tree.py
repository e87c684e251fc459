"""`ceph osd crush dump`: the CRUSH map, and each OSD's location in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.cluster.dumps.dump_decoding import LARGEST, not_understood
from predrain.actions.crush.crush_dump import UnreadableCrushDump, crush_of_dump
from predrain.actions.crush.crush_map import CrushMap
from predrain.data.ids import HostName, OsdId

_NAME = "osd_crush_dump"
_DEEPEST = 64
_GRAIN = 65536


@dataclass(frozen=True, slots=True)
class OsdLocation:
    """The location of an OSD. If several roots hold it, the bucket whose number is closest to 0 counts, which was made
    first.
    """

    weight: float
    host: HostName | None
    rack: str | None
    above: frozenset[str]
    """The names of all buckets above it, in every tree."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The CRUSH map and every OSD's location in it."""

    crush: CrushMap
    places: Mapping[OsdId, OsdLocation]


def parse_crush_tree(raw: bytes) -> Tree:
    """Parse the CRUSH map and check that it can be walked. Raises NotUnderstood."""
    if len(raw) > LARGEST:
        raise not_understood(_NAME, f"it has {len(raw):,} bytes")
    try:
        crush = crush_of_dump(raw)
    except UnreadableCrushDump as error:
        raise not_understood(_NAME, str(error).rstrip(".")) from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise not_understood(_NAME, "it is no JSON that can be read") from error
    _check_crush_map(crush)
    return Tree(crush, _locate_osds(crush))


def _check_crush_map(crush: CrushMap) -> None:
    """Check that every named bucket exists, that none lies below itself, and that no weight is negative. Raises
    NotUnderstood.
    """
    settled: dict[int, int] = {}

    def depth(id_: int, above: int) -> int:
        if above > _DEEPEST:
            raise not_understood(_NAME, f"bucket {id_} lies below itself, or more than {_DEEPEST} deep")
        if id_ not in crush.buckets:
            raise not_understood(_NAME, f"bucket {id_} is named and not there")
        if id_ not in settled:
            below = [item for item in crush.buckets[id_].items if item < 0]
            settled[id_] = 1 + max((depth(item, above + 1) for item in below), default=0)
        return settled[id_]

    for bucket in crush.buckets.values():
        if bucket.id >= 0:
            raise not_understood(_NAME, f"bucket {bucket.name} has the number {bucket.id} of an OSD")
        if any(weight < 0 for weight in bucket.weights):
            raise not_understood(_NAME, f"bucket {bucket.name} holds a negative weight")
        depth(bucket.id, 0)
    for rule in crush.rules.values():
        for step in rule.steps:
            if step.op == "take" and step.item not in crush.buckets and step.item < 0:
                raise not_understood(_NAME, f"rule {rule.name} takes bucket {step.item}, which is not there")


def _locate_osds(crush: CrushMap) -> dict[OsdId, OsdLocation]:
    real = [bucket for bucket in crush.buckets.values() if "~" not in bucket.name]
    parents: dict[int, list[int]] = {}
    weights: dict[int, int] = {}
    for bucket in sorted(real, key=lambda bucket: -bucket.id):
        for item, weight in zip(bucket.items, bucket.weights, strict=True):
            parents.setdefault(item, []).append(bucket.id)
            weights.setdefault(item, weight)
    places: dict[OsdId, OsdLocation] = {}
    ways: dict[int, tuple[int, ...]] = {}
    for osd in (item for item in parents if item >= 0):
        host = rack = None
        way = _way_up(osd, parents, ways)
        for id_ in way:
            bucket = crush.buckets[id_]
            host = HostName(bucket.name) if host is None and bucket.type == "host" else host
            rack = bucket.name if rack is None and bucket.type == "rack" else rack
        names = frozenset(crush.buckets[id_].name for id_ in way)
        places[OsdId(osd)] = OsdLocation(weights[osd] / _GRAIN, host, rack, names)
    return places


def _way_up(item: int, parents: Mapping[int, list[int]], ways: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    """Return every bucket above an item, nearest first, and those of the oldest tree before others."""
    if item not in ways:
        above = parents.get(item, [])
        ways[item] = tuple(dict.fromkeys(id_ for one in above for id_ in (one, *_way_up(one, parents, ways))))
    return ways[item]

"""`ceph osd dump`: the OSD map with its OSDs, pools, upmap items, flags and ratios."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from predrain.actions.cluster.cluster_view import StretchMode
from predrain.actions.cluster.dumps.dump_decoding import decode_answer, not_understood, require_in_range
from predrain.actions.crush.pool import Pool
from predrain.data.ids import ClusterId, OsdId, PgId, parse_cluster_id
from predrain.data.outside_text import CLUSTER_NAME, clean_identifier

_NAME = "osd_dump"
_ERASURE = 3
_KINDS = (1, _ERASURE)
_MOST_PGS = 1 << 20
_MOST_SHARDS = 255
_FULL_WEIGHT = 0x10000
"""An override of 1.0 in the 16.16 fixed point of `osd_xinfo`."""
_HASHPSPOOL, _HASHPSPOOL_BIT = "hashpspool", 1
_LOCAL_FLAGS = frozenset({"noup", "nodown", "noout", "noin"})


class _OsdRow(msgspec.Struct):
    osd: int
    up: int
    weight: float
    primary_affinity: float = 1.0
    state: list[str] = []


class _ExtraRow(msgspec.Struct):
    osd: int
    old_weight: int = 0


class _PoolRow(msgspec.Struct):
    pool: int
    pool_name: str
    type: int
    size: int
    min_size: int
    crush_rule: int
    pg_num: int
    pg_num_target: int
    pg_placement_num: int
    pg_placement_num_target: int | None = None
    pg_num_pending: int | None = None
    erasure_code_profile: str = ""
    flags: int | None = None
    flags_names: str = _HASHPSPOOL


class _Pair(msgspec.Struct, rename={"source": "from", "target": "to"}):
    source: int
    target: int


class _Upmap(msgspec.Struct):
    pgid: str
    mappings: list[_Pair]


class _Stretch(msgspec.Struct):
    stretch_mode_enabled: bool = False
    degraded_stretch_mode: int = 0
    recovering_stretch_mode: int = 0


class _Dump(msgspec.Struct):
    epoch: int
    flags_set: list[str]
    full_ratio: float
    backfillfull_ratio: float
    nearfull_ratio: float
    require_min_compat_client: str
    require_osd_release: str
    pools: list[_PoolRow]
    osds: list[_OsdRow]
    pg_upmap: list[msgspec.Raw]
    pg_upmap_items: list[_Upmap]
    erasure_code_profiles: dict[str, dict[str, Any]] = {}
    crush_node_flags: dict[str, list[str]] = {}
    device_class_flags: dict[str, list[str]] = {}
    osd_xinfo: list[_ExtraRow] = []
    fsid: str = ""
    stretch_mode: _Stretch = msgspec.field(default_factory=_Stretch)


_DECODER = msgspec.json.Decoder(_Dump)


@dataclass(frozen=True, slots=True)
class MapOsd:
    """One OSD in the map."""

    up: bool
    reweight: float
    primary_affinity: float
    flags: frozenset[str]
    old_weight: float
    """If the mon has marked the OSD out: the override that the mon restores when the OSD comes up; else 0."""


@dataclass(frozen=True, slots=True)
class OsdDump:
    """The map without its CRUSH tree."""

    epoch: int
    fsid: ClusterId | None
    """The id that distinguishes the cluster from every other one; None if the dump holds none."""
    release: str
    """`require_osd_release`: the release whose features every OSD has."""
    osds: Mapping[OsdId, MapOsd]
    pools: Mapping[int, Pool]
    data_shards: Mapping[int, int]
    """Shards over which a pool spreads an object's bytes: k of an erasure code whose profile is known, else 1."""
    upmap_items: Mapping[PgId, tuple[tuple[int, int], ...]]
    has_full_upmaps: bool
    require_min_compat_client: str
    nearfull_ratio: float
    backfillfull_ratio: float
    full_ratio: float
    flags: frozenset[str]
    bucket_flags: Mapping[str, frozenset[str]]
    """Flags set on a CRUSH bucket, by its name; they hold for every OSD below it."""
    class_flags: Mapping[str, frozenset[str]]
    stretch_mode: StretchMode

    @property
    def pg_count(self) -> int:
        """Return the number of PGs of all pools."""
        return sum(pool.pg_num for pool in self.pools.values())


def osd_dump(raw: bytes) -> OsdDump:
    """Parse the map. Raises NotUnderstood."""
    dump = decode_answer(_NAME, raw, _DECODER)
    old_weights = {row.osd: row.old_weight for row in dump.osd_xinfo}
    osds = {OsdId(row.osd): _parse_osd_row(row, old_weights.get(row.osd, 0)) for row in dump.osds}
    pools = {row.pool: _parse_pool_row(row) for row in dump.pools}
    if len(osds) != len(dump.osds) or len(pools) != len(dump.pools):
        raise not_understood(_NAME, "an OSD or a pool is in it twice")
    return OsdDump(
        epoch=int(require_in_range(_NAME, "epoch", dump.epoch, 1)),
        fsid=parse_cluster_id(dump.fsid),
        release=dump.require_osd_release,
        osds=osds,
        pools=pools,
        data_shards={row.pool: _data_shards(row, dump.erasure_code_profiles) for row in dump.pools},
        upmap_items={
            PgId(row.pgid): tuple((pair.source, pair.target) for pair in row.mappings)
            for row in dump.pg_upmap_items
        },
        has_full_upmaps=bool(dump.pg_upmap),
        require_min_compat_client=dump.require_min_compat_client,
        nearfull_ratio=_parse_ratio("nearfull_ratio", dump.nearfull_ratio),
        backfillfull_ratio=_parse_ratio("backfillfull_ratio", dump.backfillfull_ratio),
        full_ratio=_parse_ratio("full_ratio", dump.full_ratio),
        flags=_parse_global_flags(dump.flags_set),
        bucket_flags={name: frozenset(flags) for name, flags in dump.crush_node_flags.items()},
        class_flags={name: frozenset(flags) for name, flags in dump.device_class_flags.items()},
        stretch_mode=_stretch_mode(dump.stretch_mode),
    )


def _stretch_mode(told: _Stretch) -> StretchMode:
    """Return the stretch mode. While it recovers the cluster is still degraded: the mon clears both states when every
    PG is complete at both sites.
    """
    if not told.stretch_mode_enabled:
        return StretchMode.OFF
    if told.recovering_stretch_mode:
        return StretchMode.RECOVERING
    return StretchMode.DEGRADED if told.degraded_stretch_mode else StretchMode.HEALTHY


def _parse_osd_row(row: _OsdRow, old_weight: int) -> MapOsd:
    require_in_range(_NAME, "an OSD's number", row.osd, 0, (1 << 31) - 2)
    return MapOsd(
        up=row.up == 1,
        reweight=require_in_range(_NAME, f"weight of osd.{row.osd}", row.weight, 0, 1),
        primary_affinity=require_in_range(
            _NAME, f"primary_affinity of osd.{row.osd}", row.primary_affinity, 0, 1
        ),
        flags=_LOCAL_FLAGS.intersection(row.state),
        old_weight=require_in_range(_NAME, f"old_weight of osd.{row.osd}", old_weight, 0, _FULL_WEIGHT)
        / _FULL_WEIGHT,
    )


def _parse_pool_row(row: _PoolRow) -> Pool:
    pool_name = clean_identifier(row.pool_name, CLUSTER_NAME.limit)
    name = f"pool {pool_name}"
    if row.type not in _KINDS:
        raise not_understood(_NAME, f"{name} is of type {row.type}, neither replicated nor erasure-coded")
    require_in_range(_NAME, f"the number of {name}", row.pool, 0)
    require_in_range(_NAME, f"size of {name}", row.size, 1, _MOST_SHARDS)
    require_in_range(_NAME, f"min_size of {name}", row.min_size, 0, row.size)
    require_in_range(_NAME, f"pg_num of {name}", row.pg_num, 0, _MOST_PGS)
    require_in_range(_NAME, f"pg_placement_num of {name}", row.pg_placement_num, 0, _MOST_PGS)
    return Pool(
        id=row.pool,
        name=pool_name,
        size=row.size,
        min_size=row.min_size,
        pg_num=row.pg_num,
        pg_num_target=row.pg_num_target,
        rule=row.crush_rule,
        erasure=row.type == _ERASURE,
        hashpspool=_has_hashpspool(row),
        pgp_num=row.pg_placement_num,
        pgp_num_target=row.pg_placement_num_target,
        pg_num_pending=row.pg_num_pending,
    )


def _has_hashpspool(row: _PoolRow) -> bool:
    if row.flags is None:
        return _HASHPSPOOL in row.flags_names.split(",")
    return bool(row.flags & _HASHPSPOOL_BIT)


def _data_shards(row: _PoolRow, profiles: Mapping[str, Mapping[str, Any]]) -> int:
    """Return over how many shards an object's bytes are spread. Without its profile a shard counts as the whole PG:
    the required capacity is then too large, never too small.
    """
    if row.type != _ERASURE:
        return 1
    told = str(profiles.get(row.erasure_code_profile, {}).get("k", ""))
    return int(told) if told.isascii() and told.isdigit() and 0 < int(told) <= row.size else 1


def _parse_ratio(field: str, value: float) -> float:
    return round(require_in_range(_NAME, field, value, 0, 1), 6)  # printed from 32 bits: 0.8500000238418579


def _parse_global_flags(flags: list[str]) -> frozenset[str]:
    """Return the flags. `osd set pause` is shown as its two halves, so either of them adds `pause`."""
    return frozenset(flags) | (frozenset({"pause"}) if {"pauserd", "pausewr"} & set(flags) else frozenset())

"""`ceph pg dump` in its forms: each PG's state, members and bytes, and when the mgr last received reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from predrain.actions.cluster.cluster_view import Pg
from predrain.actions.cluster.dumps.dump_decoding import decode_answer, not_understood, require_in_range
from predrain.actions.cluster.dumps.osd_dump import OsdDump
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.crush.pool import Pool
from predrain.data.identity_memo import holds_same_objects
from predrain.data.ids import PgId

_NOBODY = frozenset({ITEM_NONE, -1})
"""Values in `up` and `acting` that mark a missing OSD."""
_UNKNOWN = frozenset({"unknown"})
_PG_ID = re.compile(r"([0-9]{1,9})\.([0-9a-f]{1,8})")


class _Sums(msgspec.Struct, gc=False):
    num_bytes: int
    num_objects: int = 0
    num_objects_degraded: int = 0
    num_objects_unfound: int = 0


class PgRow(msgspec.Struct, gc=False):
    """One PG. A brief row has neither epoch nor sums."""

    pgid: str
    state: str
    up: tuple[int, ...]
    acting: tuple[int, ...]
    reported_epoch: int = 0
    stat_sum: _Sums | None = None


class _Map(msgspec.Struct):
    version: int | None = None
    stamp: str | None = None
    pg_stats: list[PgRow] | None = None


class _Dump(msgspec.Struct):
    pg_ready: bool
    pg_map: _Map | None = None
    pg_stats: list[PgRow] | None = None


# The first releases of Pacific print epochs in quotes.
_DECODER = msgspec.json.Decoder(_Dump, strict=False)


@dataclass(frozen=True, slots=True)
class MgrReportTime:
    """When the mgr last received a report of an OSD, by the mgr's own clock."""

    version: int
    stamp: datetime
    ready: bool


@dataclass(frozen=True, slots=True)
class PgRows:
    """PGs as the mgr printed them. `heard` is set if one command returned all."""

    rows: list[PgRow]
    ready: bool
    heard: MgrReportTime | None


def parse_report_time(name: str, raw: bytes) -> MgrReportTime:
    """Parse version and stamp. Raises NotUnderstood."""
    return _extract_report_time(name, decode_answer(name, raw, _DECODER)) or _raise_missing_field(
        name, "version and stamp"
    )


def parse_pg_rows(name: str, raw: bytes) -> PgRows:
    """Parse the PGs of any form of the dump, and of `pg ls-by-osd`. Raises NotUnderstood."""
    dump = decode_answer(name, raw, _DECODER)
    found = dump.pg_map.pg_stats if dump.pg_map is not None else dump.pg_stats
    if found is None:
        raise not_understood(name, "it has no pg_stats")
    return PgRows(found, dump.pg_ready, _extract_report_time(name, dump))


def _extract_report_time(name: str, dump: _Dump) -> MgrReportTime | None:
    if dump.pg_map is None or dump.pg_map.version is None or dump.pg_map.stamp is None:
        return None
    return MgrReportTime(
        version=int(require_in_range(name, "version", dump.pg_map.version, 0)),
        stamp=parse_ceph_time(name, "stamp", dump.pg_map.stamp),
        ready=dump.pg_ready,
    )


def _raise_missing_field(name: str, what: str) -> MgrReportTime:
    raise not_understood(name, f"it has no {what}")


def parse_ceph_time(name: str, field_name: str, text: str) -> datetime:
    """Parse a time as Ceph prints it, into UTC; `0.000000` (never) is 1970.

    Raises NotUnderstood, also for a time without a time zone, as releases before Octopus printed it.
    """
    if not text.strip("0.:- "):
        return datetime.fromtimestamp(0, UTC)
    try:
        parsed = datetime.fromisoformat(text)
        if parsed.tzinfo is None:
            raise not_understood(name, f"{field_name} {text!r} has no time zone")
        return parsed.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise not_understood(name, f"{field_name} {text[:40]!r} is no time") from error


@lru_cache(maxsize=4096)
def _parse_pg_states(text: str) -> frozenset[str]:
    return frozenset(text.split("+")) - {""}


@dataclass(slots=True)
class PgTable:
    """The PGs as last seen. A PG whose row has not changed stays the identical object; so does `pgs`, if none has."""

    pgs: dict[PgId, Pg] = field(default_factory=dict)
    unweighed: set[PgId] = field(default_factory=set)
    """PGs of which no whole row was ever seen, so that their bytes are unknown."""
    _pools: Mapping[int, Pool] = field(default_factory=dict)
    _named: set[int] = field(default_factory=set)
    """Every OSD that a PG names, and possibly some that no PG names any more."""

    def take_whole(self, name: str, found: Iterable[PgRow], osdmap: OsdDump) -> None:
        """Replace all PGs from whole rows. Raises NotUnderstood."""
        before = self._of_the_map(name, osdmap)
        self.pgs, self.unweighed = {}, set()
        self.pgs = _keep_unchanged(before, self._weighed(name, found, osdmap, before))

    def refine(self, name: str, found: Iterable[PgRow], osdmap: OsdDump) -> None:
        """Update some PGs from whole rows that were read after the brief ones. Raises NotUnderstood."""
        again = [row for row in found if row.pgid in self.pgs]
        weighed = self._weighed(name, again, osdmap, self.pgs)
        self.pgs = _keep_unchanged(self.pgs, {**self.pgs, **weighed})
        self.unweighed -= weighed.keys()

    def take_brief(self, name: str, found: Iterable[PgRow], osdmap: OsdDump) -> None:
        """Replace all PGs from brief rows. Bytes and reported epoch keep their last values. Raises NotUnderstood."""
        before, now = self._of_the_map(name, osdmap), dict[PgId, Pg]()
        for row in found:
            id_ = PgId(row.pgid)
            if id_ in now:
                raise not_understood(name, f"PG {id_} is in it twice")
            states = _parse_pg_states(row.state)
            old = before.get(id_)
            if old is None:
                pool = _pool_of(name, row.pgid, osdmap)
                if pool is None:
                    continue
                self.unweighed.add(id_)
                self._named.update(row.up, row.acting)
                now[id_] = Pg(id_, pool, states, row.up, row.acting, 0)
            elif old.states == states and old.up == row.up and old.acting == row.acting:
                now[id_] = old
            else:
                self._named.update(row.up, row.acting)
                now[id_] = replace(old, states=states, up=row.up, acting=row.acting)
        self.pgs = _keep_unchanged(before, now)
        self.unweighed &= now.keys()

    def _of_the_map(self, name: str, osdmap: OsdDump) -> dict[PgId, Pg]:
        """Return the PGs of the last poll that this map still has."""
        if osdmap.pools != self._pools:
            self._pools = osdmap.pools
            self.pgs = {id_: pg for id_, pg in self.pgs.items() if _pool_of(name, id_, osdmap) is not None}
        return self.pgs

    def _weighed(
        self, name: str, found: Iterable[PgRow], osdmap: OsdDump, before: Mapping[PgId, Pg]
    ) -> dict[PgId, Pg]:
        """Return PGs from whole rows. before: the map's PGs of the last poll. Raises NotUnderstood."""
        now: dict[PgId, Pg] = {}
        spread = osdmap.data_shards
        for row in found:
            id_ = PgId(row.pgid)
            if id_ in now:
                raise not_understood(name, f"PG {id_} is in it twice")
            old, sums = before.get(id_), row.stat_sum
            pool = old.pool if old is not None else _pool_of(name, row.pgid, osdmap)
            if pool is None:
                continue
            if sums is None or sums.num_bytes < 0 or sums.num_objects < 0 or row.reported_epoch < 0:
                raise not_understood(
                    name, f"PG {id_} has no bytes, or fewer than none (`ceph pg repair {id_}`)"
                )
            shard, states = -(-sums.num_bytes // spread[pool]), _parse_pg_states(row.state)
            if (
                old is not None
                and old.reported_epoch == row.reported_epoch
                and old.shard_bytes == shard
                and old.up == row.up
                and old.acting == row.acting
                and old.states == states
                and old.objects == sums.num_objects
                and old.degraded_objects == sums.num_objects_degraded
                and old.unfound_objects == sums.num_objects_unfound
            ):
                now[id_] = old
                continue
            self._named.update(row.up, row.acting)
            now[id_] = Pg(
                id_, pool, states, row.up, row.acting, shard,
                sums.num_objects, sums.num_objects_degraded, sums.num_objects_unfound, row.reported_epoch,
            )  # fmt: skip
        return now

    def has_complete_statistics(self, osdmap: OsdDump) -> bool:
        """Return whether the statistics describe the state of every PG of the map.

        The statistics are complete if no PG is missing, none names an OSD that the map does not have, the bytes of all
        are known, and at most a tenth are `unknown`. PGs are `unknown` when a mgr has just started.
        """
        if self.unweighed or len(self.pgs) != osdmap.pg_count:
            return False
        if not self._named <= osdmap.osds.keys() | _NOBODY:
            self._named = {osd for pg in self.pgs.values() for osd in (*pg.up, *pg.acting)}
        unknown = sum(1 for pg in self.pgs.values() if pg.states <= _UNKNOWN)
        return unknown * 10 <= len(self.pgs) and self._named <= osdmap.osds.keys() | _NOBODY


def _keep_unchanged(before: dict[PgId, Pg], now: dict[PgId, Pg]) -> dict[PgId, Pg]:
    """Return `before` if `now` has the same PGs, so that nobody reads them again."""
    return before if holds_same_objects(before, now) else now


def _pool_of(name: str, pgid: str, osdmap: OsdDump) -> int | None:
    """Return the pool, or None if the map does not have the PG (any more). Raises NotUnderstood."""
    found = _PG_ID.fullmatch(pgid)
    if found is None:
        raise not_understood(name, f"{pgid[:40]!r} is no PG")
    pool = osdmap.pools.get(int(found[1]))
    if pool is None or int(found[2], 16) >= pool.pg_num:
        return None
    return pool.id

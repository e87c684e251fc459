"""Dumps of a generated cluster, in the format and with the fields of a real one (Reef), to be read at full size."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from predrain.actions.cluster.cluster_port import Command, CommandResult, RemoveUpmap, Reweight, SetUpmap
from predrain.actions.cluster.dumps.raw_answers import RawAnswers, ReadCommand
from predrain.actions.crush.crush_map import CrushMap
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.placement.failure_domains import apply_upmap_pairs
from predrain.actions.simulator.cluster_spec import ClusterSpec, OsdSpec
from predrain.data.ids import PgId
from tests.actions.recordings import sample

Json = Any
_VERSION = "ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)"


def _printed(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@dataclass(slots=True)
class Dumped:
    """A quiet cluster that takes upmap items. A PG that an upmap item moves is on its way at one poll, and has arrived
    at the next poll.
    """

    spec: ClusterSpec
    start: datetime
    epoch: int = 1000
    version: int = 100
    upmaps: dict[PgId, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    reweights: dict[int, float] = field(default_factory=dict)
    _raw: dict[PgId, tuple[int, ...]] = field(default_factory=dict)
    _up: dict[PgId, tuple[int, ...]] = field(default_factory=dict)
    _acting: dict[PgId, tuple[int, ...]] = field(default_factory=dict)
    _moving: dict[PgId, int] = field(default_factory=dict)
    _whole: dict[PgId, bytes] = field(default_factory=dict)
    _brief: dict[PgId, bytes] = field(default_factory=dict)
    _still: dict[str, bytes] = field(default_factory=dict)
    _row: dict[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Place every PG and print every row once."""
        pools = {one.pool.id: one.pool for one in self.spec.pools}
        everything_in = {osd.id: 1.0 for osd in self.spec.osds}
        self._raw = place_pgs(self.spec.crush, pools, everything_in, {})
        self._up, self._acting = dict(self._raw), dict(self._raw)
        self._row = json.loads(sample("reef-degraded").answers.raw["pg_dump"])["pg_map"]["pg_stats"][0]
        for pg in self._raw:
            self._print(pg)
        self._still = {
            "mgr_dump": sample("reef-degraded").answers.raw["mgr_dump"],
            "status": _printed({"health": {"status": "HEALTH_OK", "checks": {}}, "progress_events": {}}),
            "config_dump": _printed([]),
            "versions": _printed({kind: {_VERSION: 3} for kind in ("mon", "mgr", "osd")}),
            "balancer_status": _printed({"active": False, "mode": "upmap"}),
            "osd_crush_dump": _crush(self.spec.crush),
            "osd_df": _printed({"nodes": [self._node(osd) for osd in self.spec.osds], "stray": []}),
            "osd_metadata": _printed([_metadata(osd) for osd in self.spec.osds]),
            "device_ls": _printed([_device(osd) for osd in self.spec.osds]),
        }

    def answer(self, questions: Iterable[ReadCommand], at: datetime) -> RawAnswers:
        """Let the PGs arrive that were on their way at the last poll, and return the answers to `questions`."""
        self.version += 5
        for pg in [pg for pg, since in self._moving.items() if since < self.version - 5]:
            del self._moving[pg]
            self._acting[pg] = self._up[pg]
            self._print(pg)
        raw = {
            question.name: answer
            for question in questions
            if (answer := self._answer(question, at)) is not None
        }
        return RawAnswers(at, raw)

    def apply(self, command: Command) -> CommandResult:
        """Set or remove an upmap item, or set a reweight. Every other command changes nothing but the epoch."""
        self.epoch += 1
        match command:
            case SetUpmap(pg=pg, pairs=pairs):
                self.upmaps[pg] = pairs
                self._move(pg, apply_upmap_pairs(self._raw[pg], pairs))
            case RemoveUpmap(pg=pg):
                self.upmaps.pop(pg, None)
                self._move(pg, self._raw[pg])
            case Reweight(osd=osd, weight=weight):
                self.reweights[osd] = weight
            case _:
                pass
        return CommandResult(True, "set", self.epoch)

    def _move(self, pg: PgId, up: tuple[int, ...]) -> None:
        self._up[pg], self._moving[pg] = up, self.version
        self._print(pg)

    def _answer(self, question: ReadCommand, at: datetime) -> bytes | None:
        kind, _, number = question.name.partition(".")
        match kind:
            case "osd_dump":
                return self._osd_dump()
            case "pg_sum":
                sums = {"version": self.version, "stamp": at.isoformat()}
                return _printed({"pg_ready": True, "pg_map": sums})
            case "pg_dump":
                return b'{"pg_ready":true,"pg_stats":[' + b",".join(self._whole.values()) + b"]}"
            case "pg_brief":
                return b'{"pg_ready":true,"pg_stats":[' + b",".join(self._brief.values()) + b"]}"
            case "pg_ls_by_osd":
                osd = int(number)
                named = (
                    self._whole[pg] for pg, up in self._up.items() if osd in up or osd in self._acting[pg]
                )
                return b'{"pg_ready":true,"pg_stats":[' + b",".join(named) + b"]}"
            case "config_show":
                return b"wpq"
            case _:
                return self._still.get(kind)

    def _print(self, pg: PgId) -> None:
        up, acting = self._up[pg], self._acting[pg]
        state = "active+clean" if up == acting else "active+remapped+backfilling"
        shards = next(one for one in self.spec.pools if str(one.pool.id) == pg.partition(".")[0])
        count = shards.shard_bytes * shards.data_shards
        members = {"up": list(up), "acting": list(acting), "up_primary": up[0], "acting_primary": acting[0]}
        sums = {**self._row["stat_sum"], "num_bytes": count, "num_objects": count >> 22}
        named = [f"{osd}({place})" for place, osd in enumerate(acting)]
        where = [{"shards": ",".join(named), "objects": count >> 22}]
        whole = {
            **self._row, "pgid": pg, "state": state, "reported_epoch": self.epoch, "stat_sum": sums,
            "avail_no_missing": named, "object_location_counts": where, **members,
        }  # fmt: skip
        self._whole[pg] = _printed(whole)
        self._brief[pg] = _printed({"pgid": pg, "state": state, **members})

    def _osd_dump(self) -> bytes:
        whole = json.loads(sample("reef-degraded").answers.raw["osd_dump"])
        pool, osd = whole["pools"][0], next(row for row in whole["osds"] if row["up"])
        profile = {"plugin": "jerasure", "k": "8", "m": "3"}
        whole |= {
            "epoch": self.epoch,
            "osds": [
                {**osd, "osd": one.id, "weight": self.reweights.get(one.id, 1.0)} for one in self.spec.osds
            ],
            "pools": [
                {
                    **pool, "pool": one.pool.id, "pool_name": one.pool.name, "size": one.pool.size,
                    "type": 3 if one.pool.erasure else 1, "min_size": one.pool.min_size,
                    "crush_rule": one.pool.rule, "pg_num": one.pool.pg_num, "pg_num_target": one.pool.pg_num,
                    "pg_placement_num": one.pool.pg_num, "pg_placement_num_target": one.pool.pg_num,
                    "pg_num_pending": one.pool.pg_num,
                    "erasure_code_profile": "wide" if one.pool.erasure else "",
                }
                for one in self.spec.pools
            ],
            "erasure_code_profiles": {"wide": profile},
            "pg_upmap_items": [
                {"pgid": pg, "mappings": [{"from": old, "to": new} for old, new in pairs]}
                for pg, pairs in self.upmaps.items()
            ],
            "pg_temp": [],
        }  # fmt: skip
        return _printed(whole)

    def _node(self, osd: OsdSpec) -> Json:
        node = next(
            one
            for one in json.loads(sample("reef-degraded").answers.raw["osd_df"])["nodes"]
            if one["id"] == 1
        )
        return {
            **node, "id": osd.id, "name": f"osd.{osd.id}",
            "kb": osd.size_bytes >> 10, "kb_used": int(0.6 * osd.size_bytes) >> 10,
        }  # fmt: skip


def _crush(crush: CrushMap) -> bytes:
    return _printed(
        {
            "devices": [
                {"id": osd, "name": f"osd.{osd}", "class": kind} for osd, kind in (crush.classes or {}).items()
            ],
            "buckets": [
                {
                    "id": one.id, "name": one.name, "type_name": one.type, "weight": sum(one.weights),
                    "alg": one.algorithm, "hash": "rjenkins1",
                    "items": [
                        {"id": item, "weight": weight, "pos": place}
                        for place, (item, weight) in enumerate(zip(one.items, one.weights, strict=True))
                    ],
                }
                for one in crush.buckets.values()
            ],
            "rules": [
                {
                    "rule_id": rule.id, "rule_name": rule.name,
                    "steps": [
                        {"op": step.op, "item": step.item, "num": step.item if step.op[:3] == "set" else step.num,
                         "type": step.type}
                        for step in rule.steps
                    ],
                }
                for rule in crush.rules.values()
            ],
            "tunables": {"choose_total_tries": 50, "chooseleaf_stable": 1},
            "choose_args": {},
        }
    )  # fmt: skip


def _device(osd: OsdSpec) -> Mapping[str, Json]:
    place = {"host": osd.host, "dev": f"sd{osd.id}", "path": ""}
    return {
        "devid": osd.device or f"VENDOR_MODEL_{osd.id:08d}",
        "location": [place],
        "daemons": [f"osd.{osd.id}"],
    }


def _metadata(osd: OsdSpec) -> Mapping[str, Json]:
    like = json.loads(sample("reef-degraded").answers.raw["osd_metadata"])[0]
    ids = f"sd{osd.id}={osd.device or f'VENDOR_MODEL_{osd.id:08d}'}"
    return {
        **like,
        "id": osd.id,
        "hostname": osd.host,
        "device_ids": ids,
        "bluestore_bdev_devices": f"sd{osd.id}",
    }

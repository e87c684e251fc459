"""Facts that were recorded once on a real cluster, and the simulated cluster that replays them.

A recording is one JSON file in `facts/`. Its `osd_dump` and `crush` are the answers of the real cluster before
the first step, so that the simulated cluster places its PGs on the same OSDs. A test in `tests/system/ceph` makes
each recording: `RECORD_FACTS=1` and `make test-ceph RELEASE=pacific`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from predrain.actions.cluster.dumps.osd_dump import osd_dump
from predrain.actions.crush.crush_dump import crush_of_dump
from predrain.actions.simulator import ClusterSpec, OsdSpec, PoolSpec, SimulatedCluster
from predrain.data.ids import HostName

FACTS = Path(__file__).parent / "facts"
_DISK_BYTES = 1 << 30


def read_fact(name: str) -> dict[str, Any]:
    """Return a recording."""
    found: dict[str, Any] = json.loads((FACTS / f"{name}.json").read_bytes())
    return found


def write_fact(name: str, document: dict[str, Any]) -> None:
    """Write a recording, with a line for each of its parts and for each entry of a list."""
    parts = []
    for key, value in document.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(f"  {json.dumps(entry)}" for entry in value) + "\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    FACTS.mkdir(exist_ok=True)
    (FACTS / f"{name}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def build_recorded_cluster(
    fact: dict[str, Any], *, shard_bytes: int = 1 << 20, object_bytes: int = 4 << 20
) -> SimulatedCluster:
    """Build the simulated cluster that has the recorded OSDs, pools, rules, overrides and upmap items."""
    crush = crush_of_dump(json.dumps(fact["crush"]).encode())
    dump = osd_dump(json.dumps(fact["osd_dump"]).encode())
    hosts = {
        osd: HostName(bucket.name)
        for bucket in crush.buckets.values()
        if bucket.type == "host" and "~" not in bucket.name
        for osd in bucket.items
    }
    classes = crush.classes or {}
    spec = ClusterSpec(
        name="recorded",
        osds=tuple(
            OsdSpec(osd, hosts[osd], None, _DISK_BYTES, device_class=classes.get(osd, "hdd"))
            for osd in sorted(dump.osds)
        ),
        pools=tuple(
            PoolSpec(pool, shard_bytes, spread=0.0, object_bytes=object_bytes) for pool in dump.pools.values()
        ),
        crush=crush,
        upmap_items=dump.upmap_items,
        release=dump.release,
    )
    return SimulatedCluster(spec, seed=1)


def keep_map(osd_dump_answer: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of `osd dump` that a recording needs."""
    whole = {
        key: osd_dump_answer[key]
        for key in (
            "epoch", "flags_set", "full_ratio", "backfillfull_ratio", "nearfull_ratio",
            "require_min_compat_client", "require_osd_release", "pg_upmap", "pg_upmap_items",
        )
    }  # fmt: skip
    pool_keys = (
        "pool", "pool_name", "type", "size", "min_size", "crush_rule", "pg_num", "pg_num_target",
        "pg_placement_num", "pg_placement_num_target", "pg_num_pending", "flags",
    )  # fmt: skip
    whole["pools"] = [{key: pool[key] for key in pool_keys} for pool in osd_dump_answer["pools"]]
    osd_keys = ("osd", "up", "weight", "primary_affinity")
    whole["osds"] = [{key: osd[key] for key in osd_keys} for osd in osd_dump_answer["osds"]]
    return whole


def list_pg_num_steps(maps: list[dict[str, Any]]) -> list[tuple[int, int, list[str]]]:
    """Return `pg_num`, `pg_num_pending` and the PGs with upmap items, without the steps of `pgp_num` alone.

    The steps of `pgp_num` between two merges depend on the time at which PGs report.
    """
    found: list[tuple[int, int, list[str]]] = []
    for shown in maps:
        step = (shown["pg_num"], shown["pg_num_pending"], shown["upmapped"])
        if not found or found[-1] != step:
            found.append(step)
    return found

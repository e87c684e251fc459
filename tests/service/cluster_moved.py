"""A recorded cluster that obeys: a PG goes where its upmap items send it, and its answers are always of this moment.

    python -m tests.service.cluster_moved RECORDING SHARED -I -c PROGRAM

The OSDs and the sizes are those of the recording, and CRUSH places the PGs on the map as it was changed. A change of
the map or of a setting stands in the next answer of every process. A PG that moves is `backfilling` for
BACKFILL_SECONDS, and is served by its old members meanwhile.
"""

from __future__ import annotations

import errno
import json
import sys
import time
from datetime import UTC, datetime
from typing import Any

from predrain.actions.cluster.dumps.osd_dump import osd_dump
from predrain.actions.cluster.dumps.osd_tree import parse_crush_tree
from predrain.actions.crush.pg_placement import place_pgs
from predrain.data.ids import PgId
from tests.service.cluster_played import Cluster, play_cluster, shared

BACKFILL_SECONDS = 1.0
Json = dict[str, Any]


def fresh_changes(epoch: int) -> Json:
    """Return the changes of a cluster that no command has changed yet.

    `moves` has, by PG, the time at which its move began and its acting set before that.
    """
    return {
        "epoch": epoch, "upmaps": {}, "weights": {}, "flags": {}, "options": {}, "balancer": None, "moves": {},
    }  # fmt: skip


class MovedCluster(Cluster):
    """rados.Rados of a cluster that obeys."""

    def _recorded(self, name: str, asked: Json) -> tuple[int, bytes, str]:
        with shared(self.path) as state:
            changes = state.setdefault("changes", fresh_changes(self._read("osd_dump")["epoch"]))
            if "format" not in asked:
                state["sent"].append(asked)
                return self._obey(changes, asked)
        if name == "osd_stat":
            return 0, json.dumps({"epoch": changes["epoch"]}).encode(), ""
        answer = getattr(self, f"_show_{name}", None)
        if answer is None:
            return super()._recorded(name, asked)
        return 0, json.dumps(answer(changes)).encode(), ""

    def _read(self, name: str) -> Any:
        return json.loads(self.raw[name])

    def _obey(self, changes: Json, asked: Json) -> tuple[int, bytes, str]:
        before = {row["pgid"]: row for row in self._pg_rows(changes)}
        match asked:
            case {"prefix": "osd pg-upmap-items", "pgid": pg, "id": ids}:
                changes["upmaps"][pg] = list(zip(ids[::2], ids[1::2], strict=True))
            case {"prefix": "osd rm-pg-upmap-items", "pgid": pg}:
                changes["upmaps"].pop(pg, None)
            case {"prefix": "osd reweight", "id": osd, "weight": weight}:
                changes["weights"][str(osd)] = weight
            case {"prefix": "osd set" | "osd unset" as prefix, "key": flag}:
                changes["flags"][flag] = prefix == "osd set"
            case {"prefix": "config set", "who": who, "name": name, "value": value}:
                changes["options"][f"{who} {name}"] = value
            case {"prefix": "config rm", "who": who, "name": name}:
                changes["options"][f"{who} {name}"] = None
            case {"prefix": "balancer on" | "balancer off" as prefix}:
                changes["balancer"] = prefix == "balancer on"
            case {"prefix": "osd pg-temp"}:
                pass  # a PG that moves is always served by its old members
            case _:
                return -errno.EINVAL, b"", "not played"
        changes["epoch"] += 1
        for pg, up in self._place(changes).items():
            if list(up) != before[pg]["up"]:
                changes["moves"][pg] = {"at": time.time(), "acting": before[pg]["acting"]}
        return 0, b"", ""

    def _place(self, changes: Json) -> dict[PgId, tuple[int, ...]]:
        """Return `up` of every PG by the map as it is now."""
        osdmap = osd_dump(json.dumps(self._show_osd_dump(changes)).encode())
        weights = {osd: row.reweight for osd, row in osdmap.osds.items()}
        tree = parse_crush_tree(self.raw["osd_crush_dump"]).crush
        return place_pgs(tree, osdmap.pools, weights, osdmap.upmap_items)

    def _pg_rows(self, changes: Json) -> list[Json]:
        rows: list[Json] = self._read("pg_dump")["pg_map"]["pg_stats"]
        placed = self._place(changes)
        for row in rows:
            row["reported_epoch"] = changes["epoch"]
            row["up"] = row["acting"] = list(placed[row["pgid"]])
            move = changes["moves"].get(row["pgid"])
            if move and time.time() < move["at"] + BACKFILL_SECONDS and row["up"] != move["acting"]:
                row["acting"] = move["acting"]
                row["state"] = "active+remapped+backfilling"
            row["up_primary"], row["acting_primary"] = row["up"][0], row["acting"][0]
        return rows

    def _show_pg_dump(self, changes: Json) -> Json:
        now = datetime.now(UTC)
        times = {"version": int(now.timestamp()), "stamp": f"{now:%Y-%m-%dT%H:%M:%S.%f}+0000"}
        return {"pg_ready": True, "pg_map": {**times, "pg_stats": self._pg_rows(changes)}}

    _show_pg_sum = _show_pg_dump

    def _show_osd_dump(self, changes: Json) -> Json:
        whole: Json = self._read("osd_dump")
        whole["epoch"] = changes["epoch"]
        whole["pg_upmap_items"] = [
            {"pgid": pg, "mappings": [{"from": old, "to": new} for old, new in pairs]}
            for pg, pairs in changes["upmaps"].items()
        ]
        for row in whole["osds"]:
            row["weight"] = changes["weights"].get(str(row["osd"]), row["weight"])
            row["in"] = int(row["weight"] > 0)
        flags = set(whole["flags_set"]) | {flag for flag, on in changes["flags"].items() if on}
        whole["flags_set"] = sorted(flags - {flag for flag, on in changes["flags"].items() if not on})
        return whole

    def _show_osd_df(self, changes: Json) -> Json:
        whole: Json = self._read("osd_df")
        members = [osd for row in self._pg_rows(changes) for osd in row["acting"]]
        for node in whole["nodes"]:
            if node["id"] >= 0:
                node["kb_used"] = node["kb_used"] * members.count(node["id"]) // max(node["pgs"], 1)
                node["pgs"] = members.count(node["id"])
        return whole

    def _show_config_dump(self, changes: Json) -> list[Json]:
        rows = {f"{row['section']} {row['name']}": row for row in self._read("config_dump")}
        for key, value in changes["options"].items():
            who, name = key.split()
            rows[key] = {"section": who, "name": name, "value": value, "mask": ""}
        return [row for row in rows.values() if row["value"] is not None]

    def _show_balancer_status(self, changes: Json) -> Json:
        whole: Json = self._read("balancer_status")
        return whole if changes["balancer"] is None else {**whole, "active": changes["balancer"]}


if __name__ == "__main__":
    play_cluster(MovedCluster, sys.argv)

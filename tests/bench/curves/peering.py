"""The cost of moving one PG for the operations on it: `python -m tests.bench.curves.peering --release reef`.

The cluster has 5 hosts of one OSD, and 32 PGs of three copies with short logs, so that a new member is filled by
backfill. Clients read and write on every PG. PGs are moved one by one: by the upmap item alone, and by the upmap item
with `osd pg-temp` in the same map. With --fast they are also moved under a `paxos_propose_interval` of 0.25 s, the
least that `policy.fast_maps_seconds` takes, and of 0.1 s. A move takes about 10 s. Root is needed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from predrain.actions.cluster.cluster_port import Cluster, SetUpmap
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.mechanics.step_batch import in_turn
from predrain.data.ids import PgId
from tests.bench.curves.load import Clients
from tests.system.ceph.minicluster import MiniCluster

SHORT_LOGS = """
osd_heartbeat_grace = 20
osd_min_pg_log_entries = 10
osd_max_pg_log_entries = 10
osd_pg_log_trim_min = 1
osd_pg_log_dups_tracked = 10
"""
SLOW_MS = 250.0
_POOL, _OBJECTS, _RATE = "moved", 256, 250.0


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one PG's move."""

    pg: str
    intervals: int
    """The number of times that the PG peered."""
    worst_ms: float
    slow: int
    """Operations over 250 ms."""
    waits: tuple[float, ...]
    """The longest wait in ms each time that operations were held up over 250 ms."""
    served: bool
    """True if no operation of the clients has failed up to the end of the move."""


def laboratory(cluster: MiniCluster) -> Clients:
    """A started cluster with PGs worth moving, and clients on them that rest."""
    cluster.command("balancer off")
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool(_POOL, pg_num=32, size=3)
    cluster.write(_POOL, objects=300, size=262144)
    cluster.wait_clean()
    return Clients(cluster, {_POOL: _OBJECTS})


def untouched(cluster: MiniCluster) -> list[dict[str, Any]]:
    """PGs of the pool that are at rest where CRUSH wants them."""
    dump = cluster.json("osd dump")
    pool = next(pool["pool"] for pool in dump["pools"] if pool["pool_name"] == _POOL)
    mapped = {item["pgid"] for item in dump["pg_upmap_items"]}
    return [
        pg
        for pg in cluster.pgs()
        if pg["pgid"].startswith(f"{pool}.") and pg["pgid"] not in mapped and pg["state"] == "active+clean"
    ]


def move(
    cluster: MiniCluster, live: Cluster, clients: Clients, pg: dict[str, Any], *, member: int, told: bool
) -> Cost:
    """Move one member of a PG to an OSD that has none of the PG, and wait until the member is there. Return the cost.

    member: the position in `up`, 0 for the primary. `told`: whether `osd pg-temp` is set in the same map.
    """
    name, up = pg["pgid"], list(pg["up"])
    target = next(osd for osd in cluster.osds() if osd not in up)
    before, begin = count_intervals(cluster, name), time.monotonic()
    clients.rate(_RATE)
    time.sleep(2)
    going = [target if osd == up[member] else osd for osd in up]
    acting = in_turn(up, going) if told else ()
    answer = live.apply(SetUpmap(PgId(name), ((up[member], target),), acting))
    assert answer.ok, answer.text

    def arrived() -> bool:
        found = next(each for each in cluster.pgs() if each["pgid"] == name)
        return target in found["up"] and found["up"] == found["acting"] and found["state"] == "active+clean"

    cluster.wait(arrived, 120, f"{name} on osd.{target}")
    time.sleep(3)
    end = time.monotonic()
    clients.rate(0)
    time.sleep(2)
    ops = [op for op in clients.between(begin, end) if op.pg == name]
    held = sorted((op.back, op.ms) for op in ops if op.ms > SLOW_MS)
    waits: list[list[float]] = []
    for number, (back, ms) in enumerate(held):
        if number and back - held[number - 1][0] < 0.4:
            waits[-1].append(ms)
        else:
            waits.append([ms])
    worst = max((op.ms for op in ops), default=0.0)
    longest = tuple(max(wait) for wait in waits)
    after = count_intervals(cluster, name)
    intervals = max(count - before.get(file, 0) for file, count in after.items())
    return Cost(name, intervals, worst, len(held), longest, not clients.failed)


def count_intervals(cluster: MiniCluster, pg: str) -> dict[str, int]:
    """How often each OSD has logged that the PG's sets changed, by log."""
    marks = (f"pg[{pg}(", f"pg[{pg}s")
    return {
        file.name: sum(
            "start_peering_interval up " in line and any(mark in line for mark in marks)
            for line in file.read_text(errors="replace").splitlines()
        )
        for file in cluster.folder.glob("log/osd.*.log")
    }


def main() -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.curves.peering", description=__doc__)
    parser.add_argument("--release", choices=("pacific", "reef", "tentacle"), default="pacific")
    parser.add_argument("--scheduler", choices=("wpq", "mclock_scheduler"), default="wpq")
    parser.add_argument(
        "--moves", type=int, default=6, help="of each kind; every second one moves the primary"
    )
    parser.add_argument(
        "--fast", action="store_true", help="also with the monitors' damping at 0.25 and 0.1 s"
    )
    asked = parser.parse_args()
    conf = SHORT_LOGS + ("osd_mclock_max_capacity_iops_hdd = 1500\n" if asked.scheduler != "wpq" else "")
    costs: dict[str, list[Cost]] = {}
    with MiniCluster(asked.release, hosts=5, scheduler=asked.scheduler, size_gib=3, conf=conf) as cluster:
        clients = laboratory(cluster)
        channel = Rados(cluster.connection())
        live = LiveCluster(channel, lambda: datetime.now(UTC))
        for pace in ("1", "0.25", "0.1") if asked.fast else ("1",):
            cluster.command("config set", who="mon", name="paxos_propose_interval", value=pace)
            time.sleep(2)
            for number in range(2 * asked.moves):
                pg, told = untouched(cluster)[0], bool(number % 2)
                kind = f"{'upmap and pg-temp' if told else 'upmap alone'}, damping {pace} s"
                cost = move(cluster, live, clients, pg, member=0 if number % 4 < 2 else 2, told=told)
                print(f"  {number + 1}/{2 * asked.moves} {kind}: {cost}", file=sys.stderr, flush=True)
                costs.setdefault(kind, []).append(cost)
        channel.close()
        clients.close()
    print(f"{asked.release}, {asked.scheduler}, {_RATE:.0f} operations a second on 32 PGs")
    print(
        f"{'':34}{'moves':>6}{'intervals':>11}{'worst ms':>10}{'median':>9}{'over 250 ms':>13}{'waited s':>10}"
    )
    for kind, found in costs.items():
        print(
            f"{kind:34}{len(found):>6}{statistics.mean(c.intervals for c in found):>11.1f}"
            f"{max(c.worst_ms for c in found):>10.0f}{statistics.median(c.worst_ms for c in found):>9.0f}"
            f"{statistics.mean(c.slow for c in found):>13.1f}"
            f"{statistics.mean(sum(c.waits) for c in found) / 1000:>10.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The cost of OSD maps for monitors and OSDs: `python -m tests.bench.curves.price --release pacific`.

The bench needs root, and takes about 5 minutes. It starts three monitors and a few OSDs, with a map that has room for
6,000 OSDs. One client changes the map as fast as it is answered, so that maps come as fast as `paxos_propose_interval`
lets them. The table has for each interval the maps a second, the processor time of a monitor and of an OSD for a map,
and the commit latency of the monitors' leader. The line above the table has the bytes of an incremental and of a full
map. The last lines compute the cost in a cluster of 6,000 OSDs from these figures, at the rates that they name.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.system.ceph import roots
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.ports import reserve_port

MONITORS = ("a", "b", "c")
LARGE_OSDS, LARGE_MAP_BYTES = 6000, 800_000
"""A cluster of 6,000 OSDs and the bytes of its full map (docs/design/ceph.md, h)."""
OWN_SECTION = "[mon.{name}]\nmon_data = $run_dir/../mon-{name}\n"


@dataclass(frozen=True, slots=True)
class MapPrice:
    """The rate and the cost of maps at one interval."""

    interval: float
    maps_per_second: float
    monitor_cpu_per_map: float
    """Processor seconds of one monitor, mean of all."""
    osd_cpu_per_map: float
    commit_ms: float
    """Mean of the leader's commits."""


def add_monitors(cluster: MiniCluster) -> None:
    """Two more, each with a folder of its own, until all three are in quorum."""
    conf = ("-c", str(cluster.inside / "ceph.conf"))
    for name in MONITORS[1:]:
        shutil.copy(cluster.folder / "keyring.mon.a", cluster.folder / f"keyring.mon.{name}")
        (cluster.folder / f"monmap.{name}").write_bytes(cluster.command("mon getmap"))
        keys, monmap = str(cluster.inside / "keyring.mon.a"), str(cluster.inside / f"monmap.{name}")
        cluster.run("ceph-mon", "--mkfs", "-i", name, *conf, "--monmap", monmap, "--keyring", keys)
        port, held = reserve_port()
        address = f"[v2:127.0.0.1:{port},v1:127.0.0.1:{port + 1}]"
        argv = ["ceph-mon", "-f", "-i", name, *conf, "--public-addrv", address]
        cluster.daemons.spawn(f"mon.{name}", cluster.enter(argv, "minihost"))
        cluster.wait(
            lambda name=name: name in cluster.json("quorum_status")["quorum_names"],
            60,
            f"mon.{name} in quorum",
        )
        held.close()


def read_cpu(cluster: MiniCluster, daemons: Iterable[str]) -> float:
    """Processor seconds that these daemons have used since they began."""
    ticks = 0
    for name in daemons:
        fields = Path(f"/proc/{cluster.daemons.pid(name)}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def read_commits(cluster: MiniCluster) -> tuple[int, float]:
    """How many commits the leader has counted, and the seconds that all of them took."""
    leader = cluster.json("quorum_status")["quorum_leader_name"]
    socket = str(cluster.inside / "run" / f"mon.{leader}.asok")
    said = json.loads(cluster.run("ceph", "--admin-daemon", socket, "perf", "dump"))
    latency = said["paxos"]["commit_latency"]
    return int(latency["avgcount"]), float(latency["sum"])


def change_maps(cluster: MiniCluster, seconds: float) -> int:
    """Change the map as fast as it is answered, for so long; how many maps were made."""
    first, until, on = cluster.json("osd stat")["epoch"], time.monotonic() + seconds, True
    while time.monotonic() < until:
        cluster.command("osd set" if on else "osd unset", key="noscrub")
        on = not on
    if not on:
        cluster.command("osd unset", key="noscrub")
    return int(cluster.json("osd stat")["epoch"] - first)


def measure(cluster: MiniCluster, interval: float, seconds: float) -> tuple[MapPrice, range]:
    """The price at one interval, and the epochs that were made for it."""
    cluster.command("config set", who="mon", name="paxos_propose_interval", value=str(interval))
    time.sleep(3)
    monitors = [f"mon.{name}" for name in MONITORS]
    osds = [f"osd.{osd}" for osd in cluster.osds()]
    first = int(cluster.json("osd stat")["epoch"])
    idle = {kind: read_cpu(cluster, of) for kind, of in (("mon", monitors), ("osd", osds))}
    time.sleep(seconds / 2)
    resting = {
        kind: 2 * (read_cpu(cluster, of) - idle[kind]) for kind, of in (("mon", monitors), ("osd", osds))
    }
    before = {kind: read_cpu(cluster, of) for kind, of in (("mon", monitors), ("osd", osds))}
    (commits, spent), began = read_commits(cluster), time.monotonic()
    maps = change_maps(cluster, seconds)
    took = time.monotonic() - began
    used = {
        kind: read_cpu(cluster, of) - before[kind] - resting[kind] * took / seconds
        for kind, of in (("mon", monitors), ("osd", osds))
    }
    commits_after, spent_after = read_commits(cluster)
    price = MapPrice(
        interval=interval,
        maps_per_second=maps / took,
        monitor_cpu_per_map=max(0.0, used["mon"]) / len(monitors) / maps,
        osd_cpu_per_map=max(0.0, used["osd"]) / len(osds) / maps,
        commit_ms=1000 * (spent_after - spent) / max(1, commits_after - commits),
    )
    return price, range(first + 1, first + maps + 1)


def move_pg(cluster: MiniCluster) -> range:
    """Move one member of a PG as a walk does; the epochs that were made for it."""
    pg = next(pg for pg in cluster.pgs() if len(pg["up"]) == 3)
    target = next(osd for osd in cluster.osds() if osd not in pg["up"])
    first = int(cluster.json("osd stat")["epoch"])
    cluster.command("osd pg-temp", pgid=pg["pgid"], id=pg["up"])
    cluster.command("osd pg-upmap-items", pgid=pg["pgid"], id=[pg["up"][-1], target])

    def arrived() -> bool:
        found = next(each for each in cluster.pgs() if each["pgid"] == pg["pgid"])
        return target in found["acting"] and found["state"] == "active+clean"

    cluster.wait(arrived, 60, "the PG has moved")
    return range(first + 1, int(cluster.json("osd stat")["epoch"]) + 1)


def read_incrementals(cluster: MiniCluster, epochs: Iterable[int]) -> list[int]:
    """Bytes of these incremental maps, as a monitor that is stopped has stored them."""
    if cluster.alive("mon.a"):
        cluster.kill("mon.a")
    store, file = str(cluster.inside / "mon" / "store.db"), cluster.folder / "incremental"
    sizes = []
    for epoch in epochs:
        out = ("osdmap", str(epoch), "out", str(cluster.inside / "incremental"))
        cluster.run("ceph-kvstore-tool", "rocksdb", store, "get", *out)
        sizes.append(file.stat().st_size)
    return sizes


def reckon(prices: list[MapPrice], full_bytes: int, incremental: float, rates: Iterable[float]) -> list[str]:
    """Return a line for each rate with the cost a second in a cluster of 6,000 OSDs.

    Processor time is taken to grow in proportion to the map's bytes, which is an upper bound.
    """
    scale = LARGE_MAP_BYTES / full_bytes
    monitor = statistics.median(price.monitor_cpu_per_map for price in prices) * scale
    osd = statistics.median(price.osd_cpu_per_map for price in prices) * scale
    return [
        f"{rate:g} maps/s: {100 * rate * monitor:.0f} % of a core a monitor, {100 * rate * osd:.1f} % an OSD; "
        f"each OSD receives {rate * incremental / 1000:.1f} kB/s and writes {rate * LARGE_MAP_BYTES / 1e6:.1f} MB/s; "
        f"all {LARGE_OSDS:,} receive {LARGE_OSDS * rate * incremental / 1e6:.1f} MB/s"
        for rate in rates
    ]


def main() -> int:
    """Measure, and print a table and what it means for a large cluster."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.curves.price", description=__doc__)
    parser.add_argument("--release", choices=tuple(roots.SUITES), default="pacific")
    parser.add_argument("--osds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=30, help="of each interval")
    parser.add_argument("--intervals", type=float, nargs="+", default=[1.0, 0.5, 0.25])
    asked = parser.parse_args()
    if why := roots.missing(asked.release):
        print(why, file=sys.stderr)
        return 1
    conf = "".join(OWN_SECTION.format(name=name) for name in MONITORS[1:])
    with MiniCluster(asked.release, hosts=asked.osds, size_gib=2, conf=conf) as cluster:
        add_monitors(cluster)
        cluster.command("balancer off")
        cluster.pool("rep", pg_num=32, size=3)
        cluster.command("osd setmaxosd", newmax=LARGE_OSDS)
        cluster.wait_clean()
        full = len(cluster.command("osd getmap"))
        measured = [measure(cluster, interval, asked.seconds) for interval in asked.intervals]
        flags = [epoch for _, made in measured for epoch in list(made)[-5:]]
        moved = move_pg(cluster)
        flag, move = (read_incrementals(cluster, epochs) for epochs in (flags, moved))
    prices = [price for price, _ in measured]
    print(
        f"{asked.release}, {len(MONITORS)} monitors, {asked.osds} OSDs, a full map of {full:,} bytes; incrementals: of "
        f"a flag {statistics.mean(flag):.0f} bytes, of a PG's move {len(move)} of {statistics.mean(move):.0f}"
    )
    print(f"{'interval s':>10}{'maps/s':>9}{'mon CPU ms/map':>16}{'OSD CPU ms/map':>16}{'commit ms':>11}")
    for price in prices:
        print(
            f"{price.interval:>10g}{price.maps_per_second:>9.2f}{1000 * price.monitor_cpu_per_map:>16.1f}"
            f"{1000 * price.osd_cpu_per_map:>16.1f}{price.commit_ms:>11.1f}"
        )
    print(f"reckoned for {LARGE_OSDS:,} OSDs, a full map of {LARGE_MAP_BYTES / 1e6:g} MB:")
    for line in reckon(prices, full, statistics.mean(move), (1.0, 2.0, 4.0)):
        print(f"  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

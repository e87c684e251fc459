"""`make bench-ceph RELEASE=pacific`: what clients feel while a disk's data leaves it, three ways.

12 OSDs on 6 hosts, three copies and EC 2+1, PGs with short logs, 4 KiB reads and writes on every PG in an open loop at
30 % of what the cluster bears. Hold and drain windows alternate in one run; the same OSD is then put out in one step
under the release's defaults, and stopped. Root is needed, and a quiet machine: about 15 minutes.

Example: make bench-ceph RELEASE=tentacle ARGS="--scheduler mclock_scheduler --json curves.json --picture curves.png"
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from actions.policy import Policy
from tests.bench.curves.felt import Window, by_second, paired, window
from tests.bench.curves.load import Clients
from tests.bench.curves.peering import SHORT_LOGS
from tests.bench.curves.runs import LATE, Bench, Drainage, Run, Say
from tests.system.ceph import roots
from tests.system.ceph.minicluster import MiniCluster

DATA_SHARDS = {"copies": 1, "shards": 2}
"""Pools, and how many shards hold an object's bytes."""
_OBJECTS, _OBJECT_BYTES = 1000, 262_144
_EACH = 256
"""Objects of the clients in each pool."""
SETTLING = 60.0
"""Seconds at the clients' rate before anything is measured: the ramp left the OSDs work to do."""


def main() -> int:
    """Measure, print a table, write what is asked for."""
    asked = _asked()
    if why := roots.missing(asked.release):
        print(why, file=sys.stderr)
        return 1
    began = time.monotonic()

    def say(words: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {words}", file=sys.stderr, flush=True)

    conf = SHORT_LOGS + ("osd_mclock_max_capacity_iops_hdd = 1500\n" if asked.scheduler != "wpq" else "")
    shape = {"hosts": asked.hosts, "per_host": asked.per_host, "scheduler": asked.scheduler}
    with MiniCluster(asked.release, size_gib=6, conf=conf, **shape) as cluster:
        clients = _furnished(cluster, asked.pgs, say)
        bench = Bench(cluster, clients, victim=0, data_shards=DATA_SHARDS, say=say)
        bears = asked.bears or bench.peak()
        rate = 0.3 * bears
        clients.rate(rate)
        time.sleep(5)
        found = _windows(bench, asked, say)
        for name, how in (("out in one step", bench.out), ("failed", bench.stopped)):
            bench.restore()
            say(name)
            found["runs"].append(bench.timed(name, how))
        clients.close()
    result = _result(found, asked, bears, clients.failed)
    _table(result)
    if asked.json:
        Path(asked.json).write_text(json.dumps(result, indent=1) + "\n")
    if asked.picture:
        from tests.bench.curves.picture import draw

        curves = {name: found["seconds"][name] for name in ("normal", "predicted")}
        curves |= {
            run.name: run.seconds for run in found["runs"] if run.name in ("failed", "out in one step")
        }
        words = (
            f"{asked.release}, {asked.scheduler}, {rate:.0f} operations a second due (30 % of what it bears)"
        )
        draw(curves, rate, words, Path(asked.picture))
    say("done")
    return 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.curves", description=__doc__)
    parser.add_argument("--release", choices=tuple(roots.SUITES), default="pacific")
    parser.add_argument("--scheduler", choices=("wpq", "mclock_scheduler"), default="wpq")
    parser.add_argument("--hosts", type=int, default=6)
    parser.add_argument("--per-host", type=int, default=2)
    parser.add_argument("--pgs", type=int, default=64, help="of each pool")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument(
        "--seconds", type=float, default=40, help="of each hold window, and of each stretch of draining"
    )
    parser.add_argument("--tick", type=float, default=10, help="seconds between two looks of the controller")
    parser.add_argument(
        "--finish", type=float, default=120, help="seconds that the rest of the drain may take"
    )
    parser.add_argument(
        "--bears", type=float, default=0, help="operations a second; found by a ramp where not given"
    )
    parser.add_argument("--json", help="write everything here")
    parser.add_argument("--picture", help="write the picture (PNG) here; needs the extra `report`")
    return parser.parse_args()


def _furnished(cluster: MiniCluster, pgs: int, say: Say) -> Clients:
    """Pools with data, and clients that rest."""
    cluster.command("balancer off")
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool("copies", pg_num=pgs, size=3)
    cluster.pool("shards", pg_num=pgs, k=2, m=1)
    cluster.pool("predrain", pg_num=1, size=3)
    for pool in DATA_SHARDS:
        cluster.write(pool, objects=_OBJECTS, size=_OBJECT_BYTES)
    cluster.wait_clean()
    say(f"{len(cluster.osds())} OSDs, {len(cluster.pgs())} PGs clean")
    return Clients(cluster, dict.fromkeys(DATA_SHARDS, _EACH))


def _windows(bench: Bench, asked: argparse.Namespace, say: Say) -> dict[str, Any]:
    """Hold and drain windows in turn, then the rest of the drain; figures of each, and of the whole drain."""
    policy = replace(Policy(), tick_seconds=asked.tick)
    drainage = Drainage(bench.cluster, bench.victim, policy, say)
    drainage.prepare()
    plan = drainage.drain.plan
    assert plan is not None
    say(
        f"plan: {len({move.pg for move in plan.moves})} PGs, {plan.bytes / 2**20:.0f} MiB, {plan.mechanic.value}"
    )
    marks: list[tuple[str, float, float]] = []
    run = bench.timed("predicted", lambda: _alternate(drainage, asked, say, marks))
    moved, state = drainage.drain.progress, drainage.drain.state
    drainage.close()
    ops = bench.clients.between(run.begin - LATE, run.end)
    felt: dict[str, list[Window]] = {"normal": [], "predicted": []}
    seconds: dict[str, list[tuple[float, int, float]]] = {"normal": [], "predicted": []}
    for name, begin, end in marks:
        felt[name].append(window(ops, begin, end))
        sofar = len(seconds[name])
        seconds[name] += [(sofar + second, back, worst) for second, back, worst in by_second(ops, begin, end)]
    count = f"{moved.moved_pgs} of {moved.planned_pgs} PGs, {moved.moved_bytes} bytes"
    run.note = f"{count} by its own count; {state.value}"
    return {"felt": felt, "seconds": seconds, "runs": [run], "plan_bytes": plan.bytes}


def _alternate(
    drainage: Drainage, asked: argparse.Namespace, say: Say, marks: list[tuple[str, float, float]]
) -> None:
    drainage.hold(SETTLING)
    for pair in range(asked.pairs):
        begin = time.monotonic()
        drainage.hold(asked.seconds)
        marks.append(("normal", begin, time.monotonic()))
        say(f"pair {pair + 1} of {asked.pairs}: drain")
        begin = time.monotonic()
        drainage.go(asked.seconds)
        drainage.rest(60)
        marks.append(("predicted", begin, time.monotonic()))
        time.sleep(LATE)
    if not drainage.over:
        say("the rest of the drain")
        drainage.go(asked.finish)


def _result(found: dict[str, Any], asked: argparse.Namespace, bears: float, failed: int) -> dict[str, Any]:
    felt: dict[str, list[Window]] = found["felt"]
    drained, held = felt["predicted"], felt["normal"]
    runs: list[Run] = found["runs"]
    result: dict[str, Any] = {
        "release": asked.release,
        "scheduler": asked.scheduler,
        "osds": asked.hosts * asked.per_host,
        "bears_a_second": bears,
        "due_a_second": 0.3 * bears,
        "failed_operations": failed,
        "planned_bytes": found["plan_bytes"],
        "served_of_due": asdict(paired(drained, held, lambda w: w.served / max(w.offered, 1))),
        "p99": asdict(paired(drained, held, lambda w: w.p99_ms)),
        "windows": {name: [asdict(each) for each in windows] for name, windows in felt.items()},
        "runs": {},
    }
    for run in runs:
        assert run.felt is not None
        result["runs"][run.name] = {
            "seconds": run.end - run.begin,
            "felt": asdict(run.felt),
            "pgs_not_active_in_a_dump": run.pgs_peering,
            "moved_bytes": run.moved_bytes,
            "note": run.note,
        }
    return result


def _table(result: dict[str, Any]) -> None:
    """What the run showed, for people."""
    table = Table(
        title=f"{result['release']}, {result['scheduler']}, {result['due_a_second']:.0f} a second due"
    )
    for heading in (
        "",
        "s",
        "served/due",
        "p50 ms",
        "p99 ms",
        "worst ms",
        "over 250 ms",
        "PGs held up",
        "not active",
    ):
        table.add_column(heading, justify="left" if not heading else "right")
    windows = result["windows"]
    for name in ("normal", "predicted"):
        for number, felt in enumerate(windows[name], 1):
            table.add_row(f"{name} {number}", *_cells(felt), "")
    for name, run in result["runs"].items():
        table.add_row(f"{name}, whole run", *_cells(run["felt"]), str(run["pgs_not_active_in_a_dump"]))
    Console(width=120).print(table)
    for name in ("served_of_due", "p99"):
        ratio = result[name]
        print(
            f"{name}: drain to hold {ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}], median of pairs"
        )
    print(f"planned: {result['planned_bytes'] / 2**20:.0f} MiB")
    for name, run in result["runs"].items():
        print(f"{name}: {run['moved_bytes'] / 2**20:.0f} MiB moved in {run['seconds']:.0f} s. {run['note']}")


def _cells(felt: dict[str, Any]) -> list[str]:
    return [
        f"{felt['seconds']:.0f}",
        f"{felt['served'] / max(felt['offered'], 1):.3f}",
        f"{felt['p50_ms']:.1f}",
        f"{felt['p99_ms']:.1f}",
        f"{felt['worst_ms']:.0f}",
        f"{felt['slow']} of {felt['offered']}",
        str(felt["pgs_held_up"]),
    ]


if __name__ == "__main__":
    sys.exit(main())

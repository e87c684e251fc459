"""`make bench-ceph RELEASE=pacific`: the latency of clients while the data of a disk leaves the disk in four ways.

The cluster has 12 OSDs on 6 hosts, a pool of three copies and a pool of EC 2+1, and PGs with short logs. Clients read
and write 4 KiB on every PG in an open loop, at 30 % of the rate that the cluster bears. Windows in which a drain is
paused, goes on, and goes on with fast maps alternate in one run. The same OSD is then put out in one step under the
release's defaults, and stopped. The bench needs root and a quiet machine, and takes about 20 minutes.

Example: make bench-ceph RELEASE=tentacle ARGS="--scheduler mclock_scheduler --json curves.json --picture curves.png"
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from predrain.actions.core.drain_policy import Policy
from tests.bench.curves.client_latency import Window, by_second, paired, pooled, window
from tests.bench.curves.load import Clients, Op
from tests.bench.curves.peering import SHORT_LOGS
from tests.bench.curves.runs import LATE, Bench, Drainage, Run, Say
from tests.system.ceph import roots
from tests.system.ceph.minicluster import MiniCluster

DATA_SHARDS = {"copies": 1, "shards": 2}
"""Pools, and how many shards hold an object's bytes."""
_OBJECTS, _OBJECT_BYTES = 1000, 262_144
_EACH = 256
"""Objects of the clients in each pool."""
NORMAL, PREDICTED, FAST = WAYS = ("normal", "predicted", "fast maps")
"""Windows of the drain: paused, going on, and going on with the monitors' interval held down."""
P99_MOST, SERVED_LEAST = 1.15, 0.97
"""Aims: p99 and served of due while draining, over those while paused; and no operation over 250 ms."""
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

        curves = {name: found["seconds"][name] for name in WAYS}
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
    parser.add_argument("--pgs", type=int, default=96, help="of each pool")
    parser.add_argument("--pairs", type=int, default=4, help="rounds of the three kinds of windows")
    parser.add_argument(
        "--seconds", type=float, default=40, help="of each hold window, and of each stretch of draining"
    )
    parser.add_argument(
        "--tick",
        type=float,
        default=10,
        help="seconds between two polls of the controller where nothing was sent lately",
    )
    parser.add_argument(
        "--fast-maps", type=float, default=0.25, help="seconds between two maps in the third kind of window"
    )
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
    marks: list[Mark] = []
    run = bench.timed("predicted", lambda: _alternate(bench, drainage, asked, marks))
    moved, state = drainage.drain.progress, drainage.drain.state
    drainage.close()
    ops = bench.clients.between(run.begin - LATE, run.end)
    felt: dict[str, list[Window]] = {name: [] for name in WAYS}
    seconds: dict[str, list[tuple[float, int, float]]] = {name: [] for name in WAYS}
    for mark in marks:
        felt[mark.name].append(window(ops, mark.begin, mark.end))
        sofar = len(seconds[mark.name])
        rows = by_second(ops, mark.begin, mark.end)
        seconds[mark.name] += [(sofar + second, back, worst) for second, back, worst in rows]
    whole = {name: _pool_windows(name, marks, ops, run) for name in WAYS}
    count = f"{moved.moved_pgs} of {moved.planned_pgs} PGs, {moved.moved_bytes} bytes"
    run.note = f"{count} by its own count; {state.value}"
    return {"felt": felt, "seconds": seconds, "runs": [run], "plan_bytes": plan.bytes, "whole": whole}


@dataclass(frozen=True, slots=True)
class Mark:
    """One window of the drain, and how many maps were made in it."""

    name: str
    begin: float
    end: float
    maps: int


def _pool_windows(name: str, marks: Sequence[Mark], ops: Sequence[Op], run: Run) -> dict[str, Any]:
    """All windows of one kind together."""
    mine = [mark for mark in marks if mark.name == name]
    spans = [(mark.begin, mark.end) for mark in mine]
    felt = pooled([ops] * len(spans), spans)
    return {
        **asdict(felt),
        "pgs_not_active_in_a_dump": max((run.peering_between(*span) for span in spans), default=0),
        "maps_a_second": sum(mark.maps for mark in mine) / max(felt.seconds, 1e-9),
    }


def _alternate(bench: Bench, drainage: Drainage, asked: argparse.Namespace, marks: list[Mark]) -> None:
    def measure(name: str, work: Callable[[], None]) -> None:
        begin, first = time.monotonic(), bench.epoch()
        work()
        marks.append(Mark(name, begin, time.monotonic(), bench.epoch() - first))

    def drain() -> None:
        drainage.go(asked.seconds)
        drainage.rest(60)

    drainage.hold(SETTLING)
    for pair in range(asked.pairs):
        bench.say(f"round {pair + 1} of {asked.pairs}")
        measure(NORMAL, lambda: drainage.hold(asked.seconds))
        measure(PREDICTED, drain)
        time.sleep(LATE)
        drainage.pace_maps(asked.fast_maps)
        measure(FAST, drain)
        drainage.pace_maps(None)
        time.sleep(LATE)
    if not drainage.over:
        bench.say("the rest of the drain")
        drainage.go(asked.finish)


def _result(found: dict[str, Any], asked: argparse.Namespace, bears: float, failed: int) -> dict[str, Any]:
    felt: dict[str, list[Window]] = found["felt"]
    runs: list[Run] = found["runs"]
    result: dict[str, Any] = {
        "release": asked.release,
        "scheduler": asked.scheduler,
        "osds": asked.hosts * asked.per_host,
        "bears_a_second": bears,
        "due_a_second": 0.3 * bears,
        "failed_operations": failed,
        "planned_bytes": found["plan_bytes"],
        "fast_maps_seconds": asked.fast_maps,
        "windows": {name: [asdict(each) for each in windows] for name, windows in felt.items()},
        "whole": dict(found["whole"]),
        "ratios": {
            name: {
                "served_of_due": asdict(paired(felt[name], felt[NORMAL], _served)),
                "p99": asdict(paired(felt[name], felt[NORMAL], lambda one: one.p99_ms)),
            }
            for name in (PREDICTED, FAST)
        },
        "runs": {},
    }
    for run in runs:
        assert run.felt is not None
        told = {
            "pgs_not_active_in_a_dump": run.pgs_peering,
            "maps_a_second": run.maps / (run.end - run.begin),
        }
        result["runs"][run.name] = {
            "seconds": run.end - run.begin,
            "felt": asdict(run.felt) | told,
            "moved_bytes": run.moved_bytes,
            "note": run.note,
        }
        if run.name != PREDICTED:
            result["whole"][run.name] = asdict(run.felt) | told
    return result


def _served(felt: Window) -> float:
    return felt.served / max(felt.offered, 1)


HEADINGS = (
    *("", "s", "p50 ms", "p99 ms", "p99.9 ms", "worst ms", "over 250 ms", "served/due"),
    *("PGs held up", "not active", "maps/s"),
)


def _table(result: dict[str, Any]) -> None:
    """Print the results: one row for each kind of window and each other run, and whether the aims are met."""
    due = f"{result['due_a_second']:.0f} operations a second due"
    table = Table(title=f"{result['release']}, {result['scheduler']}, {result['osds']} OSDs, {due}")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if not heading else "right")
    for name, felt in result["whole"].items():
        table.add_row(name, *_cells(felt))
    Console(width=140).print(table)
    for name, ratios in result["ratios"].items():
        for what, ratio in ratios.items():
            shown = f"{ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"
            print(f"{name}, {what}: drain to pause {shown}, median of rounds")
        print(f"{name}: {describe_aims(ratios, result['whole'][name]['slow'])}")
    print(f"planned: {result['planned_bytes'] / 2**20:.0f} MiB")
    for name, run in result["runs"].items():
        print(f"{name}: {run['moved_bytes'] / 2**20:.0f} MiB moved in {run['seconds']:.0f} s. {run['note']}")


def describe_aims(ratios: dict[str, Any], slow: int) -> str:
    """Which of the aims are met."""
    aims = (
        (f"p99 at most {P99_MOST} times the pause's", ratios["p99"]["median"] <= P99_MOST),
        (f"served/due at least {SERVED_LEAST}", ratios["served_of_due"]["median"] >= SERVED_LEAST),
        ("no operation over 250 ms", slow == 0),
    )
    return "; ".join(f"{aim}: {'met' if met else 'missed'}" for aim, met in aims)


def _cells(felt: dict[str, Any]) -> list[str]:
    return [
        f"{felt['seconds']:.0f}",
        f"{felt['p50_ms']:.1f}",
        f"{felt['p99_ms']:.1f}",
        f"{felt['p999_ms']:.0f}",
        f"{felt['worst_ms']:.0f}",
        f"{felt['slow']} of {felt['offered']}",
        f"{felt['served'] / max(felt['offered'], 1):.3f}",
        str(felt["pgs_held_up"]),
        str(felt["pgs_not_active_in_a_dump"]),
        f"{felt['maps_a_second']:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.chaos [--way kafka|http] [--seed N] [--minutes M] [--rate R] [--json]` (`make chaos`).

Breaks everything while readings are delivered, each way in turn unless one is named. Prints what is injected while it
runs, then a table. Exit code 1, with the seed, when anything was lost, doubled, announced twice or made up, and also
when nothing was delivered twice: then what absorbs duplicates was not tried.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from random import Random

with warnings.catch_warnings():  # of how kafka-python reads its own schemas, once, while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from tests.chaos.arena import FleetSize, open_arena
    from tests.chaos.report import Report, lines
    from tests.chaos.storm import Storm, run_out
from tests.chaos.audit import judge, measure_pace
from tests.chaos.schedule import Way, schedule
from tests.system.kafka import jars


def run_chaos(way: Way, seed: int, seconds: float, folder: Path, size: FleetSize) -> Report:
    """One run of `seconds`, and of what it takes to run out."""
    random, began = Random(seed), time.monotonic()
    blows = schedule(way, seed, seconds)
    with open_arena(way, folder, size, random) as arena, Storm(arena, blows, seconds) as storm:
        dealt = storm.run()
        run_out(arena, dealt)
        pace = measure_pace(arena, dealt)
        verdict = judge(arena, dealt)
    drives = size.collectors * size.drives + size.made_up_drives
    return Report(way, seed, seconds, time.monotonic() - began, drives, dealt, pace, verdict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--way", type=Way, choices=tuple(Way), help="of delivery; both when it is not said")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0, help="of each way")
    parser.add_argument("--rate", type=float, default=1_000.0, help="readings a second")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    ways = (options.way,) if options.way else tuple(Way)
    if Way.KAFKA in ways and (why := jars.missing() or _without_database()):
        print(why, file=sys.stderr)
        return 1
    passed = True
    for way in ways:
        folder = Path(tempfile.mkdtemp(prefix=f"predrain-chaos-{way}-"))
        size = FleetSize(readings_per_second=options.rate)
        report = run_chaos(way, options.seed, options.minutes * 60, folder, size)
        print(json.dumps(report.plain(), indent=2) if options.json else "\n".join(lines(report)), flush=True)
        if report.verdict.passed:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            passed = False
            print(f"{way} with seed {options.seed} failed; all logs are in {folder}", file=sys.stderr)
    return 0 if passed else 1


def _without_database() -> str | None:
    if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return None
    return "PostgreSQL is not installed: apt-get install postgresql-15"


if __name__ == "__main__":
    sys.exit(main())

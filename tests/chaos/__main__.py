"""`python -m tests.chaos --seed N --minutes M [--json]` (`make chaos`): break everything, lose nothing.

Prints what is injected while it runs, then a table. Exit code 1, with the seed, when anything was lost, doubled or
made up.
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
    from tests.chaos.report import Report, lines
    from tests.chaos.storm import Storm, arena, run_out
from tests.chaos.audit import judge
from tests.chaos.schedule import schedule
from tests.system.kafka import jars

HOSTS, DRIVES = 3, 20


def chaos(seed: int, seconds: float, folder: Path, hosts: int = HOSTS, drives: int = DRIVES) -> Report:
    """One run of `seconds`, and of what it takes to run out."""
    random, began = Random(seed), time.monotonic()
    blows = schedule(seed, seconds)
    with arena(folder, hosts, drives, random) as place, Storm(place, blows, seconds) as storm:
        dealt = storm.run()
        run_out(place, dealt)
        verdict = judge(place, dealt)
    return Report(seed, seconds, time.monotonic() - began, hosts * drives, dealt, verdict)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if why := jars.missing() or _without_database():
        print(why, file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="predrain-chaos-"))
    report = chaos(options.seed, options.minutes * 60, folder)
    print(json.dumps(report.plain(), indent=2) if options.json else "\n".join(lines(report)))
    if report.verdict.faults:
        print(f"seed {options.seed} lost something; what was said is in {folder}", file=sys.stderr)
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def _without_database() -> str | None:
    if any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return None
    return "PostgreSQL is not installed: apt-get install postgresql-15"


if __name__ == "__main__":
    sys.exit(main())

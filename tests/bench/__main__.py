"""`python -m tests.bench` (`make bench`): each figure in fresh processes, one table with rate, memory and ratio.

`--list` names the figures, `--only WORD` takes those whose name holds it, `--long` also those that take minutes,
`--json` prints lines for programs. Targets of the forecast count as met by wall seconds or by processor seconds,
whichever are fewer: an idle machine needs no more. It ends with 1 when a figure could not be measured for an error.
`--run N ours|baseline` is what the fresh processes are asked.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.figure import Figure, MissingInput, Work, peak_gigabytes

ROOT = Path(__file__).resolve().parents[2]
MODULES = (
    "forecasting",
    "plumbing",
    "controlling",
    "ticking",
    "planning",
    "collecting",
    "histories",
    "retention_day",
    "archive_day",
    "asking",
    "shared_copies",
    "streaming",
    "working",
    "answering",
    "loading",
    "painting",
    "large_fleet",
    "starting",
    "demonstrating",
)


BROKEN = "broken"
"""Stands in the answer of a side that ended with an error."""
MISSED = "MISSED"


def figures() -> list[Figure]:
    """All of them, in the order of the table."""
    return [figure for name in MODULES for figure in importlib.import_module(f"tests.bench.{name}").FIGURES]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--only", default="", help="take the figures whose name holds this")
    parser.add_argument("--long", action="store_true", help="also the figures that take minutes")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.run:
        return _run(figures()[int(options.run[0])], options.run[1])
    asked = bool(options.only) or options.long or options.list
    chosen = [
        (place, one)
        for place, one in enumerate(figures())
        if options.only in one.name and (asked or not one.long)
    ]
    if options.list:
        print(*(one.name for _, one in chosen), sep="\n")
        return 0
    table, broken, missed = _table(), list[str](), list[str]()
    for place, figure in chosen:
        print(f"measuring {figure.name}", file=sys.stderr, flush=True)
        ours, baseline = _fresh(place, "ours"), _fresh(place, "baseline")
        if options.json:
            print(json.dumps({"figure": figure.name, "ours": ours, "baseline": baseline}))
        row = _row(figure, ours, baseline)
        table.add_row(*row)
        if BROKEN in ours or BROKEN in baseline:
            broken.append(figure.name)
        elif row[-1].startswith(MISSED):
            missed.append(figure.name)
    if not options.json:
        Console(width=None if sys.stdout.isatty() else 150).print(table)
    for names, what in ((missed, "missed its target"), (broken, "could not be measured")):
        for name in names:
            print(f"{what}: {name}", file=sys.stderr)
    return 1 if broken else 0


def _run(figure: Figure, side: str) -> int:
    try:
        work: Work = figure.ours() if side == "ours" else figure.baseline()
    except MissingInput as absent:
        print(json.dumps({"absent": str(absent)}))
        return 0
    if work.amount <= 0 or work.seconds <= 0:
        print(
            f"{figure.name}: {side} did {work.amount} in {work.seconds} s, which is no rate", file=sys.stderr
        )
        return 1
    print(json.dumps({**asdict(work), "gigabytes": peak_gigabytes()}))
    return 0


def _fresh(place: int, side: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.bench", "--run", str(place), side]
    settings = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
    done = subprocess.run(command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {BROKEN: True, "absent": f"{side} ended with {done.returncode}; its message stands above"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _row(figure: Figure, ours: dict[str, Any], baseline: dict[str, Any]) -> tuple[str, ...]:
    if "absent" in ours:
        return (figure.name, "-", "-", "-", figure.beside, figure.target, ours["absent"])
    work = Work(ours["amount"], ours["seconds"], ours["cpu"])
    verdict = ""
    if figure.target and figure.meets is not None:
        verdict = _tell_verdict(figure.meets(work, ours["gigabytes"]))
    ratio, beside = "-", figure.beside
    if "absent" in baseline:
        beside = f"{beside}: {baseline['absent']}"
    else:
        other = Work(baseline["amount"], baseline["seconds"], baseline["cpu"])
        rates = work.rate / other.rate
        ratio = f"{rates:.2f}"
        note = f", {baseline['note']}" if baseline["note"] else ""
        if figure.most_times is not None:
            times = work.cpu_each / other.cpu_each
            verdict = f"{_tell_verdict(times <= figure.most_times)} {times:.2f} times the CPU;"
        if figure.least_rate is not None:
            verdict = f"{_tell_verdict(rates >= figure.least_rate)} {rates:.2f} times the rate;"
        beside = f"{beside}{note}: {_told(other, figure.unit)}, {baseline['gigabytes']:.2f} GB"
    return (
        figure.name,
        f"{_told(work, figure.unit)}: {work.rate:,.0f}/s",
        f"{ours['gigabytes']:.2f} GB",
        ratio,
        beside,
        figure.target,
        f"{verdict} {ours['note']}".strip(),
    )


def _tell_verdict(met: bool) -> str:
    return "met" if met else MISSED


def _told(work: Work, unit: str) -> str:
    return f"{work.amount:,.0f} {unit} in {work.seconds:.2f} s ({work.cpu:.2f} s CPU)"


def _table() -> Table:
    table = Table(title="predrain bench", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("figure", "measured", "peak", "ratio of rates", "baseline", "target", ""):
        table.add_column(column, overflow="fold")
    return table


if __name__ == "__main__":
    sys.exit(main())

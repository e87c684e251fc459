"""`python -m tests.bench.growth` (`make bench-growth`): what predrain takes as the number of disks grows.

One process with its files at 500, 6,000 and 50,000 disks, then Kafka, PostgreSQL and two workers at 6,000: memory,
processor, restarts, the store, REST and the page's first data, beside their goals, with the size at which
each line bends. `--large` adds 300,000 disks and 100,000. Processor seconds hold on a machine that does other work;
wall seconds hold only on an idle one. It takes twenty minutes, and with `--large` more than two hours.

Example: make bench-growth ARGS="--sizes 500,6000 --shared-sizes ''"
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from tests.bench.figure import MissingInput
from tests.bench.growth.load_plan import LoadPlan
from tests.bench.growth.measures import (
    MEASURES,
    GrowthMeasure,
    GrowthSeries,
    MeasureName,
    SizeFigures,
    find_bend,
    list_points,
)
from tests.bench.growth.one_process import measure_one_process
from tests.bench.growth.probing import GrowthFailed
from tests.bench.growth.two_workers import measure_two_workers

SIZES, LARGE_SIZES = (500, 6_000, 50_000), (300_000,)
SHARED_SIZES, LARGE_SHARED_SIZES = (6_000,), (100_000,)
MEASURERS = {
    GrowthSeries.ONE_PROCESS: measure_one_process,
    GrowthSeries.TWO_WORKERS: measure_two_workers,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Returns 1 if a size could not be measured."""
    options = _parse_options(arguments)
    found = [one for file in options.read for one in read_figures(file)]
    sizes = {
        GrowthSeries.ONE_PROCESS: (*options.sizes, *(LARGE_SIZES if options.large else ())),
        GrowthSeries.TWO_WORKERS: (*options.shared_sizes, *(LARGE_SHARED_SIZES if options.large else ())),
    }
    plan = LoadPlan(
        least=options.at_once,
        steady_seconds=options.steady_seconds,
        restarts=options.restarts,
        settles=not options.unsettled,
    )
    failures = list[str]()
    for one in _measure_sizes(sizes, plan, failures):
        found.append(one)
        if options.json:
            print(json.dumps(describe_figures(one)), flush=True)
    if not options.json:
        console = Console(width=None if sys.stdout.isatty() else 150)
        for series in GrowthSeries:
            if any(one.series is series for one in found):
                console.print(build_table(found, series))
    if options.picture and found:
        from tests.bench.growth.growth_picture import draw_growth

        draw_growth(found, options.picture)
        print(f"drawn: {options.picture}", file=sys.stderr)
    print(*failures, sep="\n", end="\n" if failures else "", file=sys.stderr)
    return 1 if failures else 0


def _measure_sizes(
    sizes: dict[GrowthSeries, tuple[int, ...]], plan: LoadPlan, failures: list[str]
) -> Iterator[SizeFigures]:
    """Measure one size after the other. A size that fails is named in `failures`, and the next one is measured."""
    began = time.monotonic()
    for series, measurer in MEASURERS.items():
        for disks in sizes[series]:

            def report(what: str, where: str = f"{series.value}, {disks:,} disks") -> None:
                print(f"{time.monotonic() - began:6.0f} s  {where}: {what}", file=sys.stderr, flush=True)

            try:
                yield measurer(disks, plan, report)
            except MissingInput as missing:
                report(f"not measured, {missing}")
                break
            except (GrowthFailed, OSError, ValueError) as error:
                failures.append(
                    f"{series.value}, {disks:,} disks could not be measured: {type(error).__name__}: {error}"
                )


def build_table(found: Sequence[SizeFigures], series: GrowthSeries) -> Table:
    """Return a table of one series: a row for each measure that it has."""
    sizes = sorted(one.disks for one in found if one.series is series)
    title = f"predrain growth, {series.value} (in brackets the goal, if it is met or missed)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("figure")
    for disks in sizes:
        table.add_column(f"{disks:,} disks", justify="right")
    table.add_column("bend: power of disks before, after")
    for measure in MEASURES:
        values = dict(list_points(found, series, measure.name))
        if not values:
            continue
        cells = [
            describe_value(measure, series, disks, values[disks]) if disks in values else "-"
            for disks in sizes
        ]
        bend = find_bend(list(values.items()))
        bent = f"{bend.disks:,}: {bend.before:.2f}, {bend.after:.2f}" if bend else "-"
        table.add_row(f"{measure.label}, {measure.unit}", *cells, bent)
    return table


def describe_value(measure: GrowthMeasure, series: GrowthSeries, disks: int, value: float) -> str:
    """Return a figure with its goal, such as `1,388 (900 MISSED)`."""
    goal = measure.find_goal(series, disks)
    text = f"{value:,.{measure.digits}f}"
    if goal is None:
        return text
    return f"{text} ({goal:,.{measure.digits}f} {'met' if value <= goal else 'MISSED'})"


def describe_figures(one: SizeFigures) -> dict[str, Any]:
    """Return a line for programs, which `read_figures` reads."""
    goals = {measure.name: measure.find_goal(one.series, one.disks) for measure in MEASURES}
    return {
        "series": one.series,
        "disks": one.disks,
        "values": one.values,
        "goals": {name: goal for name, goal in goals.items() if goal is not None},
    }


def read_figures(file: Path) -> list[SizeFigures]:
    """Return what an earlier run printed with --json. Raises OSError, ValueError."""
    found = list[SizeFigures]()
    for line in file.read_text().splitlines():
        said = json.loads(line)
        values = {MeasureName(name): float(value) for name, value in said["values"].items()}
        found.append(SizeFigures(GrowthSeries(said["series"]), int(said["disks"]), values))
    return found


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.growth",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=_parse_sizes, default=SIZES, help="disks of one process, with commas")
    parser.add_argument(
        "--shared-sizes", type=_parse_sizes, default=SHARED_SIZES, help="disks of two workers; '' for none"
    )
    parser.add_argument("--large", action="store_true", help="also 300,000 disks, and 100,000 of two workers")
    parser.add_argument("--steady-seconds", type=float, default=LoadPlan.steady_seconds)
    parser.add_argument("--restarts", type=int, default=LoadPlan.restarts, help="the best of them counts")
    parser.add_argument(
        "--at-once",
        type=int,
        default=LoadPlan.least,
        help="least readings for the processor time of a reading",
    )
    parser.add_argument(
        "--unsettled",
        action="store_true",
        help="load one process at once, beside what it does once after a start",
    )
    parser.add_argument("--json", action="store_true", help="a line for programs for each size, no table")
    parser.add_argument("--picture", type=Path, help="PNG to write")
    parser.add_argument(
        "--read", type=Path, action="append", default=[], help="also show the lines of an earlier --json"
    )
    options = parser.parse_args(arguments)
    if options.restarts < 1 or options.steady_seconds <= 0 or options.at_once < 1:
        parser.error("restarts, seconds and readings are at least 1")
    return options


def _parse_sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(one.replace("_", "")) for one in text.split(",") if one.strip())
    if any(size < 1 for size in sizes):
        raise ValueError("a size is a number of disks")
    return sizes


if __name__ == "__main__":
    sys.exit(main())

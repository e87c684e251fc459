"""`python -m tests.endure --minutes M` (`make endure`): 500 readings a second and 50 event streams at one service.

Prints memory and descriptors over time and a verdict. Exit code 1 when one of them is not flat.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.endure.flatness import (
    DESCRIPTOR_BOUND,
    MEMORY_BOUND,
    MOST_WAITING,
    FlatnessVerdict,
    ResourceSample,
    judge_flatness,
)
from tests.endure.load import EnduranceLoad, EnduranceRun, run_load

_ROWS = 20


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the load, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.endure", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=500, help="readings a second")
    parser.add_argument("--streams", type=int, default=50, help="event streams that are held open")
    parser.add_argument("--devices", type=int, default=2_000)
    options = parser.parse_args(arguments)
    load = EnduranceLoad(options.minutes * 60, options.rate, options.streams, options.devices)
    with tempfile.TemporaryDirectory(prefix="predrain-endure-") as folder:
        run = run_load(Path(folder), load, _report_progress)
    verdict = judge_flatness(run.samples)
    print("\n".join(describe_run(run, verdict)))
    return 0 if verdict.is_flat else 1


def describe_run(run: EnduranceRun, verdict: FlatnessVerdict) -> list[str]:
    """The table and the verdict, as Markdown."""
    lines = ["| at (s) | memory (MB) | descriptors | readings that wait |", "|---|---|---|---|"]
    step = max(1, len(run.samples) // _ROWS)
    lines += [
        f"| {one.at_seconds:.0f} | {one.megabytes:.1f} | {one.descriptors} | {one.waiting:,} |"
        for one in run.samples[::step]
    ]
    rate = run.accepted / run.seconds
    return [
        *lines,
        "",
        f"{run.accepted:,} readings of {run.load.devices:,} devices in {run.seconds:.0f} s ({rate:,.0f} a second), "
        f"{run.load.streams} event streams, {run.page_rounds:,} rounds of pages, {run.failed_answers} failed answers",
        "",
        "| after the warm-up | begin | end | change | bound | |",
        "|---|---|---|---|---|---|",
        f"| memory (MB) | {verdict.first_megabytes:.1f} | {verdict.last_megabytes:.1f} "
        f"| {verdict.megabytes_per_minute:+.2f} a minute | {MEMORY_BOUND:+.2f} a minute "
        f"| {_describe_flat(verdict.is_memory_flat)} |",
        f"| descriptors | {verdict.first_descriptors} | {verdict.last_descriptors} "
        f"| {verdict.last_descriptors - verdict.first_descriptors:+d} | {DESCRIPTOR_BOUND:+d} "
        f"| {_describe_flat(verdict.are_descriptors_flat)} |",
        f"| readings that wait, at most | | {verdict.most_waiting:,} | | {MOST_WAITING:,} "
        f"| {'kept up' if verdict.has_kept_up else 'FELL BEHIND: the load was too much for this machine'} |",
        f"(the warm-up took {verdict.warm_up_seconds:.0f} s)",
    ]


def _describe_flat(flat: bool) -> str:
    return "flat" if flat else "NOT FLAT"


def _report_progress(sample: ResourceSample) -> None:
    if round(sample.at_seconds) % 10 == 0:
        print(
            f"[{sample.at_seconds:6.0f} s] {sample.megabytes:.1f} MB, {sample.descriptors} descriptors",
            file=sys.stderr,
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())

"""As many simulated cluster-hours of faults as one likes: `make sim HOURS=1000`.

    python -m tests.properties.hours 1000 --first 5000

Plays schedule after schedule (`tests.properties.schedules`), each in a process that dies with a hang, on every core,
until the hours are full. A seed that fails is printed with its reason and kept in the file of `--keep`, one a line, to
be played again by `make sim SEED=n`. Exits with 1 when one failed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from multiprocessing import get_context
from pathlib import Path

TURNS = 80


def hours_of(seed: int) -> tuple[float, str]:
    """Simulated hours that the schedule took, and what was unsafe about it; empty when nothing was."""
    from tests.properties.schedules import Schedule

    schedule = Schedule(seed)
    try:
        schedule.play(TURNS)
    except AssertionError as unsafe:
        return schedule.run.elapsed / 3600, str(unsafe).splitlines()[0]
    return schedule.run.elapsed / 3600, ""


def played(first: int, wanted: float) -> Iterator[tuple[int, float, str]]:
    """(seed, hours, what was unsafe) of seeds from `first` on, until so many hours are played."""
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        seeds, running, done = count(first), {}, 0.0
        while running or done < wanted:
            while done < wanted and len(running) < 2 * workers:
                seed = next(seeds)
                running[pool.submit(hours_of, seed)] = seed
            ended: set[Future[tuple[float, str]]] = wait(running, return_when=FIRST_COMPLETED).done
            for future in ended:
                hours, unsafe = future.result()
                done += hours
                yield running.pop(future), hours, unsafe


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hours", type=float, help="simulated cluster-hours to play")
    parser.add_argument(
        "--first", type=int, default=1000, help="first seed (default 1000: tests play 0 to 999)"
    )
    parser.add_argument("--keep", type=Path, default=Path("sim-failures.txt"), help="file of failing seeds")
    given = parser.parse_args()
    began, total, seeds, failed = time.monotonic(), 0.0, 0, 0
    for seed, hours, unsafe in played(given.first, given.hours):
        total, seeds = total + hours, seeds + 1
        if unsafe:
            failed += 1
            with given.keep.open("a") as file:
                file.write(f"{seed}\n")
            print(f"\nseed {seed} is unsafe: {unsafe}; play it again: make sim SEED={seed}", flush=True)
        rate = total / (time.monotonic() - began)
        left = max(0.0, given.hours - total) / rate
        line = f"{total:,.0f} of {given.hours:,.0f} cluster-hours, {seeds} schedules, {failed} unsafe"
        line += f", {left:.0f} s left"
        print(
            f"\r{line}   " if sys.stderr.isatty() else line,
            end="" if sys.stderr.isatty() else "\n",
            file=sys.stderr,
        )
    took = time.monotonic() - began
    print(f"\n{total:,.0f} cluster-hours in {seeds} schedules, {failed} unsafe, {took:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

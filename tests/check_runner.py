"""Runs the parts of a check side by side and prints what each took.

`python -m tests.check_runner tests="pytest" lint="ruff check"` names two parts.

The first part is the live one: its output is shown as it comes. The output of every other part is shown when the part
has failed, or has run tests, so that nothing is interleaved. Exit code 1 when a part failed.

`--minutes N` names the budget of the whole target. `--last` prints the table of everything since `--first`, set-up and
downloads included, which the Makefile's recipes add to the file `.times` through `.ci/timed`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.table import Table

TIMES = Path(__file__).resolve().parents[1] / ".times"
HEARTBEAT_SECONDS = 60.0
DOWNLOADS = "downloads"


@dataclass(frozen=True, slots=True)
class Took:
    """How long one part took: seconds of wall time, and seconds of processor time where they are known."""

    name: str
    seconds: float
    processor_seconds: float | None = None


@dataclass(slots=True)
class Part:
    """A shell command with a name, and the process that runs the command."""

    name: str
    command: str
    live: bool
    output: IO[bytes] | None = None
    process: subprocess.Popen[bytes] | None = None
    began: float = 0.0

    def start(self) -> None:
        """Start the command in a shell of its own."""
        self.began = time.monotonic()
        self.output = None if self.live else tempfile.TemporaryFile()  # noqa: SIM115 (it outlives this call)
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", self.command],
            stdout=self.output,
            stderr=subprocess.STDOUT if self.output else None,
        )

    def wait(self) -> tuple[int, Took]:
        """Wait for the end; return the exit code and the times."""
        assert self.process is not None
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        processor = usage.ru_utime + usage.ru_stime
        return self.process.returncode, Took(self.name, time.monotonic() - self.began, processor)

    def text(self) -> str:
        """Return what a part that is not live has printed, and close the file that holds it."""
        if self.output is None:
            return ""
        with self.output as output:
            output.seek(0)
            return output.read().decode(errors="replace")


def run_parts(parts: Sequence[Part]) -> tuple[bool, list[Took]]:
    """Run the parts side by side; return whether all succeeded, and their times in the order in which they ended."""
    lock = threading.Lock()
    took: list[Took] = []
    failed: list[str] = []

    def follow(part: Part) -> None:
        code, times = part.wait()
        with lock:
            took.append(times)
            if code:
                failed.append(part.name)
            text = part.text()
            if text and (code or " passed" in text):
                print(f"--- {part.name}\n{text.rstrip()}", flush=True)
            said = "ok" if not code else f"FAILED (exit code {code})"
            print(f"{part.name}: {said}, {times.seconds:.0f} s", flush=True)

    for part in parts:
        part.start()
    threads = [threading.Thread(target=follow, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    report_progress(parts, threads)
    return not failed, took


def report_progress(parts: Sequence[Part], threads: Sequence[threading.Thread]) -> None:
    """Name the parts that still run, once a minute, while no live part shows progress of its own."""
    since = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            thread.join(0.2)
        waiting = [part for part, thread in zip(parts, threads, strict=True) if thread.is_alive()]
        if any(part.live for part in waiting) or time.monotonic() - since < HEARTBEAT_SECONDS:
            continue
        since = time.monotonic()
        for part in waiting:
            print(f"{part.name}: {since - part.began:.0f} s so far", flush=True)


def read_times(file: Path) -> list[Took]:
    """Return the times that a file holds, one a line: name, seconds and, where known, processor seconds."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else ():
        name, *numbers = line.split("\t")
        found.append(Took(name, float(numbers[0]), float(numbers[1]) if len(numbers) > 1 else None))
    return found


def write_times(file: Path, took: Sequence[Took]) -> None:
    """Add times to the file."""
    with file.open("a") as out:
        for one in took:
            processor = "" if one.processor_seconds is None else f"\t{one.processor_seconds:.1f}"
            out.write(f"{one.name}\t{one.seconds:.1f}{processor}\n")


def print_table(took: Sequence[Took], total_seconds: float, minutes: float | None) -> None:
    """Print what each part took, and the total without downloads beside the budget."""
    table = Table(title="What took how long", title_justify="left")
    table.add_column("part")
    table.add_column("seconds", justify="right")
    table.add_column("processor seconds", justify="right")
    sums: dict[str, tuple[float, float | None]] = {}
    for one in took:
        seconds, processor = sums.get(one.name, (0.0, None))
        if one.processor_seconds is not None:
            processor = (processor or 0.0) + one.processor_seconds
        sums[one.name] = (seconds + one.seconds, processor)
    for name, (seconds, processor) in sums.items():
        table.add_row(name, f"{seconds:.0f}", "" if processor is None else f"{processor:.0f}")
    downloads = sums.get(DOWNLOADS, (0.0, None))[0]
    own = total_seconds - downloads
    Console().print(table)
    print(f"total: {own / 60:.1f} minutes, and {downloads / 60:.1f} minutes of downloads")
    if minutes is not None:
        said = "within" if own <= minutes * 60 else "OVER"
        print(f"budget: {minutes:.0f} minutes on two idle cores; this run is {said} the budget")


def main(words: Sequence[str]) -> int:
    """Run the named parts; see the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.check_runner", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("parts", nargs="*", metavar="NAME=COMMAND")
    parser.add_argument("--first", action="store_true", help="forget the times of earlier runs")
    parser.add_argument("--last", action="store_true", help="print the table of all times")
    parser.add_argument("--minutes", type=float, help="the budget of the whole target")
    given = parser.parse_args(words)
    if given.first:
        TIMES.unlink(missing_ok=True)
    parts = []
    for word in given.parts:
        name, _, command = word.partition("=")
        parts.append(Part(name, command, live=not parts))
    began = time.time()
    good, took = run_parts(parts)
    write_times(TIMES, took)
    if given.last and TIMES.exists():
        start = TIMES.with_suffix(".began")
        since = start.stat().st_mtime if start.exists() else began
        print_table(read_times(TIMES), time.time() - since, given.minutes)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The forecast beside its peers, on months that neither has seen: `make bench-forecast`.

2018: what was known by 2018-04-30 judges May and June. Fleet: what was known by 2015-09-30 judges 2015 Q4
and 2016 Q1. Two backtests of `models.lab.backtest`, which `predrain backtest` runs on any history: ours is the
recipe of `predrain train --until`, scored on histories without a failure column; peers are those of
`models.lab.peers`; all are judged by the same protocol on the same resamples. Nothing is kept between runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from rich.console import Console

from predrain.models.evaluate.score_tables import render_evaluation_report
from predrain.models.lab.backtest import BacktestPlan, parse_leave_out, run_backtest
from predrain.models.lab.peers import DEFAULT, NAMES
from predrain.models.lab.report import further_lines
from tests.conftest import data_folder

DAILY = "st4000dm000_2018h1_daily.parquet"
CHANGES = ("fleet_2013_2016q1_changes.parquet", "fleet_2013_2016q1_drives.parquet")


@dataclass(frozen=True)
class Setting:
    """One split: what may be learned until when, and how many days after it judge."""

    name: str
    histories: tuple[str, ...]
    split: date
    judge_days: int


SETTINGS = {
    "2018": Setting("ST4000DM000, May and June 2018", (DAILY, *CHANGES), date(2018, 4, 30), 61),
    "fleet": Setting("whole fleet, 2015 Q4 and 2016 Q1", CHANGES, date(2015, 9, 30), 183),
}


@dataclass
class Stopwatch:
    """Passes progress on to stderr and remembers when each line came."""

    at: dict[str, float] = field(default_factory=lambda: {"": time.monotonic()})

    def __call__(self, line: str) -> None:
        self.at[line] = time.monotonic()
        print(line, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the settings and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.forecast", description=__doc__)
    parser.add_argument("--only", choices=sorted(SETTINGS))
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--baselines", nargs="*", choices=NAMES, default=list(DEFAULT))
    parser.add_argument(
        "--leave-out", nargs="*", type=parse_leave_out, default=[], metavar="KIND[=NAME]",
        help="maker, model or era: trained without each set and judged on it (a training for each set)",
    )  # fmt: skip
    parser.add_argument("--daily", action="store_true", help="judge at daily landmarks beside weekly ones")
    parser.add_argument("--resume", action="store_true", help="take up the bundles that --keep left")
    parser.add_argument("--keep", type=Path, help="folder in which bundles and scores stay")
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print(
            "The drive histories are not here: set PREDRAIN_DATA to the folder that holds drives/.",
            file=sys.stderr,
        )
        return 1
    for key in [options.only] if options.only else SETTINGS:
        with tempfile.TemporaryDirectory() as scratch:
            place = Path(scratch) if options.keep is None else options.keep / key
            run(SETTINGS[key], folder / "drives", place, options)
    return 0


def run(setting: Setting, drives: Path, place: Path, options: argparse.Namespace) -> None:
    """Train, score, judge and print one setting."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    plan = BacktestPlan(
        splits=(setting.split,),
        judge_days=setting.judge_days,
        peers=tuple(options.baselines),
        also_every=(1,) if options.daily else (),
        leave_out=tuple(options.leave_out),
        resume=options.resume,
        resamples=options.resamples,
        threads=options.threads,
    )
    watch = Stopwatch()
    (trial,) = run_backtest([drives / name for name in setting.histories], plan, place, tell=watch).fleets
    (one,) = trial.origins
    console.rule(f"{setting.name}: known by {setting.split}, judged {one.origin.first} to {one.origin.last}")
    for line in render_evaluation_report(trial.report, None):
        console.print(line)
    for line in further_lines(trial, plan):
        console.print(line)
    for peer, note in trial.notes.items():
        console.print(f"{peer}: {note}")
    trained, scored = watch.at["trained"], watch.at["scored"]
    console.print(f"trained in {trained - watch.at['']:.0f} s, scored in {scored - trained:.0f} s")


if __name__ == "__main__":
    sys.exit(main())

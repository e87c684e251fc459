"""The forecast beside its peers, on months that neither has seen: `make bench-forecast`.

2018: what was known by 2018-04-30 judges May and June. Fleet: what was known by 2015-09-30 judges 2015 Q4
and 2016 Q1. Ours is made by the commands a user types (`predrain train --until`, `predrain score`) on
histories without a failure column; peers are those of `models.baselines`; all are judged by the same
protocol on the same resamples. Nothing is kept between runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from data.history import EPOCH, HistoryFiles
from models.baselines import NAMES, baseline_scores
from models.evaluate import Truth, evaluate, read_scores, read_truth
from models.evaluate.cohort import gather
from models.evaluate.table import lines
from tests.conftest import data_folder

DAILY = "st4000dm000_2018h1_daily.parquet"
CHANGES = "fleet_2013_2016q1_changes.parquet"
DRIVES = "fleet_2013_2016q1_drives.parquet"


@dataclass(frozen=True)
class Setting:
    """One split: what may be learned until when, and which months judge."""

    name: str
    learned_from: tuple[str, ...]
    readings: str
    truth: tuple[str, ...]
    until: date
    first: date
    last: date
    snapshots: bool

    @property
    def landmarks(self) -> np.ndarray:
        """Days since 1970-01-01."""
        return np.arange((self.first - EPOCH).days, (self.last - EPOCH).days + 1, 7, dtype=np.int64)


SETTINGS = {
    "2018": Setting(
        "ST4000DM000, May and June 2018", (DAILY, CHANGES, DRIVES), DAILY, (DAILY,),
        date(2018, 4, 30), date(2018, 5, 1), date(2018, 6, 30), snapshots=False,
    ),
    "fleet": Setting(
        "whole fleet, 2015 Q4 and 2016 Q1", (CHANGES, DRIVES), CHANGES, (CHANGES, DRIVES),
        date(2015, 9, 30), date(2015, 10, 1), date(2016, 3, 31), snapshots=True,
    ),
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the settings and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.forecast", description=__doc__)
    parser.add_argument("--only", choices=sorted(SETTINGS))
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--baselines", nargs="*", default=["lgbm_plain", "rf5", "smart_197", "any5", "any5_rise"]
    )
    parser.add_argument("--keep", type=Path, help="folder in which bundles and scores stay")
    options = parser.parse_args(arguments)
    unknown = set(options.baselines) - set(NAMES)
    if unknown:
        parser.error(f"no baseline {', '.join(sorted(unknown))}; known are {', '.join(NAMES)}")
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
            place.mkdir(parents=True, exist_ok=True)
            run(SETTINGS[key], folder / "drives", place, options)
    return 0


def run(setting: Setting, drives: Path, place: Path, options: argparse.Namespace) -> None:
    """Train, score, judge and print one setting."""
    console = Console(width=None if sys.stdout.isatty() else 130)
    truth = read_truth([drives / name for name in setting.truth])
    readings = place / "readings.parquet"
    _without_failures(drives / setting.readings, readings, truth if setting.snapshots else None, setting)
    started = time.monotonic()
    threads = ("--threads", options.threads)
    known = [drives / name for name in setting.learned_from]
    _predrain("train", *known, "--until", setting.until, "--out", place / "bundle", *threads)
    trained = time.monotonic()
    asked = ("--from", setting.first, "--to", setting.last, "--every", 7, "--out", place / "predrain.parquet")
    _predrain("score", readings, *asked, "--bundle", place / "bundle", *threads)
    scored = time.monotonic()
    history = HistoryFiles([readings], threads=options.threads).read()
    tables = baseline_scores(
        options.baselines, history, truth, setting.landmarks, split=(setting.until - EPOCH).days, seed=0,
        threads=options.threads, tell=lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    del history
    for name, table in tables.items():
        pq.write_table(table, place / f"{name}.parquet")
    report = evaluate(
        truth,
        [(name, read_scores(place / f"{name}.parquet")) for name in ("predrain", *tables)],
        resamples=options.resamples,
        landmarks=setting.landmarks,
    )
    console.rule(f"{setting.name}: known by {setting.until}, judged {setting.first} to {setting.last}")
    for line in lines(report, None):
        console.print(line)
    console.print(f"trained in {trained - started:.0f} s, scored in {scored - trained:.0f} s")


def _predrain(*words: object) -> None:
    subprocess.run([Path(sys.executable).with_name("predrain"), *map(str, words)], check=True)


def _without_failures(source: Path, out: Path, truth: Truth | None, setting: Setting) -> None:
    """The history as it is scored: no failure column; with a truth, a carried-forward row a drive and
    landmark.

    Change points say nothing of a drive that did not change; the judge's sets hold such a row (snapshot
    true) for each drive in service, so that it is scored.
    """
    table = pq.read_table(source)
    if "failure" in table.column_names:
        table = table.drop_columns(["failure"])
    if truth is not None:
        cohort = gather(truth, setting.landmarks)
        drive = cohort.truth_drive[cohort.drive]
        carried = table.take(pa.array(_last_rows(table, truth, drive, cohort.landmark)))
        day = pa.array(cohort.landmark.astype(np.int32), pa.int32()).cast(pa.date32())
        carried = carried.set_column(carried.column_names.index("date"), "date", day)
        flag = pa.array(np.ones(len(carried), dtype=bool))
        carried = carried.set_column(carried.column_names.index("snapshot"), "snapshot", flag)
        # Of rows of one day the last wins: the drive's own reading must stand after a carried one.
        table = pa.concat_tables([carried, table])
    pq.write_table(table, out, compression="zstd")


def _last_rows(table: pa.Table, truth: Truth, drive: np.ndarray, landmark: np.ndarray) -> np.ndarray:
    """Place in the table of each drive's last row up to its landmark."""
    serial = table["serial_number"].cast(pa.string()).to_numpy(zero_copy_only=False)
    number = {str(name): place for place, name in enumerate(truth.serials)}
    key = np.array([number[str(name)] for name in serial], dtype=np.int64) << 20
    key |= table["date"].cast(pa.int32()).to_numpy().astype(np.int64)
    order = np.argsort(key, kind="stable")
    place = np.searchsorted(key[order], (drive << 20) | landmark, side="right") - 1
    return order[place]


if __name__ == "__main__":
    sys.exit(main())

"""The recipe that ships, on months that it has not seen: `python -m tests.bench.shipped_recipe` (PREDRAIN_DATA).

The shipped bundle takes base rates from whole lives to 2025 (models/tables/lives.json), which no backtest may know.
Here these lives are counted as they were known on 2018-04-30. Two bundles are trained, one with these lives and one
without them, and both are judged on May and June 2018 by the protocol of `make bench-forecast`. The public counts have
no such past: they are totals to 2024, without days, and stay out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np

from predrain.models.deploy.model_card import card_of
from predrain.models.forecast.drive_family import Counts
from predrain.models.forecast.training import save_trained_bundle, train_forecaster
from predrain.models.tables.make import count_lives
from tests.bench.forecast import SETTINGS
from tests.conftest import data_folder

PREDRAIN = Path(sys.executable).parent / "predrain"
JUDGED = ("--from", "2018-05-01", "--to", "2018-06-30")


def read_lives(drives: Path, until: date) -> Counts:
    """Whole lives as they were known on a day."""
    counted = count_lives(drives, until)
    return {model: (np.array(ages)[:, 0], np.array(ages)[:, 1]) for model, ages in counted.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, score and judge, and print the comparison."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.shipped_recipe", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print("set PREDRAIN_DATA to the folder that holds drives/", file=sys.stderr)
        return 1
    setting, drives = SETTINGS["2018"], folder / "drives"
    histories = [drives / name for name in setting.histories]
    lives = read_lives(drives, setting.split)
    with tempfile.TemporaryDirectory(prefix="predrain-shipped-") as scratch:
        scores = []
        for name, known in (("with-lives", lives), ("without-lives", None)):
            place = Path(scratch) / name
            print(f"training {name}", file=sys.stderr, flush=True)
            trained = train_forecaster(
                histories, name=name, until=setting.split, lives=known, threads=options.threads,
                tell=lambda line: print(line, file=sys.stderr, flush=True),
            )  # fmt: skip
            save_trained_bundle(trained, place, card_of(trained.facts))
            scores.append(place.with_suffix(".parquet"))
            subprocess.run(
                [PREDRAIN, "score", histories[0], *JUDGED, "--bundle", place, "--out", scores[-1]], check=True
            )
        return subprocess.run(
            [PREDRAIN, "evaluate", scores[0], *JUDGED, "--truth", histories[0], "--baseline", scores[1]],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())

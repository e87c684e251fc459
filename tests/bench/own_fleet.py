"""The gain from continuing a training on one's own fleet, for fleets of 450, 2,000 and 30,000 drives in 24 months.

`python -m tests.bench.own_fleet`: the drives of the fleet of 2013 to 2016 are split by chance. One half trains the
bundle that "ships", with what was known by 2014-03-31. Fleets are drawn from the other half, in which models come and
go. After their first year each fleet trains twice: alone, where it has deaths enough, and continued from what shipped.
The second year judges the shipped bundle, the continued one and the one alone, with one landmark a week. The figures
are the recall of the failures at thresholds that 1 % and 0.1 % of the healthy months reach, the expected over the
observed failures, and the share of the cost of the failures that drains would have saved. A failure costs 10 times as
much as a drain, and a drain starts at a chance of 10 % within 30 days.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from predrain.data.history import EPOCH
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.deploy.model_card import card_of
from predrain.models.evaluate import FailureTruth, read_truth
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.landmarks import hash_serials
from predrain.models.forecast.training import (
    TooLittleHistory,
    TrainingFoundation,
    save_trained_bundle,
    train_forecaster,
)
from predrain.models.lab.backtest.judged_readings import without_fates
from tests.bench.forecast import CHANGES
from tests.bench.frozen_bundle import WEEK, join_books, list_lives, score_weekly
from tests.conftest import data_folder

SHIPPED_BY, LEARNED_BY = date(2014, 3, 31), date(2015, 3, 31)
JUDGED = (date(2015, 4, 1), date(2016, 2, 29))
FLEETS = ((450, 8), (2_000, 4), (30_000, 1))
"""Drives of a fleet, and how many such fleets are drawn; their forecasts are judged together."""
WAYS = ("shipped", "continued", "alone")
MONTH, FAILURE_COST, STARTS = 30, 10.0, 0.1
SEED = 20261124


@dataclass(frozen=True, slots=True)
class Figures:
    """How one way did, over all fleets of a size."""

    trained: int
    """Fleets that could be trained this way; those that could not kept the bundle that shipped."""
    failures: int
    recall: tuple[float, float]
    """At 0.1 % and 1 % of the healthy months."""
    expected: float
    saved: float
    """Share of the cost of the failures."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.own_fleet", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print("The drive histories are not here: set PREDRAIN_DATA.", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="predrain-own-fleet-") as scratch:
        Console(width=110).print(
            measure([folder / "drives" / name for name in CHANGES], Path(scratch), options.threads)
        )
    return 0


def measure(paths: Sequence[Path], scratch: Path, threads: int) -> Table:
    """Train and judge every fleet."""
    truth = read_truth(paths)
    first, last = ((day - EPOCH).days for day in JUDGED)
    readings = scratch / "readings.parquet"
    without_fates(paths[:1], readings, truth, np.arange(first, last + 1, WEEK, dtype=np.int64))
    strangers = hash_serials(truth.serials) // 17 % 2 == 0
    shipped = _train(paths, SHIPPED_BY, ~strangers, truth, scratch / "shipped", threads, None)
    assert shipped is not None
    foundation = TrainingFoundation.load_bundle(scratch / "shipped")
    book = score_weekly(readings, shipped, *JUDGED, threads)
    table = Table(
        "drives",
        "way",
        "trained",
        "failures",
        "recall at 0.1 %",
        "at 1 %",
        "expected / observed",
        "cost saved",
    )
    for size, fleets in FLEETS:
        books: dict[str, list[ScorebookForecasts]] = {way: [] for way in WAYS}
        trained = dict.fromkeys(WAYS, fleets)
        for number, mine in enumerate(_draw_fleets(truth, strangers, size, fleets)):
            own = book.select_lines(np.isin(book.device.astype(str), truth.serials[mine].astype(str)))
            books["shipped"].append(own)
            for way, onto in (("continued", foundation), ("alone", None)):
                folder = scratch / f"{way}-{size}-{number}"
                made = _train(paths, LEARNED_BY, ~mine, truth, folder, threads, onto)
                trained[way] -= made is None
                scored = own if made is None else score_weekly(readings, made, *JUDGED, threads)
                books[way].append(
                    scored.select_lines(np.isin(scored.device.astype(str), own.device.astype(str)))
                )
        for way in WAYS:
            told = _judge(join_books(books[way]), truth, trained[way])
            table.add_row(
                f"{fleets} x {size:,}", way, str(told.trained), str(told.failures),
                *(f"{share:.3f}" for share in told.recall), f"{told.expected:.2f}", f"{told.saved:.1%}",
            )  # fmt: skip
    return table


def _draw_fleets(
    truth: FailureTruth, strangers: NDArray[np.bool_], size: int, fleets: int
) -> list[NDArray[np.bool_]]:
    """Fleets without a drive in common, of drives that were in service in these 24 months. Each: (drives,)."""
    begin, end = ((day - EPOCH).days for day in (SHIPPED_BY, JUDGED[1]))
    there = np.flatnonzero(~strangers & (truth.last > begin) & (truth.first <= end))
    order = np.random.default_rng(SEED).permutation(there)
    found = []
    for number in range(fleets):
        mine = np.zeros(len(truth.serials), dtype=bool)
        mine[order[number * size : (number + 1) * size]] = True
        found.append(mine)
    return found


def _train(
    paths: Sequence[Path],
    until: date,
    barred: NDArray[np.bool_],
    truth: FailureTruth,
    folder: Path,
    threads: int,
    onto: TrainingFoundation | None,
) -> Bundle | None:
    print(f"training {folder.name}", file=sys.stderr)
    exclude = frozenset(truth.serials[barred].astype(str).tolist())
    try:
        trained = train_forecaster(
            paths, name=folder.name, until=until, exclude=exclude, threads=threads, onto=onto
        )
    except TooLittleHistory as why:
        print(why, file=sys.stderr)
        return None
    save_trained_bundle(trained, folder, card_of(trained.facts))
    return Bundle.load(folder)


def _judge(book: ScorebookForecasts, truth: FailureTruth, trained: int) -> Figures:
    lives = list_lives(truth, truth.end)
    devices, drive = np.unique(book.device.astype(str), return_inverse=True)
    at = lives.find_positions(devices.astype(object))
    death = np.where(lives.died[at], lives.last[at], 1 << 40)[drive]
    p, left = book.p[:, 2], death - book.day
    dies = (left > 0) & (left <= MONTH)
    healthy = (lives.last[at][drive] >= book.day + MONTH) & ~dies
    month = (book.day - int(book.day.min())) // MONTH
    worst = _worst(drive[healthy] * 1_000 + month[healthy], p[healthy])
    sick = _worst(drive[dies], p[dies])
    recall = tuple(float((sick > np.quantile(worst, 1 - share)).mean()) for share in (0.001, 0.01))
    known = dies | healthy
    # A drive that is drained costs its bytes once; one that dies with them costs FAILURE_COST times them.
    called = np.unique(drive[healthy & (p >= STARTS)])
    safe, needless = int((sick >= STARTS).sum()), len(np.setdiff1d(called, drive[dies]))
    saved = safe * (FAILURE_COST - 1) - needless
    return Figures(
        trained,
        len(sick),
        (recall[0], recall[1]),
        float(p[known].sum() / max(int(dies.sum()), 1)),
        saved / (FAILURE_COST * max(len(sick), 1)),
    )


def _worst(group: NDArray[np.int64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The highest chance in each group."""
    _, at = np.unique(group, return_inverse=True)
    found = np.zeros(int(at.max(initial=-1)) + 1)
    np.maximum.at(found, at, p)
    return found


if __name__ == "__main__":
    raise SystemExit(main())

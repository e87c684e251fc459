"""A bundle that is left alone for five quarters, beside one that is trained again before each of them.

`python -m tests.bench.frozen_bundle` trains on the fleet of 2013 and 2014, and judges 2015 and the first quarter of
2016 with one landmark a week. It compares three ways. The frozen bundle keeps the thresholds and base rates of the
training. The bundle in service follows the fleet: once a month its base rates and thresholds are learned from the
forecasts and failures so far, as in `service.forecasting.forecast_health`. The third bundle is trained again before
each quarter.

The table has for each quarter the share of the failures that were called bad or a warning in the 30 days before, and
the share of the healthy months that were called so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from predrain.data.history import EPOCH
from predrain.data.lifespan import Lifespans
from predrain.data.outlook import Status
from predrain.data.scorebook import ScorebookForecasts
from predrain.models.deploy.model_card import card_of
from predrain.models.deploy.model_comparison import (
    CalibrationVerdict,
    Comparison,
    compare_bundles,
    measure_family_calibration,
)
from predrain.models.evaluate import FailureTruth, read_truth
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.experience import FleetExperience, learn_from_fleet
from predrain.models.forecast.fleet_thresholds import FOLLOWED_DAYS
from predrain.models.forecast.history_scores import score_landmark_days
from predrain.models.forecast.training import save_trained_bundle, train_forecaster
from predrain.models.lab.backtest.judged_readings import without_fates
from tests.bench.forecast import CHANGES
from tests.conftest import data_folder

SPLIT = date(2014, 12, 31)
QUARTERS = (
    (date(2015, 1, 1), date(2015, 3, 31)),
    (date(2015, 4, 1), date(2015, 6, 30)),
    (date(2015, 7, 1), date(2015, 9, 30)),
    (date(2015, 10, 1), date(2015, 12, 31)),
    (date(2016, 1, 1), date(2016, 3, 31)),
)
MONTH, WEEK = timedelta(30), 7
WAYS = ("frozen", "in service", "trained anew")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.frozen_bundle", description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print("The drive histories are not here: set PREDRAIN_DATA.", file=sys.stderr)
        return 1
    paths = [folder / "drives" / name for name in CHANGES]
    with tempfile.TemporaryDirectory(prefix="predrain-left-alone-") as scratch:
        table, alert = measure(paths, Path(scratch), options.threads)
        Console(width=120).print(table)
        print(alert)
    return 0


def measure(paths: Sequence[Path], scratch: Path, threads: int) -> tuple[Table, str]:
    """Train, score month by month, judge each quarter, and report when the alert of the calibration first stood."""
    truth = read_truth(paths)
    readings = scratch / "readings.parquet"
    first = (QUARTERS[0][0] - EPOCH).days
    landmarks = np.arange(first - FOLLOWED_DAYS, truth.end + 1, WEEK, dtype=np.int64)
    without_fates(paths[:1], readings, truth, landmarks)
    bundle = _train(paths, SPLIT, scratch / "alone", threads)
    alone = score_weekly(readings, bundle, QUARTERS[0][0] - timedelta(FOLLOWED_DAYS), SPLIT, threads)
    books = {"frozen": score_weekly(readings, bundle, QUARTERS[0][0], QUARTERS[-1][1], threads)}
    books["in service"] = _serve(readings, bundle, truth, alone, threads)
    anew = [
        score_weekly(
            readings,
            _train(paths, begin - timedelta(1), scratch / f"anew-{begin}", threads),
            begin,
            end,
            threads,
        )
        for begin, end in QUARTERS
    ]
    books["trained anew"] = join_books(anew)
    table = Table(
        "quarter", "way", "failures", "bad", "warning or bad", "healthy months", "bad", "warning or bad"
    )
    for begin, end in QUARTERS:
        known = list_lives(truth, (end - EPOCH).days + 31)
        for way in WAYS:
            book = books[way]
            low, high = (begin - EPOCH).days, (end - EPOCH).days
            table.add_row(
                str(begin),
                way,
                *_told(
                    compare_bundles({way: book.select_lines((book.day >= low) & (book.day <= high))}, known)
                ),
            )
    return table, _find_alert(books["frozen"], truth, bundle)


def _find_alert(book: ScorebookForecasts, truth: FailureTruth, bundle: Bundle) -> str:
    """When the chances of a family were first evidently off, looked at every 15 days."""
    assert bundle.reference is not None
    first = (QUARTERS[0][0] - EPOCH).days
    for days in range(30, truth.end - first, 15):
        today = first + days
        judged = measure_family_calibration(
            book.select_lines(book.day <= today), list_lives(truth, today), bundle.reference.find_family
        )
        off = [
            f"{one.family} ({one.expected:.0f} expected, {one.observed} seen)"
            for one in judged
            if one.verdict is CalibrationVerdict.OFF
        ]
        if off:
            return f"The alert `calibration` of the frozen bundle stands after {days} days: {', '.join(off)}."
    return "The alert `calibration` of the frozen bundle never stood."


def _told(found: Comparison) -> tuple[str, ...]:
    (one,) = found.standings
    return (
        str(found.failures),
        f"{one.detected_bad / max(found.failures, 1):.3f}",
        f"{one.detected / max(found.failures, 1):.3f}",
        f"{found.windows:,}",
        f"{one.false_alarms_bad / max(found.windows, 1):.2%}",
        f"{one.false_alarms / max(found.windows, 1):.2%}",
    )


def _serve(
    readings: Path, bundle: Bundle, truth: FailureTruth, book: ScorebookForecasts, threads: int
) -> ScorebookForecasts:
    """Forecasts of a bundle that learns once a month what its fleet showed so far."""
    begin, learned = QUARTERS[0][0], FleetExperience()
    while begin <= QUARTERS[-1][1]:
        today = (begin - EPOCH).days - 1
        learned = learn_from_fleet(book, list_lives(truth, today), bundle.facts.thresholds, today)
        followed = learned.thresholds
        assert followed is not None
        print(f"{begin}: {followed}", file=sys.stderr)
        serving = bundle.update_rates(learned.models).with_thresholds(followed)
        end = min(begin + MONTH - timedelta(1), QUARTERS[-1][1])
        book = join_books([book, score_weekly(readings, serving, begin, end, threads)])
        begin = end + timedelta(1)
    return book.select_lines(book.day >= (QUARTERS[0][0] - EPOCH).days)


def _train(paths: Sequence[Path], until: date, folder: Path, threads: int) -> Bundle:
    print(f"training on what was known by {until}", file=sys.stderr)
    trained = train_forecaster(paths, name=folder.name, until=until, threads=threads)
    save_trained_bundle(trained, folder, card_of(trained.facts))
    return Bundle.load(folder)


def score_weekly(readings: Path, bundle: Bundle, first: date, last: date, threads: int) -> ScorebookForecasts:
    tables = [
        part.table
        for part in score_landmark_days(
            [readings], bundle, first=first, last=last, every=WEEK, threads=threads
        )
    ]
    table = pa.concat_tables(tables)
    day = table["date"].to_numpy().astype("datetime64[D]").astype(np.int64)
    statuses = {status.value: status for status in Status}
    return _sorted(
        ScorebookForecasts(
            device=np.array(table["serial_number"].to_pylist(), dtype=object),
            day=day,
            model=np.array(table["model"].to_pylist(), dtype=object),
            status=np.array([statuses[word] for word in table["status"].to_pylist()], dtype=object),
            p=np.stack([table[f"p_fail_{days}d"].to_numpy() for days in (7, 14, 30)], axis=1),
        )
    )


def join_books(books: Sequence[ScorebookForecasts]) -> ScorebookForecasts:
    return _sorted(
        ScorebookForecasts(
            *(
                np.concatenate([getattr(book, name) for book in books])
                for name in ScorebookForecasts.__slots__
            )
        )
    )


def _sorted(book: ScorebookForecasts) -> ScorebookForecasts:
    return book.select_lines(np.lexsort([book.day, book.device.astype(str)]))


def list_lives(truth: FailureTruth, until: int) -> Lifespans:
    """Return the lifespan of each drive as it was known by the end of day `until`."""
    order = np.argsort(truth.serials.astype(str), kind="stable")
    died = truth.death <= until
    last = np.minimum(np.where(died, truth.death, truth.last), until)
    return Lifespans(truth.serials[order].astype(object), truth.first[order], last[order], died[order])


if __name__ == "__main__":
    raise SystemExit(main())

"""The evidence that each counter gives of a coming failure, alone and on disks whose sector counters are clean.

Run `python -m tests.bench.signals` (PREDRAIN_DATA holds drives/). The bench answers two questions for each counter that
the public histories hold. The first is how often disks that show the sign fail within 30 days, beside disks of the same
model that do not show it. The second is the same among disks that show no sector error. Each disk is examined every 28
days.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from tests.conftest import data_folder

EVERY_DAYS = 28
HORIZON_DAYS = 30
RISE_DAYS = 14
SECTOR_COUNTERS = (5, 187, 197, 198)
COUNTERS = {
    "2018, one model": (5, 187, 197, 188),
    "2013 to 2016, 75 models": (5, 187, 197, 188, 10, 12, 189, 196),
}
CYCLED = (12,)
"""Counters that rise in normal work: their level says nothing, only their rise is asked for."""


@dataclass(frozen=True)
class Sign:
    """How disks with a sign fare, beside disks of the same model without it."""

    history: str
    sign: str
    clean_sectors: bool
    """True if only disks without any sector error are counted."""
    disks: int
    failing: int
    ratio: float
    low: float
    high: float
    caught: float
    """Share of the failing landmarks that show the sign."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.signals", description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    folder = data_folder()
    if folder is None:
        print("Set PREDRAIN_DATA to the folder that holds drives/.", file=sys.stderr)
        return 1
    table = Table(
        "history",
        "sign",
        "among",
        "looks with it",
        "failing",
        "times as likely to fail",
        "of all failing",
        box=box.SIMPLE,
    )
    for sign in measure(folder / "drives"):
        if options.json:
            print(json.dumps(asdict(sign)))
            continue
        table.add_row(
            sign.history, sign.sign, "no sector error" if sign.clean_sectors else "all", f"{sign.disks:,}",
            str(sign.failing), _say_ratio(sign), f"{sign.caught:.1%}",
        )  # fmt: skip
    if not options.json:
        Console(width=None if sys.stdout.isatty() else 140).print(table)
    return 0


def _say_ratio(sign: Sign) -> str:
    return f"{sign.ratio:.1f} [{sign.low:.1f}, {sign.high:.1f}]" if sign.failing else "not known"


def measure(folder: Path) -> Iterator[Sign]:
    """The signs of each history, each among all disks and among those without a sector error."""
    for history, looks in (
        ("2018, one model", _look_at_days(folder / "st4000dm000_2018h1_daily.parquet")),
        ("2013 to 2016, 75 models", _look_at_changes(folder)),
    ):
        columns = {n: f"smart_{n}_raw" for n in (*COUNTERS[history], *SECTOR_COUNTERS)}
        clean = np.ones(len(looks), dtype=bool)
        for n in SECTOR_COUNTERS:
            clean &= ~(looks[columns[n]].fillna(0).to_numpy() > 0)
        for n in COUNTERS[history]:
            level = looks[columns[n]].to_numpy(dtype=float)
            before = looks[f"{columns[n]}_before"].to_numpy(dtype=float)
            signs = {f"{n} rose in {RISE_DAYS} days": level > before}
            if n not in CYCLED:
                signs[f"{n} above 0"] = level > 0
            reported = ~np.isnan(level) & ~np.isnan(before)
            for name, shown in signs.items():
                yield _compare(history, name, False, looks[reported], shown[reported])
                if n not in SECTOR_COUNTERS:
                    yield _compare(history, name, True, looks[reported & clean], shown[reported & clean])


def _compare(history: str, sign: str, clean: bool, looks: pd.DataFrame, shown: np.ndarray) -> Sign:
    """Mantel-Haenszel ratio of risks over models, with the interval of Greenland and Robins (1985)."""
    fails = looks["fails"].to_numpy(dtype=bool)
    by_model = pd.DataFrame(
        {"model": looks["model"].to_numpy(), "a": shown & fails, "n1": shown, "b": ~shown & fails, "n0": ~shown}
    ).groupby("model", observed=True).sum().astype(float)  # fmt: skip
    a, n1, b, n0 = (by_model[column].to_numpy() for column in ("a", "n1", "b", "n0"))
    n = np.maximum(n1 + n0, 1)
    above, below = (a * n0 / n).sum(), (b * n1 / n).sum()
    if not above or not below:
        ratio, low, high = float("nan"), 0.0, float("inf")
    else:
        ratio = above / below
        spread = np.sqrt(((n1 * n0 * (a + b) - a * b * n) / n**2).sum() / (above * below))
        low, high = ratio * np.exp(-1.96 * spread), ratio * np.exp(1.96 * spread)
    return Sign(
        history, sign, clean, int(n1.sum()), int(a.sum()), float(ratio), float(low), float(high),
        float(a.sum() / max(1, (a + b).sum())),
    )  # fmt: skip


def _look_at_days(path: Path) -> pd.DataFrame:
    """(looks, columns) of a daily history: each counter and its value RISE_DAYS before, and whether the disk fails."""
    counters = [f"smart_{n}_raw" for n in (5, 187, 188, 197, 198)]
    days = pd.read_parquet(path, columns=["date", "serial_number", "model", "failure", *counters])
    days["date"] = pd.to_datetime(days["date"])
    ends = days.groupby("serial_number", observed=True).agg(
        first=("date", "min"), last=("date", "max"), failure=("failure", "max"), model=("model", "first")
    )
    return _look(ends.reset_index(), days.drop(columns=["failure", "model"]), counters, days["date"].max())


def _look_at_changes(folder: Path) -> pd.DataFrame:
    """The same of a history of changes."""
    counters = [f"smart_{n}_raw" for n in (5, 10, 12, 187, 188, 189, 196, 197, 198)]
    drives = pd.read_parquet(folder / "fleet_2013_2016q1_drives.parquet").rename(
        columns={"first_date": "first", "last_date": "last"}
    )
    changes = pd.read_parquet(
        folder / "fleet_2013_2016q1_changes.parquet", columns=["date", "serial_number", *counters]
    )
    changes["date"] = pd.to_datetime(changes["date"])
    drives["first"], drives["last"] = pd.to_datetime(drives["first"]), pd.to_datetime(drives["last"])
    return _look(
        drives[["serial_number", "model", "first", "last", "failure"]],
        changes,
        counters,
        drives["last"].max(),
    )


def _look(ends: pd.DataFrame, values: pd.DataFrame, counters: list[str], end: pd.Timestamp) -> pd.DataFrame:
    """Looks whose next HORIZON_DAYS are known: the disk fails in them, or is seen alive after them."""
    start = ends["first"].min() + pd.Timedelta(days=RISE_DAYS)
    looks = []
    for day in pd.date_range(start, end - pd.Timedelta(days=HORIZON_DAYS), freq=f"{EVERY_DAYS}D"):
        left = (ends["last"] - day).dt.days
        fails = (ends["failure"] == 1) & (left <= HORIZON_DAYS)
        there = (
            (ends["first"] <= day - pd.Timedelta(days=RISE_DAYS))
            & (left > 0)
            & (fails | (left > HORIZON_DAYS))
        )
        looks.append(ends.loc[there, ["serial_number", "model"]].assign(day=day, fails=fails[there]))
    found = pd.concat(looks).sort_values("day")
    found["serial_number"] = found["serial_number"].astype(object)
    values = values.astype({"serial_number": object}).sort_values("date", kind="stable")
    for suffix, back in (("", 0), ("_before", RISE_DAYS)):
        found["asked"] = (found["day"] - pd.Timedelta(days=back)).astype(values["date"].dtype)
        found = pd.merge_asof(
            found, values.rename(columns={name: name + suffix for name in counters}),
            left_on="asked", right_on="date", by="serial_number",
        ).drop(columns="date")  # fmt: skip
    return found


if __name__ == "__main__":
    raise SystemExit(main())

"""Count deaths and drive-years of drive models, from sources that reach beyond the SMART histories.

Run: python -m predrain.models.tables.make DATA DATA holds drives/lifetable_st4000dm000.parquet,
drives/lifetimes_2016_2025.parquet and evidence/priors/backblaze_afr_by_model_2024q2.csv. Writes lives.json (by year
of age) and public_counts.json (all ages together, without solid-state drives). Both know more than a forecaster of
an earlier day may, so `predrain train --until` leaves them out.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from datetime import date
from pathlib import Path

import duckdb

from predrain.models.forecast.drive_family import normalize_model

AGES = 12
YEAR = 365.25


def main(data: Path) -> None:
    """Write both tables to the folder of this file."""
    write_lives(data / "drives")
    write_public_counts(data / "evidence" / "priors" / "backblaze_afr_by_model_2024q2.csv")


def write_public_counts(source: Path) -> None:
    """Write public_counts.json: its source, and model -> [drives, deaths, drive-years]."""
    models: dict[str, list[float]] = {}
    with source.open(newline="") as rows:
        for row in csv.DictReader(rows):
            if "ssd" in row["model"]:
                continue
            counts = models.setdefault(normalize_model(row["model"]), [0, 0, 0.0])
            counts[0] += int(row["n_unique"])
            counts[1] += int(row["failed"])
            counts[2] += float(row["drive_days"]) / YEAR
    table = {
        "source": "Backblaze Drive Stats 2013 to 2024 Q2, counted by zachmayer/backblaze_analysis, commit 3e8ef7c",
        "terms": "counts: Apache-2.0; data: free use, credit Backblaze, no resale",
        "until": "2024-06-30",
        "models": {name: [n, died, round(lived, 2)] for name, (n, died, lived) in sorted(models.items())},
    }
    text = re.sub(r"\[\s+([\d.]+),\s+([\d.]+),\s+([\d.]+)\s+\]", r"[\1, \2, \3]", json.dumps(table, indent=1))
    Path(__file__).with_name("public_counts.json").write_text(text + "\n")


def write_lives(folder: Path) -> None:
    """Write lives.json: model -> [[deaths, drive-years], ...] by year of age."""
    counted = count_lives(folder)
    rounded = {model: [[int(d), round(y, 2)] for d, y in ages] for model, ages in sorted(counted.items())}
    Path(__file__).with_name("lives.json").write_text(json.dumps(rounded, indent=1) + "\n")


def count_lives(folder: Path, until: date | None = None) -> dict[str, list[list[float]]]:
    """Count deaths and drive-years by year of age of each model.

    until: the counts are those known on that day. One table has only calendar years; of it, the years that were
    over by then count.
    """
    sql = duckdb.connect(":memory:")
    last = date.max if until is None else until
    table, lives = (folder / f"{name}.parquet" for name in ("lifetable_st4000dm000", "lifetimes_2016_2025"))
    counted: dict[str, list[list[float]]] = {"ST4000DM000": [[0, 0.0] for _ in range(AGES)]}
    for month, days, failed in sql.execute(
        "SELECT age_month, sum(drive_days), sum(failed) FROM read_parquet(?) WHERE year < ? GROUP BY 1 ORDER BY 1",
        [str(table), last.year],
    ).fetchall():
        age = min(int((month + 0.5) * 30 / YEAR), AGES - 1)
        counted["ST4000DM000"][age][0] += int(failed)
        counted["ST4000DM000"][age][1] += float(days) / YEAR
    for model, days, failed in sql.execute(
        "SELECT model::VARCHAR, least(end_date, ?) - installed, event = 'failed' AND end_date <= ? "
        "FROM read_parquet(?) WHERE installed < ? ORDER BY ALL",
        [last, last, str(lives), last],
    ).fetchall():
        ages = counted.setdefault(model, [[0, 0.0] for _ in range(AGES)])
        for age in range(AGES):
            ages[age][1] += min(max(days / YEAR - age, 0.0), 1.0 if age < AGES - 1 else 99.0)
        if failed:
            ages[min(int(days / YEAR), AGES - 1)][0] += 1
    return counted


if __name__ == "__main__":
    main(Path(sys.argv[1]))

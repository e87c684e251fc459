"""Count deaths and drive-years by year of age, from whole lives that reach beyond the SMART histories.

Run: python -m models.tables.make FOLDER
FOLDER holds lifetable_st4000dm000.parquet and lifetimes_2016_2025.parquet.
Writes lives.json. It knows the years to 2025, so `predrain train --until` leaves it out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

AGES = 12
YEAR = 365.25


def main(folder: Path) -> None:
    """Write lives.json beside this file: model -> [[deaths, drive-years], ...] by year of age."""
    sql = duckdb.connect(":memory:")
    table, lives = (folder / f"{name}.parquet" for name in ("lifetable_st4000dm000", "lifetimes_2016_2025"))
    counted: dict[str, list[list[float]]] = {"ST4000DM000": [[0, 0.0] for _ in range(AGES)]}
    for month, days, failed in sql.execute(
        "SELECT age_month, sum(drive_days), sum(failed) FROM read_parquet(?) GROUP BY 1 ORDER BY 1",
        [str(table)],
    ).fetchall():
        age = min(int((month + 0.5) * 30 / YEAR), AGES - 1)
        counted["ST4000DM000"][age][0] += int(failed)
        counted["ST4000DM000"][age][1] += float(days) / YEAR
    for model, days, failed in sql.execute(
        "SELECT model::VARCHAR, end_date - installed, event = 'failed' FROM read_parquet(?) ORDER BY ALL",
        [str(lives)],
    ).fetchall():
        ages = counted.setdefault(model, [[0, 0.0] for _ in range(AGES)])
        for age in range(AGES):
            ages[age][1] += min(max(days / YEAR - age, 0.0), 1.0 if age < AGES - 1 else 99.0)
        if failed:
            ages[min(int(days / YEAR), AGES - 1)][0] += 1
    rounded = {model: [[int(d), round(y, 2)] for d, y in ages] for model, ages in sorted(counted.items())}
    Path(__file__).with_name("lives.json").write_text(json.dumps(rounded, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

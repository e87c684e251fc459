"""Cut the small real samples of this folder out of the shared histories.

Run: python tests/data/drives/make.py FOLDER_WITH_THE_SHARED_DRIVES
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import duckdb

HERE = Path(__file__).parent


def first(serials: list[str], count: int) -> list[str]:
    """The first `count` serial numbers by a fixed hash."""
    return sorted(sorted(serials, key=lambda s: zlib.crc32(s.encode()))[:count])


def main(folder: Path) -> None:
    """Write daily.parquet, changes.parquet and drives.parquet."""
    daily, changes, drives = (
        str(folder / f"{name}.parquet")
        for name in ("st4000dm000_2018h1_daily", "fleet_2013_2016q1_changes", "fleet_2013_2016q1_drives")
    )
    sql = duckdb.connect(":memory:")

    def serials(query: str) -> list[str]:
        return [row[0] for row in sql.execute(query).fetchall()]

    ends = f"SELECT serial_number::VARCHAR s, max(failure) f, count(*) n FROM '{daily}' GROUP BY 1"
    failed = first(serials(f"SELECT s FROM ({ends}) WHERE f = 1 AND n > 40"), 36)
    marked = first(
        serials(f"SELECT DISTINCT serial_number::VARCHAR FROM '{daily}' WHERE smart_197_raw > 0"), 20
    )
    quiet = first(serials(f"SELECT s FROM ({ends}) WHERE f = 0 AND n > 170"), 50)
    write(sql, f"SELECT * FROM '{daily}'", {*failed, *marked, *quiet}, "serial_number, date", "daily")
    died = first(serials(f"SELECT serial_number FROM '{drives}' WHERE failure = 1"), 150)
    lived = first(serials(f"SELECT serial_number FROM '{drives}' WHERE failure = 0"), 500)
    write(sql, f"SELECT * FROM '{changes}'", {*died, *lived}, "serial_number, date, smart_9_raw", "changes")
    write(sql, f"SELECT * FROM '{drives}'", {*died, *lived}, "serial_number", "drives")


def write(sql: duckdb.DuckDBPyConnection, rows: str, serials: set[str], order: str, name: str) -> None:
    """Write the rows of these drives, sorted."""
    sql.execute("CREATE OR REPLACE TABLE wanted AS SELECT unnest(?) AS serial", [sorted(serials)])
    sql.execute(
        f"COPY (SELECT * FROM ({rows}) WHERE serial_number::VARCHAR IN (SELECT serial FROM wanted) "
        f"ORDER BY {order}) TO '{HERE / name}.parquet' "
        "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

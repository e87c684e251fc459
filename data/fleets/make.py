# ruff: noqa: S608 - table functions, columns and days cannot be bound as parameters; paths are quoted
"""Cut the demo's fleet from the 2018 history: drives chosen by a hash of their serial number, never trained on.

Run: python -m predrain.data.fleets.make ST4000DM000_2018H1_DAILY.parquet

Writes heldout_serials.txt (1 in 20 of all drives) and demo.parquet (those of them that fail, and 500 that do not).
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
HEALTHY = 500


def hash_serial_number(serial: str) -> int:
    """Return a fixed number for each serial number."""
    return zlib.crc32(f"heldout:{serial}".encode())


def write_demo_fleet(source: Path) -> None:
    """Write both files into the folder of this module."""
    connection = duckdb.connect(":memory:")
    connection.read_parquet(str(source)).create_view("history")
    rows = connection.execute(
        "SELECT serial_number::VARCHAR, max(failure), max(date) = DATE '2018-06-30' AND count(*) = 181 "
        "FROM history GROUP BY 1 ORDER BY 1"
    ).fetchall()
    held = [row for row in rows if hash_serial_number(row[0]) % 20 == 0]
    (HERE / "heldout_serials.txt").write_text("".join(f"{serial}\n" for serial, _, _ in held))
    failed = [serial for serial, failure, _ in held if failure]
    whole = [serial for serial, failure, stays in held if stays and not failure]
    shown = failed + sorted(whole, key=hash_serial_number)[:HEALTHY]
    fates = ["failed"] * len(failed) + ["in service"] * (len(shown) - len(failed))
    connection.execute("CREATE TABLE shown AS SELECT unnest(?) AS serial, unnest(?) AS fate", [shown, fates])
    connection.execute(
        'COPY (SELECT h.*, s.fate AS "end" FROM history h JOIN shown s ON h.serial_number::VARCHAR = s.serial'
        " ORDER BY s.serial, h.date) TO '" + str(HERE / "demo.parquet") + "' "
        "(FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 19)"
    )


if __name__ == "__main__":
    write_demo_fleet(Path(sys.argv[1]))

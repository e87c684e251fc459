"""A whole fleet through one process, and through workers over a real Kafka and PostgreSQL.

`python -m tests.bench.whole_fleet --drives 100000` kills and adds workers while they run, and compares bit by bit what
both ways store. Before that, it measures the memory that a worker takes for a drive (`--drives 0`: only that).

The run takes half an hour for 100,000 drives on two cores. `--folder` names the place for the data of both servers,
which take some GB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from predrain.data.store.postgres_store import migrate_postgres_store
from tests.bench.drive_memory import DAYS, remembered
from tests.bench.figure import MissingInput
from tests.system.kafka.broker import Broker
from tests.system.postgres.server import running
from tests.system.stream.trial import Trial, tried


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print; 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.whole_fleet", description=__doc__)
    parser.add_argument("--drives", type=int, default=100_000)
    parser.add_argument("--days", type=int, default=3)
    parser.add_argument(
        "--remembered", type=int, default=2_000, help="drives whose memory is measured; 0: none"
    )
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args(arguments)
    if options.remembered:
        print(memory(options.remembered), flush=True)
    if not options.drives:
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, running() as server:
        database = server.url(server.database())
        migrate_postgres_store(database)
        (Path(folder) / "kafka").mkdir()
        kafka = Broker(Path(folder) / "kafka").start()
        try:
            found = tried(kafka, database, Path(folder), options.drives, options.days)
        finally:
            kafka.stop()
    print(told(found))
    return 0 if found.alike else 1


def memory(drives: int) -> str:
    """Return a line with the memory that a drive takes in a worker, or with the input that is missing."""
    try:
        found = remembered(drives)
    except MissingInput as missing:
        return str(missing)
    sizes = ", ".join(f"{what} {size / 1000:.1f} kB" for what, size in found.items())
    return f"a worker remembers of a drive with {DAYS} days of history: {sizes}"


def told(found: Trial) -> str:
    """The trial in lines."""
    alone, together = found.told
    unlike = {table: len(devices) for table, devices in found.unlike.items()}
    count = found.readings
    lines = [
        f"{count:,} readings, two in a hundred a day late, one in a hundred twice",
        _line("one process, SQLite", count, *found.alone),
        _line("into Kafka", count, found.sent),
        _line("workers, Kafka, PostgreSQL", count, *found.shared),
        *(f"  {step}" for step in found.steps),
        f"peak of each worker        {', '.join(f'{peak / 1e6:,.0f} MB' for peak in found.peaks)}",
        f"devices that differ        {unlike or 'none'}",
        f"announced                  {len(alone):,}, not the same: {len(alone ^ together):,}",
    ]
    return "\n".join(lines)


def _line(what: str, count: int, seconds: float, burnt: float | None = None) -> str:
    processor = "" if burnt is None else f", {burnt:,.0f} s of processor"
    return f"{what:26} {seconds:7,.0f} s  {count / seconds:6,.0f}/s{processor}"


if __name__ == "__main__":
    sys.exit(main())

"""The table of the levels that drives in service reach, by which the rules judge a level that was read once.

Run: python -m tests.bench.fleet_tables
The module reads PREDRAIN_DATA/evidence/fleet-snapshots through the decoder of live drives and writes
models/tables/fleets.json.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from predrain.data.reading import Reading, Smart
from predrain.models.forecast.rules.fleet_levels import SHARES, TABLE, DriveKind
from tests.bench import evidence
from tests.conftest import data_folder

FLEET: Final = "enterprise"
"""Of the two fleets the servers: of nearly every counter fewer of its drives than of desktops have any."""
SOURCE: Final = (
    "One smartctl report each of drives in service in servers, 2019 to 2025, from "
    "https://github.com/linuxhw/EnterpriseDrive (66faf20), CC BY 4.0. Made by tests/bench/fleet_tables.py."
)
_SECTORS: Final = (
    "reallocated",
    "pending",
    "offline_uncorrectable",
    "reported_uncorrectable",
    "end_to_end_errors",
    "command_timeouts",
    "crc_errors",
)
COUNTERS: Final[Mapping[DriveKind, Sequence[str]]] = {
    DriveKind.HARD_DISK: _SECTORS,
    DriveKind.SATA_SSD: _SECTORS,
    DriveKind.NVME: ("media_errors",),
}
LARGEST: Final = 2**32 - 1
"""All ones: no count."""


def main() -> int:
    """Write the table."""
    folder = data_folder()
    if folder is None:
        print("Set PREDRAIN_DATA to the folder that holds evidence/.", file=sys.stderr)
        return 1
    TABLE.write_text(json.dumps(make_table(folder / "evidence"), indent=1) + "\n")
    return 0


def make_table(folder: Path) -> dict[str, Any]:
    """Return the content of models/tables/fleets.json."""
    return {"source": SOURCE, "kinds": {kind.value: make_standings(folder, kind) for kind in DriveKind}}


def make_standings(folder: Path, kind: DriveKind) -> dict[str, Any]:
    """The part of the table that is of one kind, by counter."""
    readers = {
        DriveKind.HARD_DISK: evidence.hard_disks_in_service,
        DriveKind.SATA_SSD: evidence.ssds_in_service,
        DriveKind.NVME: evidence.nvme_in_service,
    }
    counted = _count(readers[kind](folder), COUNTERS[kind])
    return {name: _limits(values) for name, values in sorted(counted.items())}


def _count(drives: Iterable[tuple[str, Reading]], names: Sequence[str]) -> Mapping[str, Counter[int]]:
    """How many drives of FLEET report which value, by counter."""
    found: dict[str, Counter[int]] = {name: Counter() for name in names}
    for fleet, reading in drives:
        if fleet != FLEET or not isinstance(reading.seen, Smart):
            continue
        for name in names:
            value = getattr(reading.seen.counters, name)
            if value is not None and value < LARGEST:
                found[name][value] += 1
    return found


def _limits(values: Counter[int]) -> dict[str, Any]:
    """`limits`: for each of SHARES the lowest count, at least 1, that no more than this share of drives reach."""
    drives = values.total()
    limits: dict[str, int] = {}
    for share in SHARES:
        reached, limit = 0, max(values) + 1
        for value, many in sorted(values.items(), reverse=True):
            reached += many
            if value < 1 or reached > math.floor(share * drives):
                break
            limit = value
        limits[f"{share:g}"] = limit
    return {"drives": drives, "above_zero": drives - values[0], "limits": limits}


if __name__ == "__main__":
    raise SystemExit(main())

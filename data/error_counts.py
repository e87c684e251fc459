"""Counts of a reading that speak against its disk, whatever its protocol: what rises is news."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from predrain.data.reading import Smart

ERROR_COUNTERS: Final = (
    "reallocated",
    "pending",
    "offline_uncorrectable",
    "reported_uncorrectable",
    "command_timeouts",
    "crc_errors",
    "end_to_end_errors",
    "media_errors",
    "grown_defects",
    "uncorrected_errors",
)
"""Counters of `data.reading.Counters` that count errors or worn-out sectors."""
ERROR_ATTRIBUTES: Final = (5, 10, 184, 187, 188, 196, 197, 198, 199)
"""ATA attributes that say the same."""

ATA_COUNTERS: Final[Mapping[int, str]] = {
    5: "reallocated",
    187: "reported_uncorrectable",
    188: "command_timeouts",
    197: "pending",
    198: "offline_uncorrectable",
    199: "crc_errors",
}
"""SMART id of a SATA drive -> the counter that says the same."""
SAS_COUNTERS: Final[Mapping[int, str]] = {5: "grown_defects", 187: "uncorrected_errors", 197: "pending"}
"""SMART id of a SATA drive -> the counter of a SAS drive that means the same. A grown defect is a block that the drive
gave up in service (SBC-4), as a reallocated sector is; a pending defect is in its background scan's list and not yet
reassigned; an uncorrected error is a read, write or verification that failed in spite of all corrections (SPC-5)."""


def count_errors(seen: Smart) -> dict[str, int]:
    """Each count that the reading tells, by the counter's name or the attribute's number."""
    found: dict[str, int] = {}
    for name in ERROR_COUNTERS:
        count = getattr(seen.counters, name)
        if count is not None:
            found[name] = count
    for number in ERROR_ATTRIBUTES:
        if number in seen.attributes:
            found[str(number)] = seen.attributes[number].raw
    return found


def find_risen(before: Smart, after: Smart) -> tuple[str, ...]:
    """Names of the counts that are higher than before; a count that one of the two lacks has not risen."""
    old = count_errors(before)
    return tuple(name for name, count in count_errors(after).items() if count > old.get(name, count))

"""The counts of a reading that are evidence against its disk in every protocol: a rise in one is news."""

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
"""ATA attributes with the same meaning."""

ATA_COUNTERS: Final[Mapping[int, str]] = {
    5: "reallocated",
    187: "reported_uncorrectable",
    188: "command_timeouts",
    197: "pending",
    198: "offline_uncorrectable",
    199: "crc_errors",
}
"""Counter with the same meaning for each SMART id of a SATA drive."""
SAS_COUNTERS: Final[Mapping[int, str]] = {5: "grown_defects", 187: "uncorrected_errors", 197: "pending"}
"""Counter of a SAS drive with the same meaning for each SMART id of a SATA drive. A grown defect is a block that the
drive gave up in service (SBC-4), as a reallocated sector is. A pending defect is in its background scan's list and
not yet reassigned. An uncorrected error is a read, write or verification that failed in spite of all corrections
(SPC-5)."""


def count_errors(seen: Smart) -> dict[str, int]:
    """Return each count of the reading, by the counter's name or the attribute's number."""
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
    """Return the names of the counts that are higher than before; a count that one of the two lacks has not risen."""
    old = count_errors(before)
    return tuple(name for name, count in count_errors(after).items() if count > old.get(name, count))

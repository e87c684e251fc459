"""smartctl's exit status, a mask: bits 0-1 mean that nothing was read, the others are about the disk.

Bit 4 tells that a pre-fail attribute is at or below its threshold, bit 5 that an attribute was so in the past, bit 6
that the error log has entries, and bit 7 that the self-test log has failures. Source: smartctl(8), section EXIT STATUS.
"""

from __future__ import annotations

from collections.abc import Iterable

COMMAND_LINE = 0
"""The command line, the USB bridge or the device type was not understood."""
OPEN_FAILED = 1
"""The device could not be opened or identified, or is asleep."""
COMMAND_FAILED = 2
"""A command to the disk failed or a checksum was wrong."""
VERDICT_FAILED = 3
"""The disk's own verdict is FAILED."""


def exit_bits(status: int | None) -> tuple[int, ...] | None:
    """Return the bits set in `status`, ascending; None if the status is unknown or no exit status (0..255)."""
    if status is None or not 0 <= status <= 255:
        return None
    return tuple(bit for bit in range(8) if status >> bit & 1)


def read_failed(bits: Iterable[int] | None) -> bool:
    """Return whether nothing was read from the disk. Bits 2-7 are signals about it and leave the output good."""
    return bits is not None and any(bit in (COMMAND_LINE, OPEN_FAILED) for bit in bits)

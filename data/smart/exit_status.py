"""smartctl's exit status, a mask: bits 0-1 say that nothing was read, the others speak of the disk.

Source: smartctl(8), section EXIT STATUS.
"""

from __future__ import annotations

from collections.abc import Iterable

COMMAND_LINE = 0
OPEN_FAILED = 1
COMMAND_FAILED = 2
VERDICT_FAILED = 3
PREFAIL_NOW = 4
PREFAIL_PAST = 5
ERROR_LOG = 6
SELF_TEST_LOG = 7

MEANING: dict[int, str] = {
    COMMAND_LINE: "the command line, the USB bridge or the device type was not understood",
    OPEN_FAILED: "the device could not be opened or identified, or is asleep",
    COMMAND_FAILED: "a command to the disk failed or a checksum was wrong",
    VERDICT_FAILED: "the disk's own verdict is FAILED",
    PREFAIL_NOW: "a pre-fail attribute is at or below its threshold",
    PREFAIL_PAST: "an attribute was at or below its threshold in the past",
    ERROR_LOG: "the error log has entries",
    SELF_TEST_LOG: "the self-test log has failures",
}


def exit_bits(status: int | None) -> tuple[int, ...] | None:
    """The bits set in `status`, ascending; None when the status is unknown or no exit status (0..255)."""
    if status is None or not 0 <= status <= 255:
        return None
    return tuple(bit for bit in range(8) if status >> bit & 1)


def read_failed(bits: Iterable[int] | None) -> bool:
    """Whether nothing was read from the disk. Bits 2-7 are signals about it and leave the output good."""
    return bits is not None and any(bit in (COMMAND_LINE, OPEN_FAILED) for bit in bits)

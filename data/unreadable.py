"""The causes for which a disk could not be read, as a closed list: programs decide by the cause; its sentence is for
people.
"""

from __future__ import annotations

from enum import StrEnum


class UnreadableCause(StrEnum):
    """The cause of a failed probe. The part that saw the failure decides it: the collector, or the smartctl decoder."""

    TOOL_MISSING = "tool_missing"
    """smartctl is not installed or could not be started."""
    TOOL_UNFIT = "tool_unfit"
    """smartctl is too old, or was given arguments that it does not know."""
    PERMISSION = "permission"
    """The collector lacks the right to run smartctl or to open the device."""
    TIMEOUT = "timeout"
    """smartctl did not answer in time, or still hangs from an earlier reading."""
    DEVICE_GONE = "device_gone"
    """The host no longer lists the disk: it was pulled, it moved to another host, or it fell off the bus."""
    OPEN_FAILED = "open_failed"
    """smartctl could not open the device or identify the disk behind it."""
    IO_ERROR = "io_error"
    """The disk gave its name at most: its SMART commands failed."""
    NOT_UNDERSTOOD = "not_understood"
    """smartctl's output is broken or of no known form."""
    UNKNOWN = "unknown"
    """The sender did not name a cause. It counts as evidence about the disk."""

    @property
    def blames_host(self) -> bool:
        """True if the host is at fault, so that the failed reading is no evidence against the disk."""
        return self in _OF_THE_HOST

    @property
    def names_disk(self) -> bool:
        """True if the host still has the disk in its list, although the disk could not be read."""
        return self is not UnreadableCause.DEVICE_GONE


_OF_THE_HOST = frozenset(
    {UnreadableCause.TOOL_MISSING, UnreadableCause.TOOL_UNFIT, UnreadableCause.PERMISSION}
)

_OLDER_STARTS = ("smartctl could not be run", "smartctl cannot be run")
_OLDER_SIGNS: tuple[tuple[str, UnreadableCause], ...] = (
    (" is listed no more: pulled, or off the bus", UnreadableCause.DEVICE_GONE),
    ("is at no other place: pulled, or off the bus", UnreadableCause.DEVICE_GONE),
    ("smartctl did not answer within", UnreadableCause.TIMEOUT),
    ("smartctl still hangs from an earlier look", UnreadableCause.TIMEOUT),
    ("smartctl read nothing but the disk's name", UnreadableCause.IO_ERROR),
    ("it tells its name and nothing of its state", UnreadableCause.IO_ERROR),
    ("it does not say who it is, and the SCSI layer", UnreadableCause.IO_ERROR),
    ("smartctl read nothing (", UnreadableCause.OPEN_FAILED),
    ("smartctl's answer", UnreadableCause.NOT_UNDERSTOOD),
)


def cause_of_older_sentence(why: str) -> UnreadableCause:
    """Return the cause for a sentence of a sender without causes (wire version 2 and older).

    No other function reads such sentences: each reading passes it once, where it enters.
    """
    if why.startswith(_OLDER_STARTS):
        if "with the rights" in why or "ermission denied" in why:
            return UnreadableCause.PERMISSION
        return UnreadableCause.TOOL_UNFIT if "with --json" in why else UnreadableCause.TOOL_MISSING
    return next((cause for sign, cause in _OLDER_SIGNS if sign in why), UnreadableCause.UNKNOWN)

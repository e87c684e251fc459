"""What one run of smartctl says of a disk: a document, sleep, or a failure with its reason."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta

from collector.disks.process import Ended
from collector.disks.smartctl import ASLEEP
from data.reading import NOT_RUN
from data.smart import SmartDocument, Undecodable, decode
from data.smart.exit_status import exit_bits

_LONGEST_WORDS = 300
_NO_RIGHT = ("Permission denied", "Operation not permitted")
_NO_SUCH_OPTION, _LONGEST_GREETING = b"UNRECOGNIZED OPTION", 1024
_SLACK = timedelta(seconds=2)  # smartctl's local_time has whole seconds


@dataclass(frozen=True, slots=True)
class Asleep:
    """In standby and left so: no reading, and no failure."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Nothing was read of the disk's state."""

    why: str
    document: SmartDocument | None = None
    """Who it is, where it got as far as that."""


Look = SmartDocument | Asleep | Failed


def look(ended: Ended) -> Look:
    """What the run says. Exit bits 2-7 are the disk's signals; 0 and 1 say that nothing was read."""
    if ended.why is not None:
        return Failed(f"smartctl {ended.why}")
    if ended.status == ASLEEP:
        return Asleep()
    try:
        document = decode(ended.out)
    except Undecodable as reason:
        return Asleep() if reason.standby else Failed(_explained(str(reason), ended))
    if document.untold is not None:
        return Asleep() if document.standby else Failed(document.untold, document)
    if document.smart.exit_bits is None:
        smart = dataclasses.replace(document.smart, exit_bits=exit_bits(ended.status))
        return dataclasses.replace(document, smart=smart)
    return document


def taken_at(document: SmartDocument, now: datetime, seconds: float) -> datetime:
    """When the disk was read: smartctl's time, if it lies within the `seconds` up to `now`, else `now`."""
    told = document.taken_at
    if told is None or not now - timedelta(seconds=seconds) - _SLACK <= told <= now:
        return now
    return told


def _explained(reason: str, ended: Ended) -> str:
    if not ended.out.strip() and ended.err:
        return f"{NOT_RUN} ({ended.err.splitlines()[-1][:_LONGEST_WORDS]})"
    if any(words in reason for words in _NO_RIGHT):
        return f"{NOT_RUN} with the rights that it needs: run the collector as root, or let it use sudo"
    if _NO_SUCH_OPTION in ended.out[:_LONGEST_GREETING]:
        return f"{NOT_RUN} with --json: smartmontools 7 or later is needed"
    return reason if reason.startswith("smartctl ") else f"smartctl's answer {reason}"

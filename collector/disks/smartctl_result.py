"""Interprets one run of smartctl on a disk: a document, standby, or a failure with its reason."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.collector.disks.process import ProcessResult
from predrain.collector.disks.smartctl import ASLEEP
from predrain.data.smart import SmartDocument, Undecodable, decode_smartctl_output
from predrain.data.smart.exit_status import exit_bits
from predrain.data.unreadable import UnreadableCause

_LONGEST_WORDS = 300
_NOT_RUN = "smartctl could not be run"
_SUDO = "sudo:"
_NO_SUCH_OPTION, _LONGEST_GREETING = b"UNRECOGNIZED OPTION", 1024
_SLACK = timedelta(seconds=2)  # smartctl's local_time has whole seconds


@dataclass(frozen=True, slots=True)
class DiskAsleep:
    """The disk is in standby and was not woken: there is no reading and no failure."""


@dataclass(frozen=True, slots=True)
class DiskReadFailure:
    """Nothing of the disk's state was read."""

    why: str
    cause: UnreadableCause
    document: SmartDocument | None = None
    """The disk's identity, if smartctl got that far."""


Look = SmartDocument | DiskAsleep | DiskReadFailure


def interpret_smartctl_run(ended: ProcessResult) -> Look:
    """Return the result of the run. Exit bits 2-7 are the disk's signals; bits 0 and 1 mean that nothing was read."""
    if ended.why is not None:
        return DiskReadFailure(f"smartctl {ended.why}", _cause_of_end(ended))
    if ended.status == ASLEEP:
        return DiskAsleep()
    try:
        document = decode_smartctl_output(ended.out)
    except Undecodable as reason:
        return DiskAsleep() if reason.standby else _explain_undecodable(reason, ended)
    if document.missing_state_reason is not None:
        return (
            DiskAsleep()
            if document.standby
            else DiskReadFailure(document.missing_state_reason, UnreadableCause.IO_ERROR, document)
        )
    if document.smart.exit_bits is None:
        smart = dataclasses.replace(document.smart, exit_bits=exit_bits(ended.status))
        return dataclasses.replace(document, smart=smart)
    return document


def taken_at(document: SmartDocument, now: datetime, seconds: float) -> datetime:
    """Return the time of the reading: smartctl's time if it lies within the `seconds` up to `now`, else `now`."""
    told = document.taken_at
    if told is None or not now - timedelta(seconds=seconds) - _SLACK <= told <= now:
        return now
    return told


def _cause_of_end(ended: ProcessResult) -> UnreadableCause:
    """Return the cause for a run that was not begun or did not end by itself."""
    if not ended.begun:
        return UnreadableCause.PERMISSION if ended.denied else UnreadableCause.TOOL_MISSING
    return UnreadableCause.TIMEOUT if ended.late else UnreadableCause.NOT_UNDERSTOOD


def _explain_undecodable(undecodable: Undecodable, ended: ProcessResult) -> DiskReadFailure:
    reason = str(undecodable)
    if not ended.out.strip() and ended.err:
        cause = UnreadableCause.PERMISSION if _SUDO in ended.err else UnreadableCause.TOOL_MISSING
        return DiskReadFailure(f"{_NOT_RUN} ({ended.err.splitlines()[-1][:_LONGEST_WORDS]})", cause)
    if undecodable.cause is UnreadableCause.PERMISSION:
        told = f"{_NOT_RUN} with the rights that it needs: run the collector as root, or let it use sudo"
        return DiskReadFailure(told, undecodable.cause)
    if _NO_SUCH_OPTION in ended.out[:_LONGEST_GREETING]:
        return DiskReadFailure(
            f"{_NOT_RUN} with --json: smartmontools 7 or later is needed", UnreadableCause.TOOL_UNFIT
        )
    told = reason if reason.startswith("smartctl ") else f"smartctl's answer {reason}"
    return DiskReadFailure(told, undecodable.cause)

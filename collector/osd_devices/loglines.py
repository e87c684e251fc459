"""What the kernel writes when a disk fails a request: the line, and whose it is.

Wordings are those of the kernel's block layer, SCSI, NVMe and ATA drivers from 3.10 to 6.18. Refused discards and
unsupported commands are no errors of a disk; nor is what file systems, md or device mapper say of the same request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from predrain.collector.osd_devices.blocks import Blocks, namespace, namespaces


class LogLineKind(Enum):
    """What a line stands for. REQUEST comes once for each request that was given up, unless the kernel limits the rate.
    Of SENSE to TASK_ABORT each comes at most once for a request, ahead of that line or in its stead. AROUND comes any
    number of times."""

    REQUEST = "the block layer gave a request up"
    SENSE = "the drive's own word"
    RESULT = "the adapter's word"
    COMMAND = "an NVMe command failed"
    ABORTED = "an NVMe command took too long and was aborted"
    RESET = "an NVMe command took too long and the controller was reset"
    TASK_ABORT = "a SAS command took too long and was aborted"
    AROUND = "an ATA link, an NVMe controller or a cached page is in trouble"


@dataclass(frozen=True, slots=True)
class Logged:
    """One line about a disk."""

    kind: LogLineKind
    disks: Callable[[Blocks], tuple[str, ...]]
    """Kernel names of the whole disks that it is about, on a host with these block devices."""


_SCSI = r"(?:sd|scsi) (?P<at>\d+:\d+:\d+:\d+):\s+(?:\[(?P<disk>\w+)\]\s+)?(?:tag#\d+\s+)?"
_REQUEST = re.compile(
    r"(?:(?:end_request|blk_update_request|print_req_error): )?"
    r"(?P<what>I/O|critical medium|critical target|recoverable transport|timeout|protection|device offline) error, "
    r"dev (?P<disk>[^\s,]+), sector \d+(?: op 0x[0-9a-f]+:\((?P<op>\w+)\))?"
)
_NO_TRANSFER = {"DISCARD", "SECURE_ERASE", "WRITE_SAME", "WRITE_ZEROES"}
_DISKS: tuple[tuple[LogLineKind, re.Pattern[str]], ...] = (
    (
        LogLineKind.SENSE,
        re.compile(_SCSI + r"Sense Key : (?:Medium Error|Hardware Error|Aborted Command|0x[34b]\b)"),
    ),
    (LogLineKind.RESULT, re.compile(_SCSI + r"(?:FAILED )?Result: hostbyte=(?!DID_OK\b)DID_\w+")),
    (LogLineKind.TASK_ABORT, re.compile(_SCSI + r"attempting task abort!")),
    (
        LogLineKind.COMMAND,
        re.compile(r"(?P<disk>nvme\d+(?:c\d+)?n\d+): [^@]+\(0x[0-9a-f]+\) @ LBA \d+, \d+ blocks, .+\(sct 0x"),
    ),
    (LogLineKind.AROUND, re.compile(r"Buffer I/O error on dev(?:ice)? (?P<disk>[^\s,]+), ")),
)
_TIMEOUT = re.compile(
    r"nvme (?P<controller>nvme\d+): I/O .*QID \d+ timeout, (?P<then>aborting|reset|disable)"
)
_DOWN = re.compile(
    r"nvme (?P<controller>nvme\d+): (?:controller is down; will reset|Device not ready; aborting|"
    r"Disabling device after reset failure|Removing after probe failure)"
)
_ATA = re.compile(r"ata(?P<port>\d+)(?:\.(?P<device>\d+))?: exception Emask 0x")
_PARTITION = re.compile(r"([shv]d[a-z]+)\d+|(nvme\d+n\d+)p\d+")


def logged(message: str) -> Logged | None:
    """What a kernel message says of a disk; None when it says nothing of one."""
    if match := _REQUEST.match(message):
        if match["what"] == "critical target" and match["op"] in _NO_TRANSFER:
            return None
        return Logged(LogLineKind.REQUEST, _named(match["disk"]))
    for kind, pattern in _DISKS:
        if match := pattern.match(message):
            parts = match.groupdict()
            return Logged(kind, _named(parts["disk"]) if parts["disk"] else _addressed(parts["at"] or ""))
    if match := _TIMEOUT.match(message):
        return Logged(
            LogLineKind.ABORTED if match["then"] == "aborting" else LogLineKind.RESET,
            _behind(match["controller"]),
        )
    if match := _DOWN.match(message):
        return Logged(LogLineKind.AROUND, _behind(match["controller"]))
    if match := _ATA.match(message):
        return Logged(LogLineKind.AROUND, _on_port(int(match["port"]), match["device"]))
    return None


def _named(name: str) -> Callable[[Blocks], tuple[str, ...]]:
    def disks(blocks: Blocks) -> tuple[str, ...]:
        whole = namespace(name) or name
        beneath = blocks.disks_under(whole)
        if beneath:  # of a volume over several, each disk prints lines of its own
            return beneath if len(beneath) == 1 and not whole.startswith(("dm-", "md")) else ()
        gone = _PARTITION.fullmatch(whole)
        return (gone[1] or gone[2] if gone else whole,)

    return disks


def _addressed(address: str) -> Callable[[Blocks], tuple[str, ...]]:
    return lambda blocks: blocks.scsi(address)


def _behind(controller: str) -> Callable[[Blocks], tuple[str, ...]]:
    return lambda blocks: namespaces(blocks.root, controller) or (f"{controller}n1",)


def _on_port(port: int, device: str | None) -> Callable[[Blocks], tuple[str, ...]]:
    return lambda blocks: blocks.ata(port, int(device) if device else None)

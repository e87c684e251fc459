"""Parses the lines that the kernel logs when a disk fails a request: the kind of the line, and its disk.

The wordings are those of the kernel's block layer, SCSI, NVMe and ATA drivers from 3.10 to 6.18. Refused discards and
unsupported commands are no errors of a disk. Lines of file systems, md or device mapper about the same request are
not counted either.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from predrain.collector.osd_devices.block_devices import Blocks, find_namespace_disk, list_controller_disks


class LogLineKind(Enum):
    """The meaning of a line.

    REQUEST comes once for each request that was given up, unless the kernel limits the rate. Each of SENSE to
    TASK_ABORT comes at most once for a request, ahead of that line or instead of it. AROUND comes any number of
    times.
    """

    REQUEST = "the block layer gave a request up"
    SENSE = "the drive's own word"
    RESULT = "the adapter's word"
    COMMAND = "an NVMe command failed"
    ABORTED = "an NVMe command took too long and was aborted"
    RESET = "an NVMe command took too long and the controller was reset"
    TASK_ABORT = "a SAS command took too long and was aborted"
    AROUND = "an ATA link, an NVMe controller or a cached page is in trouble"


@dataclass(frozen=True, slots=True)
class KernelDiskMessage:
    """One line about a disk."""

    kind: LogLineKind
    disks: Callable[[Blocks], tuple[str, ...]]
    """Gives the kernel names of the whole disks of the line, on a host with these block devices."""


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


def parse_kernel_message(message: str) -> KernelDiskMessage | None:
    """Parse a kernel message about a disk; return None for any other message."""
    if match := _REQUEST.match(message):
        if match["what"] == "critical target" and match["op"] in _NO_TRANSFER:
            return None
        return KernelDiskMessage(LogLineKind.REQUEST, _build_name_lookup(match["disk"]))
    for kind, pattern in _DISKS:
        if match := pattern.match(message):
            parts = match.groupdict()
            return KernelDiskMessage(
                kind,
                _build_name_lookup(parts["disk"])
                if parts["disk"]
                else _build_address_lookup(parts["at"] or ""),
            )
    if match := _TIMEOUT.match(message):
        return KernelDiskMessage(
            LogLineKind.ABORTED if match["then"] == "aborting" else LogLineKind.RESET,
            _build_controller_lookup(match["controller"]),
        )
    if match := _DOWN.match(message):
        return KernelDiskMessage(LogLineKind.AROUND, _build_controller_lookup(match["controller"]))
    if match := _ATA.match(message):
        return KernelDiskMessage(LogLineKind.AROUND, _on_port(int(match["port"]), match["device"]))
    return None


def _build_name_lookup(name: str) -> Callable[[Blocks], tuple[str, ...]]:
    def disks(blocks: Blocks) -> tuple[str, ...]:
        whole = find_namespace_disk(name) or name
        beneath = blocks.disks_under(whole)
        if beneath:  # if a volume lies on several disks, each disk logs lines of its own
            return beneath if len(beneath) == 1 and not whole.startswith(("dm-", "md")) else ()
        gone = _PARTITION.fullmatch(whole)
        return (gone[1] or gone[2] if gone else whole,)

    return disks


def _build_address_lookup(address: str) -> Callable[[Blocks], tuple[str, ...]]:
    return lambda blocks: blocks.find_scsi_disk(address)


def _build_controller_lookup(controller: str) -> Callable[[Blocks], tuple[str, ...]]:
    return lambda blocks: list_controller_disks(blocks.root, controller) or (f"{controller}n1",)


def _on_port(port: int, device: str | None) -> Callable[[Blocks], tuple[str, ...]]:
    return lambda blocks: blocks.find_ata_disk(port, int(device) if device else None)

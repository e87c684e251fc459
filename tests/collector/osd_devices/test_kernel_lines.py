"""Real wordings of old and new kernels: what is an error of a disk, and of which."""

from __future__ import annotations

import pytest

from predrain.collector.osd_devices import KernelErrors
from tests.collector.osd_devices.fake_host import FakeHost
from tests.collector.osd_devices.fake_log import Log


@pytest.mark.parametrize(
    ("message", "disk"),
    [
        ("end_request: I/O error, dev sda, sector 324949408", "sda"),
        ("blk_update_request: critical medium error, dev sdb, sector 5120", "sdb"),
        ("print_req_error: I/O error, dev sdc, sector 1098288304 flags 0", "sdc"),
        ("print_req_error: critical medium error, dev nvme0n1, sector 40910720 flags 84700", "nvme0n1"),
        (
            "blk_update_request: critical medium error, dev sda, sector 1736391592 op 0x1:(WRITE) flags 0x800 "
            "phys_seg 1 prio class 0",
            "sda",
        ),
        (
            "critical medium error, dev sdd, sector 4 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 0",
            "sdd",
        ),
        ("I/O error, dev nvme0c0n1, sector 218630656 op 0x1:(WRITE) flags 0x2008800 phys_seg 17", "nvme0n1"),
        ("protection error, dev nvme2n1, sector 62464 op 0x1:(WRITE) flags 0x18800 phys_seg 3", "nvme2n1"),
        ("timeout error, dev sda, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", "sda"),
        ("device offline error, dev sdq, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1", "sdq"),
        ("critical target error, dev sdb, sector 16368 op 0x0:(READ) flags 0x0 phys_seg 1", "sdb"),
        ("sd 3:0:0:0: [sdb] tag#3 Sense Key : Medium Error [current] ", "sdb"),
        ("sd 3:0:0:0: [sdb]  Sense Key : Hardware Error [deferred]", "sdb"),
        ("sd 3:0:0:0: [sdb] tag#3 Sense Key : 0x3 [current]", "sdb"),
        (
            "sd 1:0:9:0: [sdr] tag#17 FAILED Result: hostbyte=DID_NO_CONNECT driverbyte=DRIVER_OK cmd_age=0s",
            "sdr",
        ),
        ("scsi 0:0:0:0: [sda] Result: hostbyte=DID_BAD_TARGET driverbyte=DRIVER_OK", "sda"),
        (
            "nvme0n1: I/O Cmd(0x2) @ LBA 454954056, 256 blocks, I/O Error (sct 0x3 / sc 0x71) ",
            "nvme0n1",
        ),
        ("nvme0c0n1: I/O Cmd(0x1) @ LBA 218630656, 256 blocks, I/O Error (sct 0x0 / sc 0x4) DNR", "nvme0n1"),
        (
            "nvme1n1: Read(0x2) @ LBA 32, 8 blocks, Unrecovered Read Error (sct 0x2 / sc 0x81) MORE DNR",
            "nvme1n1",
        ),
        ("nvme nvme0: I/O 5 QID 3 timeout, aborting", "nvme0n1"),
        (
            "nvme nvme0: I/O tag 641 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, aborting req_op:WRITE(1) size:4096",
            "nvme0n1",
        ),
        ("nvme nvme0: I/O tag 641 (c281) opcode 0x1 (I/O Cmd) QID 8 timeout, reset controller", "nvme0n1"),
        ("nvme nvme0: I/O 24 QID 0 timeout, reset controller", "nvme0n1"),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10", "nvme0n1"),
        ("Buffer I/O error on dev sdb1, logical block 640, lost async page write", "sdb"),
        ("Buffer I/O error on device sdb1, logical block 640", "sdb"),
        ("Buffer I/O error on dev nvme0n1p2, logical block 0, async page read", "nvme0n1"),
    ],
)
def test_a_line_of_the_kernel_is_an_error_of_its_disk(
    errors: KernelErrors, log: Log, message: str, disk: str
) -> None:
    log.say(message)
    assert errors.since_last(disk) == 1
    assert errors.since_last(disk) == 0


@pytest.mark.parametrize(
    "message",
    [
        "sd 5:0:0:0: [sdb] tag#0 Sense Key : Illegal Request [current] ",
        "sd 5:0:0:0: [sdb] tag#0 Sense Key : Recovered Error [current]",
        "sd 5:0:0:0: [sdb] tag#0 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE cmd_age=0s",
        "critical target error, dev sdb, sector 0 op 0x3:(DISCARD) flags 0x800 phys_seg 1 prio class 0",
        "operation not supported error, dev sdb, sector 0 op 0x9:(WRITE_ZEROES) flags 0x800",
        "reservation conflict error, dev sdb, sector 0 op 0x0:(READ) flags 0x800",
        "nvme0: Admin Cmd(0x6), I/O Error (sct 0x0 / sc 0x2) MORE DNR",
        "nvme nvme0: I/O 5 QID 3 timeout, completion polled",
        "ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)",
        "buffer_io_error: 19980 callbacks suppressed",
        "EXT4-fs error (device sdb1): ext4_journal_check_start:83: comm worker: Detected aborted journal",
        "md/raid:md0: read error not correctable (sector 555480 on sdb1).",
        'said: "I/O error, dev sdb, sector 1"',
    ],
)
def test_a_kernel_message_unrelated_to_disk_health_is_not_counted(
    errors: KernelErrors, log: Log, message: str
) -> None:
    log.say(message)
    assert (errors.since_last("sdb"), errors.since_last("nvme0n1")) == (0, 0)


def test_a_partitions_error_is_its_disks(host: FakeHost, errors: KernelErrors, log: Log) -> None:
    host.partition(host.disk("mmcblk0"), 1)
    log.say("I/O error, dev mmcblk0p1, sector 8 op 0x0:(READ)")
    assert errors.since_last("mmcblk0") == 1


def test_a_volumes_line_is_left_to_the_disks_beneath_it(
    host: FakeHost, errors: KernelErrors, log: Log
) -> None:
    host.volume("vg", "lv", host.disk("sdb"))
    log.say("Buffer I/O error on dev dm-0, logical block 1, lost async page write")
    assert errors.since_last("sdb") == 0


def test_an_ata_ports_error_is_its_disks(host: FakeHost, errors: KernelErrors, log: Log) -> None:
    host.sata("sda", 3, "2:0:0:0")
    host.sata("sdb", 31, "12:0:0:0")
    log.say("ata3.00: exception Emask 0x0 SAct 0x20 SErr 0x0 action 0x0")
    assert (errors.since_last("sda"), errors.since_last("sdb")) == (1, 0)


def test_behind_a_port_multiplier_the_number_tells_the_disk(
    host: FakeHost, errors: KernelErrors, log: Log
) -> None:
    host.sata("sda", 3, "2:0:0:0")
    host.sata("sdb", 3, "2:1:0:0")
    log.say(
        "ata3.01: exception Emask 0x0 SAct 0x20 SErr 0x0 action 0x0", "ata3: exception Emask 0x10 SAct 0x0"
    )
    assert (errors.since_last("sda"), errors.since_last("sdb")) == (0, 1)


def test_a_task_abort_is_of_the_disk_at_that_address(host: FakeHost, errors: KernelErrors, log: Log) -> None:
    host.sas("sdc", "0:0:23:0")
    log.say("sd 0:0:23:0: attempting task abort! scmd(00000000d4a8d7a8)")
    assert errors.since_last("sdc") == 1


def test_a_controllers_timeout_is_of_every_namespace_behind_it(
    host: FakeHost, errors: KernelErrors, log: Log
) -> None:
    host.nvme(3, 1, 2)
    host.shared_nvme((7,), "nvme1n1")
    log.say("nvme nvme3: I/O 5 QID 3 timeout, aborting", "nvme nvme7: I/O 5 QID 3 timeout, aborting")
    assert [errors.since_last(name) for name in ("nvme3n1", "nvme3n2", "nvme1n1", "nvme7n1")] == [1, 1, 1, 0]

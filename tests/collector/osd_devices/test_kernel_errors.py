"""I/O errors that the kernel logged: one for each failed request, each reported once, none made up."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.osd_devices import KernelErrors
from predrain.collector.osd_devices.failed_requests import ErrorTally
from predrain.collector.osd_devices.kernel_log_lines import LogLineKind, parse_kernel_message
from predrain.collector.osd_devices.kmsg import Kmsg
from tests.collector.osd_devices.fake_host import FakeHost
from tests.collector.osd_devices.fake_log import Log

SENSE = """
    sd 3:0:0:0: [sdb] tag#3 FAILED Result: hostbyte=DID_OK driverbyte=DRIVER_SENSE
    sd 3:0:0:0: [sdb] tag#3 Sense Key : Medium Error [current]
    sd 3:0:0:0: [sdb] tag#3 Add. Sense: Unrecovered read error
    sd 3:0:0:0: [sdb] tag#3 CDB: Read(10) 28 00 00 00 14 88 00 00 08 00
"""


def test_a_failed_request_with_all_its_lines_is_one_error(errors: KernelErrors, log: Log) -> None:
    log.say(SENSE, "blk_update_request: critical medium error, dev sdb, sector 5120")
    log.say(*(f"Buffer I/O error on dev sdb, logical block {n}, lost async page write" for n in range(8)))
    assert errors.since_last("sdb") == 1


def test_two_requests_whose_lines_are_mixed_are_two_errors(errors: KernelErrors, log: Log) -> None:
    request = "critical medium error, dev sdb, sector 5120 op 0x0:(READ)"
    log.say(SENSE, SENSE, request, request, SENSE)
    assert errors.since_last("sdb") == 3


def test_asked_in_the_middle_of_a_requests_lines_it_counts_once(errors: KernelErrors, log: Log) -> None:
    log.say(SENSE)
    assert errors.since_last("sdb") == 1
    log.say("critical medium error, dev sdb, sector 5120 op 0x0:(READ)")
    assert errors.since_last("sdb") == 0


def test_lines_ahead_stand_for_one_request_each_and_no_more(errors: KernelErrors, log: Log) -> None:
    request = "critical medium error, dev sdb, sector 5120 op 0x0:(READ)"
    log.say(SENSE, request, request, request)
    assert errors.since_last("sdb") == 3


def test_a_command_that_was_aborted_long_ago_is_another_than_the_one_given_up_now(
    errors: KernelErrors, log: Log
) -> None:
    log.say("nvme nvme0: I/O 5 QID 3 timeout, aborting")
    log.say("I/O error, dev nvme0n1, sector 454953800 op 0x0:(READ)", after=301)
    assert errors.since_last("nvme0n1") == 2


def test_the_retries_of_an_ata_command_are_one_error(host: FakeHost, errors: KernelErrors, log: Log) -> None:
    host.sata("sdb", 3, "3:0:0:0")
    for _ in range(6):
        log.say(
            """ata3.00: exception Emask 0x0 SAct 0x20 SErr 0x0 action 0x0
               ata3.00: irq_stat 0x40000008
               ata3.00: failed command: READ FPDMA QUEUED
               ata3.00: status: { DRDY SENSE ERR }
               ata3.00: error: { UNC }""",
            after=0.7,
        )
    log.say(SENSE, "blk_update_request: I/O error, dev sdb, sector 28016")
    assert errors.since_last("sdb") == 1
    log.say("ata3.00: exception Emask 0x4 SAct 0x20 SErr 0x0 action 0x6 frozen", after=61)
    assert errors.since_last("sdb") == 1


def test_an_nvme_command_that_was_aborted_reset_and_given_up_is_one_error(
    errors: KernelErrors, log: Log
) -> None:
    log.say(
        "nvme nvme0: I/O tag 70 (e046) opcode 0x2 (I/O Cmd) QID 6 timeout, aborting req_op:READ(0) size:131072"
    )
    log.say("nvme nvme0: I/O tag 70 (e046) opcode 0x2 (I/O Cmd) QID 6 timeout, reset controller", after=30)
    log.say("nvme nvme0: Device not ready; aborting reset, CSTS=0x1", after=120)
    log.say("nvme0n1: I/O Cmd(0x2) @ LBA 454954056, 256 blocks, I/O Error (sct 0x3 / sc 0x71)")
    log.say("I/O error, dev nvme0n1, sector 454953800 op 0x0:(READ)")
    assert errors.since_last("nvme0n1") == 1


LINES = st.lists(
    st.tuples(st.sampled_from(LogLineKind), st.sampled_from([0.0, 0.1, 59.0, 61.0, 301.0])), max_size=40
)


@given(LINES)
def test_the_count_never_falls_and_lies_between_given_up_requests_and_lines(
    lines: list[tuple[LogLineKind, float]],
) -> None:
    tally, now, counts = ErrorTally(), 0.0, [0]
    for kind, after in lines:
        now += after
        tally.count_line(kind, now)
        counts.append(tally.errors)
    assert all(0 <= later - earlier <= 1 for earlier, later in pairwise(counts))
    assert sum(kind is LogLineKind.REQUEST for kind, _ in lines) <= counts[-1] <= len(lines)
    assert (counts[-1] > 0) == bool(lines)


@given(st.text(max_size=80) | st.binary(max_size=80).map(lambda raw: raw.decode(errors="replace")))
def test_no_message_raises(message: str) -> None:
    parse_kernel_message(message)


def test_an_error_logged_before_the_watch_began_is_not_counted(errors: KernelErrors) -> None:
    assert errors.since_last("sdb") == 0


def test_errors_that_came_before_the_first_question_are_in_its_answer(errors: KernelErrors, log: Log) -> None:
    log.say("I/O error, dev sda, sector 8 op 0x0:(READ)", "I/O error, dev sdb, sector 8 op 0x0:(READ)")
    assert errors.since_last("sda") == 1
    log.say("I/O error, dev sdb, sector 16 op 0x0:(READ)")
    assert errors.since_last("sdb") == 2


def test_a_program_that_writes_into_the_log_is_not_believed(errors: KernelErrors, log: Log) -> None:
    log.say("I/O error, dev sdb, sector 8 op 0x0:(READ)", priority=(1 << 3) | 3)
    assert errors.since_last("sdb") == 0


def test_records_that_were_overwritten_are_told(errors: KernelErrors, log: Log) -> None:
    log.say("I/O error, dev sdb, sector 8 op 0x0:(READ)")
    assert (errors.since_last("sdb"), errors.trouble) == (1, ())
    log.lose(200)
    log.say("I/O error, dev sdb, sector 8 op 0x0:(READ)")
    assert errors.since_last("sdb") == 1
    assert "gone before they were read" in errors.trouble[0]


def test_a_record_that_is_read_in_two_parts_counts_once(errors: KernelErrors, host: FakeHost) -> None:
    with (host.root / "dev/kmsg").open("ab") as file:
        for part in (
            b"3,100,7,-;I/O error, dev s",
            b"db, sector 8 op 0x0:(READ)\n",
            b"3,101,",
            b"garbage\n\xff\n",
        ):
            file.write(part)
            file.flush()
            errors.poll_log()
    assert errors.since_last("sdb") == 1


def test_the_real_log_is_understood_from_its_first_record_to_its_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "SEEK_END", os.SEEK_SET)
    try:
        real = Kmsg(Path("/dev/kmsg"))
    except OSError as error:
        pytest.skip(f"the kernel's log may not be read here ({error.strerror})")
    lines = real.read()
    real.close()
    assert len(lines) > 10
    assert lines[-1][0] > 0
    assert not [message for _, message in lines if message.startswith(" SUBSYSTEM=")]
    assert real.lost == 0

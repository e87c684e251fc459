"""smartctl's text: layouts from 5.x to 7.5, any locale, terminal leftovers, cut and mixed files."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.reading import Protocol
from predrain.data.smart import SmartDocument, Undecodable, decode_smartctl_output
from predrain.data.smart.text import split_smartctl_runs
from predrain.data.smart.text.number_text import parse_checked_size, parse_fraction_text, parse_whole_number

TEXTS = {path.stem: path.read_bytes() for path in (Path(__file__).parent / "samples").glob("*.txt")}


def _decoded(name: str) -> SmartDocument:
    return decode_smartctl_output(TEXTS[name])


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("1,000,204,886,016 bytes", 1000204886016),
        ("2.000.398.934.016 bytes", 2000398934016),
        ("128 035 676 160 bytes", 128035676160),
        ("2\u2019000\u2019398 [2.00 TB]", 2000398),
        ("3\ufffd387", 3387),
        ("1?000?204?886?016 bytes", 1000204886016),
        ("1\u202f998", 1998),
        ("120-034-123-776 bytes", 120034123776),
        ("12,34,567", None),
        ("16004", 16004),
        ("300,$00,000,000 bytes", None),
        ("", None),
        ("unknown", None),
    ],
)
def test_a_whole_number_is_read_in_every_locale(printed: str, expected: int | None) -> None:
    assert parse_whole_number(printed) == expected


def test_a_size_that_its_brackets_deny_is_not_known() -> None:
    assert parse_checked_size("120 bytes [120 GB]") is None
    assert parse_checked_size("120.034.123.776 bytes [120 GB]") == 120034123776
    assert parse_checked_size("107,148,371 [54.8 TB]", 512_000) == 107148371
    assert parse_checked_size("41,930,020 [21,4 TB]", 512_000) == 41930020


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("87202,134", "87202.134"),
        ("87.202,134", "87202.134"),
        ("8519.006", "8519.006"),
        ("0", "0"),
        ("-", None),
    ],
)
def test_gigabytes_have_a_fraction_in_any_locale(printed: str, expected: str | None) -> None:
    assert parse_fraction_text(printed) == expected


def test_packed_raw_values_are_taken_apart_as_in_json() -> None:
    seagate = _decoded("ata-026").smart
    assert (seagate.power_on_hours, seagate.temperature_c) == (22688, 25)
    assert seagate.counters.command_timeouts == 193
    assert _decoded("ata-016").smart.counters.command_timeouts == 1
    assert _decoded("ata-056").smart.counters.command_timeouts == 47
    assert _decoded("ata-071").smart.counters.reallocated == 0
    assert _decoded("ata-022").smart.power_on_hours == 488
    assert _decoded("ata-103").smart.attributes[1].raw == 2765


def test_a_value_that_the_text_output_lacks_is_unknown() -> None:
    drive = _decoded("ata-026")
    assert drive.exit_bits is None
    assert drive.smart.attributes[188].raw_packed is None
    assert drive.smart.identity.serial is None
    assert drive.device_id is None


def test_a_missing_threshold_is_not_zero() -> None:
    failed_read = _decoded("ata-027")
    assert failed_read.smart.attributes[5].threshold is None
    assert failed_read.checksum_error


def test_a_verdict_by_attributes_is_told_and_a_reserved_status_is_no_verdict() -> None:
    raid = _decoded("ata-038")
    assert raid.smart.passed is True
    assert raid.judged_by_attributes


def test_anything_but_ok_is_a_failure_of_a_scsi_drive() -> None:
    text = TEXTS["scsi-007"].replace(
        b"SMART Health Status: OK",
        b"SMART Health Status: FAILURE PREDICTION THRESHOLD EXCEEDED [asc=5d, ascq=0]",
    )
    assert decode_smartctl_output(text).smart.passed is False
    assert decode_smartctl_output(TEXTS["scsi-007"]).smart.passed is True


def test_nvme_bits_are_read_beside_a_passed_verdict() -> None:
    drive = _decoded("nvme-015").smart
    assert (drive.passed, drive.counters.critical_warning) == (True, 9)
    assert _decoded("nvme-033").smart.counters.percentage_used == 255


def test_device_statistics_find_a_name_that_lies() -> None:
    """ata-034 says Total_LBAs_Written and counts 32 MiB."""
    drive = _decoded("ata-034").smart
    statistics = 16680561276 * 512
    assert drive.counters.bytes_written == pytest.approx(statistics, rel=0.01)


def test_sectors_that_no_drive_in_service_can_have_are_not_known() -> None:
    """ata-090: 16,277 hours and 9,324 `LBAs` written, with no statistics beside them."""
    drive = _decoded("ata-090").smart
    assert drive.power_on_hours == 16277
    assert (drive.counters.bytes_written, drive.counters.bytes_read) == (None, None)


def test_the_old_statistics_table_reads_as_the_new_one() -> None:
    old = (
        b"smartctl 6.2\n=== START OF INFORMATION SECTION ===\nDevice Model:     X 1\n"
        b"Device Statistics (GP Log 0x04)\nPage Offset Size         Value  Description\n"
        b"  1  =====  =                =  == General Statistics (rev 2) ==\n"
        b"  1  0x018  6        134217728  Logical Sectors Written\n"
        b"  3  0x020  4               12  Number of Reallocated Logical Sectors\n"
        b"  7  0x008  1               8~  Percentage Used Endurance Indicator\n"
        b"  7  0x010  1               -  Something else\n"
    )
    counters = decode_smartctl_output(old).smart.counters
    assert (counters.bytes_written, counters.reallocated, counters.percentage_used) == (2**36, 12, 8)


def test_the_pending_defects_log_is_counted() -> None:
    head = b"smartctl 7.3\nDevice Model:     X 1\nPending Defects log (GP Log 0x0c)\n"
    rows = (
        b"Index                LBA    Hours\n    0          123456     1000\n    1          123457        -\n"
    )
    assert decode_smartctl_output(head + rows + b"\n").smart.counters.pending == 2
    assert decode_smartctl_output(head + b"No Defects Logged\n").smart.counters.pending == 0
    assert decode_smartctl_output(head).smart.counters.pending is None


def test_5_38_prints_a_scsi_identity_on_one_line() -> None:
    text = (
        b"smartctl version 5.38 [x86_64-redhat-linux-gnu] Copyright (C) 2002-8 Bruce Allen\n\n"
        b"Device: IBM-ESXS ST3300655SS      Version: BA23\nSerial number: 3LM0L0FJ00009733Y46W\n"
    )
    drive = decode_smartctl_output(text)
    who = drive.smart.identity
    assert (who.vendor, who.model, who.firmware) == ("IBM-ESXS", "IBM-ESXS ST3300655SS", "BA23")
    assert drive.device_id == "IBM-ESXS_ST3300655SS_3LM0L0FJ00009733Y46W"


@pytest.mark.parametrize("name", ["ata-104", "scsi-002", "nvme-015"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace("\n", "\r\n").encode(),
        lambda text: ("\ufeff" + text).encode("utf-16"),
        lambda text: b"\x1b[1m\x1b[32m" + text.replace("PASSED", "\x1b[1;32mPASSED\x1b[0m").encode(),
        lambda text: b"root@host:~# smartctl -x /dev/sda\r\n" + text.encode(),
        lambda text: b"[root@host ~]# smartctl -x /dev/sda\n" + text.encode() + b"\n[root@host ~]# \n",
        lambda text: "".join(f"  \t{line}\n" for line in text.splitlines()).encode(),
    ],
)
def test_a_terminals_or_an_editors_leftovers_change_nothing(name: str, spoil: Callable[[str], bytes]) -> None:
    text = TEXTS[name].decode()
    assert decode_smartctl_output(spoil(text)).smart == decode_smartctl_output(TEXTS[name]).smart


def test_a_table_alone_is_enough() -> None:
    table = TEXTS["ata-104"].decode()
    start = table.index("ID# ATTRIBUTE_NAME")
    alone = decode_smartctl_output(table[start:].encode()).smart
    assert alone.protocol is Protocol.ATA
    assert alone.attributes == _decoded("ata-104").smart.attributes
    assert alone.identity.rotation_rpm is None


def test_the_outputs_of_two_disks_in_one_file_are_refused_and_can_be_parted() -> None:
    both = TEXTS["ata-104"] + b"\n" + TEXTS["ata-006"]
    with pytest.raises(Undecodable, match="several runs"):
        decode_smartctl_output(both)
    assert [decode_smartctl_output(run).smart for run in split_smartctl_runs(both)] == [
        _decoded("ata-104").smart,
        _decoded("ata-006").smart,
    ]


def test_several_commands_on_one_disk_read_as_one() -> None:
    whole_text = TEXTS["ata-104"].decode()
    header = whole_text.splitlines()[0]
    parted = whole_text.replace("=== START OF READ SMART", f"{header}\n\n=== START OF READ SMART")
    assert decode_smartctl_output(parted.encode()).smart == _decoded("ata-104").smart
    assert len(list(split_smartctl_runs(parted.encode()))) == 1


def test_a_number_that_the_end_of_the_file_cut_is_not_known() -> None:
    text = TEXTS["nvme-033"]
    cut = text[: text.index(b"Power On Hours:") + len("Power On Hours:                     31,0")]
    assert decode_smartctl_output(cut).smart.power_on_hours is None
    assert decode_smartctl_output(text).smart.power_on_hours == 31039


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("CEST", datetime(2024, 6, 3, 8, 0, tzinfo=UTC)),
        ("EDT", datetime(2024, 6, 3, 14, 0, tzinfo=UTC)),
        ("+0530", datetime(2024, 6, 3, 4, 30, tzinfo=UTC)),
        ("MSK", datetime(2024, 6, 3, 7, 0, tzinfo=UTC)),
        ("IST", None),
        ("CST", None),
        ("RTZ", None),
        ("", None),
    ],
)
def test_a_zone_whose_name_has_several_meanings_gives_no_instant(
    zone: str, expected: datetime | None
) -> None:
    printed = f"smartctl 7.3\nDevice Model: X 1\nLocal Time is:    Mon Jun  3 10:00:00 2024 {zone}\n"
    decoded = decode_smartctl_output(printed.encode())
    assert decoded.taken_at == expected
    assert decoded.local_time == (None if expected else datetime(2024, 6, 3, 10, 0))  # noqa: DTZ001


def test_a_sleeping_drive_is_no_evidence() -> None:
    with pytest.raises(Undecodable) as refused:
        _decoded("broken-005")
    assert refused.value.standby
    assert refused.value.exit_bits is None


def test_a_cut_text_keeps_what_came_before_the_cut() -> None:
    drive = _decoded("broken-011").smart
    assert (drive.passed, drive.counters.available_spare_pct) == (True, 100)
    assert drive.counters.unsafe_shutdowns is None


def _one_sentence_or_reading(text: bytes) -> bool:
    try:
        return decode_smartctl_output(text).smart.protocol in Protocol
    except Undecodable as reason:
        return 10 < len(str(reason)) < 500 and "\n" not in str(reason)


@pytest.mark.slow
@given(st.sampled_from(sorted(TEXTS)), st.data())
def test_a_mutated_text_is_a_reading_or_a_reason(name: str, data: st.DataObject) -> None:
    text = bytearray(TEXTS[name])
    for _ in range(data.draw(st.integers(0, 6))):
        at = data.draw(st.integers(0, len(text) - 1))
        length = data.draw(st.integers(0, 40))
        text[at : at + length] = data.draw(st.binary(max_size=40) | st.from_regex(rb"[\d., :\[\]x-]{0,40}"))
        if not text:
            return
    del text[data.draw(st.integers(0, len(text))) :]
    assert _one_sentence_or_reading(bytes(text))


@given(st.text(alphabet="smartctl 7.3\n:=0123456789,.[]()-+/ABCDEFabcdef\u2019\ufffd", max_size=300))
def test_any_text_behind_a_header_is_a_reading_or_a_reason(text: str) -> None:
    assert _one_sentence_or_reading(b"smartctl 7.3\n" + text.encode())


def test_a_very_long_line_and_very_many_lines_take_no_time_to_speak_of() -> None:
    with pytest.raises(Undecodable):
        decode_smartctl_output(b"smartctl 7.3\n" + b"1 " * 4_000_000)
    with pytest.raises(Undecodable):
        decode_smartctl_output(b"smartctl 7.3\n" + b"a:1\n" * 1_000_000)

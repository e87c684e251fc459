"""Texts that few drives and few commands bring forth; excerpts, serial numbers changed, with the source of each."""

from __future__ import annotations

import json

import pytest

from predrain.data.smart import SmartDocument, Undecodable, decode_smartctl_output
from predrain.data.smart.json_text import split_json_documents

FUJITSU = """smartctl 6.2 2013-07-26 r3841 [x86_64-linux-3.13.0-37-generic] (local build)
Device Model:     FUJITSU MJA2500BH G2
Serial Number:    K94STA52EAGX
SMART support is: Available - device has SMART capability.
SMART support is: Enabled

Read SMART Data failed: scsi error aborted command

=== START OF READ SMART DATA SECTION ===
SMART overall-health self-assessment test result: UNKNOWN!
SMART Status, Attributes and Thresholds cannot be read.

ATA Error Count: 1563 (device log contains only the most recent five errors)
"""
CARD = """smartctl 5.43 2012-06-30 r3573 [i686-linux-3.2.0-4-686-pae] (local build)
Device Model:     TRANSCEND
Serial Number:    20110407 CB1C0EXX
{}

A mandatory SMART command failed: exiting. To continue, add one or more '-T permissive' options.
"""
SAS = """smartctl 7.2 2020-12-30 r5155 [x86_64-linux-5.10.0] (local build)
Vendor:               SEAGATE
Product:              ST4000NM0043
Serial number:        Z1Z5DWJK
"""
# smartctl 7.3 -A -f hex, replaying a drive from its standard input
HEX = """ID#  ATTRIBUTE_NAME          FLAG     VALUE WORST THRESH TYPE      UPDATED  WHEN_FAILED RAW_VALUE
0x05 Reallocated_Sector_Ct   0x0033   0x0a  0x63  0x24   Pre-fail  Always   FAILING_NOW 4660
0x09 Power_On_Hours          0x0032   0x5a  0x5a  0x00   Old_age   Always       -       14571
0xbb Reported_Uncorrect      0x0032   0x62  0x62  ----   Old_age   Always       -       2
0xc2 Temperature_Celsius     0x0022   0x1e  0x28  0x00   Old_age   Always       -       -3
"""
# smartctl 7.3 -x, asking a controller that answers with a thin namespace
NVME = """Model Number:                       SAMSUNG MZQL21T9HCJR-00B7C
Number of Namespaces:               1
Namespace 1 Size:                   3,840,755,982,336 [3.84 TB]
Namespace 1 Capacity:               1,920,377,991,168 [1.92 TB]
Namespace 1 Utilization:            640,125,997,056 [640 GB]
"""


def read(text: str) -> SmartDocument:
    return decode_smartctl_output(text.encode())


def test_a_drive_that_fails_to_tell_its_state_is_no_drive_that_was_read() -> None:
    """Ubuntu forums, October 2014; the JSON of such a run says the same by its exit status."""
    found = read(FUJITSU)
    assert (found.read_failed, found.smart.passed) == (True, None)
    assert found.missing_state_reason == (
        "smartctl read nothing but the disk's name (Read SMART Data failed: scsi error aborted command)"
    )


@pytest.mark.parametrize(
    ("status", "support", "failed"),
    [
        (4, {"available": True, "enabled": True}, True),
        (0, {"available": True, "enabled": True}, False),
        (4, {"available": True, "enabled": False}, False),
        (4, {"available": False}, False),
    ],
)
def test_plain_json_of_a_drive_that_fails_to_tell_its_state_says_so_by_its_exit_status(
    status: int, support: dict[str, bool], failed: bool
) -> None:
    """smartctl 7.3 -x --json; the lines with the reasons come along with `--json=o` only."""
    answer = {
        "smartctl": {"version": [7, 3], "exit_status": status},
        "device": {"type": "sat", "protocol": "ATA"},
        "model_name": "FUJITSU MJA2500BH G2",
        "serial_number": "K94STA52EAGX",
        "smart_support": support,
    }
    found = read(json.dumps(answer))
    assert found.read_failed is failed
    untold = "smartctl read nothing but the disk's name (it does not say why)"
    assert found.missing_state_reason == (untold if failed else None)


def test_a_verdict_beside_a_command_that_failed_was_read() -> None:
    assert not read(FUJITSU.replace("UNKNOWN!", "PASSED")).read_failed


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        ("SMART support is: Unavailable - device lacks SMART capability.", False),
        ("SMART Disabled. Use option -s with argument 'on' to enable it.", False),
        ("Error SMART Status command failed: Input/output error", True),
    ],
)
def test_a_card_that_keeps_no_state_has_not_failed_to_tell_it(line: str, failed: bool) -> None:
    """A CompactFlash card; its JSON was read so from the first."""
    assert read(CARD.format(line)).read_failed is failed


@pytest.mark.parametrize(
    ("line", "failed"),
    [
        ("Log Sense failed, IE page [medium or hardware error (serious)]", True),
        ("Request Sense failed, [device not ready]", True),
        ("Request Sense failed, [Input/output error]", False),
    ],
)
def test_a_sas_drive_that_fails_to_give_its_health_page_failed_in_text_as_well(
    line: str, failed: bool
) -> None:
    """The last is what any SATA drive said behind the SCSI layer of 2006 (Ubuntu forums, May 2006)."""
    assert read(f"{SAS}{line}\n").read_failed is failed


def test_a_table_in_hexadecimal_reads_as_the_same_in_decimal() -> None:
    smart = read("Device Model: ST1000DM003-1CH162\n" + HEX).smart
    assert set(smart.attributes) == {5, 9, 187, 194}
    five = smart.attributes[5]
    assert (five.raw, five.value, five.worst, five.threshold) == (4660, 10, 99, 36)
    assert (smart.power_on_hours, smart.attributes[187].threshold) == (14571, None)
    assert (smart.counters.reallocated, smart.counters.reported_uncorrectable) == (4660, 2)


def test_a_temperature_below_zero_is_read() -> None:
    smart = read("Device Model: ST1000DM003-1CH162\n" + HEX).smart
    assert (smart.temperature_c, smart.attributes[194].raw) == (-3, -3)


def test_a_thin_namespace_has_the_capacity_that_json_gives_it() -> None:
    assert read(NVME).smart.identity.capacity_bytes == 1920377991168


def test_a_count_of_all_ones_is_no_count_in_text_either() -> None:
    """smartctl prints registers of 64 bits whole; cut after 19 digits they were counts of failed reads."""
    page = "{}          0        0         0         0          0          0.000    {}\n"
    told = page.format("read:  ", 2**64 - 1) + page.format("write: ", 3)
    assert read(SAS + told).smart.counters.uncorrected_errors == 3


@pytest.mark.parametrize(
    "line",
    [
        "# 1  Default           Failed in segment -->       3   47877         764900874 [0x3 0x5d 0x1]",
        "# 1  Abort background  Completed, segment failed   -   25146                 5 [0x3 0x5d 0x1]",
        "# 1  Offline             Completed: read failure       90%     47877         764900874",
    ],
)
def test_a_failed_self_test_of_any_kind_is_counted(line: str) -> None:
    """As in JSON, which counts by the result alone."""
    logs = read(f"{SAS}{line}\n").smart.logs
    assert logs
    assert logs.failed_self_tests == 1


def test_figures_in_a_pashto_locale_are_read() -> None:
    smart = read(
        "Device Model: X 1\nUser Capacity:    1\u066c000\u066c204\u066c886\u066c016 bytes [1\u066b00 TB]\n"
    ).smart
    assert smart.identity.capacity_bytes == 1000204886016
    page = "read:    0        0         0         0          0          12\u066b699    0\n"
    document = {
        "device": {"protocol": "SCSI"},
        "scsi_error_counter_log": {"read": {"gigabytes_processed": "12\u066b699"}},
    }
    for told in (SAS + page, json.dumps(document)):
        assert read(told).smart.counters.bytes_read == 12_699_000_000


STATISTICS = """Device Statistics (GP Log 0x04)
Page  Offset Size        Value Flags Description
0x01  0x010  4           12345  --C  Power-on Hours
0x03  0x020  4               3  ---+ Number of Reallocated Logical Sectors
0x05  0x008  1              57  ---  Current Temperature
"""


def test_statistics_tell_hours_and_temperature_where_nothing_else_does() -> None:
    smart = read(f"{FUJITSU}{STATISTICS}").smart
    assert (smart.power_on_hours, smart.temperature_c, smart.counters.reallocated) == (12345, 57, 3)


@pytest.mark.parametrize(
    ("told", "repeated", "passed"),
    [
        ("PASSED", "0x2cf4 (FAILED)", False),
        ("FAILED!", "0xc24f (PASSED)", False),
        ("UNKNOWN!", "0xc24f (PASSED)", True),
        ("PASSED", "0xffff (Reserved)", True),
        ("UNKNOWN!", "0xffff (Reserved)", None),
    ],
)
def test_a_verdict_that_a_bridge_lost_is_read_where_sct_repeats_it(
    told: str, repeated: str, passed: bool | None
) -> None:
    sct = f"SMART Status:                        {repeated}\n"
    assert read(FUJITSU.replace("UNKNOWN!", told) + sct).smart.passed is passed


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ("json = {};\njson.json_format_version = [];\njson.smartctl = {};\n", "--json=g"),
        ("json={};\njson.json_format_version=[];\njson.smartctl={};\n", "--json=g"),
        ("---\njson_format_version:\n  - 1\n  - 0\nsmartctl:\n  version:\n", "--json=y"),
        ("json_format_version:\n- 1\n- 0\nsmartctl: {}\n", "--json=y"),
    ],
)
def test_a_form_of_smartctls_that_is_not_read_is_refused_by_its_name(head: str, form: str) -> None:
    """smartctl 7.3 -x with `--json=g`, `cg`, `y` and `yc`."""
    with pytest.raises(Undecodable) as refused:
        read(head)
    assert str(refused.value) == f"is in smartctl's {form} format, run smartctl with --json"
    assert list(split_json_documents(head.encode())) == [head.encode()]

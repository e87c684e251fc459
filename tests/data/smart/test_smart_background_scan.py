"""The defects that the background scan of a SAS drive found, read from the text and from the JSON of smartctl."""

from __future__ import annotations

import json
from typing import Any

import pytest

from predrain.data.reading import Counters
from predrain.data.smart import decode_smartctl_output

SCANNED = """smartctl 7.2 2020-12-30 r5155 [x86_64-linux-5.10.0] (local build)

=== START OF INFORMATION SECTION ===
Vendor:               HGST
Product:              HUS726040AL5210
Logical block size:   512 bytes
Physical block size:  {physical} bytes
Serial number:        K4K1

=== START OF READ SMART DATA SECTION ===
SMART Health Status: OK
Elements in grown defect list: 0
{pending}
Background scan results log
  Status: waiting until BMS interval timer expires
    Accumulated power on time, hours:minutes 46915:04 [2814904 minutes]
    Number of background scans performed: {scans},  scan progress: 0.00%
    Number of background medium scans performed: {scans}

   #  when        lba(hex)    [sk,asc,ascq]    reassign_status
"""
LOST = "   1 42149:02  00000000becb3840  [3,11,0]   Require Write or Reassign Blocks command\n"
NEXT_TO_IT = "   2 42149:02  00000000becb3841  [3,11,0]   Require Write or Reassign Blocks command\n"


def print_log(*results: str, scans: int = 294, physical: int = 512, pending: str = "") -> str:
    return SCANNED.format(scans=scans, physical=physical, pending=pending) + "".join(results)


def count(text: str) -> Counters:
    smart = decode_smartctl_output(text.encode()).smart
    assert smart is not None
    return smart.counters


@pytest.mark.parametrize(
    ("result", "pending"),
    [
        ("[3,11,0]   Require Write or Reassign Blocks command", 1),
        ("[4,9,0]   Reassignment by disk failed", 1),
        ("[3,11,0]   Unsuccessfully reassigned by app", 1),
        ("[3,11,0]   Recovered via rewrite in-place", 0),
        ("[1,18,7]   Recovered via rewrite in-place", 0),
        ("[4,9,0]   Successfully reassigned", 0),
        ("[3,11,0]   Reassigned by app, has no valid data", 0),
        ("[1,17,1]   Require Write or Reassign Blocks command", 0),
        ("[3,11,0]   Reassign status: reserved [0x9]", 0),
    ],
)
def test_a_block_that_the_scan_could_not_read_is_pending_until_it_is_rewritten_or_reassigned(
    result: str, pending: int
) -> None:
    assert count(print_log(f"   1 42149:02  00000000becb3840  {result}\n")).pending == pending


def test_the_logical_blocks_of_one_physical_block_are_one_defect() -> None:
    assert count(print_log(LOST, NEXT_TO_IT, physical=4096)).pending == 1
    assert count(print_log(LOST, NEXT_TO_IT)).pending == 2


def test_a_block_that_was_met_in_two_scans_is_one_defect() -> None:
    assert count(print_log(LOST, LOST.replace("   1 ", "  17 "))).pending == 1


def test_the_list_of_pending_defects_that_the_drive_keeps_counts_before_its_scan() -> None:
    assert count(print_log(LOST, NEXT_TO_IT, pending="Pending defect count:7 Pending Defects")).pending == 7


def test_a_drive_that_never_scanned_says_nothing_of_pending_defects() -> None:
    assert count(print_log(scans=0)).pending is None
    assert count(print_log(scans=1)).pending == 0


def make_document(**more: Any) -> str:
    about = {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 4], "exit_status": 0},
        "device": {"name": "/dev/sda", "type": "scsi", "protocol": "SCSI"},
        "scsi_vendor": "SEAGATE",
        "scsi_product": "ST8000NM0075",
        "serial_number": "ZA1",
        "logical_block_size": 512,
        "physical_block_size": 4096,
        "scsi_grown_defect_list": 3,
    }
    return json.dumps(about | more)


def test_the_log_is_read_from_json_as_smartctl_7_4_writes_it() -> None:
    scan = {
        "status": {"value": 8, "number_scans_performed": 438, "number_medium_scans_performed": 438},
        "result_1": {
            "parameter_code": 1,
            "accumulated_power_on": {"minutes": 2814904},
            "lba": 3200989248,
            "sense_key": {"value": 3, "string": "Medium Error"},
            "asc": 17,
            "ascq": 0,
            "reassign_status": {"value": 1, "string": "Require Write or Reassign Blocks command"},
        },
    }
    assert count(make_document(scsi_background_scan=scan)).pending == 1


def test_the_printed_log_that_json_carries_along_is_read_where_json_has_none() -> None:
    tool = {"version": [7, 2], "exit_status": 0, "output": print_log(LOST).splitlines()}
    assert count(make_document(smartctl=tool)).pending == 1


@pytest.mark.parametrize("scan", [7, [], {"result_1": 3}, {"result_1": {"lba": "x", "sense_key": []}}])
def test_a_log_in_another_shape_says_nothing_or_none(scan: object) -> None:
    assert count(make_document(scsi_background_scan=scan)).pending in (None, 0)

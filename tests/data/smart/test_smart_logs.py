"""The facts that a drive's own logs give besides its counters, read from JSON and from text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from predrain.data.reading import Logs
from predrain.data.smart import SmartDocument, decode_smartctl_output
from predrain.data.smart.text import parse_text_output

SAMPLES = Path(__file__).parent / "samples"
Altered = Callable[..., SmartDocument]

ATA_TEXT = """\
smartctl 7.3 2022-02-28 r5338 [x86_64-linux-5.15.0] (local build)
Device Model:     ST4000DM000-1F2168
Serial Number:    Z305B2QN
SMART overall-health self-assessment test result: PASSED
SMART Extended Comprehensive Error Log Version: 1 (5 sectors)
Device Error Count: 30 (device log contains only the most recent 8 errors)
SMART Extended Self-test Log Version: 1 (1 sectors)
Num  Test_Description    Status                  Remaining  LifeTime(hours)  LBA_of_first_error
# 1  Short offline       Aborted by host               90%     12551         -
# 2  Short offline       Completed: read failure       90%     12549         927627272
# 3  Extended offline    Completed: handling damage??  90%     12544         0
# 4  Extended offline    Completed without error       00%     12000         -
# 5  Short offline       Completed: read failure       90%     11000         927627272
SATA Phy Event Counters (GP Log 0x11)
ID      Size     Value  Description
0x0002  2            3  R_ERR response for data FIS
0x0003  2            3  R_ERR response for device-to-host data FIS
0x0005  2            1  R_ERR response for non-data FIS
0x0009  2           12  Transition from drive PhyRdy to drive PhyNRdy
"""
NVME_TEXT = """\
smartctl 7.4 2023-08-01 r5530 [x86_64-linux-6.5.0] (local build)
Model Number:                       SAMSUNG MZQL23T8HCLS-00A07
Serial Number:                      S64HNE0R500123
SMART overall-health self-assessment test result: PASSED
Critical Warning:                   0x00
Error Information Log Entries:      1,733
Self-test Log (NVMe Log 0x06)
Self-test status: No self-test in progress
Num  Test_Description  Status                       Power_on_Hours  Failing_LBA  NSID Seg SCT Code
 0   Short             Completed: failed segments             7663            -     1   2   -    -
 1   Extended          Aborted: Self-test command             7662            -     -   -   -    -
 2   Extended          Completed without error                7661            -     -   -   -    -
 3   Short             Completed: failed segments             7660            -     1   2   -    -
"""
SCSI_TEXT = """\
smartctl 7.3 2022-02-28 r5338 [x86_64-linux-5.15.0] (local build)
Vendor:               SEAGATE
Product:              ST4000NM0023
Serial number:        Z1Z5FVLP
SMART Health Status: OK
SMART Self-test log
Num  Test              Status                 segment  LifeTime  LBA_first_err [SK ASC ASQ]
# 1  Background short  Failed in segment -->       3     349         927627272 [0x3 0x11 0x0]
# 2  Background long   Completed                   -     302                 - [-   -    -]
    Invalid DWORD count = 4
    Running disparity error count = 2
    Loss of DWORD synchronization = 3
    Phy reset problem = 0
    Phy event descriptors:
     Invalid word count: 4
     Running disparity error count: 2
     Loss of dword synchronization count: 3
    Invalid DWORD count = 1
    Running disparity error count = 0
    Loss of DWORD synchronization = 0
"""


def logs_of(name: str) -> Logs | None:
    (path,) = SAMPLES.glob(f"{name}.*")
    return decode_smartctl_output(path.read_bytes()).smart.logs


def test_a_drives_errors_and_failed_self_tests_are_counted() -> None:
    assert logs_of("ata-052") == Logs(logged_errors=56, failed_self_tests=3)


def test_a_log_that_was_not_shown_is_not_an_empty_one() -> None:
    assert logs_of("ata-046") == Logs(logged_errors=1, failed_self_tests=None)


def test_events_of_the_link_are_counted() -> None:
    assert logs_of("ata-030") == Logs(0, 0, link_errors=0, link_losses=8)


def test_a_drive_without_logs_has_none(altered: Altered) -> None:
    def forget(document: dict[str, Any]) -> None:
        for key in ("ata_smart_error_log", "ata_smart_self_test_log", "sata_phy_event_counters"):
            document.pop(key, None)

    assert altered("ata-052", forget).smart.logs is None


def test_failures_before_a_long_test_that_was_passed_are_outdated(altered: Altered) -> None:
    def passed(document: dict[str, Any]) -> None:
        long = {"type": {"value": 2, "string": "Extended offline"}, "status": {"value": 0}}
        document["ata_smart_self_test_log"]["standard"]["table"].insert(0, long)

    assert altered("ata-052", passed).smart.logs == Logs(56, 0)


@pytest.mark.parametrize(
    ("status", "failed"), [(0x17, 0), (0x2F, 0), (0xF9, 0), (0x31, 1), (0x81, 1), (0xE0, 0)]
)
def test_only_a_test_that_came_to_an_end_can_have_failed(altered: Altered, status: int, failed: int) -> None:
    def ended(document: dict[str, Any]) -> None:
        row = {"type": {"value": 1, "string": "Short offline"}, "status": {"value": status}}
        document["ata_smart_self_test_log"] = {"standard": {"table": [row]}}

    assert altered("ata-052", ended).smart.logs == Logs(56, failed)


def test_ata_logs_in_text_are_those_of_json() -> None:
    assert decode_smartctl_output(ATA_TEXT.encode()).smart.logs == Logs(30, 2, 4, 12)


def test_nvme_logs_in_text_are_those_of_json() -> None:
    assert decode_smartctl_output(NVME_TEXT.encode()).smart.logs == Logs(1_733, 1)


def test_scsi_logs_in_text_are_those_of_json() -> None:
    assert decode_smartctl_output(SCSI_TEXT.encode()).smart.logs == Logs(None, 1, 7, 3)


def test_an_empty_log_of_self_tests_is_none_failed() -> None:
    nothing = (
        ATA_TEXT.split("Num  Test")[0]
        + "No self-tests have been logged.  [To run self-tests, use: smartctl -t]\n"
    )
    assert decode_smartctl_output(nothing.encode()).smart.logs == Logs(30, 0)


def test_no_errors_logged_is_zero() -> None:
    assert decode_smartctl_output(
        ATA_TEXT.replace("Device Error Count: 30", "No Errors Logged\n").encode()
    ).smart.logs == Logs(0, 2, 4, 12)


def test_a_transcript_speaks_in_smartctls_keys() -> None:
    found, _ = parse_text_output(ATA_TEXT.encode())
    assert json.loads(json.dumps(found["ata_smart_error_log"])) == {"extended": {"count": 30}}

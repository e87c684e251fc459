"""Wordings of smartctl that only some releases, drives or controllers bring forth, each as public reports quote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from predrain.data.reading import Protocol, Smart
from predrain.data.smart import Undecodable, decode_smartctl_output

FARM = """
Seagate Field Access Reliability Metrics log (FARM) (GP Log 0xa6)
\tFARM Log Page 1: Drive Information
\t\tSerial Number: ZCT1K8G2
\t\tModel Number:
\t\tPower on Hours: 31383
"""
ATA = """smartctl 7.4 2023-08-01 r5530 [x86_64-linux-6.1.0] (local build)
Device Model:     ST6000DM003-2CY186
Serial Number:    ZCT1K8G2
SMART overall-health self-assessment test result: PASSED
ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE
  5 Reallocated_Sector_Ct   PO--CK   100   100   010    -    16
197 Current_Pending_Sector  -O--C-   100   100   000    -    8
"""
SCSI = """Vendor:               SEAGATE
Product:              ST20000NM002D
Serial number:        ZVT61A060000C308C6K6
"""


def read(text: str) -> Smart:
    return decode_smartctl_output(text.encode()).smart


def refused(text: str) -> str:
    with pytest.raises(Undecodable) as told:
        decode_smartctl_output(text.encode())
    return str(told.value)


def attributes(*rows: str) -> Smart:
    return read("Device Model: X\nSerial Number: Y1\n" + "\n".join(rows))


def row(number: int, name: str, raw: int) -> str:
    return f"{number:3} {name:23} -O--CK   100   100   000    -    {raw}"


def scsi(version: list[Any], **told: object) -> Smart:
    head = {"smartctl": {"version": version}, "device": {"protocol": "SCSI"}}
    return decode_smartctl_output(json.dumps(head | told).encode()).smart


def test_a_log_that_says_again_who_the_drive_is_changes_neither_protocol_nor_identity() -> None:
    smart = read(ATA + FARM)
    assert (smart.protocol, smart.identity.model) == (Protocol.ATA, "ST6000DM003-2CY186")
    assert (smart.counters.reallocated, smart.counters.pending) == (16, 8)


def test_a_log_with_the_short_serial_number_is_of_the_same_run() -> None:
    smart = read(SCSI + "SMART Health Status: OK\n" + FARM.replace("ZCT1K8G2", "ZVT61A06"))
    assert (smart.identity.serial, smart.passed) == ("ZVT61A060000C308C6K6", True)


def test_that_log_alone_is_refused_by_its_name() -> None:
    assert "FARM log only" in refused("smartctl 7.5 2025-04-30 r5714 [FreeBSD 15.1]\n" + FARM)


@pytest.mark.parametrize(
    ("version", "told", "elements"),
    [([7, 0], 56, 7), ([7, 1], 240, 30), ([7, 1], 12, 3), ([7, 1], 0, 0), ([7, 2], 240, 240), ([7, 4], 240, 240)],
)  # fmt: skip
def test_grown_defects_are_elements_where_smartctl_wrote_their_bytes(
    version: list[int], told: int, elements: int
) -> None:
    assert scsi(version, scsi_grown_defect_list=told).counters.grown_defects == elements


@pytest.mark.parametrize("version", [None, "7.1", [], ["7", "1"], [7], [[7, 1]]])
def test_grown_defects_of_an_unknown_smartctl_are_as_told(version: Any) -> None:
    assert scsi(version, scsi_grown_defect_list=240).counters.grown_defects == 240


def test_a_temperature_in_the_environmental_report_is_read() -> None:
    smart = read(
        SCSI + "Temperature Warning:  Enabled\nCurrent temperature = 25\nLifetime maximum temperature = 54\n"
    )
    assert smart.temperature_c == 25


@pytest.mark.parametrize(
    "label", ["Percentage used endurance indicator", "SS Media used endurance indicator"]
)
def test_wear_of_a_sas_ssd_is_read_in_both_wordings(label: str) -> None:
    assert read(f"{SCSI}{label}: 2%\n").counters.percentage_used == 2


@pytest.mark.parametrize(
    ("line", "passed"),
    [
        ("SMART Sense: Ok!", True),
        ("SMART Health Status: OK", True),
        ("SMART Health Status: FAILURE PREDICTION", False),
    ],
)
def test_the_oldest_ok_is_ok(line: str, passed: bool) -> None:
    assert read(f"{SCSI}{line}\n").passed is passed


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        ("Short INQUIRY response, skip product id", "cable"),
        (">> Terminate command early due to bad response to IEC mode page", "cable"),
        ("Standard Inquiry (64 bytes) failed [No such device or address]", "cable"),
        ("Probable ATA device behind a SAT layer", "-d sat"),
        ("=======> INVALID ARGUMENT TO -d: foo", "arguments that it knows"),
        ("=======> UNRECOGNIZED OPTION: j", "options that it knows"),
        ("ERROR: smartctl requires a device name as the final command-line argument.", "name the device"),
        ("Device is in IDLE mode, exit(2)", "without -n idle"),
        (
            "Smartctl open device: /dev/sda failed: DELL or MegaRaid controller, please try adding '-d megaraid,N'",
            "behind the controller with -d",
        ),
    ],
)  # fmt: skip
def test_the_error_that_stopped_smartctl_is_quoted_with_its_cure(line: str, cure: str) -> None:
    told = refused(f"smartctl 7.3 2022-02-28 r5338 [x86_64-linux-6.1.0] (local build)\n{line}\n")
    assert line.rstrip(".") in told
    assert cure in told


@pytest.mark.parametrize(
    ("line", "identity"),
    [
        ("Standard Inquiry (64 bytes) failed [No such device or address]", {}),
        (
            "device is NOT READY (e.g. spun down, busy)",
            {"scsi_vendor": "HGST", "scsi_product": "HUH721212AL5200"},
        ),
        ("device Test Unit Ready  [medium or hardware error (serious)]", {"scsi_product": "HUH721212AL5200"}),
    ],
)
def test_the_error_that_stopped_a_sas_drives_reading_is_quoted_from_the_text_inside_the_json(
    line: str, identity: dict[str, str]
) -> None:
    """Check errors that no message of smartctl's JSON holds (scsiprint.cpp only prints them as text)."""
    program = {
        "exit_status": 2,
        "output": [
            "=== START OF INFORMATION SECTION ===",
            line,
            "A mandatory SMART command failed: exiting.",
        ],
    }
    answer = {"smartctl": program, "device": {"protocol": "SCSI"}, "serial_number": "D5G7WG8L", **identity}
    if not identity:
        del answer["serial_number"]
        assert line in refused(json.dumps(answer))
        return
    found = decode_smartctl_output(json.dumps(answer).encode())
    assert (
        found.missing_state_reason == f"smartctl read nothing but the disk's name ({' '.join(line.split())})"
    )


def test_a_verdict_after_an_answer_that_was_cut_short_counts_as_a_failed_read() -> None:
    found = decode_smartctl_output(
        b"smartctl 5.43\nShort INQUIRY response, skip product id\nSMART Health Status: OK\n"
    )
    assert found.read_failed


@pytest.mark.parametrize(
    "line",
    [
        "Error counter log:",
        "Error logging capability:        (0x01) Error logging supported.",
        "Error Information Log Entries:      0",
        "Error Counter logging not supported",
        "Error 163 occurred at disk power-on lifetime: 26312 hours (1096 days + 8 hours)",
        "Warning  Comp. Temp. Threshold:     80 Celsius",
    ],
)
def test_lines_of_the_report_are_no_messages(line: str) -> None:
    assert decode_smartctl_output(f"{ATA}{line}\n".encode()).messages == ()


def test_wear_alone_is_read() -> None:
    head = (
        "smartctl 7.4 2023-08-01 r5530 [x86_64-linux-6.1.64] (local build)\nDevice Statistics (GP Log 0x04)\n"
    )
    text = f"{head}0x07  0x008  1              20  N--  Percentage Used Endurance Indicator\n"
    assert read(text).counters.percentage_used == 20


def test_hours_of_the_background_scan_alone_are_read() -> None:
    smart = read(
        "=== START OF READ SMART DATA SECTION ===\nBackground scan results log\nStatus: scan is active\n"
        "Accumulated power on time, hours:minutes 3687:00 [221220 minutes]\n"
    )
    assert smart.power_on_hours == 3687


@pytest.mark.parametrize(
    ("reads", "writes", "unit"),
    [
        ((174, "Host_Reads_MiB"), (175, "Host_Writes_MiB"), 2**20),
        ((198, "Host_Reads_GiB"), (199, "Host_Writes_GiB"), 2**30),
    ],
)
def test_traffic_of_the_host_is_read_under_whatever_number_its_name_stands(
    reads: tuple[int, str], writes: tuple[int, str], unit: int
) -> None:
    counters = attributes(row(*reads, 50), row(*writes, 70)).counters
    assert (counters.bytes_read, counters.bytes_written) == (50 * unit, 70 * unit)
    assert counters.crc_errors is None
    assert counters.offline_uncorrectable is None


def test_counters_are_read_under_the_names_that_vendors_gave_them() -> None:
    counters = attributes(
        row(5, "Retried_Blk_Ct", 3),
        row(174, "Unexpect_PwrLoss_Ct", 11),
        row(184, "IO_Error_Detect_Code_Ct", 2),
    ).counters
    assert (counters.reallocated, counters.unsafe_shutdowns, counters.end_to_end_errors) == (3, 11, 2)


@pytest.mark.parametrize("name", ["SATA_Error_Ct", "Drive_Temp_Warning"])
def test_a_count_at_the_place_of_a_temperature_is_none(name: str) -> None:
    assert attributes(row(190, name, 5)).temperature_c is None


def test_hours_that_no_drive_can_have_are_of_another_unit_and_so_unknown() -> None:
    """Half minutes of a Samsung SP80A4H in 5.38, which said only that `-F samsung` might be needed; its self-tests
    tell of 9,965 hours."""
    smart = attributes(row(9, "Power_On_Hours", 1196196))
    assert (smart.power_on_hours, smart.attributes[9].raw) == (None, 1196196)
    assert attributes(row(9, "Power_On_Hours", 102880)).power_on_hours == 102880
    told = {"device": {"protocol": "ATA"}, "model_name": "X", "power_on_time": {"hours": 1196196}}
    assert decode_smartctl_output(json.dumps(told).encode()).smart.power_on_hours is None


@pytest.mark.parametrize(("printed", "celsius"), [("128 (Min/Max 127/129)", None), (127, None), (83, 83)])
def test_a_temperature_that_no_drive_survives_is_a_missing_sensor(
    printed: int | str, celsius: int | None
) -> None:
    """SandForce's controllers say 128 where no sensor is fitted (text/ata-076)."""
    told = attributes(f"194 Temperature_Celsius     -O---K   128   129   000    -    {printed}")
    assert told.temperature_c == celsius


def test_a_194_without_a_sensor_leaves_it_to_190_as_smartctl_does() -> None:
    rows = (row(190, "Airflow_Temperature_Cel", 31), row(194, "Temperature_Celsius", 0))
    assert attributes(*rows).temperature_c == 31


def test_the_table_of_the_first_releases_has_a_column_less() -> None:
    smart = attributes(
        "  5 Reallocated_Sector_Ct   0x0033   253   253   063    Pre-fail -           2",
        "  9 Power_On_Hours          0x0032   253   253   000    Old_age  -           301 h + 29 m",
    )
    assert (smart.counters.reallocated, smart.power_on_hours) == (2, 301)


def test_a_list_of_devices_is_told_from_a_report() -> None:
    listed = {"smartctl": {"version": [7, 3]}, "devices": [{"name": "/dev/sda", "protocol": "ATA"}]}
    assert "list of devices" in refused(json.dumps(listed))


@pytest.mark.parametrize("serial", ["<removed>", "[redacted]", "<hidden for privacy>"])
def test_a_serial_number_in_brackets_names_no_drive(serial: str) -> None:
    assert (
        decode_smartctl_output(f"Device Model: ST4000\nSerial Number: {serial}\n".encode()).device_id is None
    )


def test_a_table_of_noise_tells_nothing_but_a_wrong_checksum_alone_does_not_make_one() -> None:
    """Ubuntu forums, September 2008: a SAMSUNG HD250HJ with SMART disabled; February 2008: an HD300LJ."""
    wrong = "Warning! SMART Attribute Data Structure error: invalid SMART checksum."
    noise = [
        row(16, "Unknown_Attribute", 1060314912768),
        row(5, "Reallocated_Sector_Ct", 4660),
        row(9, "Power_On_Hours", 131071),
        row(16, "Unknown_Attribute", 71429283682304),
    ]
    smart = attributes(wrong, *noise)
    assert (smart.attributes, smart.counters.reallocated, smart.power_on_hours) == ({}, None, None)
    assert attributes(wrong, *noise[:3]).counters.reallocated == 4660
    assert attributes(*noise).counters.reallocated == 4660

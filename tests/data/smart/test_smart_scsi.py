"""SCSI and SAS drives, under the keys of three generations of smartctl."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from predrain.data.reading import Protocol
from predrain.data.smart import SmartDocument

Sample = Callable[[str], SmartDocument]
Altered = Callable[..., SmartDocument]


def test_a_drive_can_pass_with_536_uncorrected_errors(sample: Sample) -> None:
    """scsi-001: 1 on reads, 535 on writes, no page for verifies."""
    smart = sample("scsi-001").smart
    assert smart.passed is True
    assert smart.counters.uncorrected_errors == 536
    assert smart.counters.grown_defects == 260
    assert smart.counters.bytes_read == 11_523_849_000_000
    assert smart.counters.bytes_written == 11_151_772_000_000
    assert smart.power_on_hours == 102880
    assert smart.counters.reallocated is None


def test_verified_sectors_count_as_uncorrected_too(altered: Altered) -> None:
    def verify(document: dict[str, Any]) -> None:
        document["scsi_error_counter_log"]["verify"] = {"total_uncorrected_errors": 4}

    assert altered("scsi-001", verify).smart.counters.uncorrected_errors == 540


def test_the_keys_up_to_7_2_name_the_drive(sample: Sample) -> None:
    """scsi-006 (6.7): `vendor`, `product`, `revision`."""
    document = sample("scsi-006")
    who = document.smart.identity
    assert document.smart.protocol is Protocol.SCSI
    assert (who.vendor, who.model) == ("SEAGATE", "SEAGATE ST1200MM0088")
    assert who.firmware == "N004"
    assert who.rotation_rpm == 10500
    assert document.device_id == "SEAGATE_ST1200MM0088_Z4028VRY0000C810BZXB"


def test_the_keys_since_7_3_name_the_drive(sample: Sample) -> None:
    """scsi-003 (7.4): `scsi_vendor`, `scsi_product`, `scsi_revision`, `logical_unit_id`."""
    who = sample("scsi-003").smart.identity
    assert (who.vendor, who.model, who.firmware) == ("HP 73.4G", "HP 73.4G MAS3735NC", "HPC3")
    assert who.wwn == "1234567890abcdef"
    assert sample("scsi-003").smart.power_on_hours is None


def test_a_model_is_made_of_vendor_and_product_where_no_key_holds_both(altered: Altered) -> None:
    def parts(document: dict[str, Any]) -> None:
        del document["model_name"]

    assert altered("scsi-006", parts).smart.identity.model == "SEAGATE ST1200MM0088"


@pytest.mark.parametrize(
    ("unit", "wwn"), [("0x5002538b731302a0", "5002538b731302a0"), ("0x5000CB0847", "5000cb0847")]
)
def test_a_logical_unit_id_is_a_wwn_without_prefix(altered: Altered, unit: str, wwn: str) -> None:
    """scsi-011 and scsi-009."""

    def named(document: dict[str, Any]) -> None:
        document["logical_unit_id"] = unit

    assert altered("scsi-006", named).smart.identity.wwn == wwn


@pytest.mark.parametrize("unit", ["REDACTED", "0x0", "", None, [], -5])
def test_a_masked_logical_unit_id_is_none(altered: Altered, unit: object) -> None:
    """scsi-007."""

    def named(document: dict[str, Any]) -> None:
        document["logical_unit_id"] = unit

    assert altered("scsi-006", named).smart.identity.wwn is None


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("11523.849", 11_523_849_000_000),
        ("11523,849", 11_523_849_000_000),
        ("0.000", 0),
        (12.5, 12_500_000_000),
        ("-1.000", None),
        ("nan", None),
        ("inf", None),
        ("1e9999", None),
        ("9" * 40, None),
        ("", None),
        (None, None),
        (True, None),
    ],
)
def test_gigabytes_are_strings_with_the_locales_decimal_mark(
    altered: Altered, printed: object, expected: int | None
) -> None:
    """text/scsi-001 and text/scsi-012 have decimal commas."""

    def processed(document: dict[str, Any]) -> None:
        document["scsi_error_counter_log"]["read"]["gigabytes_processed"] = printed

    assert altered("scsi-001", processed).smart.counters.bytes_read == expected


def test_pending_defects_and_wear_of_a_sas_ssd(altered: Altered) -> None:
    """The keys of scsi-011 (7.3)."""

    def ssd(document: dict[str, Any]) -> None:
        document["scsi_pending_defects"] = {"count": 2}
        document["scsi_percentage_used_endurance_indicator"] = 104
        document["rotation_rate"] = 0

    smart = altered("scsi-010", ssd).smart
    assert (smart.counters.pending, smart.counters.percentage_used) == (2, 104)
    assert smart.identity.rotation_rpm == 0


def test_non_medium_errors_come_from_the_text_that_json_o_carries(altered: Altered, sample: Sample) -> None:
    """The line of text/scsi-021, a healthy drive."""

    def carried(document: dict[str, Any]) -> None:
        document["smartctl"]["output"] = ["", "Non-medium error count:    84893", 7]

    assert altered("scsi-001", carried).smart.counters.non_medium_errors == 84893
    assert sample("scsi-001").smart.counters.non_medium_errors is None


def test_the_temperature_of_7_3_has_another_key(altered: Altered) -> None:
    def renamed(document: dict[str, Any]) -> None:
        document["scsi_temperature"] = document.pop("temperature")

    assert altered("scsi-001", renamed).smart.temperature_c == 33


def test_a_raid_volume_has_no_temperature_and_no_verdict(altered: Altered) -> None:
    """text/scsi-005: a volume answers 0 degrees with a trip point of 0."""

    def volume(document: dict[str, Any]) -> None:
        for key in ("smart_status", "scsi_grown_defect_list", "scsi_error_counter_log", "power_on_time"):
            del document[key]
        document["scsi_product"] = document["scsi_model_name"] = "MR9361-8i"
        document["temperature"] = {"current": 0, "drive_trip": 0}

    smart = altered("scsi-001", volume).smart
    assert smart.temperature_c is None
    assert smart.passed is None
    assert smart.counters.uncorrected_errors is None
    assert smart.identity.model == "MR9361-8i"


def test_a_health_only_output_of_a_sas_drive_holds_its_verdict(sample: Sample) -> None:
    """scsi-014."""
    smart = sample("scsi-014").smart
    assert (smart.protocol, smart.passed, smart.identity.model) == (Protocol.SCSI, True, None)


def test_text_before_the_json_is_passed_over(sample: Sample) -> None:
    """broken-008: scsi-006 behind what smartctl before 7.3 printed ahead of it."""
    assert sample("broken-008") == sample("scsi-006")

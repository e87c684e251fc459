"""ATA drives: who they are, and what their attributes mean by number and name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from predrain.data.reading import Counters, Protocol
from predrain.data.smart import SmartDocument

Sample = Callable[[str], SmartDocument]
Altered = Callable[..., SmartDocument]


def _row(number: int, name: str, value: int, printed: str | None = None) -> dict[str, Any]:
    raw = {"value": value} if printed is None else {"value": value, "string": printed}
    return {"id": number, "name": name, "value": 100, "worst": 100, "thresh": 0, "raw": raw}


def _counters(altered: Altered, *rows: dict[str, Any]) -> Counters:
    def only(document: dict[str, Any]) -> None:
        document["ata_smart_attributes"]["table"] = list(rows)

    return altered("ata-001", only).smart.counters


def test_the_identity_of_an_ata_drive(sample: Sample) -> None:
    """ata-030."""
    document = sample("ata-030")
    who = document.smart.identity
    assert document.smart.protocol is Protocol.ATA
    assert who.model == "Samsung SSD 860 EVO 500GB"
    assert who.serial == "S3YZNB0KB00864E"
    assert who.wwn == "5002538e40a22954"
    assert who.firmware == "RVT02B6Q"
    assert who.capacity_bytes == 500107862016
    assert who.rotation_rpm == 0
    assert who.vendor is None
    assert document.device_id == "Samsung_SSD_860_EVO_500GB_S3YZNB0KB00864E"
    assert document.taken_at == datetime(2021, 11, 16, 5, 18, 38, tzinfo=UTC)


def test_a_wwn_keeps_its_leading_zeros(altered: Altered) -> None:
    def toshiba(document: dict[str, Any]) -> None:
        document["wwn"] = {"naa": 5, "oui": 57, "id": 1234567890}

    assert altered("ata-001", toshiba).smart.identity.wwn == "50000390499602d2"


@pytest.mark.parametrize(
    "wwn",
    [
        {"naa": 123, "oui": 123, "id": 12345},
        {"naa": 5, "oui": 0, "id": 0},
        {"naa": 5, "oui": 57},
        None,
        "5 000039",
    ],
)
def test_an_invalid_wwn_is_read_as_none(altered: Altered, wwn: object) -> None:
    """ata-040 has an NAA of 123."""

    def replaced(document: dict[str, Any]) -> None:
        document["wwn"] = wwn

    assert altered("ata-001", replaced).smart.identity.wwn is None


@pytest.mark.parametrize("serial", ["REDACTED", "--", "XXXXXXXXXXXX", "9RK1XXXX", "", "   ", None, 7])
def test_a_masked_serial_is_no_identity(altered: Altered, serial: object) -> None:
    """ata-001, ata-017 and ata-068; `--` is how linuxhw masks."""

    def masked(document: dict[str, Any]) -> None:
        document["serial_number"] = serial

    document = altered("ata-030", masked)
    assert document.smart.identity.serial is None
    assert document.device_id is None
    assert document.smart.identity.model == "Samsung SSD 860 EVO 500GB"


def test_a_health_only_output_holds_a_verdict_and_nothing_else(sample: Sample) -> None:
    """ata-027."""
    smart = sample("ata-027").smart
    assert smart.passed is True
    assert smart.counters == Counters()
    assert smart.attributes == {}
    assert smart.power_on_hours is None
    assert sample("ata-027").taken_at is None


def test_a_missing_verdict_is_unknown(sample: Sample) -> None:
    """ata-031: attributes without -H."""
    document = sample("ata-031")
    assert document.smart.passed is None
    assert document.smart.counters.pending == 0


def test_counters_that_a_drive_does_not_report_are_unknown_and_not_zero(sample: Sample) -> None:
    """ata-001: this WDC has no 184, 187 and 188."""
    counters = sample("ata-001").smart.counters
    assert counters.reallocated == 0
    assert counters.end_to_end_errors is None
    assert counters.reported_uncorrectable is None
    assert counters.command_timeouts is None
    assert counters.media_errors is None
    assert counters.bytes_written is None


def test_packed_attributes_are_decoded_and_keep_their_integer(sample: Sample) -> None:
    """ata-070: power-on hours `38098 (190 82 0)`, rates of a Seagate."""
    smart = sample("ata-070").smart
    assert (smart.attributes[9].raw, smart.attributes[9].raw_packed) == (38098, 209259396633810)
    assert (smart.attributes[1].raw, smart.attributes[1].raw_packed) == (0, 239425872)
    assert (smart.attributes[5].raw, smart.attributes[5].raw_packed) == (0, None)
    assert smart.power_on_hours == 38098
    assert smart.temperature_c == 21


def test_seagates_seek_errors_are_the_upper_part(sample: Sample) -> None:
    """ata-053 and ata-026."""
    assert sample("ata-053").smart.attributes[7].raw == 12
    assert sample("ata-026").smart.attributes[7].raw == 2988
    assert sample("ata-026").smart.counters.reallocated == 304


def test_hours_come_from_the_attribute_when_smartctl_has_not_divided(
    sample: Sample, altered: Altered
) -> None:
    """ata-031."""

    def no_power_on_time(document: dict[str, Any]) -> None:
        document.pop("power_on_time", None)

    assert altered("ata-031", no_power_on_time).smart.power_on_hours == 2725
    assert sample("ata-031").smart.power_on_hours == 2725


def test_normalised_values_keep_their_threshold(sample: Sample) -> None:
    """ata-052."""
    row = sample("ata-052").smart.attributes[5]
    assert (row.name, row.raw, row.value, row.worst, row.threshold) == (
        "Reallocated_Sector_Ct",
        1975,
        1,
        1,
        5,
    )


def test_a_row_without_a_threshold_has_none(altered: Altered) -> None:
    """smartctl leaves `thresh` out when the thresholds cannot be read."""

    def unread(document: dict[str, Any]) -> None:
        for row in document["ata_smart_attributes"]["table"]:
            del row["thresh"], row["when_failed"]

    assert {row.threshold for row in altered("ata-001", unread).smart.attributes.values()} == {None}


@pytest.mark.parametrize(
    ("number", "name", "counter", "expected"),
    [
        (5, "Reallocated_Sector_Ct", "reallocated", 7),
        (5, "Reallocate_NAND_Blk_Cnt", "reallocated", 7),  # text/ata-078
        (5, "Retired_Block_Count", "reallocated", 7),  # text/ata-014
        (5, "Runtime_Bad_Block", "reallocated", 7),  # text/ata-058
        (5, "Factory_Bad_Block_Ct", "reallocated", None),
        (5, "Unknown_SSD_Attribute", "reallocated", None),
        (184, "End-to-End_Error", "end_to_end_errors", 7),
        (184, "End-to-End_Error_Count", "end_to_end_errors", 7),  # ata-034
        (184, "Error_Correction_Count", "end_to_end_errors", None),  # text/ata-078
        (187, "Reported_Uncorrect", "reported_uncorrectable", 7),
        (187, "Uncorrectable_Error_Cnt", "reported_uncorrectable", 7),  # text/ata-024, Samsung
        (195, "Uncorrectable_Error_Cnt", "reported_uncorrectable", 7),  # ata-059
        (195, "Uncorrectable_Err_Ct", "reported_uncorrectable", 7),  # SanDisk CloudSpeed, by drivedb.h
        (160, "Uncorrectable_Error_Cnt", "reported_uncorrectable", 7),  # Silicon Motion, by drivedb.h
        (160, "UECC_Sector_Count", "reported_uncorrectable", 7),  # Swissbit, by drivedb.h
        (160, "Unknown_Attribute", "reported_uncorrectable", None),  # text/ata-030
        (195, "Hardware_ECC_Recovered", "reported_uncorrectable", None),
        (188, "Command_Timeout", "command_timeouts", 7),
        (188, "Unknown_SSD_Attribute", "command_timeouts", None),
        (197, "Current_Pending_Sector", "pending", 7),
        (197, "Total_Pending_Sectors", "pending", 7),  # text/ata-111
        (197, "Unknown_Attribute", "pending", 7),
        (197, "Bogus_Current_Pend_Sect", "pending", None),  # text/ata-078
        (197, "Total_Unc_Read_Failures", "pending", None),  # text/ata-058
        (198, "Offline_Uncorrectable", "offline_uncorrectable", 7),
        (198, "Uncor_Read_Error_Ct", "offline_uncorrectable", None),  # text/ata-072
        (199, "UDMA_CRC_Error_Count", "crc_errors", 7),
        (199, "CRC_Error_Count", "crc_errors", 7),
        (210, "SATA_CRC_Error_Count", "crc_errors", 7),  # text/ata-058
        (218, "CRC_Error_Count", "crc_errors", 7),  # Phison and Kingston, by drivedb.h
        (218, "Unknown_SSD_Attribute", "crc_errors", None),
        (174, "Unexpect_Power_Loss_Ct", "unsafe_shutdowns", 7),
        (192, "Unsafe_Shutdown_Count", "unsafe_shutdowns", 7),
        (192, "Power-Off_Retract_Count", "unsafe_shutdowns", None),
    ],
)
def test_a_counter_goes_by_number_and_name(
    altered: Altered, number: int, name: str, counter: str, expected: int | None
) -> None:
    assert getattr(_counters(altered, _row(number, name, 7, "7")), counter) == expected


def test_an_uncorrectable_count_above_32_bits_is_no_count(altered: Altered) -> None:
    """Fujitsu packs 187."""
    assert _counters(altered, _row(187, "Reported_Uncorrect", 2**40)).reported_uncorrectable is None
    assert _counters(altered, _row(187, "Reported_Uncorrect", 2**31)).reported_uncorrectable == 2**31


def test_timeouts_are_the_low_word_whether_printed_or_not(altered: Altered) -> None:
    """text/ata-026 and text/ata-016."""
    assert (
        _counters(altered, _row(188, "Command_Timeout", 816047521985, "190 190 193")).command_timeouts == 193
    )
    assert _counters(altered, _row(188, "Command_Timeout", 4295032833, "4295032833")).command_timeouts == 1
    assert _counters(altered, _row(188, "Command_Timeout", 65583)).command_timeouts == 47


def test_an_ssd_counter_of_crc_and_end_to_end_errors(sample: Sample) -> None:
    """ata-067: Micron."""
    counters = sample("ata-067").smart.counters
    assert (counters.crc_errors, counters.end_to_end_errors, counters.unsafe_shutdowns) == (24, 1, 16)
    assert counters.bytes_written == 66563546746880


def test_wear_is_what_device_statistics_say(sample: Sample) -> None:
    """ata-030, page 7; its normalised 177 would say something else."""
    smart = sample("ata-030").smart
    assert smart.counters.percentage_used == 19
    assert smart.counters.bytes_written == 64777770148 * 512
    assert smart.counters.bytes_read == 34909544344 * 512


def test_statistics_stand_in_for_attributes_that_the_drive_lacks(altered: Altered) -> None:
    """ata-030 without its 187 and 199: pages 4 and 6 count the same."""

    def without(document: dict[str, Any]) -> None:
        table = document["ata_smart_attributes"]["table"]
        document["ata_smart_attributes"]["table"] = [row for row in table if row["id"] not in (187, 199)]

    counters = altered("ata-030", without).smart.counters
    assert (counters.reported_uncorrectable, counters.crc_errors) == (0, 0)


def test_a_statistic_that_the_drive_marks_invalid_is_unknown(altered: Altered) -> None:
    def invalid(document: dict[str, Any]) -> None:
        for page in document["ata_device_statistics"]["pages"]:
            for row in page.get("table", ()):
                row["flags"]["valid"] = False

    assert altered("ata-030", invalid).smart.counters.percentage_used is None


def test_a_smartctl_guess_of_wear_is_taken_when_the_drive_gives_none(sample: Sample) -> None:
    """ata-007 and ata-040: `endurance_used` and `spare_available` of 7.5."""
    assert sample("ata-007").smart.counters.percentage_used == 0
    assert sample("ata-007").smart.counters.available_spare_pct == 100
    assert sample("ata-040").smart.spare_threshold_pct == 10
    assert sample("ata-040").smart.counters.percentage_used is None


def test_a_pending_defects_log_counts_where_there_is_no_197(altered: Altered) -> None:
    def logged(document: dict[str, Any]) -> None:
        document["ata_smart_attributes"]["table"] = []
        document["ata_pending_defects_log"] = {"size": 176031, "count": 3}

    assert altered("ata-001", logged).smart.counters.pending == 3


def test_a_temperature_of_zero_is_a_missing_sensor(altered: Altered) -> None:
    def cold(document: dict[str, Any]) -> None:
        document["temperature"] = {"current": 0}
        document["ata_smart_attributes"]["table"] = [_row(194, "Temperature_Celsius", 0, "0")]

    assert altered("ata-001", cold).smart.temperature_c is None


def test_a_temperature_is_read_from_194_when_nothing_else_tells(altered: Altered) -> None:
    def attribute_only(document: dict[str, Any]) -> None:
        del document["temperature"]
        document["ata_smart_attributes"]["table"] = [_row(194, "Temperature_Celsius", 98784247832)]

    assert altered("ata-001", attribute_only).smart.temperature_c == 24


def test_a_sata_drive_behind_a_raid_controller_or_bridge_is_ata(sample: Sample) -> None:
    """ata-017 (sat+megaraid,0) and ata-052 (usbjmicron)."""
    assert (sample("ata-017").device_type, sample("ata-017").smart.protocol) == (
        "sat+megaraid,0",
        Protocol.ATA,
    )
    assert (sample("ata-052").device_type, sample("ata-052").smart.protocol) == ("usbjmicron", Protocol.ATA)


@pytest.mark.parametrize(
    "row",
    [
        {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": -1, "string": "-1"}},
        {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": 2**80}},
        {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": None}},
        {"id": 5, "name": "Reallocated_Sector_Ct"},
        {"id": 999, "name": "Reallocated_Sector_Ct", "raw": {"value": 1}},
        {"id": None, "name": "Reallocated_Sector_Ct", "raw": {"value": 1}},
        "5",
        None,
    ],
)
def test_a_row_that_makes_no_sense_is_left_out_and_the_rest_kept(altered: Altered, row: object) -> None:
    def broken(document: dict[str, Any]) -> None:
        document["ata_smart_attributes"]["table"] = [row, _row(199, "UDMA_CRC_Error_Count", 3, "3")]

    smart = altered("ata-001", broken).smart
    assert list(smart.attributes) == [199]
    assert smart.counters.reallocated is None

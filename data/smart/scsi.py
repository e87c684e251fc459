"""SCSI and SAS drives: identity under three generations of keys, defect lists, error counter log.

smartctl to 7.2 wrote `vendor`, `product`, `revision`; 7.3 and 7.4 wrote `scsi_vendor` and so on; 7.5 writes both.
"""

from __future__ import annotations

import re
from decimal import Decimal

from predrain.data.reading import Counters, Identity, Protocol, Smart
from predrain.data.smart import smart_logs
from predrain.data.smart.background_scan import count_unreadable_blocks
from predrain.data.smart.json_values import (
    LARGEST,
    JsonObject,
    read_first_name,
    read_json_count,
    read_json_decimal,
    read_json_integer,
    read_json_object,
    read_json_percent,
    read_json_temperature,
    read_serial_number,
)
from predrain.data.smart.temperature_limits import parse_temperature_limits

_GIGABYTE = 10**9  # SPC-5 counts bytes; smartctl prints them divided by 10^9
_HEXADECIMAL = re.compile(r"(?:0x)?([0-9a-f]{1,32})", re.IGNORECASE)
_BYTES_FOR_ELEMENTS = ([7, 0], [7, 1])
"""Versions of smartctl that wrote the bytes of the defect list instead of its elements."""
_DESCRIPTOR_BYTES = 8
_NON_MEDIUM_LINE = re.compile(r"Non-medium error count:\s*([0-9]{1,18})\s*")


def vendor_product(document: JsonObject) -> tuple[str | None, str | None]:
    """Return vendor and product of the INQUIRY answer."""
    return read_first_name(document, "scsi_vendor", "vendor"), read_first_name(
        document, "scsi_product", "product"
    )


def parse_scsi_identity(document: JsonObject) -> Identity:
    """Parse the identity; the model is `VENDOR PRODUCT`."""
    vendor, product = vendor_product(document)
    whole = f"{vendor} {product}" if vendor and product else product
    model = read_first_name(document, "scsi_model_name", "model_name") or whole
    capacity = read_json_count(read_json_object(document, "user_capacity"), "bytes")
    return Identity(
        vendor=vendor,
        model=model,
        serial=read_serial_number(document),
        wwn=_parse_scsi_wwn(document),
        firmware=read_first_name(document, "scsi_revision", "revision", "firmware_version"),
        capacity_bytes=capacity or None,
        rotation_rpm=read_json_count(document, "rotation_rate"),
    )


def parse_scsi_smart(document: JsonObject, passed: bool | None, exit_bits: tuple[int, ...] | None) -> Smart:
    """Parse the report of a SCSI drive."""
    limits = parse_temperature_limits(document)
    return Smart(
        protocol=Protocol.SCSI,
        identity=parse_scsi_identity(document),
        passed=passed,
        counters=_build_scsi_counters(document),
        power_on_hours=read_json_count(read_json_object(document, "power_on_time"), "hours"),
        temperature_c=_find_scsi_temperature(document),
        exit_bits=exit_bits,
        spare_threshold_pct=read_json_percent(
            read_json_object(document, "spare_available"), "threshold_percent"
        ),
        logs=smart_logs.parse_scsi_logs(document),
        temperature_limit_c=limits.operation,
        temperature_critical_c=limits.critical,
    )


def _parse_scsi_wwn(document: JsonObject) -> str | None:
    value = document.get("logical_unit_id")
    written = value if isinstance(value, str) else f"{read_json_integer(document, 'logical_unit_id') or 0:x}"
    match = _HEXADECIMAL.fullmatch(written.strip())
    return match[1].lower() if match and match[1].strip("0") else None


def _build_scsi_counters(document: JsonObject) -> Counters:
    log = read_json_object(document, "scsi_error_counter_log")
    used = read_json_percent(document, "scsi_percentage_used_endurance_indicator")
    return Counters(
        pending=_count_pending_defects(document),
        grown_defects=_grown_defects(document),
        non_medium_errors=_non_medium(document),
        uncorrected_errors=_sum_uncorrected_errors(log),
        percentage_used=used
        if used is not None
        else read_json_percent(read_json_object(document, "endurance_used"), "current_percent"),
        available_spare_pct=read_json_percent(
            read_json_object(document, "spare_available"), "current_percent"
        ),
        bytes_written=_read_gigabytes_as_bytes(read_json_object(log, "write")),
        bytes_read=_read_gigabytes_as_bytes(read_json_object(log, "read")),
    )


def _count_pending_defects(document: JsonObject) -> int | None:
    """Count pending defects by the drive's own list (SBC-4, 6.4.8), or by its background scan if it keeps no list."""
    listed = read_json_count(read_json_object(document, "scsi_pending_defects"), "count")
    return listed if listed is not None else count_unreadable_blocks(document)


def _grown_defects(document: JsonObject) -> int | None:
    """Count the list's elements. An address descriptor has 8 bytes in all of SBC's formats but the oldest, with 4."""
    told = read_json_count(document, "scsi_grown_defect_list")
    if told is None or read_json_object(document, "smartctl").get("version") not in _BYTES_FOR_ELEMENTS:
        return told
    return told // (_DESCRIPTOR_BYTES if told % _DESCRIPTOR_BYTES == 0 else 4)


def _sum_uncorrected_errors(log: JsonObject) -> int | None:
    """Sum the errors over reads, writes and verifies; return None if no page has them."""
    counts = [
        read_json_count(read_json_object(log, page), "total_uncorrected_errors")
        for page in ("read", "write", "verify")
    ]
    told = [number for number in counts if number is not None]
    return min(sum(told), LARGEST) if told else None


def _read_gigabytes_as_bytes(page: JsonObject) -> int | None:
    gigabytes = read_json_decimal(page, "gigabytes_processed")
    if gigabytes is None or not 0 <= gigabytes <= Decimal(LARGEST // _GIGABYTE):
        return None
    return int(gigabytes * _GIGABYTE)


def _non_medium(document: JsonObject) -> int | None:
    """Return the non-medium errors. smartctl's JSON lacks them as of 7.5, but the text in `--json=o` has them."""
    for key in ("scsi_non_medium_error_count", "scsi_nonmedium_error_count"):
        if (number := read_json_count(document, key)) is not None:
            return number
    lines = read_json_object(document, "smartctl").get("output")
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, str) and (match := _NON_MEDIUM_LINE.fullmatch(line)):
            return int(match[1])
    return None


def _find_scsi_temperature(document: JsonObject) -> int | None:
    """Return the temperature from `temperature` (in 7.3 `scsi_temperature`) in °C, or None.

    RAID volumes answer 0 with a trip point of 0.
    """
    reports = read_json_object(document, "scsi_environmental_reports")
    for node in (
        read_json_object(document, "temperature"),
        read_json_object(document, "scsi_temperature"),
        read_json_object(reports, "temperature_1"),
    ):
        if (current := read_json_temperature(node, "current")) is not None:
            return current
    return None

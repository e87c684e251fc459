"""SCSI and SAS drives: identity under three generations of keys, defect lists, error counter log.

smartctl to 7.2 wrote `vendor`, `product`, `revision`; 7.3 and 7.4 `scsi_vendor` and so on; 7.5 both.
"""

from __future__ import annotations

import re
from decimal import Decimal

from predrain.data.reading import Counters, Identity, Protocol, Smart
from predrain.data.smart import logs
from predrain.data.smart.background_scan import count_unreadable_blocks
from predrain.data.smart.values import (
    LARGEST,
    JsonObject,
    count,
    decimal,
    integer,
    member,
    named,
    percent,
    serial,
    temperature,
)

_GIGABYTE = 10**9  # SPC-5 counts bytes; smartctl prints them divided by 10^9
_HEXADECIMAL = re.compile(r"(?:0x)?([0-9a-f]{1,32})", re.IGNORECASE)
_BYTES_FOR_ELEMENTS = ([7, 0], [7, 1])
"""Versions of smartctl that wrote the bytes of the defect list where its elements belong."""
_DESCRIPTOR_BYTES = 8
_NON_MEDIUM_LINE = re.compile(r"Non-medium error count:\s*([0-9]{1,18})\s*")


def vendor_product(document: JsonObject) -> tuple[str | None, str | None]:
    """Vendor and product of the INQUIRY answer."""
    return named(document, "scsi_vendor", "vendor"), named(document, "scsi_product", "product")


def identity(document: JsonObject) -> Identity:
    """Identity; the model is `VENDOR PRODUCT`."""
    vendor, product = vendor_product(document)
    whole = f"{vendor} {product}" if vendor and product else product
    model = named(document, "scsi_model_name", "model_name") or whole
    capacity = count(member(document, "user_capacity"), "bytes")
    return Identity(
        vendor=vendor,
        model=model,
        serial=serial(document),
        wwn=_wwn(document),
        firmware=named(document, "scsi_revision", "revision", "firmware_version"),
        capacity_bytes=capacity or None,
        rotation_rpm=count(document, "rotation_rate"),
    )


def smart(document: JsonObject, passed: bool | None, exit_bits: tuple[int, ...] | None) -> Smart:
    """What a SCSI drive said of itself."""
    return Smart(
        protocol=Protocol.SCSI,
        identity=identity(document),
        passed=passed,
        counters=_counters(document),
        power_on_hours=count(member(document, "power_on_time"), "hours"),
        temperature_c=_temperature(document),
        exit_bits=exit_bits,
        spare_threshold_pct=percent(member(document, "spare_available"), "threshold_percent"),
        logs=logs.scsi(document),
    )


def _wwn(document: JsonObject) -> str | None:
    value = document.get("logical_unit_id")
    written = value if isinstance(value, str) else f"{integer(document, 'logical_unit_id') or 0:x}"
    match = _HEXADECIMAL.fullmatch(written.strip())
    return match[1].lower() if match and match[1].strip("0") else None


def _counters(document: JsonObject) -> Counters:
    log = member(document, "scsi_error_counter_log")
    used = percent(document, "scsi_percentage_used_endurance_indicator")
    return Counters(
        pending=_count_pending_defects(document),
        grown_defects=_grown_defects(document),
        non_medium_errors=_non_medium(document),
        uncorrected_errors=_uncorrected(log),
        percentage_used=used
        if used is not None
        else percent(member(document, "endurance_used"), "current_percent"),
        available_spare_pct=percent(member(document, "spare_available"), "current_percent"),
        bytes_written=_bytes(member(log, "write")),
        bytes_read=_bytes(member(log, "read")),
    )


def _count_pending_defects(document: JsonObject) -> int | None:
    """By the drive's own list (SBC-4, 6.4.8), and of a drive that keeps none by what its background scan found."""
    listed = count(member(document, "scsi_pending_defects"), "count")
    return listed if listed is not None else count_unreadable_blocks(document)


def _grown_defects(document: JsonObject) -> int | None:
    """Elements of the list. An address descriptor has 8 bytes in all of SBC's formats but the oldest, with 4."""
    told = count(document, "scsi_grown_defect_list")
    if told is None or member(document, "smartctl").get("version") not in _BYTES_FOR_ELEMENTS:
        return told
    return told // (_DESCRIPTOR_BYTES if told % _DESCRIPTOR_BYTES == 0 else 4)


def _uncorrected(log: JsonObject) -> int | None:
    """Over reads, writes and verifies; None when no page tells."""
    counts = [count(member(log, page), "total_uncorrected_errors") for page in ("read", "write", "verify")]
    told = [number for number in counts if number is not None]
    return min(sum(told), LARGEST) if told else None


def _bytes(page: JsonObject) -> int | None:
    gigabytes = decimal(page, "gigabytes_processed")
    if gigabytes is None or not 0 <= gigabytes <= Decimal(LARGEST // _GIGABYTE):
        return None
    return int(gigabytes * _GIGABYTE)


def _non_medium(document: JsonObject) -> int | None:
    """Not in smartctl's JSON as of 7.5, but in the text that `--json=o` carries along."""
    for key in ("scsi_non_medium_error_count", "scsi_nonmedium_error_count"):
        if (number := count(document, key)) is not None:
            return number
    lines = member(document, "smartctl").get("output")
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, str) and (match := _NON_MEDIUM_LINE.fullmatch(line)):
            return int(match[1])
    return None


def _temperature(document: JsonObject) -> int | None:
    """`temperature`, in 7.3 `scsi_temperature`. RAID volumes answer 0 with a trip point of 0."""
    reports = member(document, "scsi_environmental_reports")
    for node in (
        member(document, "temperature"),
        member(document, "scsi_temperature"),
        member(reports, "temperature_1"),
    ):
        if (current := temperature(node, "current")) is not None:
            return current
    return None

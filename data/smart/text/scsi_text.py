"""SCSI and SAS in text: identity, also on one line as 5.38 printed it, the error counter log, defects, hours."""

from __future__ import annotations

import re
from collections.abc import Sequence

from predrain.data.smart import background_scan
from predrain.data.smart.text.ata_text import parse_rotation_rate
from predrain.data.smart.text.number_text import (
    parse_checked_size,
    parse_fraction_text,
    parse_signed_number,
    parse_whole_number,
)

_ONE_LINE = re.compile(r"Device: +(\S.*?) +Version: *(\S.*)?")
_PAGE = re.compile(r"(read|write|verify): +(\S.*)")
_PENDING = re.compile(r"Pending defect count: *(\d+)")
_FACTORY_HOURS = re.compile(r"number of hours powered up *= *(\S+)")
_REPORTED_TEMPERATURE = re.compile(r"Current temperature = (-?\d+)")
_HOURS = re.compile(r"Accumulated power on time,? *(?:hours:minutes|\[?hours\]?:?) *(\S.*?)(?::(\d{2})\b.*)?")


def parse_scsi_text_identity(told: dict[str, str], lines: Sequence[str]) -> dict[str, object]:
    """Parse the identity from the labels of the information section."""
    vendor, product, revision = told.get("vendor"), told.get("product"), told.get("revision")
    for line in lines if product is None else ():
        if match := _ONE_LINE.fullmatch(line):
            # INQUIRY's vendor has eight characters and hardly ever a blank.
            vendor, _, product = match[1].partition(" ")
            vendor, product = (vendor, product.strip()) if product else (None, vendor)
            revision = match[2]
    return {
        "scsi_vendor": vendor,
        "scsi_product": product,
        "scsi_revision": revision,
        "serial_number": told.get("serial number"),
        "logical_unit_id": told.get("logical unit id"),
        "user_capacity": {"bytes": parse_checked_size(told.get("user capacity", ""))},
        "rotation_rate": parse_rotation_rate(told),
        "logical_block_size": parse_whole_number(told.get("logical block size", "")),
        "physical_block_size": parse_whole_number(told.get("physical block size", "")),
    }


def parse_scsi_text_counters(told: dict[str, str], lines: Sequence[str]) -> dict[str, object]:
    """Parse counters, hours and temperature."""
    found: dict[str, object] = {
        "scsi_grown_defect_list": parse_whole_number(told.get("elements in grown defect list", "")),
        "scsi_non_medium_error_count": parse_whole_number(told.get("non-medium error count", "")),
        "scsi_percentage_used_endurance_indicator": parse_whole_number(
            told.get("percentage used endurance indicator", told.get("ss media used endurance indicator", ""))
        ),
        "temperature": {
            "current": parse_signed_number(told.get("current drive temperature", "")),
            "drive_trip": parse_signed_number(told.get("drive trip temperature", "")),
        },
    }
    reported = (
        parse_signed_number(match[1]) for line in lines if (match := _REPORTED_TEMPERATURE.fullmatch(line))
    )
    found["scsi_environmental_reports"] = {"temperature_1": {"current": next(reported, None)}}
    pages: dict[str, object] = {}
    hours = factory = None
    for place, line in enumerate(lines):
        if match := _PAGE.fullmatch(line):
            # A mail program breaks the line, which has over 80 columns.
            page = _parse_error_counter_page(match[2]) or _parse_error_counter_page(
                " ".join((match[2], *lines[place + 1 : place + 2]))
            )
            pages |= {match[1]: page} if page else {}
        elif match := _PENDING.match(line):
            found["scsi_pending_defects"] = {"count": int(match[1])}
        elif match := _FACTORY_HOURS.fullmatch(line):
            factory = parse_fraction_text(match[1])
        elif hours is None and (match := _HOURS.fullmatch(line)):
            hours = parse_whole_number(match[1])
    if hours is None and factory is not None:
        hours = int(factory.partition(".")[0])
    return found | {
        "scsi_error_counter_log": pages,
        "power_on_time": {"hours": hours},
        background_scan.KEY: background_scan.read_background_scan(lines),
    }


def _parse_error_counter_page(columns: str) -> dict[str, object] | None:
    """Parse the seven columns of a line of the error counter log; return None for a line that was cut."""
    column = columns.split()
    if len(column) != 7 or not column[6].isdecimal():
        return None
    return {"gigabytes_processed": parse_fraction_text(column[5]), "total_uncorrected_errors": int(column[6])}

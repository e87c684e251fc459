"""ATA drives: identity, the vendor's attribute table, device statistics, pending defects.

Power-on hours and temperature come by attribute and by device statistic. smartctl prints the device statistics last and
overwrites the values from the attributes and from SCT (`ataprint.cpp`, `set_json_globals_from_device_statistics`). So
`power_on_time` and `temperature` of `-x --json` are the statistic's. Some SSDs fill that page from a template or lose
it at a reset, while their attributes go on. Both values are therefore checked against each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from predrain.data.outside_text import ATTRIBUTE_NAME
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Smart
from predrain.data.smart import smart_logs
from predrain.data.smart.host_traffic import bytes_read, bytes_written
from predrain.data.smart.json_values import (
    JsonObject,
    iterate_json_objects,
    read_first_name,
    read_json_count,
    read_json_integer,
    read_json_object,
    read_json_percent,
    read_json_temperature,
    read_json_text,
    read_serial_number,
)
from predrain.data.smart.packed_counts import (
    LARGEST_REPORTED_UNCORRECTABLE,
    decode_raw_value,
    packs_rates,
    parse_printed_raw_value,
    unpack_raw_value,
)
from predrain.data.smart.temperature_limits import parse_temperature_limits

_MOST_HOURS = 350_400  # forty years, as in data.wire.acceptance
"""More hours than any drive that counts hours can have. A drive that smartctl's database does not know may count
minutes or half minutes under the same name."""
_PARTS_OF_AN_HOUR = (60, 120)
_SECONDS_OF_AN_HOUR = 3600
_SECONDS_JUDGED_FROM_HOURS = 24
"""Below a day, seconds cannot be distinguished from the hours of a drive in service: 5 h are 18,000 s."""
_SAME_SPAN_HOURS, _SAME_SPAN_SHARE = 1.5, 0.02
_SAME_PLACE_C = 5


def choose_power_on_hours(reported: Iterable[int | None], attribute: int | None) -> int | None:
    """Choose the power-on hours from two counts of the same span; return None if neither is plausible.

    `reported` holds the hours of smartctl and of the statistics, the most trusted first. `attribute` is the raw value
    of attribute 9. Hours never run back, so the smaller of the two counts was reset or never kept. The exception is
    an attribute that gives the same span in minutes, half minutes or seconds.
    """
    hours = next((told for told in reported if told is not None and 0 <= told <= _MOST_HOURS), None)
    if attribute is None or not 0 <= attribute <= _MOST_HOURS:
        return hours
    if hours is None:
        return attribute
    return hours if _counts_parts_of(hours, attribute) else max(hours, attribute)


def _counts_parts_of(hours: int, attribute: int) -> bool:
    units = (*_PARTS_OF_AN_HOUR, _SECONDS_OF_AN_HOUR)
    slack = max(_SAME_SPAN_HOURS, _SAME_SPAN_SHARE * hours)
    return any(
        abs(attribute / unit - hours) <= slack
        for unit in (units if hours >= _SECONDS_JUDGED_FROM_HOURS else _PARTS_OF_AN_HOUR)
    )


def choose_temperature(sensors: Sequence[int | None], statistic: int | None) -> int | None:
    """Choose the temperature in °C from several sources; return None if no source has one.

    `sensors` are SCT status and attributes 194 and 190, in this order. `statistic` is `Current Temperature` of the
    device statistics. The first value that another one confirms within 5 °C is taken. If no two agree, it is the
    first of the sensors, and the statistic only if there is no sensor.
    """
    told = [value for value in (*sensors, statistic) if value is not None]
    for place, value in enumerate(told):
        others = told[:place] + told[place + 1 :]
        if any(abs(value - other) <= _SAME_PLACE_C for other in others):
            return value
    return next(iter(told), None)


_SECTOR_BYTES = 512
_OWN_BITS = 56  # bits; an attribute's raw field has 6 bytes, 7 on some drives


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A counter by attribute number and name, because vendors reuse numbers and drivedb gives them other names."""

    number: int
    called: re.Pattern[str]
    largest: int = 2**_OWN_BITS


def _compile_name_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# `Unknown_Attribute` leaves a number its common meaning; `Unknown_SSD_Attribute` says that it has another.
_REALLOCATED = (
    _Meaning(
        5,
        _compile_name_pattern(
            r"^(?!factory|initial).*(realloc|retired|retried_bl|bad_?bl|unknown_attribute)"
        ),
    ),
)
_PENDING = (_Meaning(197, _compile_name_pattern(r"^(?!bogus).*pend|unknown_attribute")),)
_OFFLINE_UNCORRECTABLE = (
    _Meaning(198, _compile_name_pattern(r"off-?l|uncorrectable_sector|unc_sect|unknown_attribute")),
)
_REPORTED_UNCORRECTABLE = (
    _Meaning(
        187, _compile_name_pattern(r"uncor|reported|_ue_|unknown_attribute"), LARGEST_REPORTED_UNCORRECTABLE
    ),
    _Meaning(195, _compile_name_pattern(r"^uncorrectable_err")),
    _Meaning(160, _compile_name_pattern(r"^uncorrectable_(error|sector)|^uecc_sector")),
)
_COMMAND_TIMEOUTS = (_Meaning(188, _compile_name_pattern(r"time-?_?out|unknown_attribute")),)
_CRC_ERRORS = (
    _Meaning(199, _compile_name_pattern(r"crc|unknown_attribute")),
    *(_Meaning(number, _compile_name_pattern(r"crc_err")) for number in (210, 218)),
)
_END_TO_END = (
    _Meaning(184, _compile_name_pattern(r"end.to.end|e2e|ioedc|io_error_detect|unknown_attribute")),
)
_UNSAFE_SHUTDOWNS = tuple(
    _Meaning(
        number,
        _compile_name_pattern(
            r"unsafe_shut|unclean_shut|unexp\w*_(power|pwr)_?(loss|cycle)|(power|pwr)_cycle_ct_unplanned"
        ),
    )
    for number in (174, 192)
)

_NO_CHECKSUM = "SMART Attribute Data Structure error: invalid SMART checksum"
_NO_TEMPERATURE = _compile_name_pattern(r"exceed|count|cnt|_ct$|warn|unknown_ssd")


def parse_ata_identity(document: JsonObject) -> Identity:
    """Parse model, serial number and the rest. The vendor is not a field of IDENTIFY DEVICE and stays None."""
    capacity = read_json_count(read_json_object(document, "user_capacity"), "bytes")
    return Identity(
        model=read_first_name(document, "model_name"),
        family=read_first_name(document, "model_family"),
        serial=read_serial_number(document),
        wwn=_parse_ata_wwn(read_json_object(document, "wwn")),
        firmware=read_first_name(document, "firmware_version"),
        capacity_bytes=capacity or None,
        rotation_rpm=read_json_count(document, "rotation_rate"),
    )


def parse_ata_smart(document: JsonObject, passed: bool | None, exit_bits: tuple[int, ...] | None) -> Smart:
    """Parse the report of an ATA drive."""
    drive = parse_ata_identity(document)
    return _build_ata_smart(document, drive, _parse_smart_attributes(document, drive), passed, exit_bits)


def smart_of_table(drive: Identity, raw: Iterable[tuple[int, str, int, int | None]]) -> Smart:
    """Build the report of a drive of which only the attribute table was stored.

    Each row of `raw` is (number, name, undecoded raw, normalised value).
    """
    seagate = packs_rates(drive)
    rows: dict[int, Attribute] = {}
    for number, name, packed, value in raw:
        if 1 <= number <= 255 and 0 <= packed < 2**64:
            meant = unpack_raw_value(number, packed, errors_above_operations=seagate)
            rows[number] = Attribute(name, meant, value, raw_packed=packed if packed != meant else None)
    return _build_ata_smart({}, drive, rows, None, None)


def _build_ata_smart(
    document: JsonObject,
    drive: Identity,
    attributes: Mapping[int, Attribute],
    passed: bool | None,
    exit_bits: tuple[int, ...] | None,
) -> Smart:
    statistics = _parse_device_statistics(document)
    hours = _power_on_hours(document, attributes, statistics)
    limits = parse_temperature_limits(document)
    return Smart(
        protocol=Protocol.ATA,
        identity=drive,
        passed=passed,
        counters=_build_ata_counters(
            document, attributes, statistics, {"disk_hours" if drive.rotation_rpm else "ssd_hours": hours}
        ),
        attributes=attributes,
        power_on_hours=hours,
        temperature_c=_find_ata_temperature(document, attributes, statistics),
        exit_bits=exit_bits,
        spare_threshold_pct=read_json_percent(
            read_json_object(document, "spare_available"), "threshold_percent"
        ),
        logs=smart_logs.parse_ata_logs(document),
        temperature_limit_c=limits.operation,
        temperature_critical_c=limits.critical,
    )


def _parse_ata_wwn(wwn: JsonObject) -> str | None:
    """Return NAA, OUI and the vendor's part as 1, 6 and 9 hexadecimal digits; None if a part does not fit."""
    naa, oui, vendor = read_json_count(wwn, "naa"), read_json_count(wwn, "oui"), read_json_count(wwn, "id")
    if naa is None or oui is None or vendor is None:
        return None
    if naa >= 1 << 4 or oui >= 1 << 24 or vendor >= 1 << 36 or not (oui or vendor):
        return None
    return f"{naa:x}{oui:06x}{vendor:09x}"


def _parse_smart_attributes(document: JsonObject, drive: Identity) -> Mapping[int, Attribute]:
    seagate = packs_rates(drive)
    rows: dict[int, Attribute] = {}
    for row in () if _is_noise(document) else _iterate_attribute_rows(document):
        number, raw = read_json_count(row, "id"), read_json_object(row, "raw")
        if number is None or not 1 <= number <= 255:
            continue
        packed, printed = read_json_count(raw, "value"), _read_printed_value(raw)
        if packed is None and printed is not None and printed.isdecimal() and len(printed) < 20:
            packed = int(printed)
        if packed is None:
            # A text holds only the printed value; the packed integer is then unknown.
            meant = parse_printed_raw_value(number, printed) if printed else None
        else:
            meant = decode_raw_value(number, packed, printed, errors_above_operations=seagate)
        if meant is None or (packed or 0) >= 2**64:
            continue
        rows[number] = Attribute(
            name=read_json_text(row, "name", ATTRIBUTE_NAME.limit) or "Unknown_Attribute",
            raw=meant,
            value=_read_normalised_value(row, "value"),
            worst=_read_normalised_value(row, "worst"),
            threshold=_read_normalised_value(row, "thresh"),
            raw_packed=packed if packed != meant else None,
        )
    return rows


def _is_noise(document: JsonObject) -> bool:
    """Return whether the table is the content of some buffer: SMART was off, or a bridge answered for the drive.

    Such a table has a number twice and a wrong checksum. A wrong checksum alone is not enough, because some drives in
    service have one.
    """
    numbers = [read_json_count(row, "id") for row in _iterate_attribute_rows(document)]
    if len(set(numbers)) == len(numbers):
        return False
    messages = iterate_json_objects(read_json_object(document, "smartctl"), "messages")
    return any(_NO_CHECKSUM in (read_json_text(message, "string") or "") for message in messages)


def _iterate_attribute_rows(document: JsonObject) -> Iterator[JsonObject]:
    return iterate_json_objects(read_json_object(document, "ata_smart_attributes"), "table")


def _read_printed_value(raw: JsonObject) -> str | None:
    """Return the raw value as smartctl printed it, which is nearly always a number and needs no cleaning."""
    value = raw.get("string")
    if isinstance(value, str) and len(value) < 20 and value.isdecimal():
        return value
    return read_json_text(raw, "string")


def _read_normalised_value(row: JsonObject, key: str) -> int | None:
    value = row.get(key)
    if type(value) is not int:
        value = read_json_count(row, key)
    return value if value is not None and 0 <= value <= 255 else None


def _parse_device_statistics(document: JsonObject) -> dict[tuple[int, str], int]:
    """Return the device statistics (ACS-4, 9.5) that the drive marks as valid, by page number and name.

    Only temperatures (page 5) may be below zero.
    """
    found: dict[tuple[int, str], int] = {}
    for page in iterate_json_objects(read_json_object(document, "ata_device_statistics"), "pages"):
        number = read_json_count(page, "number")
        for row in iterate_json_objects(page, "table") if number is not None else ():
            name, value = row.get("name"), read_json_integer(row, "value")
            valid = read_json_object(row, "flags").get("valid", True) is not False
            if valid and isinstance(name, str) and value is not None and (value >= 0 or number == 5):
                found[number or 0, name] = value
    return found


def _build_ata_counters(
    document: JsonObject,
    attributes: Mapping[int, Attribute],
    statistics: Mapping[tuple[int, str], int],
    age: Mapping[str, int | None],
) -> Counters:
    """Build the counters from attributes, or from device statistics if the drive has no such attribute."""

    def read(meanings: tuple[_Meaning, ...], statistic: tuple[int, str] | None = None) -> int | None:
        for meaning in meanings:
            attribute = attributes.get(meaning.number)
            if attribute is not None and meaning.called.search(attribute.name):
                return attribute.raw if 0 <= attribute.raw <= meaning.largest else None
        return statistics.get(statistic) if statistic else None

    pending = read(_PENDING)
    sector_bytes = read_json_count(document, "logical_block_size") or _SECTOR_BYTES
    used = statistics.get((7, "Percentage Used Endurance Indicator"))
    return Counters(
        reallocated=read(_REALLOCATED, (3, "Number of Reallocated Logical Sectors")),
        pending=pending
        if pending is not None
        else read_json_count(read_json_object(document, "ata_pending_defects_log"), "count"),
        offline_uncorrectable=read(_OFFLINE_UNCORRECTABLE),
        reported_uncorrectable=read(_REPORTED_UNCORRECTABLE, (4, "Number of Reported Uncorrectable Errors")),
        command_timeouts=read(_COMMAND_TIMEOUTS),
        crc_errors=read(_CRC_ERRORS, (6, "Number of Interface CRC Errors")),
        end_to_end_errors=read(_END_TO_END),
        percentage_used=used
        if used is not None
        else read_json_percent(read_json_object(document, "endurance_used"), "current_percent"),
        available_spare_pct=read_json_percent(
            read_json_object(document, "spare_available"), "current_percent"
        ),
        unsafe_shutdowns=read(_UNSAFE_SHUTDOWNS),
        bytes_written=bytes_written(
            attributes,
            statistics.get((1, "Logical Sectors Written")),
            sector_bytes,
            **age,
        ),
        bytes_read=bytes_read(attributes, statistics.get((1, "Logical Sectors Read")), sector_bytes, **age),
    )


def _power_on_hours(
    document: JsonObject, attributes: Mapping[int, Attribute], statistics: Mapping[tuple[int, str], int]
) -> int | None:
    """Return the power-on hours.

    `power_on_time` comes first: smartctl has already divided it by the drive's own unit.

    The unit of attribute 9 itself may be minutes.
    """
    attribute = attributes.get(9)
    return choose_power_on_hours(
        (
            read_json_count(read_json_object(document, "power_on_time"), "hours"),
            statistics.get((1, "Power-on Hours")),
        ),
        attribute.raw if attribute is not None and "power_on" in attribute.name.lower() else None,
    )


def _find_ata_temperature(
    document: JsonObject, attributes: Mapping[int, Attribute], statistics: Mapping[tuple[int, str], int]
) -> int | None:
    """Return the temperature in °C.

    smartctl's own value is taken if no statistic can have overwritten it, else a sensor's or the statistic's.
    """
    told = read_json_temperature(read_json_object(document, "temperature"), "current")
    statistic = statistics.get((5, "Current Temperature"))
    if told is not None and statistic is None:
        return told
    sct = read_json_temperature(
        read_json_object(read_json_object(document, "ata_sct_status"), "temperature"), "current"
    )
    sensors = [
        read_json_temperature({"current": attribute.raw}, "current")
        for number in (194, 190)
        if (attribute := attributes.get(number)) is not None and not _NO_TEMPERATURE.search(attribute.name)
    ]
    return choose_temperature((sct, *sensors), read_json_temperature({"current": statistic}, "current"))

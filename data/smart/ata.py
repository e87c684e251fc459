"""ATA drives: identity, the vendor's attribute table, device statistics, pending defects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from predrain.data.outside_text import ATTRIBUTE_NAME
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Smart
from predrain.data.smart import logs
from predrain.data.smart.cross_checks import choose_power_on_hours, choose_temperature
from predrain.data.smart.packed import LARGEST_REPORTED_UNCORRECTABLE, decoded, packs_rates, shown, unpacked
from predrain.data.smart.traffic import bytes_read, bytes_written
from predrain.data.smart.values import (
    JsonObject,
    count,
    integer,
    member,
    members,
    named,
    percent,
    serial,
    temperature,
    text,
)

_SECTOR_BYTES = 512
_OWN_BITS = 56  # an attribute's raw field has 6 bytes, 7 on some drives


@dataclass(frozen=True, slots=True)
class _Meaning:
    """A counter by attribute number and name: vendors reuse numbers, and drivedb names them anew."""

    number: int
    called: re.Pattern[str]
    largest: int = 2**_OWN_BITS


def _called(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# `Unknown_Attribute` leaves a number its common meaning; `Unknown_SSD_Attribute` says that it has another.
_REALLOCATED = (
    _Meaning(5, _called(r"^(?!factory|initial).*(realloc|retired|retried_bl|bad_?bl|unknown_attribute)")),
)
_PENDING = (_Meaning(197, _called(r"^(?!bogus).*pend|unknown_attribute")),)
_OFFLINE_UNCORRECTABLE = (_Meaning(198, _called(r"off-?l|uncorrectable_sector|unc_sect|unknown_attribute")),)
_REPORTED_UNCORRECTABLE = (
    _Meaning(187, _called(r"uncor|reported|_ue_|unknown_attribute"), LARGEST_REPORTED_UNCORRECTABLE),
    _Meaning(195, _called(r"^uncorrectable_err")),
    _Meaning(160, _called(r"^uncorrectable_(error|sector)|^uecc_sector")),
)
_COMMAND_TIMEOUTS = (_Meaning(188, _called(r"time-?_?out|unknown_attribute")),)
_CRC_ERRORS = (
    _Meaning(199, _called(r"crc|unknown_attribute")),
    *(_Meaning(number, _called(r"crc_err")) for number in (210, 218)),
)
_END_TO_END = (_Meaning(184, _called(r"end.to.end|e2e|ioedc|io_error_detect|unknown_attribute")),)
_UNSAFE_SHUTDOWNS = tuple(
    _Meaning(
        number,
        _called(
            r"unsafe_shut|unclean_shut|unexp\w*_(power|pwr)_?(loss|cycle)|(power|pwr)_cycle_ct_unplanned"
        ),
    )
    for number in (174, 192)
)

_NO_CHECKSUM = "SMART Attribute Data Structure error: invalid SMART checksum"
_NO_TEMPERATURE = _called(r"exceed|count|cnt|_ct$|warn|unknown_ssd")


def identity(document: JsonObject) -> Identity:
    """Model, serial and the rest; the vendor is not a field of IDENTIFY DEVICE and stays None."""
    capacity = count(member(document, "user_capacity"), "bytes")
    return Identity(
        model=named(document, "model_name"),
        family=named(document, "model_family"),
        serial=serial(document),
        wwn=_wwn(member(document, "wwn")),
        firmware=named(document, "firmware_version"),
        capacity_bytes=capacity or None,
        rotation_rpm=count(document, "rotation_rate"),
    )


def smart(document: JsonObject, passed: bool | None, exit_bits: tuple[int, ...] | None) -> Smart:
    """What an ATA drive said of itself."""
    drive = identity(document)
    return _smart(document, drive, _attributes(document, drive), passed, exit_bits)


def smart_of_table(drive: Identity, raw: Iterable[tuple[int, str, int, int | None]]) -> Smart:
    """What a drive said of which only the attribute table was kept: (number, name, undecoded raw, normalised value)."""
    seagate = packs_rates(drive)
    rows: dict[int, Attribute] = {}
    for number, name, packed, value in raw:
        if 1 <= number <= 255 and 0 <= packed < 2**64:
            meant = unpacked(number, packed, errors_above_operations=seagate)
            rows[number] = Attribute(name, meant, value, raw_packed=packed if packed != meant else None)
    return _smart({}, drive, rows, None, None)


def _smart(
    document: JsonObject,
    drive: Identity,
    attributes: Mapping[int, Attribute],
    passed: bool | None,
    exit_bits: tuple[int, ...] | None,
) -> Smart:
    statistics = _statistics(document)
    hours = _power_on_hours(document, attributes, statistics)
    return Smart(
        protocol=Protocol.ATA,
        identity=drive,
        passed=passed,
        counters=_counters(
            document, attributes, statistics, {"disk_hours" if drive.rotation_rpm else "ssd_hours": hours}
        ),
        attributes=attributes,
        power_on_hours=hours,
        temperature_c=_temperature(document, attributes, statistics),
        exit_bits=exit_bits,
        spare_threshold_pct=percent(member(document, "spare_available"), "threshold_percent"),
        logs=logs.ata(document),
    )


def _wwn(wwn: JsonObject) -> str | None:
    """NAA, OUI and vendor's part as 1, 6 and 9 hexadecimal digits. A part that does not fit is no WWN."""
    naa, oui, vendor = count(wwn, "naa"), count(wwn, "oui"), count(wwn, "id")
    if naa is None or oui is None or vendor is None:
        return None
    if naa >= 1 << 4 or oui >= 1 << 24 or vendor >= 1 << 36 or not (oui or vendor):
        return None
    return f"{naa:x}{oui:06x}{vendor:09x}"


def _attributes(document: JsonObject, drive: Identity) -> Mapping[int, Attribute]:
    seagate = packs_rates(drive)
    rows: dict[int, Attribute] = {}
    for row in [] if _is_noise(document) else members(member(document, "ata_smart_attributes"), "table"):
        number, raw = count(row, "id"), member(row, "raw")
        if number is None or not 1 <= number <= 255:
            continue
        packed, printed = count(raw, "value"), text(raw, "string")
        if packed is None and printed is not None and printed.isdecimal() and len(printed) < 20:
            packed = int(printed)
        if packed is None:
            # Text carries only what was printed; the packed integer is then not known.
            meant = shown(number, printed) if printed else None
        else:
            meant = decoded(number, packed, printed, errors_above_operations=seagate)
        if meant is None or (packed or 0) >= 2**64:
            continue
        rows[number] = Attribute(
            name=text(row, "name", ATTRIBUTE_NAME.limit) or "Unknown_Attribute",
            raw=meant,
            value=_normalised(row, "value"),
            worst=_normalised(row, "worst"),
            threshold=_normalised(row, "thresh"),
            raw_packed=packed if packed != meant else None,
        )
    return rows


def _is_noise(document: JsonObject) -> bool:
    """Whether the table is what lay in some buffer: SMART was off, or a bridge answered for the drive.

    A number then stands there twice and the checksum is wrong; there are drives in service with a wrong one alone.
    """
    said = (text(message, "string") or "" for message in members(member(document, "smartctl"), "messages"))
    numbers = [count(row, "id") for row in members(member(document, "ata_smart_attributes"), "table")]
    return len(set(numbers)) < len(numbers) and any(_NO_CHECKSUM in line for line in said)


def _normalised(row: JsonObject, key: str) -> int | None:
    value = count(row, key)
    return value if value is not None and value <= 255 else None


def _statistics(document: JsonObject) -> dict[tuple[int, str], int]:
    """Device statistics (ACS-4, 9.5) that the drive marks as valid, by page number and name.

    Only temperatures (page 5) may be below zero.
    """
    found: dict[tuple[int, str], int] = {}
    for page in members(member(document, "ata_device_statistics"), "pages"):
        number = count(page, "number")
        for row in members(page, "table") if number is not None else ():
            name, value = row.get("name"), integer(row, "value")
            valid = member(row, "flags").get("valid", True) is not False
            if valid and isinstance(name, str) and value is not None and (value >= 0 or number == 5):
                found[number or 0, name] = value
    return found


def _counters(
    document: JsonObject,
    attributes: Mapping[int, Attribute],
    statistics: Mapping[tuple[int, str], int],
    age: Mapping[str, int | None],
) -> Counters:
    """Counters from attributes; from device statistics where the drive has no such attribute."""

    def read(meanings: tuple[_Meaning, ...], statistic: tuple[int, str] | None = None) -> int | None:
        for meaning in meanings:
            attribute = attributes.get(meaning.number)
            if attribute is not None and meaning.called.search(attribute.name):
                return attribute.raw if 0 <= attribute.raw <= meaning.largest else None
        return statistics.get(statistic) if statistic else None

    pending = read(_PENDING)
    sector_bytes = count(document, "logical_block_size") or _SECTOR_BYTES
    used = statistics.get((7, "Percentage Used Endurance Indicator"))
    return Counters(
        reallocated=read(_REALLOCATED, (3, "Number of Reallocated Logical Sectors")),
        pending=pending
        if pending is not None
        else count(member(document, "ata_pending_defects_log"), "count"),
        offline_uncorrectable=read(_OFFLINE_UNCORRECTABLE),
        reported_uncorrectable=read(_REPORTED_UNCORRECTABLE, (4, "Number of Reported Uncorrectable Errors")),
        command_timeouts=read(_COMMAND_TIMEOUTS),
        crc_errors=read(_CRC_ERRORS, (6, "Number of Interface CRC Errors")),
        end_to_end_errors=read(_END_TO_END),
        percentage_used=used
        if used is not None
        else percent(member(document, "endurance_used"), "current_percent"),
        available_spare_pct=percent(member(document, "spare_available"), "current_percent"),
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
    """`power_on_time` first: smartctl has divided by the drive's own unit there, which may be minutes."""
    attribute = attributes.get(9)
    return choose_power_on_hours(
        (count(member(document, "power_on_time"), "hours"), statistics.get((1, "Power-on Hours"))),
        attribute.raw if attribute is not None and "power_on" in attribute.name.lower() else None,
    )


def _temperature(
    document: JsonObject, attributes: Mapping[int, Attribute], statistics: Mapping[tuple[int, str], int]
) -> int | None:
    """`temperature` where no statistic can have overwritten it, else the sensors' value or the statistic's."""
    told = temperature(member(document, "temperature"), "current")
    statistic = statistics.get((5, "Current Temperature"))
    if told is not None and statistic is None:
        return told
    sct = temperature(member(member(document, "ata_sct_status"), "temperature"), "current")
    sensors = [
        temperature({"current": attribute.raw}, "current")
        for number in (194, 190)
        if (attribute := attributes.get(number)) is not None and not _NO_TEMPERATURE.search(attribute.name)
    ]
    return choose_temperature((sct, *sensors), temperature({"current": statistic}, "current"))

"""NVMe drives: identity and the SMART / Health Information log (NVM Express Base 2.0, 5.16.1.3)."""

from __future__ import annotations

import re

from predrain.data.reading import Counters, Identity, Protocol, Smart
from predrain.data.smart import smart_logs
from predrain.data.smart.json_values import (
    LARGEST,
    JsonObject,
    iterate_json_objects,
    read_first_name,
    read_json_count,
    read_json_object,
    read_json_percent,
    read_json_temperature,
    read_serial_number,
)
from predrain.data.smart.temperature_limits import parse_temperature_limits

_DATA_UNIT_BYTES = 512_000
_HEXADECIMAL = re.compile(r"(?:0x)?([0-9a-f]{16}|[0-9a-f]{32})")


def parse_nvme_identity(document: JsonObject) -> Identity:
    """Parse the identity. The rotation rate of an NVMe drive is 0."""
    return Identity(
        model=read_first_name(document, "model_name", "model_number"),
        family=read_first_name(document, "model_family"),
        serial=read_serial_number(document),
        wwn=_parse_nvme_wwn(document),
        firmware=read_first_name(document, "firmware_version"),
        capacity_bytes=_find_nvme_capacity(document),
        rotation_rpm=0,
    )


def parse_nvme_smart(document: JsonObject, passed: bool | None, exit_bits: tuple[int, ...] | None) -> Smart:
    """Parse the report of an NVMe drive."""
    log = read_json_object(document, "nvme_smart_health_information_log")
    hours = read_json_count(read_json_object(document, "power_on_time"), "hours")
    current = read_json_temperature(read_json_object(document, "temperature"), "current")
    limits = parse_temperature_limits(document)
    return Smart(
        protocol=Protocol.NVME,
        identity=parse_nvme_identity(document),
        passed=passed,
        counters=_build_nvme_counters(document, log),
        power_on_hours=hours if hours is not None else read_json_count(log, "power_on_hours"),
        temperature_c=current if current is not None else read_json_temperature(log, "temperature"),
        exit_bits=exit_bits,
        spare_threshold_pct=read_json_percent(log, "available_spare_threshold"),
        logs=smart_logs.parse_nvme_logs(document),
        temperature_limit_c=limits.operation,
        temperature_critical_c=limits.critical,
    )


def _build_nvme_counters(document: JsonObject, log: JsonObject) -> Counters:
    used, spare = read_json_percent(log, "percentage_used"), read_json_percent(log, "available_spare")
    warning = read_json_percent(log, "critical_warning")
    return Counters(
        media_errors=read_json_count(log, "media_errors"),
        percentage_used=used
        if used is not None
        else read_json_percent(read_json_object(document, "endurance_used"), "current_percent"),
        available_spare_pct=spare
        if spare is not None
        else read_json_percent(read_json_object(document, "spare_available"), "current_percent"),
        # The verdict consists of the same bits and repeats them if the log was not asked for.
        critical_warning=warning
        if warning is not None
        else read_json_percent(read_json_object(read_json_object(document, "smart_status"), "nvme"), "value"),
        unsafe_shutdowns=read_json_count(log, "unsafe_shutdowns"),
        bytes_written=_read_data_units_as_bytes(log, "data_units_written"),
        bytes_read=_read_data_units_as_bytes(log, "data_units_read"),
    )


def _read_data_units_as_bytes(log: JsonObject, key: str) -> int | None:
    units = read_json_count(log, key)
    return units * _DATA_UNIT_BYTES if units is not None and units <= LARGEST // _DATA_UNIT_BYTES else None


def _find_nvme_capacity(document: JsonObject) -> int | None:
    """Return the capacity in bytes. A controller with many namespaces has no `user_capacity`, and perhaps no total."""
    sizes = [
        read_json_count(read_json_object(document, "user_capacity"), "bytes"),
        read_json_count(document, "nvme_total_capacity"),
        sum(
            read_json_count(read_json_object(namespace, "size"), "bytes") or 0
            for namespace in iterate_json_objects(document, "nvme_namespaces")
        ),
    ]
    return next((size for size in sizes if size), None)


def _parse_nvme_wwn(document: JsonObject) -> str | None:
    """Return the EUI-64 of the first namespace that has one (OUI of 6 and extension of 10 digits), else its NGUID."""
    for namespace in iterate_json_objects(document, "nvme_namespaces"):
        eui64 = read_json_object(namespace, "eui64")
        oui, extension = read_json_count(eui64, "oui"), read_json_count(eui64, "ext_id")
        if (
            oui is not None
            and extension is not None
            and oui < 1 << 24
            and extension < 1 << 40
            and (oui or extension)
        ):
            return f"{oui:06x}{extension:010x}"
        for key in ("eui64", "nguid"):
            value = namespace.get(key)
            match = _HEXADECIMAL.fullmatch(value.strip().lower()) if isinstance(value, str) else None
            if match and match[1].strip("0"):
                return match[1]
    return None

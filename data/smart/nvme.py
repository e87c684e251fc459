"""NVMe drives: identity and the SMART / Health Information log (NVM Express Base 2.0, 5.16.1.3)."""

from __future__ import annotations

import re

from predrain.data.reading import Counters, Identity, Protocol, Smart
from predrain.data.smart import logs
from predrain.data.smart.values import (
    LARGEST,
    JsonObject,
    count,
    member,
    members,
    named,
    percent,
    serial,
    temperature,
)

_DATA_UNIT_BYTES = 512_000
_HEXADECIMAL = re.compile(r"(?:0x)?([0-9a-f]{16}|[0-9a-f]{32})")


def identity(document: JsonObject) -> Identity:
    """Identity; an NVMe drive does not turn."""
    return Identity(
        model=named(document, "model_name", "model_number"),
        family=named(document, "model_family"),
        serial=serial(document),
        wwn=_wwn(document),
        firmware=named(document, "firmware_version"),
        capacity_bytes=_capacity(document),
        rotation_rpm=0,
    )


def smart(document: JsonObject, passed: bool | None, exit_bits: tuple[int, ...] | None) -> Smart:
    """What an NVMe drive said of itself."""
    log = member(document, "nvme_smart_health_information_log")
    hours = count(member(document, "power_on_time"), "hours")
    current = temperature(member(document, "temperature"), "current")
    return Smart(
        protocol=Protocol.NVME,
        identity=identity(document),
        passed=passed,
        counters=_counters(document, log),
        power_on_hours=hours if hours is not None else count(log, "power_on_hours"),
        temperature_c=current if current is not None else temperature(log, "temperature"),
        exit_bits=exit_bits,
        spare_threshold_pct=percent(log, "available_spare_threshold"),
        logs=logs.nvme(document),
    )


def _counters(document: JsonObject, log: JsonObject) -> Counters:
    used, spare = percent(log, "percentage_used"), percent(log, "available_spare")
    warning = percent(log, "critical_warning")
    return Counters(
        media_errors=count(log, "media_errors"),
        percentage_used=used
        if used is not None
        else percent(member(document, "endurance_used"), "current_percent"),
        available_spare_pct=spare
        if spare is not None
        else percent(member(document, "spare_available"), "current_percent"),
        # The verdict is made of the same bits and repeats them when the log was not asked for.
        critical_warning=warning
        if warning is not None
        else percent(member(member(document, "smart_status"), "nvme"), "value"),
        unsafe_shutdowns=count(log, "unsafe_shutdowns"),
        bytes_written=_bytes(log, "data_units_written"),
        bytes_read=_bytes(log, "data_units_read"),
    )


def _bytes(log: JsonObject, key: str) -> int | None:
    units = count(log, key)
    return units * _DATA_UNIT_BYTES if units is not None and units <= LARGEST // _DATA_UNIT_BYTES else None


def _capacity(document: JsonObject) -> int | None:
    """A controller of many namespaces has no `user_capacity`; some have only the total, some none at all."""
    sizes = [
        count(member(document, "user_capacity"), "bytes"),
        count(document, "nvme_total_capacity"),
        sum(
            count(member(namespace, "size"), "bytes") or 0
            for namespace in members(document, "nvme_namespaces")
        ),
    ]
    return next((size for size in sizes if size), None)


def _wwn(document: JsonObject) -> str | None:
    """EUI-64 of the first namespace that has one (OUI of 6 and extension of 10 digits), else its NGUID."""
    for namespace in members(document, "nvme_namespaces"):
        eui64 = member(namespace, "eui64")
        oui, extension = count(eui64, "oui"), count(eui64, "ext_id")
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

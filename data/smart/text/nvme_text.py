"""NVMe in text: identity, namespaces, the SMART / Health Information log."""

from __future__ import annotations

import re

from predrain.data.smart.text.number_text import parse_checked_size, parse_signed_number, parse_whole_number

_DATA_UNIT_BYTES = 512_000
_NAMESPACE = re.compile(r"namespace (\d+) (size/capacity|size|capacity|ieee eui-64|nguid)")
_LOG = {
    "available_spare": "available spare",
    "available_spare_threshold": "available spare threshold",
    "percentage_used": "percentage used",
    "power_on_hours": "power on hours",
    "unsafe_shutdowns": "unsafe shutdowns",
    "media_errors": "media and data integrity errors",
    "num_err_log_entries": "error information log entries",
}


def parse_nvme_text_identity(told: dict[str, str]) -> dict[str, object]:
    """Parse the identity from the labels of the information section."""
    namespaces: dict[int, dict[str, object]] = {}
    for label, value in told.items():
        if match := _NAMESPACE.fullmatch(label):
            namespace = namespaces.setdefault(int(match[1][:9]), {"id": int(match[1][:9])})
            if match[2] in ("size", "capacity", "size/capacity"):
                namespace[match[2].removesuffix("/capacity")] = {"bytes": parse_checked_size(value)}
            else:
                namespace[match[2].removeprefix("ieee ").replace("-", "")] = re.sub(r"[ -]", "", value)
    found: dict[str, object] = {
        "model_name": told.get("model number"),
        "serial_number": told.get("serial number"),
        "firmware_version": told.get("firmware version"),
        "nvme_total_capacity": parse_checked_size(told.get("total nvm capacity", "")),
        "nvme_namespaces": [namespaces[number] for number in sorted(namespaces)],
    }
    if len(namespaces) == 1 and parse_whole_number(told.get("number of namespaces", "1")) == 1:
        [only] = namespaces.values()
        found["user_capacity"] = only.get("capacity", only.get("size"))  # below the size if it is thin
    return found


def parse_nvme_text_health(told: dict[str, str]) -> dict[str, object]:
    """Parse the health log; only the printed values are included."""
    health: dict[str, object] = {
        key: parse_whole_number(told[label]) for key, label in _LOG.items() if label in told
    }
    health["temperature"] = parse_signed_number(told.get("temperature", ""))
    for key, label in (("data_units_written", "data units written"), ("data_units_read", "data units read")):
        health[key] = parse_checked_size(told.get(label, ""), _DATA_UNIT_BYTES)
    if match := re.match(r"0x([0-9a-fA-F]{2})\b", told.get("critical warning", "")):
        health["critical_warning"] = int(match[1], 16)
    thresholds = {
        key: parse_signed_number(told.get(f"{key} comp. temp. threshold", ""))
        for key in ("warning", "critical")
    }
    return {"nvme_smart_health_information_log": health, "nvme_composite_temperature_threshold": thresholds}

"""NVMe in text: identity, namespaces, the SMART / Health Information log."""

from __future__ import annotations

import re

from predrain.data.smart.text.numbers import signed, sized, whole

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


def identity(told: dict[str, str]) -> dict[str, object]:
    """Identity, from the labels of the information section."""
    namespaces: dict[int, dict[str, object]] = {}
    for label, value in told.items():
        if match := _NAMESPACE.fullmatch(label):
            namespace = namespaces.setdefault(int(match[1][:9]), {"id": int(match[1][:9])})
            if match[2] in ("size", "capacity", "size/capacity"):
                namespace[match[2].removesuffix("/capacity")] = {"bytes": sized(value)}
            else:
                namespace[match[2].removeprefix("ieee ").replace("-", "")] = re.sub(r"[ -]", "", value)
    found: dict[str, object] = {
        "model_name": told.get("model number"),
        "serial_number": told.get("serial number"),
        "firmware_version": told.get("firmware version"),
        "nvme_total_capacity": sized(told.get("total nvm capacity", "")),
        "nvme_namespaces": [namespaces[number] for number in sorted(namespaces)],
    }
    if len(namespaces) == 1 and whole(told.get("number of namespaces", "1")) == 1:
        [only] = namespaces.values()
        found["user_capacity"] = only.get("capacity", only.get("size"))  # less than the size where it is thin
    return found


def logs(told: dict[str, str]) -> dict[str, object]:
    """The health log; only what was printed."""
    health: dict[str, object] = {key: whole(told[label]) for key, label in _LOG.items() if label in told}
    health["temperature"] = signed(told.get("temperature", ""))
    for key, label in (("data_units_written", "data units written"), ("data_units_read", "data units read")):
        health[key] = sized(told.get(label, ""), _DATA_UNIT_BYTES)
    if match := re.match(r"0x([0-9a-fA-F]{2})\b", told.get("critical warning", "")):
        health["critical_warning"] = int(match[1], 16)
    return {"nvme_smart_health_information_log": health}

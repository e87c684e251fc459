"""The upper temperature limits that a drive states of itself.

ATA drives have them in the SCT status and in the header of the SCT temperature history, NVMe drives as thresholds of
the composite temperature, SCSI drives as the trip point of the temperature page. smartctl 7.3 and later repeat them
under `temperature`.
"""

from __future__ import annotations

from dataclasses import dataclass

from predrain.data.smart.json_values import JsonObject, read_json_object, read_temperature_limit


@dataclass(frozen=True, slots=True)
class TemperatureLimits:
    """Limits in °C as in `Smart`; None: the drive does not state it."""

    operation: int | None
    critical: int | None


def parse_temperature_limits(document: JsonObject) -> TemperatureLimits:
    """Parse the limits of a drive of any protocol."""
    shared = read_json_object(document, "temperature")
    status = read_json_object(read_json_object(document, "ata_sct_status"), "temperature")
    history = read_json_object(read_json_object(document, "ata_sct_temperature_history"), "temperature")
    composite = read_json_object(document, "nvme_composite_temperature_threshold")
    older = read_json_object(document, "scsi_temperature")
    return TemperatureLimits(
        _find_limit(
            (shared, "op_limit_max"), (status, "op_limit_max"), (history, "op_limit_max"), (composite, "warning")
        ),
        _find_limit(
            (shared, "critical_limit_max"), (shared, "limit_max"), (history, "limit_max"), (composite, "critical"),
            (shared, "drive_trip"), (older, "drive_trip"),
        ),
    )  # fmt: skip


def _find_limit(*places: tuple[JsonObject, str]) -> int | None:
    """Return the first limit that the drive states."""
    return next((found for place in places if (found := read_temperature_limit(*place)) is not None), None)

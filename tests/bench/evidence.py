"""Real drives that the rules are measured on, as readings made by the decoder that live drives go through.

In service: one smartctl report each of hard disks, SATA SSDs and NVMe drives in two fleets. Failed: SSDs at their
trouble ticket, and the last 30 daily reports of 244 of them. Where they come from: docs/reference/rules.md.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading
from predrain.data.smart import decode_smartctl_output

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NAMES = {
    5: "Reallocated_Sector_Ct",
    183: "Runtime_Bad_Block",
    184: "End-to-End_Error",
    187: "Reported_Uncorrect",
    188: "Command_Timeout",
    197: "Current_Pending_Sector",
    198: "Offline_Uncorrectable",
    199: "UDMA_CRC_Error_Count",
}
"""The common names of attributes, for tables that give only numbers."""
_HEALTH = {
    "critical_warning": "nv_critical_warning",
    "available_spare": "nv_spare",
    "available_spare_threshold": "nv_spare_thresh",
    "percentage_used": "nv_pct_used",
    "media_errors": "nv_media_errors",
    "num_err_log_entries": "nv_err_log",
    "unsafe_shutdowns": "nv_unsafe_shutdowns",
    "data_units_written": "nv_data_units_written",
}
Document = dict[str, Any]
Row = Mapping[str, Any]


def reading(document: Document, day: int = 0) -> Reading:
    """A reading on a day, decoded from what smartctl would have printed."""
    at = NOON + timedelta(days=day)
    seen = decode_smartctl_output(json.dumps(document).encode(), at).smart
    return Reading(DeviceId("DRIVE_1"), HostName("h"), at, at, seen)


def nvme_in_service(folder: Path) -> Iterator[tuple[str, Reading]]:
    """(fleet, reading) of every NVMe drive."""
    for row in _rows(folder / "fleet-snapshots" / "nvme.parquet"):
        yield row["fleet"], reading(nvme(row))


def hard_disks_in_service(folder: Path) -> Iterator[tuple[str, Reading]]:
    """(fleet, reading) of every SATA hard disk; one of which the number of revolutions is not known gets 7,200."""
    for row in _rows(folder / "fleet-snapshots" / "hdd.parquet"):
        named = {f"r_{number}": row.get(f"r{number}") for number in NAMES}
        turning = {**row, "rpm": row.get("rpm") or 7200}
        yield row["fleet"], reading(ata(turning, _numbered(named)))


def ssds_in_service(folder: Path) -> Iterator[tuple[str, Reading]]:
    """(fleet, reading) of every SATA SSD, its attributes under the names that smartctl gave them."""
    tables: dict[int, list[Document]] = defaultdict(list)
    for row in _rows(folder / "fleet-snapshots" / "ssd_attributes_long.parquet"):
        if row["raw"] is not None:
            tables[row["drive_uid"]].append(attribute(row["id"], row["name"], row["raw"], row["value"]))
    for row in _rows(folder / "fleet-snapshots" / "ssd.parquet"):
        yield row["fleet"], reading(ata(row, tables[row["drive_uid"]]))


def failed(folder: Path) -> Iterator[tuple[str, Reading]]:
    """(model, reading) of every SSD at its ticket."""
    for row in _rows(folder / "ssd-alibaba" / "tickets.parquet"):
        yield row["model"], reading(ata({}, _numbered(row)))


def last_days(folder: Path) -> Iterator[list[tuple[int, Reading]]]:
    """Of 244 failed SSDs their last 30 days: (days before the ticket, reading), oldest first."""
    rows = sorted(
        _rows(folder / "ssd-alibaba" / "b3_last30days.parquet"), key=lambda row: (row["disk_id"], row["day"])
    )
    for _, days in groupby(rows, key=lambda row: row["disk_id"]):
        yield [(-row["day"], reading(ata({}, _numbered(row)), row["day"])) for row in days]


def nvme(row: Row) -> Document:
    """smartctl's document of an NVMe drive, or of one behind a SCSI translation."""
    whole = _whole(row)
    if row.get("protocol") == "scsi":
        used = row.get("sas_pct_used")
        return {**whole, "device": {"protocol": "SCSI"}, "scsi_percentage_used_endurance_indicator": used}
    health = {name: row[field] for name, field in _HEALTH.items() if row.get(field) is not None}
    return {**whole, "device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": health}


def ata(row: Row, attributes: list[Document]) -> Document:
    """smartctl's document of a SATA drive; `rpm` 0 where the row does not tell."""
    pages = [
        {"number": page, "table": [{"name": name, "value": row[field]}]}
        for page, name, field in (
            (7, "Percentage Used Endurance Indicator", "ata_pct_used"),
            (4, "Number of Reported Uncorrectable Errors", "ds_uncorr"),
        )
        if row.get(field) is not None
    ]
    return {
        **_whole(row),
        "device": {"protocol": "ATA"},
        "rotation_rate": row.get("rpm", 0),
        "ata_smart_attributes": {"table": attributes},
        "ata_device_statistics": {"pages": pages},
    }


def attribute(number: int, name: str, raw: int, value: int | None = None) -> Document:
    """One row of the attribute table."""
    return {"id": number, "name": name, "value": value, "raw": {"value": raw, "string": str(raw)}}


def _whole(row: Row) -> Document:
    document: Document = {"model_name": str(row.get("model") or "SSD"), "serial_number": "1"}
    if row.get("passed") is not None:
        document["smart_status"] = {"passed": bool(row["passed"])}
    if row.get("poh") is not None:
        document["power_on_time"] = {"hours": int(row["poh"])}
    if row.get("temp") is not None:
        document["temperature"] = {"current": int(row["temp"])}
    return document


def _numbered(row: Row) -> list[Document]:
    return [
        attribute(number, name, int(row[f"r_{number}"]), row.get(f"n_{number}"))
        for number, name in NAMES.items()
        if row.get(f"r_{number}") is not None
    ]


def _rows(path: Path) -> Iterator[Row]:
    """Rows, with None where nothing was reported, a part at a time."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(20_000):
        yield from batch.to_pylist()

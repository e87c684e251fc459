"""Every real output at hand gives a reading or one clear reason, and what it says is what the JSON says."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from predrain.data.smart import SmartDocument, Undecodable, decode_smartctl_output

UNREADABLE = {"ata-033", "broken-001", "broken-003", "broken-004", "broken-006", "broken-007", "broken-009"}
MASKED = {"REDACTED", "XXXXXXXXXXXX", "9RK1XXXX", "Z1Z5DWJK0000XXXXXXXX"}


def _by_hand(document: dict[str, Any], decoded: SmartDocument) -> None:
    """The plainest values, looked up in the JSON directly."""
    status = document.get("smartctl", {}).get("exit_status")
    assert decoded.exit_bits == (
        None if status is None else tuple(bit for bit in range(8) if status & 2**bit)
    )
    smart = decoded.smart
    assert smart.passed is document.get("smart_status", {}).get("passed")
    assert smart.protocol.value == document["device"]["protocol"].lower()
    if "power_on_time" in document:
        assert smart.power_on_hours == document["power_on_time"]["hours"]
    serial = document.get("serial_number")
    assert smart.identity.serial == (None if serial in MASKED else serial)
    rows = {row["id"]: row for row in document.get("ata_smart_attributes", {}).get("table", [])}
    assert set(smart.attributes) == set(rows)
    for number, row in rows.items():
        told = smart.attributes[number]
        assert (told.value, told.worst, told.threshold) == (row["value"], row["worst"], row.get("thresh"))
        assert (told.raw if told.raw_packed is None else told.raw_packed) == row["raw"]["value"]
    log = document.get("nvme_smart_health_information_log", {})
    assert smart.counters.media_errors == log.get("media_errors")
    assert smart.counters.grown_defects == document.get("scsi_grown_defect_list")


def test_every_output_in_the_shared_folder_is_a_reading_or_a_reason(shared_data: Path) -> None:
    files = sorted((shared_data / "smartctl/json").glob("*.json"))
    assert len(files) >= 95
    refused: dict[str, str] = {}
    for file in files:
        content = file.read_bytes()
        try:
            decoded = decode_smartctl_output(content)
        except Undecodable as reason:
            refused[file.stem] = str(reason)
            continue
        _by_hand(json.loads(content[content.index(b"{") :]), decoded)
    assert set(refused) == UNREADABLE
    assert all(len(reason) > 20 and "\n" not in reason for reason in refused.values())


TEXTS_REFUSED = {"broken-001", "broken-005", "broken-006", "broken-008", "broken-009"}
TOLD_ONLY_BY_JSON = {"percentage_used", "available_spare_pct"}
"""smartctl 7.5 guesses these of ATA drives from normalised values, in JSON only."""


def test_every_text_in_the_shared_folder_is_a_reading_or_a_reason(shared_data: Path) -> None:
    files = sorted((shared_data / "smartctl/text").glob("*.txt"))
    assert len(files) >= 148
    refused: dict[str, str] = {}
    for file in files:
        try:
            decoded = decode_smartctl_output(file.read_bytes())
        except Undecodable as reason:
            refused[file.stem] = str(reason)
            continue
        assert decoded.exit_bits is None
        if not file.stem.startswith("broken"):
            assert decoded.smart.protocol.value == file.stem.partition("-")[0]
    assert set(refused) == TEXTS_REFUSED
    assert all("smartctl read nothing" in reason for reason in refused.values())


@pytest.mark.parametrize(("as_json", "as_text"), [("ata-021", "ata-114"), ("nvme-029", "nvme-006")])
def test_a_drive_reads_the_same_from_json_and_from_text(
    shared_data: Path, as_json: str, as_text: str
) -> None:
    """Two runs on one drive: what counts up may differ by the time between them, all else must not."""
    one = decode_smartctl_output((shared_data / f"smartctl/json/{as_json}.json").read_bytes()).smart
    other = decode_smartctl_output((shared_data / f"smartctl/text/{as_text}.txt").read_bytes()).smart
    assert one.identity == other.identity
    assert one.passed == other.passed
    counted = {"bytes_written", "bytes_read", "unsafe_shutdowns"} | TOLD_ONLY_BY_JSON
    for counter in dataclasses.fields(one.counters):
        told = getattr(one.counters, counter.name), getattr(other.counters, counter.name)
        if counter.name not in counted:
            assert told[0] == told[1], counter.name
        assert (told[0] is None) == (told[1] is None) or counter.name in TOLD_ONLY_BY_JSON
    assert set(one.attributes) == set(other.attributes)
    for number, row in one.attributes.items():
        assert (row.name, row.threshold) == (
            other.attributes[number].name,
            other.attributes[number].threshold,
        )


def test_health_records_of_real_clusters_are_refused_and_do_not_crash(shared_data: Path) -> None:
    files = [
        *(shared_data / "evidence/ceph-samples").glob("device-health-history__*.json"),
        *(shared_data / "evidence/ceph-samples").glob("get-health-metrics__*.json"),
    ]
    assert len(files) >= 6
    for file in files:
        with pytest.raises(Undecodable):
            decode_smartctl_output(file.read_bytes())

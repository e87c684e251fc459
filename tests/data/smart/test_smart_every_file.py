"""Every real output at hand gives a reading or one clear reason, and what it says is what the JSON says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from data.smart import SmartDocument, Undecodable, decode

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
            decoded = decode(content)
        except Undecodable as reason:
            refused[file.stem] = str(reason)
            continue
        _by_hand(json.loads(content[content.index(b"{") :]), decoded)
    assert set(refused) == UNREADABLE
    assert all(len(reason) > 20 and "\n" not in reason for reason in refused.values())


def test_every_text_output_is_refused_as_text(shared_data: Path) -> None:
    files = sorted((shared_data / "smartctl/text").glob("*.txt"))
    assert len(files) >= 148
    as_text = 0
    for file in files:
        with pytest.raises(Undecodable) as refused:
            decode(file.read_bytes())
        as_text += "text output" in str(refused.value)
    assert as_text >= 0.9 * len(files)


def test_health_records_of_real_clusters_are_refused_and_do_not_crash(shared_data: Path) -> None:
    files = [
        *(shared_data / "evidence/ceph-samples").glob("device-health-history__*.json"),
        *(shared_data / "evidence/ceph-samples").glob("get-health-metrics__*.json"),
    ]
    assert len(files) >= 6
    for file in files:
        with pytest.raises(Undecodable):
            decode(file.read_bytes())

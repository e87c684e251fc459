"""NVMe drives: the health log, its units, the critical bits and the many places of an identity."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from predrain.data.reading import Protocol
from predrain.data.smart import SmartDocument, decode_smartctl_output

Sample = Callable[[str], SmartDocument]
Altered = Callable[..., SmartDocument]


def _log(changes: dict[str, object]) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["nvme_smart_health_information_log"].update(changes)


def test_the_health_log_of_an_nvme_drive(sample: Sample) -> None:
    """nvme-025: seven media errors under a PASSED."""
    document = sample("nvme-025")
    smart = document.smart
    assert smart.protocol is Protocol.NVME
    assert smart.passed is True
    assert smart.counters.media_errors == 7
    assert smart.counters.percentage_used == 3
    assert smart.counters.available_spare_pct == 99
    assert smart.spare_threshold_pct == 10
    assert smart.counters.unsafe_shutdowns == 10
    assert smart.power_on_hours == 12798
    assert smart.temperature_c == 35
    assert smart.identity.rotation_rpm == 0
    assert document.device_id == "Samsung_SSD_970_EVO_500GB_S466NX0M776250H"


def test_a_data_unit_is_512000_bytes(sample: Sample) -> None:
    """nvme-012."""
    counters = sample("nvme-012").smart.counters
    assert counters.bytes_written == 166753862 * 512_000
    assert counters.bytes_read == 270189386 * 512_000


def test_counters_of_other_protocols_are_unknown(sample: Sample) -> None:
    counters = sample("nvme-025").smart.counters
    assert counters.reallocated is None
    assert counters.pending is None
    assert counters.grown_defects is None


@pytest.mark.parametrize("warning", [0x01, 0x02, 0x08, 0x09, 0x0D])
def test_critical_bits_are_read_beside_the_verdict(altered: Altered, warning: int) -> None:
    """text/nvme-015 passes with 0x09."""
    smart = altered("nvme-025", _log({"critical_warning": warning})).smart
    assert smart.counters.critical_warning == warning
    assert smart.passed is True


def test_a_verdict_alone_still_holds_the_critical_bits(altered: Altered) -> None:
    def health_only(document: dict[str, Any]) -> None:
        del document["nvme_smart_health_information_log"]
        document["smart_status"] = {"passed": False, "nvme": {"value": 4}}

    smart = altered("nvme-025", health_only).smart
    assert (smart.passed, smart.counters.critical_warning) == (False, 4)


def test_wear_may_pass_100_percent(altered: Altered) -> None:
    """text/nvme-033."""
    assert altered("nvme-025", _log({"percentage_used": 255})).smart.counters.percentage_used == 255
    assert altered("nvme-025", _log({"percentage_used": 256})).smart.counters.percentage_used is None


def test_an_eui64_is_a_wwn(sample: Sample) -> None:
    """nvme-025 and nvme-022: leading zeros belong to it."""
    assert sample("nvme-025").smart.identity.wwn == "0025385791b4f537"
    assert sample("nvme-022").smart.identity.wwn == "5cd2e4404b220100"


def test_an_eui64_keeps_the_zeros_of_its_extension(altered: Altered) -> None:
    def small(document: dict[str, Any]) -> None:
        document["nvme_namespaces"][0]["eui64"] = {"oui": 57, "ext_id": 7}

    assert altered("nvme-025", small).smart.identity.wwn == "0000390000000007"


def test_an_nguid_is_a_wwn_where_there_is_no_eui64(altered: Altered) -> None:
    def nguid(document: dict[str, Any]) -> None:
        document["nvme_namespaces"] = [
            {"id": 1, "nguid": "36344630 528029700025385800000001".replace(" ", "")}
        ]

    assert altered("nvme-025", nguid).smart.identity.wwn == "36344630528029700025385800000001"


def test_a_controller_of_many_namespaces_tells_its_total_capacity(sample: Sample) -> None:
    """nvme-003; nvme-012 tells none at all."""
    assert sample("nvme-003").smart.identity.capacity_bytes == 3200631791616
    assert sample("nvme-003").smart.identity.wwn is None
    assert sample("nvme-012").smart.identity.capacity_bytes is None


def test_a_count_of_128_bits_is_read_exactly_or_not_at_all(altered: Altered) -> None:
    """smartctl writes `KEY_s` beside a count that a double cannot hold."""
    exact = altered("nvme-025", _log({"media_errors": 4294967296}))
    assert exact.smart.counters.media_errors == 4294967296
    twin = altered(
        "nvme-025", _log({"media_errors": 9.007199254740994e15, "media_errors_s": "9007199254740993"})
    )
    assert twin.smart.counters.media_errors == 9007199254740993
    absurd = altered("nvme-025", _log({"media_errors": 2**128 - 1, "data_units_written": 2**60}))
    assert absurd.smart.counters.media_errors is None
    assert absurd.smart.counters.bytes_written is None
    assert absurd.smart.counters.unsafe_shutdowns == 10


@pytest.mark.parametrize("kelvin_zero", [0, -273])
def test_zero_kelvin_and_zero_celsius_are_no_temperature(altered: Altered, kelvin_zero: int) -> None:
    def cold(document: dict[str, Any]) -> None:
        document["temperature"] = {"current": kelvin_zero}
        document["nvme_smart_health_information_log"]["temperature"] = kelvin_zero

    assert altered("nvme-025", cold).smart.temperature_c is None


ODD = {
    "nv_critical_warning": "critical_warning",
    "nv_spare": "available_spare",
    "nv_pct_used": "percentage_used",
    "nv_spare_thresh": "available_spare_threshold",
    "nv_media_errors": "media_errors",
    "temp": "temperature",
    "nv_unsafe_shutdowns": "unsafe_shutdowns",
    "nv_data_units_written": "data_units_written",
    "poh": "power_on_hours",
}


def test_odd_values_of_real_drives_survive(shared_data: Path) -> None:
    """odd_cases.csv: media errors of 2^32, 900446 power-on hours, wear of 255 %."""
    with (shared_data / "evidence/fleet-snapshots/odd_cases.csv").open() as rows:
        cases = [json.loads(row["fields"]) for row in csv.DictReader(rows) if row["kind"] == "NVMe"]
    cases = [case for case in cases if case["protocol"] == "nvme"]
    assert len(cases) >= 30
    for case in cases:
        log = {key: case[name] for name, key in ODD.items() if name in case}
        document = {"device": {"protocol": "NVMe"}, "nvme_smart_health_information_log": log}
        smart = decode_smartctl_output(json.dumps(document).encode()).smart
        counters = smart.counters
        assert counters.media_errors == case["nv_media_errors"]
        assert counters.percentage_used == case["nv_pct_used"]
        assert counters.available_spare_pct == case["nv_spare"]
        assert counters.critical_warning == case["nv_critical_warning"]
        assert counters.unsafe_shutdowns == case["nv_unsafe_shutdowns"]
        assert smart.spare_threshold_pct == case["nv_spare_thresh"]
        assert smart.power_on_hours == case["poh"]
        assert smart.temperature_c == (case.get("temp") or None)

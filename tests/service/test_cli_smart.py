"""`predrain smart parse`: the contract of its output, its exit codes, golden lines of real outputs."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from predrain.service.cli import main

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "data" / "smart" / "samples"
GOLDEN = ROOT / "tests" / "golden" / "smart" / "samples.jsonl"

KEYS = [
    "file", "ok", "device_id", "vendor", "model", "serial", "wwn", "firmware", "capacity_bytes", "protocol",
    "rotation_rpm", "taken_at", "passed", "read_failed", "exit_bits", "power_on_hours", "temperature_c",
    "counters", "attributes",
]  # fmt: skip
COUNTERS = [
    "reallocated", "pending", "offline_uncorrectable", "reported_uncorrectable", "command_timeouts",
    "crc_errors", "end_to_end_errors", "media_errors", "grown_defects", "non_medium_errors",
    "uncorrected_errors", "percentage_used", "available_spare_pct", "critical_warning", "unsafe_shutdowns",
    "bytes_written", "bytes_read",
]  # fmt: skip

Output = pytest.CaptureFixture[str]


def _parse(capsys: Output, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    code = main(["smart", "parse", *arguments])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_the_keys_are_those_of_the_contract(capsys: Output) -> None:
    code, [line] = _parse(capsys, str(SAMPLES / "ata-055.json"))
    assert code == 0
    assert list(line) == KEYS
    assert list(line["counters"]) == COUNTERS
    assert line["attributes"]["5"] == {"raw": 0, "value": 100, "worst": 100, "threshold": 10}
    assert line["attributes"]["194"] == {
        "raw": 25,
        "value": 25,
        "worst": 40,
        "threshold": 0,
        "raw_packed": 30064771097,
    }
    assert (line["protocol"], line["passed"], line["read_failed"], line["exit_bits"]) == (
        "ata",
        True,
        False,
        [2],
    )
    assert line["taken_at"] == "2024-03-28T15:25:09Z"


def test_lines_come_in_the_order_given_and_a_refused_file_makes_it_3(capsys: Output) -> None:
    names = ["scsi-001.json", "broken-003.json", "nvme-012.json"]
    code, lines = _parse(capsys, *(str(SAMPLES / name) for name in names))
    assert code == 3
    assert [Path(line["file"]).name for line in lines] == names
    assert [line["ok"] for line in lines] == [True, False, True]
    assert list(lines[1]) == ["file", "ok", "reason"]


def test_a_missing_file_is_a_line_with_its_reason(capsys: Output, tmp_path: Path) -> None:
    code, lines = _parse(capsys, str(tmp_path / "none.json"), str(tmp_path))
    assert code == 3
    assert "No such file" in lines[0]["reason"]
    assert "Is a directory" in lines[1]["reason"]


def test_text_is_told_apart_by_its_content_and_has_no_exit_bits(capsys: Output, tmp_path: Path) -> None:
    named_otherwise = tmp_path / "sda.json"
    named_otherwise.write_bytes((SAMPLES / "scsi-007.txt").read_bytes())
    code, [line] = _parse(capsys, str(named_otherwise))
    assert code == 0
    assert list(line) == KEYS
    assert (line["protocol"], line["model"], line["exit_bits"]) == ("scsi", "SEAGATE ST3450857SS", None)
    assert line["power_on_hours"] == 16004


def test_a_dash_reads_standard_input(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    content = (SAMPLES / "nvme-012.json").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, [line] = _parse(capsys, "-")
    assert code == 0
    assert (line["file"], line["serial"]) == ("-", "0ba0147940253c15")


def test_an_endless_file_is_refused_at_16_mib(capsys: Output) -> None:
    code, [line] = _parse(capsys, "/dev/zero")
    assert code == 3
    assert "larger than 16 MiB" in line["reason"]


def test_no_file_is_a_usage_error(capsys: Output) -> None:
    assert main(["smart", "parse"]) == 2
    assert "FILE" in capsys.readouterr().err


def test_an_unknown_option_is_a_usage_error(capsys: Output) -> None:
    assert main(["smart", "parse", "--jsonn"]) == 2
    assert "--jsonn" in capsys.readouterr().err


def test_the_samples_give_their_golden_lines(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by `cd tests/data/smart/samples && predrain smart parse *.json`; review a change as a diff."""
    monkeypatch.chdir(SAMPLES)
    main(["smart", "parse", *sorted(path.name for path in SAMPLES.glob("*.json"))])
    assert capsys.readouterr().out.splitlines() == GOLDEN.read_text().splitlines()


def test_texts_give_their_golden_lines(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by `cd tests/data/smart/samples && predrain smart parse *.txt`; review a change as a diff."""
    monkeypatch.chdir(SAMPLES)
    main(["smart", "parse", *sorted(path.name for path in SAMPLES.glob("*.txt"))])
    assert capsys.readouterr().out.splitlines() == (GOLDEN.parent / "texts.jsonl").read_text().splitlines()

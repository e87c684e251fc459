"""`predrain cluster`: what it prints of a recording, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predrain.service.cli import main

SAMPLES = Path(__file__).parents[1] / "data" / "recorded"


def test_status_prints_what_a_person_asks_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status", "--recorded", str(SAMPLES / "reef-degraded.zip")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    wanted = (
        "HEALTH_WARN",
        "reef",
        "8: 7 up, 8 in",
        "35 active+clean",
        "median 4%",
        "osd/osd_max_backfills 4",
    )
    for told in (*wanted, "limit of a drain's target 85%", "balancer on", "epoch 42"):
        assert told in shown


def test_status_for_programs_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status", "--json", "--recorded", str(SAMPLES / "pacific-draining.zip")]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["release"] == "pacific"
    assert told["scheduler"] == "wpq"
    assert told["pgs"]["active+backfill_wait+remapped"] == 36
    assert told["fullness"]["limit"] == 0.85


def test_status_ends_with_3_where_the_mgr_knows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status", "--recorded", str(SAMPLES / "tentacle-mgr_restarted.zip")]) == 3
    assert "65 unknown" in capsys.readouterr().out


def test_a_recording_is_written_again_from_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "again.zip"
    assert (
        main(["cluster", "record", "--out", str(out), "--recorded", str(SAMPLES / "reef-degraded.zip")]) == 0
    )
    assert "predrain drain plan" in capsys.readouterr().out
    assert main(["cluster", "status", "--recorded", str(out)]) == 0


def test_a_missing_recording_is_refused_with_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "status", "--recorded", str(tmp_path / "none.zip")]) == 1
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "predrain cluster record" in said[0]


def test_without_a_cluster_the_cure_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CEPH_CONF", raising=False)
    assert main(["cluster", "status", "--cluster-name", "nowhere-at-all"]) == 1
    assert "--conf" in capsys.readouterr().err

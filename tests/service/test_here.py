"""Commands that need a service and find none: they are one themselves, over a cluster or a recording of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predrain.service.cli import main
from predrain.service.cli.cluster_connection import ClusterAddress
from predrain.service.config.settings import CephTable
from predrain.service.drains.live_cluster import conf_of

RECORDING = Path(__file__).resolve().parents[1] / "data" / "recorded" / "tentacle-clean.zip"


@pytest.fixture(autouse=True)
def _no_cluster_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPH_CONF", "")
    monkeypatch.setattr("predrain.service.drains.live_cluster.ETC", Path("/nowhere"))


def test_a_plan_against_a_recording_needs_neither_service_nor_cluster(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = ["--recorded", str(RECORDING), "--state", str(tmp_path / "none")]
    assert main(["drain", "plan", "osd.0", "--json", *said]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["mechanic"] == "walk by upmap"
    assert plan["bytes"] == sum(move["bytes"] for move in plan["moves"]) > 0
    assert {line["pg"] for line in plan["diff"]} == {move["pg"] for move in plan["moves"]}
    assert not (tmp_path / "none").exists()


def test_a_dry_run_shows_the_very_plan_that_would_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    said = ["--recorded", str(RECORDING), "--json"]
    assert main(["drain", "apply", "osd.0", "--dry-run", *said]) == 0
    (dry,) = json.loads(capsys.readouterr().out)
    assert main(["drain", "plan", "osd.0", *said]) == 0
    assert dry == json.loads(capsys.readouterr().out)


def test_the_lines_of_a_plan_say_where_each_pg_is_and_where_it_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["drain", "plan", "osd.0", "--diff", "--recorded", str(RECORDING)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("PG ")]
    assert lines
    assert all((" -> [" in line and line.endswith("iB")) or "bytes" in line for line in lines)


def test_a_disk_that_is_in_is_not_filled_and_the_exit_code_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["fill", "osd.0", "--dry-run", "--recorded", str(RECORDING)]) == 3
    assert "`ceph osd out 0` first" in capsys.readouterr().out


def test_an_osd_that_is_not_in_the_recording_is_refused_with_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["drain", "plan", "osd.99", "--recorded", str(RECORDING)]) == 1
    assert "'osd.99' is neither an OSD (osd.N) nor a device" in capsys.readouterr().err


def test_a_recording_takes_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drain", "apply", "osd.0", "--recorded", str(RECORDING)]) == 0
    assert "proposed" in capsys.readouterr().out


def test_without_service_and_cluster_the_sentence_names_both_cures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["drain", "list", "--state", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "predrain up" in told
    assert "--conf" in told


def test_the_cluster_is_found_as_cephs_own_tools_find_it(tmp_path: Path) -> None:
    conf = tmp_path / "ceph.conf"
    assert conf_of(CephTable(), {}) is None
    assert conf_of(CephTable(), {"CEPH_CONF": str(conf)}) == conf
    assert conf_of(CephTable(conf=Path("/a")), {"CEPH_CONF": str(conf)}) == Path("/a")


def test_the_command_line_wins_over_the_settings(tmp_path: Path) -> None:
    settings = tmp_path / "predrain.toml"
    settings.write_text('[ceph]\nname = "client.a"\nkeyring = "/k"\n')
    found = ClusterAddress(config=settings, name="client.b").settings().ceph
    assert (found.name, found.keyring) == ("client.b", Path("/k"))

"""`predrain data import ceph-health-metrics` without files: the cluster is asked for each of its devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.channel import DaemonReply
from predrain.service.cli import data_commands, main

ROOT = Path(__file__).resolve().parents[2]
SCRAPE = json.loads((ROOT / "tests/data/smart/samples/ata-007.json").read_text())
FAILED = {"dev": "/dev/vdb", "error": "smartctl failed", "smartctl_error_code": -22}
DEVICES = [
    {"devid": "P3-2TB_9C40918040082", "location": [{"host": "ceph1", "dev": "sda"}], "daemons": ["osd.0"]},
    {"devid": "osd-disk-b", "location": [{"host": "ceph3", "dev": "vdb"}], "daemons": ["osd.2"]},
    {"devid": "gone", "location": [], "daemons": []},
]


class Cluster:
    """Answers as a mgr does; a fake, for what real throw-away clusters have no disks for."""

    closed = False

    def ask(self, to: str, prefix: str, arguments: dict[str, Any]) -> DaemonReply:
        assert to == "mgr"
        if prefix == "device ls":
            return DaemonReply(0, json.dumps(DEVICES).encode(), "")
        metrics: dict[str, Any] = {
            "P3-2TB_9C40918040082": {"20240101-000000": SCRAPE, "20240102-000000": SCRAPE},
            "osd-disk-b": {"20240101-000000": FAILED},
        }
        found = metrics.get(arguments["devid"])
        return (
            DaemonReply(0, json.dumps(found).encode(), "")
            if found
            else DaemonReply(-2, b"", "no such device")
        )

    def close(self) -> None:
        self.closed = True


def test_each_device_of_the_cluster_is_asked_and_its_host_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster()
    monkeypatch.setattr(data_commands, "make_cluster_channel", lambda _: cluster)
    arguments = ["data", "import", "ceph-health-metrics", "--state", str(tmp_path), "--json"]
    told = []
    for _ in range(2):
        assert main(arguments) == 3  # one device's metrics are not to be had
        told.append(json.loads(capsys.readouterr().out))
    assert (told[0]["readings"], told[0]["failed_scrapes"]) == (2, 1)
    assert (told[1]["readings"], told[1]["known"]) == (0, 2)
    assert told[0]["broken"] == [
        "the cluster does not tell the metrics of gone (no such device); import again"
    ]
    assert cluster.closed


def test_one_device_can_be_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(data_commands, "make_cluster_channel", lambda _: Cluster())
    device = ["--device", "P3-2TB_9C40918040082", "--state", str(tmp_path)]
    assert main(["data", "import", "ceph-health-metrics", *device]) == 0
    assert "2 readings taken in" in capsys.readouterr().out

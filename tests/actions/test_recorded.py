"""A recording is written whole, holds no secret, reads back to the same view, and takes no command."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.cluster.cluster_port import Reweight, SetUpmap
from predrain.actions.cluster.dumps import ClusterReader
from predrain.actions.cluster.dumps.view_questions import QUESTIONS
from predrain.actions.cluster.recorded_cluster import (
    ClusterRecording,
    RecordedCluster,
    UnreadableRecording,
    read_recording,
    record_cluster_answers,
    write_recording,
)
from predrain.data.ids import OsdId, PgId
from tests.actions.recordings import CLEAN, SAMPLES, brief, sample

AT = datetime(2026, 11, 21, 6, tzinfo=UTC)


@dataclass
class Answering:
    """A channel that answers a look from a recording; it can do nothing else."""

    recording: ClusterRecording
    asked: list[str] = field(default_factory=list)

    def ask(
        self, to: str, prefix: str, arguments: Mapping[str, Argument] | None = None, **_: object
    ) -> DaemonReply:
        self.asked.append(f"{to}: {prefix}")
        if prefix == "osd getmap":
            return DaemonReply(0, self.recording.osdmap or b"", "")
        if prefix == "config show":
            return DaemonReply(0, b"mclock_scheduler\n", "")
        raw = (
            brief(self.recording.answers).raw
            if arguments and arguments.get("dumpcontents") == ["sum"]
            else {}
        )
        name = "pg_sum" if raw else prefix.replace(" ", "_")
        found = {**self.recording.answers.raw, **raw}.get(name)
        return DaemonReply(-2, b"", "ENOENT") if found is None else DaemonReply(0, found, "")


def channel(recording: ClusterRecording) -> Answering:
    return Answering(recording)


def test_a_recording_reads_back_to_the_same_view(tmp_path: Path) -> None:
    live = sample("reef-degraded")
    made = record_cluster_answers(channel(live), AT)  # type: ignore[arg-type]
    write_recording(made, tmp_path / "a.zip")
    back = read_recording(tmp_path / "a.zip")
    assert back.answers.at == AT
    assert back.osdmap == live.osdmap
    view, expected = RecordedCluster(back).view(), ClusterReader().view(live.answers)
    assert view.pgs == expected.pgs
    assert view.osds == expected.osds
    assert view.settings == expected.settings
    assert view.scheduler == "mclock_scheduler"


def test_a_recording_asks_only_what_reads(tmp_path: Path) -> None:
    asking = channel(sample("tentacle-clean"))
    record_cluster_answers(asking, AT)  # type: ignore[arg-type]
    assert set(asking.asked) == {f"{one.to}: {one.prefix}" for one in QUESTIONS} | {
        "mon: osd getmap",
        "mgr: config show",
    }


def test_passwords_in_the_mon_s_config_are_left_out(tmp_path: Path) -> None:
    rows = [
        {"section": "mgr", "name": "mgr/dashboard/PASSWORD", "value": "hunter2", "mask": ""},
        {"section": "osd", "name": "osd_max_backfills", "value": "4", "mask": ""},
    ]
    live = ClusterRecording(type(CLEAN)(AT, {**CLEAN.raw, "config_dump": json.dumps(rows).encode()}))
    write_recording(record_cluster_answers(channel(live), AT), tmp_path / "a.zip")  # type: ignore[arg-type]
    with zipfile.ZipFile(tmp_path / "a.zip") as file:
        assert all(b"hunter2" not in file.read(name) for name in file.namelist())
    assert RecordedCluster(read_recording(tmp_path / "a.zip")).view().settings == {
        "osd/osd_max_backfills": "4"
    }


def test_a_folder_of_answers_is_a_recording_too(shared_data: Path) -> None:
    found = read_recording(shared_data / "recorded" / "reef" / "degraded")
    assert found.osdmap == sample("reef-degraded").osdmap
    assert RecordedCluster(found).view().pgs == RecordedCluster(sample("reef-degraded")).view().pgs


@pytest.mark.parametrize("command", [Reweight(OsdId(0), 0.0), SetUpmap(PgId("1.0"), ((1, 2),))])
def test_a_recorded_cluster_refuses_every_command(command: Reweight | SetUpmap) -> None:
    cluster = RecordedCluster(sample("tentacle-clean"))
    answer = cluster.apply(command)
    assert not answer.ok
    assert "recording" in answer.text
    assert cluster.view() is cluster.view()


@pytest.mark.parametrize(
    "raw",
    [b"", b"no zip", (SAMPLES / "reef-degraded.zip").read_bytes()[:9000]],
    ids=["empty", "no zip", "cut short"],
)
def test_a_file_that_is_no_recording_is_refused_in_one_sentence(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(UnreadableRecording, match="predrain cluster record"):
        read_recording(tmp_path / "a.zip")


def test_a_path_that_is_not_there_and_a_damaged_member_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRecording):
        read_recording(tmp_path / "nowhere.zip")
    raw = bytearray((SAMPLES / "reef-degraded.zip").read_bytes())
    raw[3000:3100] = bytes(100)
    (tmp_path / "a.zip").write_bytes(raw)
    with pytest.raises(UnreadableRecording):
        read_recording(tmp_path / "a.zip")


@pytest.mark.parametrize("manifest", ["[]", '{"at": "yesterday"}', '{"at": 3}', "{", '{"recording": 2}'])
def test_a_broken_manifest_or_a_newer_one_is_refused(tmp_path: Path, manifest: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("manifest.json", manifest)
    with pytest.raises(UnreadableRecording):
        read_recording(tmp_path / "a.zip")

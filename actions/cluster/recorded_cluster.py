"""A recorded cluster: the answers to all read commands, and the map itself, in one file on which drains can be
planned.

A recording is a zip of the answers, named after the read commands, with `osdmap.bin` and `manifest.json`. It holds no
key and no password: of `config dump` it has only the rows that concern OSDs. A folder of such answers is read as well.
"""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.dump_decoding import LARGEST
from predrain.actions.cluster.dumps.raw_answers import RawAnswers, ReadCommand, run_read_commands
from predrain.actions.cluster.dumps.setting_dumps import without_secrets
from predrain.actions.cluster.dumps.view_questions import QUESTIONS, running_scheduler
from predrain.actions.cluster.dumps.view_reader import ClusterReader
from predrain.data.refusal import Refusal

_VERSION = 1
_LATER_THAN_ANY_STAMP = datetime.max.replace(tzinfo=UTC)
_MANIFEST, _OSDMAP = "manifest.json", "osdmap.bin"


class UnreadableRecording(Refusal):
    """The path leads to no recording that can be read."""


@dataclass(frozen=True, slots=True)
class ClusterRecording:
    """The answers of a cluster at one time. `osdmap` is the binary map, as `ceph osd getmap` gives it."""

    answers: RawAnswers
    osdmap: bytes | None = None


def record_cluster_answers(
    channel: CommandChannel, at: datetime, told: Callable[[ReadCommand], None] = lambda _: None
) -> ClusterRecording:
    """Send all read commands to a cluster. Raises ClusterUnreachable, and NotUnderstood if the answers make no view."""
    answers = run_read_commands(channel, QUESTIONS, at, told)
    view = ClusterReader().view(answers)
    up = sorted(osd.id for osd in view.osds.values() if osd.up)
    shown = run_read_commands(channel, [running_scheduler(osd) for osd in up[:1]], at, told)
    raw = {**answers.raw, **shown.raw, "config_dump": without_secrets(answers.raw["config_dump"])}
    osdmap = channel.ask("mon", "osd getmap", {"epoch": view.epoch})
    return ClusterRecording(RawAnswers(at, raw), osdmap.out if osdmap.ok else None)


def write_recording(recording: ClusterRecording, path: Path) -> None:
    """Write one zip file, complete or not at all."""
    manifest = {"recording": _VERSION, "at": recording.answers.at.isoformat()}
    beside = path.with_name(f".{path.name}.part")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_MANIFEST, json.dumps(manifest))
        for name, raw in recording.answers.raw.items():
            file.writestr(f"{name}.json", raw)
        if recording.osdmap is not None:
            file.writestr(_OSDMAP, recording.osdmap)
    beside.replace(path)


def read_recording(path: Path) -> ClusterRecording:
    """Read a recording, or a folder of answers (`osd_dump.json`, `pg_dump.json.gz`, ...). Raises
    UnreadableRecording.
    """
    try:
        found = dict(_read_folder(path) if path.is_dir() else _read_zip(path))
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UnreadableRecording(
            f"{path} is no recording ({error}); make one by `predrain cluster record`."
        ) from error
    at = _read_recording_time(path, found.pop(_MANIFEST, b"{}"))
    osdmap = found.pop(_OSDMAP, None)
    raw = {name.removesuffix(".json"): data for name, data in found.items() if name.endswith(".json")}
    return ClusterRecording(RawAnswers(at, raw), osdmap)


def _read_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.iterdir()):
        if file.suffixes[-2:] == [".json", ".gz"]:
            with gzip.open(file) as unpacked:
                yield (
                    file.name.removesuffix(".gz"),
                    _check_unpacked_size(file.name, unpacked.read(LARGEST + 1)),
                )
        elif file.suffix == ".json" or file.name == _OSDMAP:
            yield file.name, file.read_bytes()


def _read_zip(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as file:
        for one in file.infolist():
            with file.open(one) as unpacked:
                yield one.filename, _check_unpacked_size(one.filename, unpacked.read(LARGEST + 1))


def _check_unpacked_size(name: str, raw: bytes) -> bytes:
    if len(raw) > LARGEST:
        raise UnreadableRecording(
            f"{name} unpacks to more than {LARGEST >> 30} GiB; it is no cluster's answer."
        )
    return raw


def _read_recording_time(path: Path, manifest: bytes) -> datetime:
    """Return the time of the recording. A folder without a manifest gives a time only by the stamps in its answers."""
    try:
        told = json.loads(manifest)
        if told.get("recording", _VERSION) != _VERSION:
            raise UnreadableRecording(f"{path} was recorded by a newer predrain; read it with that one.")
        return datetime.fromisoformat(told["at"]).astimezone(UTC) if "at" in told else _LATER_THAN_ANY_STAMP
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise UnreadableRecording(f"{path} has a broken {_MANIFEST}; record it again.") from error


class RecordedCluster:
    """A recorded cluster as `actions.cluster.cluster_port.Cluster`: it can be read and planned on, but it accepts
    no command.
    """

    def __init__(self, recording: ClusterRecording) -> None:
        """Raises NotUnderstood if the recording makes no view."""
        self.osdmap = recording.osdmap
        self._view = ClusterReader().view(recording.answers)

    def view(self) -> ClusterView:
        """Return the recorded view; `as_of` is the time at which to plan."""
        return self._view

    def apply(self, command: Command) -> CommandResult:
        """Refuse the command, always."""
        return CommandResult(
            ok=False,
            text=f"This is a recording of {self._view.as_of:%Y-%m-%d %H:%M}Z: {command} was not sent.",
        )

"""A cluster that was recorded: everything that a look asks, and the map itself, in one file to plan against.

A recording is a zip of the answers, named as the questions are, with `osdmap.bin` and `manifest.json`. It holds no key
and no password: of `config dump` only the rows that have to do with OSDs. A folder of such answers is read as well.
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
from predrain.actions.cluster.dumps.answers import RawAnswers, ReadCommand, asked
from predrain.actions.cluster.dumps.decoding import LARGEST
from predrain.actions.cluster.dumps.questions import QUESTIONS, running_scheduler
from predrain.actions.cluster.dumps.reader import ClusterReader
from predrain.actions.cluster.dumps.settings import without_secrets
from predrain.actions.cluster.port import Command, CommandResult
from predrain.actions.cluster.view import ClusterView
from predrain.data.refusal import Refusal

_VERSION = 1
_LATER_THAN_ANY_STAMP = datetime.max.replace(tzinfo=UTC)
_MANIFEST, _OSDMAP = "manifest.json", "osdmap.bin"


class UnreadableRecording(Refusal):
    """The path leads to no recording."""


@dataclass(frozen=True, slots=True)
class ClusterRecording:
    """What a cluster answered at one time. `osdmap` is the binary map, as `ceph osd getmap` gives it."""

    answers: RawAnswers
    osdmap: bytes | None = None


def record(
    channel: CommandChannel, at: datetime, told: Callable[[ReadCommand], None] = lambda _: None
) -> ClusterRecording:
    """Ask a cluster everything. Raises ClusterUnreachable, and NotUnderstood where the answers make no view."""
    answers = asked(channel, QUESTIONS, at, told)
    view = ClusterReader().view(answers)
    up = sorted(osd.id for osd in view.osds.values() if osd.up)
    shown = asked(channel, [running_scheduler(osd) for osd in up[:1]], at, told)
    raw = {**answers.raw, **shown.raw, "config_dump": without_secrets(answers.raw["config_dump"])}
    osdmap = channel.ask("mon", "osd getmap", {"epoch": view.epoch})
    return ClusterRecording(RawAnswers(at, raw), osdmap.out if osdmap.ok else None)


def write(recording: ClusterRecording, path: Path) -> None:
    """One zip file, whole or not at all."""
    manifest = {"recording": _VERSION, "at": recording.answers.at.isoformat()}
    beside = path.with_name(f".{path.name}.part")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_MANIFEST, json.dumps(manifest))
        for name, raw in recording.answers.raw.items():
            file.writestr(f"{name}.json", raw)
        if recording.osdmap is not None:
            file.writestr(_OSDMAP, recording.osdmap)
    beside.replace(path)


def read(path: Path) -> ClusterRecording:
    """A recording, or a folder of answers (`osd_dump.json`, `pg_dump.json.gz`, ...). Raises UnreadableRecording."""
    try:
        found = dict(_folder(path) if path.is_dir() else _zip(path))
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise UnreadableRecording(
            f"{path} is no recording ({error}); make one by `predrain cluster record`."
        ) from error
    at = _time(path, found.pop(_MANIFEST, b"{}"))
    osdmap = found.pop(_OSDMAP, None)
    raw = {name.removesuffix(".json"): data for name, data in found.items() if name.endswith(".json")}
    return ClusterRecording(RawAnswers(at, raw), osdmap)


def _folder(path: Path) -> Iterator[tuple[str, bytes]]:
    for file in sorted(path.iterdir()):
        if file.suffixes[-2:] == [".json", ".gz"]:
            with gzip.open(file) as unpacked:
                yield file.name.removesuffix(".gz"), _bounded(file.name, unpacked.read(LARGEST + 1))
        elif file.suffix == ".json" or file.name == _OSDMAP:
            yield file.name, file.read_bytes()


def _zip(path: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as file:
        for one in file.infolist():
            with file.open(one) as unpacked:
                yield one.filename, _bounded(one.filename, unpacked.read(LARGEST + 1))


def _bounded(name: str, raw: bytes) -> bytes:
    if len(raw) > LARGEST:
        raise UnreadableRecording(
            f"{name} unpacks to more than {LARGEST >> 30} GiB; it is no cluster's answer."
        )
    return raw


def _time(path: Path, manifest: bytes) -> datetime:
    """When it was recorded; a folder without a manifest says it only by the stamps in its answers."""
    try:
        told = json.loads(manifest)
        if told.get("recording", _VERSION) != _VERSION:
            raise UnreadableRecording(f"{path} was recorded by a newer predrain; read it with that one.")
        return datetime.fromisoformat(told["at"]).astimezone(UTC) if "at" in told else _LATER_THAN_ANY_STAMP
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError) as error:
        raise UnreadableRecording(f"{path} has a broken {_MANIFEST}; record it again.") from error


class RecordedCluster:
    """Implements `actions.cluster.port.Cluster`: it can be looked at and planned against; it takes no command."""

    def __init__(self, recording: ClusterRecording) -> None:
        """Raises NotUnderstood when the recording makes no view."""
        self.osdmap = recording.osdmap
        self._view = ClusterReader().view(recording.answers)

    def view(self) -> ClusterView:
        """The cluster as it was; `as_of` is the time at which to plan."""
        return self._view

    def apply(self, command: Command) -> CommandResult:
        """Refused, always."""
        return CommandResult(
            ok=False,
            text=f"This is a recording of {self._view.as_of:%Y-%m-%d %H:%M}Z: {command} was not sent.",
        )

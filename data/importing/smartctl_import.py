"""Imports stored outputs of smartctl: one or many in a file, JSON or text."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from datetime import tzinfo
from itertools import islice
from pathlib import Path

import msgspec

from predrain.data.ids import HostName
from predrain.data.importing.import_port import (
    NO_ZONE,
    ImportPart,
    Item,
    UnusableItem,
    to_utc_time,
    version_of,
)
from predrain.data.reading import Reading
from predrain.data.smart import LARGEST_DOCUMENT, Undecodable, decode_smartctl_output
from predrain.data.smart.json_text import is_list, split_json_documents
from predrain.data.smart.text import is_text, split_smartctl_runs

JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
TEXT_ENDINGS = (".txt", ".log", ".out", ".smart", ".smartctl")
LARGEST_FILE = 16 * LARGEST_DOCUMENT
"""Largest size in bytes of a file that is not one output on each line, because such a file is read whole."""


def list_smartctl_import_parts(
    paths: Sequence[Path], host: HostName, zone: tzinfo | None
) -> Iterator[ImportPart]:
    """Yield one part for each file."""
    for path in paths:
        yield ImportPart(str(path.resolve()), version_of(path, host, zone), _File(path, host, zone).items)


class _File:
    def __init__(self, path: Path, host: HostName, zone: tzinfo | None) -> None:
        self._path, self._host, self._zone = path, host, zone

    def items(self, skip: int) -> Generator[Item]:
        """Yield one item for each output."""
        numbered = enumerate(_read_file_outputs(self._path), start=1)
        for number, output in islice(numbered, skip, None):
            where = str(self._path) if number == 1 else f"{self._path} output {number}"
            yield output if isinstance(output, UnusableItem) else self._item(where, output)

    def _item(self, where: str, output: bytes) -> Item:
        try:
            found = decode_smartctl_output(output)
        except Undecodable as refusal:
            return UnusableItem(where, str(refusal))
        if found.missing_state_reason is not None:
            return UnusableItem(where, found.missing_state_reason)
        taken_at = found.taken_at or (to_utc_time(found.local_time, self._zone) if found.local_time else None)
        if found.device_id is None:
            return UnusableItem(
                where, "the output names no serial number, or a masked one: keep what smartctl -x prints"
            )
        if taken_at is None:
            missing = "the output has no time: keep what smartctl -x prints"
            return UnusableItem(where, NO_ZONE if found.local_time else missing)
        return Reading(found.device_id, self._host, taken_at, taken_at, found.smart)


def _read_file_outputs(path: Path) -> Iterator[bytes | UnusableItem]:
    """Yield the outputs in a file: one JSON object on each line, a JSON list, or JSON documents or
    texts in sequence.
    """
    try:
        with path.open("rb") as opened:
            first = opened.readline(LARGEST_DOCUMENT + 1)
            if first.lstrip().startswith(b"{") and first.rstrip().endswith(b"}"):
                yield from _read_json_lines(
                    path, first, iter(lambda: opened.readline(LARGEST_DOCUMENT + 1), b"")
                )
                return
            whole = first + opened.read(LARGEST_FILE + 1)
    except OSError as error:
        yield UnusableItem(
            str(path), f"the file cannot be read ({error.strerror or error}): check its permissions"
        )
        return
    if len(whole) > LARGEST_FILE:
        yield UnusableItem(
            str(path), f"the file is larger than {LARGEST_FILE // 2**20} MiB: keep one output a file"
        )
    elif is_list(whole):
        yield from _split_json_list(path, whole)
    elif not whole.lstrip().startswith(b"{") and is_text(whole):
        yield from split_smartctl_runs(whole)
    else:
        yield from split_json_documents(whole)


def _read_json_lines(path: Path, first: bytes, rest: Iterable[bytes]) -> Iterator[bytes | UnusableItem]:
    yield first
    for number, line in enumerate(rest, start=2):
        if len(line) > LARGEST_DOCUMENT:
            yield UnusableItem(f"{path} line {number}", "the line has no end: keep one output a line")
            return
        if line.strip():
            yield line


def _split_json_list(path: Path, whole: bytes) -> Iterator[bytes | UnusableItem]:
    try:
        yield from (bytes(member) for member in msgspec.json.decode(whole, type=list[msgspec.Raw]))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        yield UnusableItem(str(path), f"the list is broken ({error}): keep it again")

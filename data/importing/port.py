"""What an import is made of: parts that can be gone on with, and what their items are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from predrain.data.outcome import Outcome
from predrain.data.reading import Reading
from predrain.data.refusal import Refusal


class NothingToImport(Refusal):
    """No file, or none that can be looked at."""


@dataclass(frozen=True, slots=True)
class UnusableItem:
    """Something that is no reading: where it stands and why, one sentence without the place."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class NoScrape:
    """A look of Ceph's at a disk that failed. It holds nothing, so nothing is lost, and it is counted apart.

    It does not become an unreadable reading: such records do not tell a dying disk from a host without smartctl or a
    missing sudo line, and a reading that says "cannot be read" is hard evidence against a disk.
    """

    where: str
    why: str


Item = Reading | Outcome | UnusableItem | NoScrape


@dataclass(frozen=True, slots=True)
class ImportPart:
    """A stretch of an import: a file, a device of a cluster, a query."""

    name: str
    version: str | None
    """Changes when the part holds something else or is read otherwise; None: nobody can tell, read it every time."""
    items: Callable[[int], Generator[Item]]
    """The items after the first so many. Raises Refusal when the part cannot be read (any further)."""


def files_below(paths: Iterable[Path], endings: tuple[str, ...]) -> list[Path]:
    """Files as named, and those below named folders with one of `endings`, in order. Raises NothingToImport."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            below = sorted(
                file for file in path.rglob("*") if file.suffix.lower() in endings and file.is_file()
            )
            if not below:
                raise NothingToImport(
                    f"{path} holds no file that ends in {', '.join(endings)}; name the files"
                )
            found += below
        elif path.is_file():
            found.append(path)
        else:
            raise NothingToImport(f"there is no file {path}; check its name")
    return found


def version_of(path: Path, *settings: object) -> str:
    """A file's size and time of change, and how it is read."""
    told = path.stat()
    said = "|".join(str(one) for one in settings)
    return f"{told.st_size}-{told.st_mtime_ns}-{hashlib.blake2b(said.encode(), digest_size=8).hexdigest()}"


def utc(time: datetime, zone: tzinfo | None) -> datetime | None:
    """`time` in UTC; a time without a zone is meant in `zone`, and None where none is given."""
    if time.tzinfo is None:
        if zone is None:
            return None
        time = time.replace(tzinfo=zone)
    return time.astimezone(UTC)


NO_ZONE = "the time has no zone: say which one is meant with --timezone (such as Europe/Berlin or UTC)"

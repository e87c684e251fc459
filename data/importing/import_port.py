"""The parts of an import, at each of which it can continue, and the kinds of their items."""

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
    """There is no file, or none that can be read."""


@dataclass(frozen=True, slots=True)
class UnusableItem:
    """An item that is no reading: its place, and the reason as one sentence without the place."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class NoScrape:
    """A scrape of Ceph's that failed. It holds no data, so nothing is lost, and it is counted apart.

    A failed scrape does not become an unreadable reading. Such records do not distinguish a failing disk from a host
    without smartctl or with a missing sudo line, and a reading that says "cannot be read" is hard evidence against a
    disk.
    """

    where: str
    why: str


Item = Reading | Outcome | UnusableItem | NoScrape


@dataclass(frozen=True, slots=True)
class ImportPart:
    """A part of an import: a file, a device of a cluster, or a query."""

    name: str
    version: str | None
    """A text that changes if the content of the part or its interpretation changes; None: unknown, so it is read
    every time."""
    items: Callable[[int], Generator[Item]]
    """Gives the items after the first N. Raises Refusal when the part cannot be read (any further)."""


def files_below(paths: Iterable[Path], endings: tuple[str, ...]) -> list[Path]:
    """Return the named files, and those in named folders with one of `endings`, in order. Raises NothingToImport."""
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
    """Return a file's version: its size and time of change, and the settings by which it is read."""
    told = path.stat()
    said = "|".join(str(one) for one in settings)
    return f"{told.st_size}-{told.st_mtime_ns}-{hashlib.blake2b(said.encode(), digest_size=8).hexdigest()}"


def to_utc_time(time: datetime, zone: tzinfo | None) -> datetime | None:
    """Return `time` in UTC. A time without a zone is taken as in `zone`; return None if no zone is given."""
    if time.tzinfo is None:
        if zone is None:
            return None
        time = time.replace(tzinfo=zone)
    return time.astimezone(UTC)


NO_ZONE = "the time has no zone: say which one is meant with --timezone (such as Europe/Berlin or UTC)"

"""A spool that leaves a line for each reading that it has accepted: where the line stands, delivery was promised.

A kill between the acceptance and the line leaves a reading that is promised and not witnessed; the spool's own numbers
(tests.chaos.evidence) close that gap.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple

from predrain.collector.delivery import Spool, SpoolLimits
from predrain.data.ids import DeviceId, HostName
from predrain.data.reading import Reading
from predrain.data.wire.wire_bodies import READING

_FILE = "accepted"


class ReadingKey(NamedTuple):
    """The key by which a store identifies a reading."""

    device: DeviceId
    taken_at: datetime

    @classmethod
    def of(cls, reading: Reading) -> ReadingKey:
        """The key of `reading`."""
        return cls(reading.device, reading.taken_at)


def digest_reading(reading: Reading) -> bytes:
    """Sixteen bytes that differ where two readings differ, but for the time of receipt: by HTTP each delivery has its
    own."""
    same = replace(reading, received_at=reading.taken_at)
    return blake2b(READING.write(same), digest_size=16).digest()


class WitnessedSpool(Spool):
    """The spool of a process under test, with a witness in the folder of its file's host."""

    folder: Path
    """Set before the first one is opened."""

    def __init__(self, path: Path, host: HostName, random: Random, room: SpoolLimits | None = None) -> None:
        super().__init__(path, host, random, room)
        self._witness = (self.folder / _FILE).open("ab", buffering=0)

    def accept(self, readings: Sequence[Reading], now: datetime) -> tuple[str, ...]:
        """Accept, and then write the lines down in one call of the system."""
        refusals = super().accept(readings, now)
        if not refusals:
            self._witness.write(b"".join(_line_of(reading) for reading in readings))
        return refusals

    def close(self) -> None:
        """Let go of both files."""
        super().close()
        self._witness.close()


def read_witness(folder: Path) -> list[tuple[bytes, str]]:
    """The digest of each witnessed reading, and its device and time in words; a torn last line is none."""
    file = folder / _FILE
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [(bytes.fromhex(digest), words) for digest, _, words in (line.partition(" ") for line in lines)]


def read_numbers(spool: Path) -> dict[str, int]:
    """Return the numbers that the spool in a file keeps, such as its counts, by their names."""
    with closing(sqlite3.connect(f"file:{spool}?mode=ro", uri=True)) as connection:
        return dict(connection.execute("SELECT name, number FROM numbers").fetchall())


def count_accepted(spool: Path) -> int:
    """Readings that the spool in a file ever accepted."""
    return read_numbers(spool).get(f"sequence.{Reading.__name__}", 0)


def _line_of(reading: Reading) -> bytes:
    return f"{digest_reading(reading).hex()} {reading.device} {reading.taken_at.isoformat()}\n".encode()

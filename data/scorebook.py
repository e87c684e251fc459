"""The scorebook: the forecasts of each bundle for each disk, one line a day, for comparison with the disk's outcome.

The scorebook is separate from the store: nothing in it is shown as an outlook or can propose a drain.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from predrain.data.ids import DeviceId
from predrain.data.outlook import Status
from predrain.data.refusal import Refusal
from predrain.data.sqlite_file import BUSY_SECONDS, SqliteFault, classify_sqlite_error, make_durable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
"""Version of the format, kept in the file's `user_version`; 0 is a new file."""
_TABLE = """
CREATE TABLE forecasts (
  bundle TEXT NOT NULL, device TEXT NOT NULL, day INTEGER NOT NULL, model TEXT NOT NULL, status TEXT NOT NULL,
  p_7d REAL NOT NULL, p_14d REAL NOT NULL, p_30d REAL NOT NULL,
  PRIMARY KEY (bundle, device, day)) WITHOUT ROWID
"""
_TOGETHER = 50_000
"""Lines that are read at once."""


class ScorebookUnusable(Refusal):
    """The file is damaged, is no scorebook, cannot be written, or is held by another process."""


@dataclass(frozen=True, slots=True)
class ScorebookLine:
    """One bundle's forecast of one disk on one day."""

    device: DeviceId
    day: int
    """Days since 1970-01-01, UTC."""
    model: str
    status: Status
    p_7d: float
    p_14d: float
    p_30d: float


@dataclass(frozen=True, slots=True)
class ScorebookForecasts:
    """Lines of one bundle as columns, sorted by device and day."""

    device: NDArray[np.object_]
    day: NDArray[np.int64]
    model: NDArray[np.object_]
    status: NDArray[np.object_]
    p: NDArray[np.float64]
    """(lines, 3) probability of failure within 7, 14, 30 days."""

    def __len__(self) -> int:
        return len(self.day)

    def select_lines(self, which: NDArray[np.bool_] | NDArray[np.int64]) -> ScorebookForecasts:
        """Return only these lines."""
        return ScorebookForecasts(*(getattr(self, name)[which] for name in self.__slots__))


class Scorebook:
    """One SQLite file, for any number of threads and processes. Raises ScorebookUnusable."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, Lock()
        with self._explained():
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        try:
            self._open()
        except BaseException:
            self._connection.close()
            raise

    def write(self, bundle: str, lines: Iterable[ScorebookLine]) -> None:
        """Store lines of a bundle; of several for one disk and day the last one stays."""
        rows = [
            (bundle, one.device, one.day, one.model, one.status.value, one.p_7d, one.p_14d, one.p_30d)
            for one in lines
        ]
        if not rows:
            return
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO forecasts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def read(self, bundle: str, since: int = 0) -> ScorebookForecasts:
        """Return the forecasts of a bundle from day `since` on."""
        import numpy as np

        parts: list[ScorebookForecasts] = []
        words: dict[str, str] = {}  # a disk's name is in many lines and is stored once
        with self._lock, self._explained():
            rows = self._connection.execute(
                "SELECT device, model, status, day, p_7d, p_14d, p_30d FROM forecasts"
                " WHERE bundle = ? AND day >= ? ORDER BY device, day",
                (bundle, since),
            )
            while some := rows.fetchmany(_TOGETHER):
                device, model, status, day, *p = zip(*some, strict=True)
                texts = [
                    np.array([words.setdefault(one, one) for one in column], dtype=object)
                    for column in (device, model)
                ]
                statuses = np.array([Status(word) for word in status], dtype=object)
                parts.append(
                    ScorebookForecasts(
                        texts[0], np.array(day, dtype=np.int64), texts[1], statuses, np.array(p).T
                    )
                )
        if not parts:
            empty = np.empty(0, dtype=object)
            return ScorebookForecasts(empty, np.empty(0, dtype=np.int64), empty, empty, np.empty((0, 3)))
        return ScorebookForecasts(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ScorebookForecasts.__slots__
            )
        )

    def last_day(self, bundle: str) -> int | None:
        """Return the last day (days since 1970-01-01) for which a bundle has lines, or None if it has none."""
        with self._lock, self._explained():
            query = "SELECT max(day) FROM forecasts WHERE bundle = ?"
            (day,) = self._connection.execute(query, (bundle,)).fetchone()
            return None if day is None else int(day)

    def has_lines(self, bundle: str) -> bool:
        """Return whether a bundle has any forecast."""
        with self._lock, self._explained():
            query = "SELECT 1 FROM forecasts WHERE bundle = ? LIMIT 1"
            return self._connection.execute(query, (bundle,)).fetchone() is not None

    def prune(self, before: int) -> int:
        """Drop the lines before that day; return how many."""
        with self._writing() as connection:
            return connection.execute("DELETE FROM forecasts WHERE day < ?", (before,)).rowcount

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _open(self) -> None:
        with self._explained():
            make_durable(self._connection)
        with self._writing() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == FORMAT:
                return
            if version or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise ScorebookUnusable(
                    f"{self._path} is no scorebook of this predrain; update predrain, or move the file away "
                    "(only the comparison of bundles begins again)."
                )
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {FORMAT}")

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            cure = {
                SqliteFault.NO_ROOM: "make room on its disk, or make it writable",
                SqliteFault.HELD: "see with `fuser` which process holds it, and try again",
                SqliteFault.BROKEN: "move it away; only the comparison of bundles begins again",
            }.get(classify_sqlite_error(error) or SqliteFault.BROKEN)
            raise ScorebookUnusable(
                f"the scorebook {self._path} cannot be used ({error}): {cure}."
            ) from error

# ruff: noqa: S608 - table functions and columns cannot be bound as parameters; paths are quoted
"""Applies the statements of people and rules about the end of drives to the histories: a drained disk is not healthy.

Failed and confirmed count as a death on the drive's last day in the history, or on the statement's day if that is
earlier. Cleared counts as alive up to the day of the statement, even if the history records a death. Unverified
(drained, not examined), removed and replaced count as censored on that day: no life under load follows it. Suspected
counts as nothing until a person confirms it.

The last verdict (failed, confirmed, cleared) counts. A later unverified, removed or replaced does not undo it, but
ends the time of a cleared drive. A death in the history itself stands against every statement but `cleared`. A
statement from after the end of a history has no effect on a drive that was still in service there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from predrain.data.history import EPOCH, UnreadableHistory, columns_of, table_of
from predrain.data.lifespan import HistorySource, Lifespans
from predrain.data.outcome import DriveFate

DEATHS = frozenset({DriveFate.FAILED, DriveFate.CONFIRMED})
VERDICTS = DEATHS | {DriveFate.CLEARED}
GONE = frozenset({DriveFate.UNVERIFIED, DriveFate.REMOVED, DriveFate.REPLACED})
STILL_THERE = 7
"""Days before the end of a history in which a drive's last row counts as "still in service"."""


@dataclass(frozen=True, slots=True)
class ReportedEnding:
    """One statement about a drive's end, by its serial number."""

    serial: str
    day: date
    fate: DriveFate


def read_words(path: Path) -> tuple[ReportedEnding, ...]:
    """Read the statements in a parquet or CSV file of `serial_number, date, fate`. Raises UnreadableHistory."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        missing = {"serial_number", "date", "fate"} - columns_of(connection, path)
        if missing:
            raise UnreadableHistory(
                f"{path} has no column {', '.join(sorted(missing))}; a file of outcomes has `serial_number`, `date`, "
                "`fate`."
            )
        rows = connection.sql(
            "SELECT CAST(serial_number AS VARCHAR), TRY_CAST(left(CAST(date AS VARCHAR), 10) AS DATE), "
            f"lower(CAST(fate AS VARCHAR)) FROM {table_of(path)}"
        ).fetchall()
    words = []
    for number, (serial, day, fate) in enumerate(rows, start=1):
        if not serial or day is None or fate not in set(DriveFate):
            raise UnreadableHistory(
                f"{path}, row {number}: a serial number, a date and one of {', '.join(DriveFate)} are wanted, not "
                f"{serial!r}, {day}, {fate!r}; correct that row."
            )
        words.append(ReportedEnding(serial, day, DriveFate(fate)))
    return tuple(words)


def apply_reported_endings(
    sources: Sequence[HistorySource], words: Iterable[ReportedEnding], *, until: date | None = None
) -> list[HistorySource]:
    """Return the sources with the ends of their drives changed by the last statements; those after `until` are
    ignored.

    A statement belongs to the drive's latest span that had begun by then.
    """
    heard: dict[str, list[ReportedEnding]] = {}
    for word in words:
        if until is None or word.day <= until:
            heard.setdefault(word.serial, []).append(word)
    said: list[dict[int, Sequence[ReportedEnding]]] = [{} for _ in sources]
    for serial, told in heard.items():
        told.sort(key=lambda word: word.day)
        wanted = np.array([serial], dtype=object)
        spans = [
            (int(source.lifespans.first[at]), number, at)
            for number, source in enumerate(sources)
            if (at := int(source.lifespans.find_positions(wanted)[0])) >= 0
            and source.lifespans.first[at] <= _to_epoch_day(told[-1].day)
        ]
        if spans:
            begun, number, at = max(spans)
            said[number][at] = [word for word in told if _to_epoch_day(word.day) >= begun]
    return [
        replace(source, lifespans=_apply_lifespan_endings(source.lifespans, told)) if told else source
        for source, told in zip(sources, said, strict=True)
    ]


def _apply_lifespan_endings(lifespans: Lifespans, said: Mapping[int, Sequence[ReportedEnding]]) -> Lifespans:
    last, died = lifespans.last.copy(), lifespans.died.copy()
    end = int(lifespans.last.max())
    for at, words in said.items():
        if _to_epoch_day(words[-1].day) > end and last[at] > end - STILL_THERE and not died[at]:
            continue
        place = max((n for n, word in enumerate(words) if word.fate in VERDICTS), default=-1)
        gone = next((_to_epoch_day(word.day) for word in words[place + 1 :] if word.fate in GONE), None)
        verdict = words[place] if place >= 0 else None
        if verdict is not None and verdict.fate in DEATHS:
            died[at], last[at] = True, min(last[at], _to_epoch_day(verdict.day))
            continue
        if verdict is not None:
            died[at], last[at] = False, max(last[at], min(_to_epoch_day(verdict.day), end))
        if gone is not None and not died[at]:
            last[at] = max(lifespans.first[at], min(last[at], gone))
    return replace(lifespans, last=last, died=died)


def _to_epoch_day(day: date) -> int:
    return (day - EPOCH).days

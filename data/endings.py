# ruff: noqa: S608 - table functions and columns cannot be bound as parameters; paths are quoted
"""What people and rules said became of drives, laid over what the histories say: a drained disk is not a healthy one.

| said | counts as |
|---|---|
| failed, confirmed | a death on the drive's last day in the history (or the day of the word, if that is earlier) |
| cleared | alive up to the day of the word, whatever the history booked |
| unverified (drained, nobody looked), removed, replaced | censored on that day: no life under load came after |
| suspected | nothing: it stands until somebody confirms it |

The last verdict (failed, confirmed, cleared) counts; where a disk went does not undo it, but ends what was cleared.
A death that the history itself books stands against all but `cleared`. A word from after the end of a history says
nothing of a drive that was still in service there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import numpy as np

from predrain.data.history import EPOCH, UnreadableHistory, columns_of, table_of
from predrain.data.lifespan import HistorySource, Lifespans
from predrain.data.outcome import Fate

DEATHS = frozenset({Fate.FAILED, Fate.CONFIRMED})
VERDICTS = DEATHS | {Fate.CLEARED}
GONE = frozenset({Fate.UNVERIFIED, Fate.REMOVED, Fate.REPLACED})
STILL_THERE = 7
"""Days before the end of a history in which a drive's last row counts as "still in service"."""


@dataclass(frozen=True, slots=True)
class Word:
    """One statement about a drive's end, by its serial number."""

    serial: str
    day: date
    fate: Fate


def read_words(path: Path) -> tuple[Word, ...]:
    """Statements in a parquet or CSV file of `serial_number, date, fate`. Raises UnreadableHistory."""
    import duckdb

    with duckdb.connect(":memory:") as connection:
        missing = {"serial_number", "date", "fate"} - columns_of(connection, path)
        if missing:
            raise UnreadableHistory(
                f"{path} has no column {', '.join(sorted(missing))}; a file of outcomes has serial_number, date, fate."
            )
        rows = connection.sql(
            "SELECT CAST(serial_number AS VARCHAR), TRY_CAST(left(CAST(date AS VARCHAR), 10) AS DATE), "
            f"lower(CAST(fate AS VARCHAR)) FROM {table_of(path)}"
        ).fetchall()
    words = []
    for number, (serial, day, fate) in enumerate(rows, start=1):
        if not serial or day is None or fate not in set(Fate):
            raise UnreadableHistory(
                f"{path}, row {number}: a serial number, a date and one of {', '.join(Fate)} are wanted, not "
                f"{serial!r}, {day}, {fate!r}; correct that row."
            )
        words.append(Word(serial, day, Fate(fate)))
    return tuple(words)


def settled(
    sources: Sequence[HistorySource], words: Iterable[Word], *, until: date | None = None
) -> list[HistorySource]:
    """The sources with the ends of their drives as the last word about each has it; words after `until` are unheard.

    A word belongs to the drive's latest span that had begun by then.
    """
    heard: dict[str, list[Word]] = {}
    for word in words:
        if until is None or word.day <= until:
            heard.setdefault(word.serial, []).append(word)
    said: list[dict[int, Sequence[Word]]] = [{} for _ in sources]
    for serial, told in heard.items():
        told.sort(key=lambda word: word.day)
        wanted = np.array([serial], dtype=object)
        spans = [
            (int(source.lifespans.first[at]), number, at)
            for number, source in enumerate(sources)
            if (at := int(source.lifespans.of(wanted)[0])) >= 0
            and source.lifespans.first[at] <= _number(told[-1].day)
        ]
        if spans:
            begun, number, at = max(spans)
            said[number][at] = [word for word in told if _number(word.day) >= begun]
    return [
        replace(source, lifespans=_settled(source.lifespans, told)) if told else source
        for source, told in zip(sources, said, strict=True)
    ]


def _settled(lifespans: Lifespans, said: Mapping[int, Sequence[Word]]) -> Lifespans:
    last, died = lifespans.last.copy(), lifespans.died.copy()
    end = int(lifespans.last.max())
    for at, words in said.items():
        if _number(words[-1].day) > end and last[at] > end - STILL_THERE and not died[at]:
            continue
        place = max((n for n, word in enumerate(words) if word.fate in VERDICTS), default=-1)
        gone = next((_number(word.day) for word in words[place + 1 :] if word.fate in GONE), None)
        verdict = words[place] if place >= 0 else None
        if verdict is not None and verdict.fate in DEATHS:
            died[at], last[at] = True, min(last[at], _number(verdict.day))
            continue
        if verdict is not None:
            died[at], last[at] = False, max(last[at], min(_number(verdict.day), end))
        if gone is not None and not died[at]:
            last[at] = max(lifespans.first[at], min(last[at], gone))
    return replace(lifespans, last=last, died=died)


def _number(day: date) -> int:
    return (day - EPOCH).days

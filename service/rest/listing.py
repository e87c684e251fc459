"""Long lists as JSON that is written once a change, and of it only rows that are shown and of which something changed.

A list of thousands is asked for by every open page several times a second while readings stream in, and writing a row
costs a hundred times what it costs to see that it is the same. What was asked for since the change before is written
by whoever tells of a change, before anybody hears of it: who asks need not wait for it.
"""

from __future__ import annotations

import secrets
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import msgspec
from pydantic import BaseModel

from predrain.service.application import House
from predrain.service.fleet import FleetSnapshot
from predrain.service.rest.caching import CachedContent, Key, cursor_after, opened

MadeOf = tuple[Any, ...]
Touched = Callable[[FleetSnapshot, FleetSnapshot | None], Mapping[Key, MadeOf | None]]
"""Of a sight and the one before (None: the first time): everything that a row is made of, for at least all rows that
may be other than before; None for a row that is there no longer. What it is made of is never changed."""
KEPT = 64
"""Answers that are kept between two changes."""
MANY = 500
"""Rows that changed, and are most of a list: then all who follow it get all of it, written and packed once, in place of
an answer for each."""


@dataclass(slots=True)
class _Row:
    made_of: MadeOf
    turn: int
    """The list's turn at which it came to be made of this."""
    text: bytes = b""
    """Empty until it is shown."""


class _Page(NamedTuple):
    limit: int
    cursor: str | None
    group: str | None


class IncrementalList(Generic[Key]):
    """One list of one service. Thread-safe: who asks first after a change brings it up to date, the others wait."""

    def __init__(
        self,
        house: House,
        touched: Touched[Key],
        write: Callable[..., BaseModel],
        kind: type[Key],
        *,
        group: Callable[..., str] | None = None,
    ) -> None:
        """write: a row's body, of what it is made of; group: its group, of the same."""
        self._house, self._write, self._group = house, write, group
        self._touched: Touched[Key] = touched
        self._kind: type[Key] = kind
        self._rows: dict[Key, _Row] = {}
        self._order: list[Key] = []
        self._gone: dict[Key, int] = {}
        self._start, self._turn, self._forgotten = secrets.token_hex(4), 0, 0
        self._seen = -1
        self._before: FleetSnapshot | None = None
        self._answers: dict[Hashable, CachedContent] = {}
        self._many: set[int] = set()
        """Turns since which most rows changed."""
        self._lock = threading.Lock()
        house.changes.prepare(self._prepare)

    def ready(self, limit: int, cursor: str | None, group: str | None = None) -> CachedContent | None:
        """The answer of `page` where nothing has to be done for it; waits for nobody."""
        return self._answers.get(_Page(limit, cursor, group)) if self._current() else None

    def followed_ready(self, limit: int, cursor: str | None, since: str | None) -> CachedContent | None:
        """The same of `followed`."""
        if not self._current():
            return None
        turn = self._turn_of(since) if since and not cursor else None
        return self._answers.get((limit, cursor) if turn is None or turn in self._many else turn)

    def page(self, limit: int, cursor: str | None, group: str | None = None) -> CachedContent:
        """`items` (at most `limit`, of one group or of all, in the order of their keys) and `next`."""
        with self._lock:
            self._renew(self._house.changes.number)
            return self._kept(_Page(limit, cursor, group), lambda: self._paged(limit, cursor, group))

    def followed(self, limit: int, cursor: str | None, since: str | None) -> CachedContent:
        """As `page`, and besides `at`, which says as of which change that is.

        since: `at` of an earlier answer: then `items` are the rows that are new or other since, `gone` the keys of
        those that are there no longer, and `whole` is false. A `since` that is not known (any more), or since which
        most rows changed, counts as none.
        """
        with self._lock:
            self._renew(self._house.changes.number)
            turn = self._turn_of(since) if since and not cursor else None
            if turn is not None and self._few(turn):
                return self._kept(turn, lambda: self._changed(turn))
            end = self._end([], whole=True)
            return self._kept((limit, cursor), lambda: self._paged(limit, cursor, None, end))

    def _current(self) -> bool:
        return self._seen >= self._house.changes.number

    def _prepare(self, number: int) -> None:
        with self._lock:
            given = [name for name, answer in self._answers.items() if answer.given]
            if given:
                self._renew(number, given)

    def _renew(self, number: int, given: Sequence[Hashable] = ()) -> None:
        """Be as of change `number`, told or about to be. given: names of answers that will be asked for again."""
        if self._seen >= number:
            return
        sight, turn, rows = self._house.sight(number), self._turn + 1, self._rows
        news = moved = False
        for key, made_of in self._touched(sight, self._before).items():
            row = rows.get(key)
            if made_of is None:
                if rows.pop(key, None) is not None:
                    self._gone[key] = turn
                    moved = True
            elif row is None or row.made_of != made_of:
                rows[key] = _Row(made_of, turn)
                news, moved = True, moved or row is None
                self._gone.pop(key, None)
        if moved:
            self._order = sorted(rows)
            if len(self._gone) > len(rows):
                self._gone, self._forgotten = {}, turn
        if news or moved:
            self._turn = turn
            self._many.clear()
            fresh: dict[Hashable, CachedContent] = {}
            try:
                fresh.update(self._again(given))
            finally:  # until then what stands is given, and never again, even where a row cannot be written
                self._answers = fresh
        # Last: from now on answers are taken without the lock.
        self._before, self._seen = sight, number

    def _again(self, given: Sequence[Hashable]) -> dict[Hashable, CachedContent]:
        pages = [name for name in given if isinstance(name, _Page)]
        if len(pages) < len(given):
            # Of those who follow everyone needs other rows, but only such as changed.
            self._write_out([row for row in self._rows.values() if row.turn == self._turn])
        return {name: CachedContent(self._paged(*name)) for name in pages}

    def _kept(self, name: Hashable, make: Callable[[], bytes]) -> CachedContent:
        if name not in self._answers:
            if len(self._answers) >= KEPT:
                self._answers.clear()
            self._answers[name] = CachedContent(make())
        return self._answers[name]

    def _paged(self, limit: int, cursor: str | None, group: str | None, end: bytes = b"") -> bytes:
        order, start = self._order, 0
        if group is not None and self._group is not None:
            of = self._group
            order = [key for key in order if of(*self._rows[key].made_of) == group]
        if cursor:
            start = bisect_right(order, opened(cursor, self._kind))
        shown = order[start : start + limit]
        following = cursor_after(shown[-1]) if len(order) > start + limit else None
        return self._written([self._rows[key] for key in shown], following, end)

    def _few(self, turn: int) -> bool:
        if turn in self._many:
            return False
        changed = sum(row.turn > turn for row in self._rows.values())
        if changed > MANY and 2 * changed > len(self._rows):
            self._many.add(turn)
        return turn not in self._many

    def _changed(self, turn: int) -> bytes:
        rows = [row for key in self._order if (row := self._rows[key]).turn > turn]
        gone = sorted(key for key, at in self._gone.items() if at > turn)
        return self._written(rows, None, self._end(gone, whole=False))

    def _written(self, rows: list[_Row], following: str | None, end: bytes) -> bytes:
        self._write_out(rows)
        items = b",".join([row.text for row in rows])
        return b'{"items":[%b],"next":%b%b}' % (items, msgspec.json.encode(following), end)

    def _write_out(self, rows: list[_Row]) -> None:
        for row in rows:
            if not row.text:
                row.text = self._write(*row.made_of).model_dump_json(by_alias=True).encode()

    def _end(self, gone: list[Key], *, whole: bool) -> bytes:
        told = {"gone": gone, "whole": whole, "at": f"{self._start}-{self._turn}"}
        return b"," + msgspec.json.encode(told)[1:-1]

    def _turn_of(self, since: str) -> int | None:
        start, _, turn = since.partition("-")
        known = start == self._start and turn.isascii() and turn.isdigit() and len(turn) < 20
        return int(turn) if known and self._forgotten <= int(turn) <= self._turn else None


def differing(now: Mapping[Any, object], before: Mapping[Any, object]) -> set[Any]:
    """Keys whose value is another object than before, or that were or are not there."""
    return {key for key, value in now.items() if before.get(key) is not value} | (before.keys() - now.keys())

"""Long lists as JSON. A list is serialized once per change, and only its shown and changed rows.

Every open page requests a list of thousands of rows several times a second while readings arrive, and to serialize a
row costs a hundred times the comparison that finds it unchanged. The answers that were requested since the last change
are serialized before the new change is announced, so requests need not wait for them.
"""

from __future__ import annotations

import secrets
import threading
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice, takewhile
from typing import Any, Generic, NamedTuple

import msgspec
from pydantic import BaseModel

from predrain.data.clock import is_within_last
from predrain.service.app.application import Application
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.rest.http_caching import CachedContent, Key, cursor_after, decode_cursor

MadeOf = tuple[Any, ...]
Touched = Callable[[FleetSnapshot, FleetSnapshot | None], Mapping[Key, MadeOf | None]]
"""A function of a snapshot and the one before (None: the first time). It returns the content of each row that may have
changed, at least, and None for a removed row. The content is immutable.
"""
KEPT = 64
"""The most answers in the cache between two changes."""
IDLE_PAUSE, LONGEST_IDLE_PAUSE, IDLE_SHARE = timedelta(seconds=10), timedelta(hours=1), 0.01
"""A list that is not requested any more is updated after a pause between the two, chosen so that the updates take
IDLE_SHARE of the time. Its rows hold the readings and outlooks of which they were made. Without this, a page that was
opened once would keep a second generation of both in memory.
"""
MANY = 500
"""The number of changed rows above which, if they are also most of the list, all followers get the whole list. It is
serialized and compressed once, in place of one answer for each follower.
"""


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


class _Changed(NamedTuple):
    limit: int
    cursor: str | None
    turn: int


class IncrementalList(Generic[Key]):
    """One list of one service. Thread-safe: the first request after a change updates the list, and the others wait for
    it.
    """

    def __init__(
        self,
        application: Application,
        touched: Touched[Key],
        write: Callable[..., BaseModel],
        kind: type[Key],
        *,
        group: Callable[..., str] | None = None,
    ) -> None:
        """write: makes a row's body from its content. group: names a row's group by its content."""
        self._application, self._write, self._group = application, write, group
        self._touched: Touched[Key] = touched
        self._kind: type[Key] = kind
        self._rows: dict[Key, _Row] = {}
        """In the order of their turns, so that the last changed rows are found without a walk over all."""
        self._order: list[Key] = []
        self._gone: dict[Key, int] = {}
        self._start, self._turn, self._forgotten = secrets.token_hex(4), 0, 0
        self._seen = -1
        self._before: FleetSnapshot | None = None
        self._idle_from = application.clock.now()
        self._idle_pause = IDLE_PAUSE
        self._answers: dict[Hashable, CachedContent] = {}
        self._many: set[int] = set()
        """The turns since which most rows changed."""
        self._lock = threading.Lock()
        application.changes.register_preparation(self._prepare)

    def find_ready_page(
        self, limit: int, cursor: str | None, group: str | None = None
    ) -> CachedContent | None:
        """Return the answer of `build_page` if it is ready, else None. Never waits."""
        return self._answers.get(_Page(limit, cursor, group)) if self._current() else None

    def followed_ready(self, limit: int, cursor: str | None, since: str | None) -> CachedContent | None:
        """Return the answer of `build_page_since` if it is ready, else None. Never waits."""
        if not self._current():
            return None
        turn = self._turn_of(since) if since else None
        if turn is None or turn in self._many:
            return self._answers.get((limit, cursor))
        return self._answers.get(_Changed(limit, cursor, turn))

    def build_page(self, limit: int, cursor: str | None, group: str | None = None) -> CachedContent:
        """Return JSON with `items` (at most `limit`, of one group or of all, in the order of their keys) and `next`."""
        with self._lock:
            self._renew(self._application.changes.number)
            return self._kept(_Page(limit, cursor, group), lambda: self._paged(limit, cursor, group))

    def build_page_since(self, limit: int, cursor: str | None, since: str | None) -> CachedContent:
        """Return JSON as `build_page` does, with `at`, the number of the change that the answer shows.

        since: `at` of an earlier answer. Then `items` are the rows that are new or changed since, `removed` the keys of
        removed rows, and `full` is false. An unknown or forgotten `since`, or one since which most rows changed,
        counts as none.

        The list may change while its pages are requested. A reader that has requested all of them lacks nothing if it
        then requests what changed since the first page: each row that changed later has a later turn.
        """
        with self._lock:
            self._renew(self._application.changes.number)
            turn = self._turn_of(since) if since else None
            if turn is not None and self._few(turn):
                return self._kept(_Changed(limit, cursor, turn), lambda: self._changed(limit, cursor, turn))
            end = self._end([], full=True)
            return self._kept((limit, cursor), lambda: self._paged(limit, cursor, None, end))

    def _current(self) -> bool:
        return self._seen >= self._application.changes.number

    def _prepare(self, number: int) -> None:
        with self._lock:
            given = [name for name, answer in self._answers.items() if answer.given]
            if given or self._is_overdue():
                self._renew(number, given)

    def _is_overdue(self) -> bool:
        """Return whether the list was requested once, and its last update is over for longer than the pause."""
        now = self._application.clock.now()
        return self._before is not None and not is_within_last(self._idle_from, now, self._idle_pause)

    def _renew(self, number: int, given: Sequence[Hashable] = ()) -> None:
        """Bring the list up to change `number`. given: names of the answers that will be requested again."""
        if self._seen >= number:
            return
        began = self._application.clock.now()
        snapshot, turn, rows = self._application.get_snapshot(number), self._turn + 1, self._rows
        news = moved = False
        for key, made_of in self._touched(snapshot, self._before).items():
            row = rows.get(key)
            if made_of is None:
                if rows.pop(key, None) is not None:
                    self._gone[key] = turn
                    moved = True
            elif row is None or row.made_of != made_of:
                rows.pop(key, None)
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
            finally:  # the old answers serve until now, and never again, even if a row cannot be written
                self._answers = fresh
        # This comes last: from now on answers are read without the lock.
        self._before, self._seen = snapshot, number
        self._idle_from = self._application.clock.now()
        took = self._idle_from - began  # of a clock that can be set meanwhile
        self._idle_pause = min(max(IDLE_PAUSE, took / IDLE_SHARE), LONGEST_IDLE_PAUSE)

    def _again(self, given: Sequence[Hashable]) -> dict[Hashable, CachedContent]:
        pages = [name for name in given if isinstance(name, _Page)]
        if len(pages) < len(given):
            # Each follower needs other rows, but only changed ones.
            self._write_out([self._rows[key] for key in self._changed_keys(self._turn - 1)])
        return {name: self._paged(*name) for name in pages}

    def _kept(self, name: Hashable, make: Callable[[], CachedContent]) -> CachedContent:
        if name not in self._answers:
            if len(self._answers) >= KEPT:
                self._answers.clear()
            self._answers[name] = make()
        return self._answers[name]

    def _paged(self, limit: int, cursor: str | None, group: str | None, end: bytes = b"") -> CachedContent:
        order = self._order
        if group is not None and self._group is not None:
            of = self._group
            order = [key for key in order if of(*self._rows[key].made_of) == group]
        # The list may be the answer to a request with a forgotten `since`, which the next page must not repeat.
        return self._part(order, limit, cursor, end, {"since": None})

    def _part(
        self,
        order: Sequence[Key],
        limit: int,
        cursor: str | None,
        end: bytes,
        next_page: Mapping[str, str | None],
    ) -> CachedContent:
        start = bisect_right(order, decode_cursor(cursor, self._kind)) if cursor else 0
        shown = order[start : start + limit]
        following = cursor_after(shown[-1]) if len(order) > start + limit else None
        content = self._written([self._rows[key] for key in shown], following, end)
        return CachedContent(content, None if following is None else {"cursor": following, **next_page})

    def _changed_keys(self, turn: int) -> Iterator[Key]:
        """Yield the keys of the rows that changed after `turn`, the last changed first."""
        return takewhile(lambda key: self._rows[key].turn > turn, reversed(self._rows))

    def _few(self, turn: int) -> bool:
        if turn in self._many:
            return False
        most = max(MANY, len(self._rows) // 2)
        if sum(1 for _ in islice(self._changed_keys(turn), most + 1)) > most:
            self._many.add(turn)
        return turn not in self._many

    def _changed(self, limit: int, cursor: str | None, turn: int) -> CachedContent:
        removed = sorted(key for key, at in self._gone.items() if at > turn)
        end = self._end(removed, full=False)
        return self._part(sorted(self._changed_keys(turn)), limit, cursor, end, {})

    def _written(self, rows: list[_Row], following: str | None, end: bytes) -> bytes:
        self._write_out(rows)
        items = b",".join([row.text for row in rows])
        return b'{"items":[%b],"next":%b%b}' % (items, msgspec.json.encode(following), end)

    def _write_out(self, rows: list[_Row]) -> None:
        for row in rows:
            if not row.text:
                row.text = self._write(*row.made_of).model_dump_json(by_alias=True).encode()

    def _end(self, removed: list[Key], *, full: bool) -> bytes:
        told = {"removed": removed, "full": full, "at": f"{self._start}-{self._turn}"}
        return b"," + msgspec.json.encode(told)[1:-1]

    def _turn_of(self, since: str) -> int | None:
        start, _, turn = since.partition("-")
        known = start == self._start and turn.isascii() and turn.isdigit() and len(turn) < 20
        return int(turn) if known and self._forgotten <= int(turn) <= self._turn else None

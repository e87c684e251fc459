"""Answers that are polled: an ETag over the content, 304 for who has it; cursors for long lists."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from predrain.service.rest.problems import HttpProblem, declared

Item = TypeVar("Item")
Key = TypeVar("Key", str, int)

WORTH_PACKING_BYTES = 1024
PACKING = 4
"""gzip's level: the sixth part of the bytes for half of the default's time."""


UNCHANGED = 304


def polled(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of a route that is polled, and may answer with these problems."""
    told = {"ETag": {"description": "Of the content.", "schema": {"type": "string"}}}
    unchanged = {"description": "It is as it was when it had that ETag.", "headers": told}
    return {200: {"headers": told}, UNCHANGED: unchanged, **declared(*statuses)}


class CachedContent:
    """Content that is sent again and again: tagged and packed once."""

    def __init__(self, content: bytes) -> None:
        self.content, self._tag = content, tag(content)
        self._packed: bytes | None = None
        self.given = False
        """Whether anybody asked for it."""

    def to(self, request: Request) -> Response:
        """All of it, packed for who can unpack, or 304 for who has it."""
        self.given = True
        headers = {"ETag": self._tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if matches(request.headers.get("if-none-match"), self._tag):
            return Response(status_code=304, headers=headers)
        content = self.content
        if len(content) >= WORTH_PACKING_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
            if self._packed is None:
                self._packed = gzip.compress(content, PACKING, mtime=0)
            content, headers["Content-Encoding"] = self._packed, "gzip"
        return Response(content, media_type="application/json", headers=headers)


def tag(content: bytes) -> str:
    """A weak ETag: equal content, equal tag."""
    return f'W/"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match or If-Match header names `etag` (compared weakly, RFC 9110 8.8.3.2)."""
    if header is None:
        return False
    named = {part.strip().removeprefix("W/") for part in header.split(",")}
    return "*" in named or etag.removeprefix("W/") in named


def answer(request: Request, body: BaseModel) -> Response:
    """`body` as JSON with its ETag, or 304."""
    return written(body).to(request)


def written(body: BaseModel) -> CachedContent:
    """`body` as an answer that may be given again."""
    return CachedContent(body.model_dump_json(by_alias=True).encode())


def page_of(
    items: Sequence[tuple[str, Item]], limit: int, cursor: str | None
) -> tuple[list[Item], str | None]:
    """The `limit` items after `cursor`, and the cursor of what follows (None at the end).

    `items` are (key, item) in ascending order of unique keys; a cursor outlives what comes and goes.
    """
    after = opened(cursor, str) if cursor else ""
    rest = [entry for entry in items if entry[0] > after] if cursor else items
    shown = rest[:limit]
    return [item for _, item in shown], cursor_after(shown[-1][0]) if len(rest) > limit else None


def older(
    items: Sequence[Item], limit: int, cursor: str | None, key: Callable[[Item], str]
) -> tuple[Sequence[Item], str | None]:
    """The same of a list in which new things only come first and old ones only go last."""
    start = 0
    if cursor:
        last = opened(cursor, str)
        start = next((place for place, item in enumerate(items, 1) if key(item) == last), len(items))
    shown = items[start : start + limit]
    return shown, cursor_after(key(shown[-1])) if len(items) > start + limit else None


def lines(
    journal: Callable[[int | None], tuple[Item, ...]], limit: int, cursor: str | None
) -> tuple[tuple[Item, ...], str | None]:
    """The newest `limit` lines of what only grows, or those before the cursor, oldest first; `next` leads further back.

    journal: its newest lines, so many or all.
    """
    found = journal(None if cursor else limit + 1)
    if not cursor and len(found) <= limit:
        return found, None
    whole = found if cursor else journal(None)
    end = min(max(opened(cursor, int), 0), len(whole)) if cursor else len(whole)
    start = max(0, end - limit)
    return whole[start:end], cursor_after(start) if start else None


def cursor_after(key: str | int) -> str:
    """What `next` says where `key` was shown last."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode()


def opened(cursor: str, kind: type[Key]) -> Key:
    """The key behind a cursor. Raises Problem for a cursor that is not of that list."""
    try:
        return msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=kind)
    except (ValueError, msgspec.MsgspecError):
        raise HttpProblem(
            422, "The cursor is not one of this list; take `next` of the page before."
        ) from None

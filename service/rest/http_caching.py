"""Answers to polling clients: an ETag over the content and 304 for an unchanged answer; cursors for long lists."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses

Item = TypeVar("Item")
Key = TypeVar("Key", str, int)

WORTH_PACKING_BYTES = 1024
PACKING = 4
"""gzip's level: one sixth of the bytes in half the time of the default level."""


UNCHANGED = 304


def declare_polled_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` of a route that clients poll, and that may answer with these problems."""
    told = {"ETag": {"description": "The ETag of the content.", "schema": {"type": "string"}}}
    unchanged = {
        "description": "The content has not changed since the answer with that ETag.",
        "headers": told,
    }
    return {200: {"headers": told}, UNCHANGED: unchanged, **declare_problem_responses(*statuses)}


def declare_list_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the `responses=` of a route whose answers name the next page in a header too."""
    responses = declare_polled_responses(*statuses)
    link = {
        "description": "The address of the next page, relative to this one (RFC 8288); absent from the last page.",
        "schema": {"type": "string"},
    }
    return {**responses, 200: {"headers": {**responses[200]["headers"], "Link": link}}}


class CachedContent:
    """Content that is sent many times: its ETag and its compressed form are computed once."""

    def __init__(self, content: bytes, next_page: Mapping[str, str | None] | None = None) -> None:
        """next_page: the parameters by which the query of a list's next page differs from the query of this page;
        None removes a parameter. The response names the next page in a `Link` header (RFC 8288), so that a client can
        request that page while it still reads this one.
        """
        self.content, self._tag = content, compute_etag(content)
        self._next_page = next_page
        self._packed: bytes | None = None
        self.given = False
        """True after the first request for the content."""

    def build_response(self, request: Request) -> Response:
        """Return the content, compressed if the client accepts gzip, or 304 if the client has it already."""
        self.given = True
        headers = {"ETag": self._tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        if self._next_page is not None:
            headers["Link"] = f'<?{_update_query(request, self._next_page)}>; rel="next"'
        if has_matching_etag(request.headers.get("if-none-match"), self._tag):
            return Response(status_code=304, headers=headers)
        content = self.content
        if len(content) >= WORTH_PACKING_BYTES and "gzip" in request.headers.get("accept-encoding", ""):
            if self._packed is None:
                self._packed = gzip.compress(content, PACKING, mtime=0)
            content, headers["Content-Encoding"] = self._packed, "gzip"
        return Response(content, media_type="application/json", headers=headers)


def _update_query(request: Request, changes: Mapping[str, str | None]) -> str:
    """Return the request's query with these parameters in place of its own; None removes a parameter."""
    parameters: dict[str, str | None] = {**request.query_params, **changes}
    return urlencode({name: value for name, value in parameters.items() if value is not None})


def compute_etag(content: bytes) -> str:
    """Return a weak ETag: equal content has an equal tag."""
    return f'W/"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'


def has_matching_etag(header: str | None, etag: str) -> bool:
    """Return whether an If-None-Match or If-Match header names `etag` (compared weakly, RFC 9110 8.8.3.2)."""
    if header is None:
        return False
    named = {part.strip().removeprefix("W/") for part in header.split(",")}
    return "*" in named or etag.removeprefix("W/") in named


def build_etag_response(request: Request, body: BaseModel) -> Response:
    """Return `body` as JSON with its ETag, or 304."""
    return encode_cached_content(body).build_response(request)


def encode_cached_content(body: BaseModel) -> CachedContent:
    """Return `body` as content that may be sent again."""
    return CachedContent(body.model_dump_json(by_alias=True).encode())


def page_of(
    items: Sequence[tuple[str, Item]], limit: int, cursor: str | None
) -> tuple[list[Item], str | None]:
    """Return the `limit` items after `cursor`, and the cursor of the next page (None at the end).

    `items` are (key, item) in ascending order of unique keys. A cursor stays valid when items are added or removed.
    """
    after = decode_cursor(cursor, str) if cursor else ""
    rest = [entry for entry in items if entry[0] > after] if cursor else items
    shown = rest[:limit]
    return [item for _, item in shown], cursor_after(shown[-1][0]) if len(rest) > limit else None


def paginate_newest_first(
    items: Sequence[Item], limit: int, cursor: str | None, key: Callable[[Item], str]
) -> tuple[Sequence[Item], str | None]:
    """Return a page as `page_of` does, of a list whose new items come first and whose old items are removed at
    the end.
    """
    start = 0
    if cursor:
        last = decode_cursor(cursor, str)
        start = next((place for place, item in enumerate(items, 1) if key(item) == last), len(items))
    shown = items[start : start + limit]
    return shown, cursor_after(key(shown[-1])) if len(items) > start + limit else None


def paginate_journal(
    journal: Callable[[int | None], tuple[Item, ...]], limit: int, cursor: str | None
) -> tuple[tuple[Item, ...], str | None]:
    """Return the newest `limit` lines of an append-only journal, or those before the cursor, oldest first, and the
    cursor of older lines.

    journal: returns the newest lines, as many as its argument says, or all for None.
    """
    found = journal(None if cursor else limit + 1)
    if not cursor and len(found) <= limit:
        return found, None
    whole = found if cursor else journal(None)
    end = min(max(decode_cursor(cursor, int), 0), len(whole)) if cursor else len(whole)
    start = max(0, end - limit)
    return whole[start:end], cursor_after(start) if start else None


def cursor_after(key: str | int) -> str:
    """Return the cursor of the page after `key`."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode()


def decode_cursor(cursor: str, kind: type[Key]) -> Key:
    """Return the key in a cursor. Raises HttpProblem for a cursor that is not of that list."""
    try:
        return msgspec.json.decode(base64.b64decode(cursor, altchars=b"-_", validate=True), type=kind)
    except (ValueError, msgspec.MsgspecError):
        raise HttpProblem(
            422, "The cursor is not one of this list; take `next` of the page before."
        ) from None

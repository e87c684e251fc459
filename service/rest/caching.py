"""Answers that are polled: an ETag over the content, 304 for who has it; cursors for long lists."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from service.rest.problems import Problem

Item = TypeVar("Item")


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
    content = body.model_dump_json(by_alias=True).encode()
    etag = tag(content)
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type="application/json", headers=headers)


def page_of(
    items: Sequence[tuple[str, Item]], limit: int, cursor: str | None
) -> tuple[list[Item], str | None]:
    """The `limit` items after `cursor`, and the cursor of what follows (None at the end).

    `items` are (key, item) in ascending order of unique keys; a cursor outlives what comes and goes.
    """
    after = _open(cursor) if cursor else ""
    rest = [entry for entry in items if entry[0] > after] if cursor else items
    shown = rest[:limit]
    following = base64.urlsafe_b64encode(shown[-1][0].encode()).decode() if len(rest) > limit else None
    return [item for _, item in shown], following


def _open(cursor: str) -> str:
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise Problem(422, "The cursor is not one of ours; take `next` of the page before.") from None

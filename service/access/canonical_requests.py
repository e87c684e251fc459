"""The canonical form of a request in the audit: the decoded request on one line, with secrets blanked.

The form does not depend on how a request was written (blanks, order of keys, escapes), so a sender cannot hide anything
in the way a request is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

BLANK = "***"
SECRET = ("token", "password", "secret", "passphrase", "credential")
"""A key with one of these words in it holds a secret."""
MOST_TEXT = 2_000
"""The most characters of one value. A cut value is marked, with its length and its SHA-256."""
MOST_ITEMS = 200
"""The most items of one list or object."""
DEEPEST = 20
LONGEST = 64 * 1024
"""The most characters of a whole act."""


def canonical_request(method: str, path: str, query: bytes, body: bytes, condition: str = "") -> str:
    """Return a request that changes something as one line. condition: its If-Match, which names the approved plan."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    where = (
        f"{path}?{urlencode([(key, _redact_secret(key, value)) for key, value in pairs])}" if pairs else path
    )
    parts = [method, escape_unprintable(where), canonical_body(body)]
    if condition:
        parts.append(f"if-match {escape_unprintable(condition)}")
    return _truncate_text(" ".join(part for part in parts if part), LONGEST)


def canonical_body(body: bytes) -> str:
    """Return a body as canonical JSON. Return the size and SHA-256 of a body that is no JSON, and "" for an
    empty body.
    """
    if not body.strip():
        return ""
    try:
        said = json.loads(body)
        return "" if said == {} else canonical_json(said)
    except (ValueError, RecursionError):
        return canonical_json({"no JSON": {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}})


def canonical_json(value: Any) -> str:
    """Return `value` as JSON with sorted keys and no blanks, without secrets, within bounds, printable on one line."""
    bounded = _redact_and_truncate(value, DEEPEST)
    return escape_unprintable(json.dumps(bounded, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def describe_act(name: str, said: Mapping[str, Any]) -> str:
    """Describe an act that did not come by a request, such as a command: its name and its arguments."""
    return f"{name} {canonical_json(said)}"


def escape_unprintable(text: str) -> str:
    """Return `text` with JSON's escapes in place of unprintable characters, such as control and bidirectional
    characters.
    """
    return "".join(one if one.isprintable() else _escape_character(one) for one in text)


def _escape_character(character: str) -> str:
    pairs = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{pairs[at]:02x}{pairs[at + 1]:02x}" for at in range(0, len(pairs), 2))


def _redact_and_truncate(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _truncate_text(value, MOST_TEXT)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return f"... (cut: {len(value):,} items)"
    if isinstance(value, list):
        kept: list[Any] = [_redact_and_truncate(one, depth - 1) for one in value[:MOST_ITEMS]]
        return kept if len(value) <= MOST_ITEMS else [*kept, f"... (cut: {len(value):,} items)"]
    named = {
        _truncate_text(str(key), MOST_TEXT): _redact_and_truncate(_redact_secret(str(key), one), depth - 1)
        for key, one in sorted(value.items())[:MOST_ITEMS]
    }
    return named if len(value) <= MOST_ITEMS else {**named, "...": f"(cut: {len(value):,} keys)"}


def _redact_secret(key: str, value: Any) -> Any:
    return BLANK if any(word in key.lower() for word in SECRET) and value is not None else value


def _truncate_text(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"{text[:most]}... (cut: {len(text):,} characters, SHA-256 {digest})"

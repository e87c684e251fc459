"""Finds the JSON object in smartctl's output: bounded, also behind stray text, or refused with a reason."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

import msgspec

from predrain.data.smart.json_values import JsonObject

LARGEST_DOCUMENT = 16 * 2**20
"""Bytes. The largest real output known (every log of a drive with a long history) is below 1 MiB."""

_OTHER_FORMS = (
    ("--json=g", re.compile(rb"\s*json(?:\.| ?= ?)")),
    ("--json=y", re.compile(rb"\s*(?:---\s+)?json_format_version:\s")),
)
_LIST = re.compile(rb"\s*\[\s*[\[{\"\]]")
_ANOTHER = re.compile(r"\{\s*[\"}]")
_NEXT = re.compile(r"\n(?=\{)")
_TOLERANT = json.JSONDecoder(strict=False)  # control characters in strings, NaN, lone surrogates


class NotJsonError(Exception):
    """There is no complete JSON object; the text is the reason and the cure."""


def first_object(document: bytes) -> JsonObject:
    """Return the JSON object of one smartctl run. Raises NotJsonError."""
    if len(document) > LARGEST_DOCUMENT:
        raise NotJsonError(
            f"is larger than {LARGEST_DOCUMENT // 2**20} MiB, pass the output of one smartctl run"
        )
    written = _convert_to_utf8(document)
    if form := _other_form(written):
        raise NotJsonError(f"is in smartctl's {form} format, run smartctl with --json")
    cut = False
    for start in _find_object_starts(written):
        try:
            return _require_json_object(msgspec.json.decode(written[start:]))
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            pass  # odd but complete documents are left to the slower decoder
        except RecursionError:
            raise NotJsonError("is nested too deeply to be smartctl's, run smartctl again") from None
        try:
            return _parse_json_tolerantly(written[start:].decode("utf-8", "replace"))
        except json.JSONDecodeError as error:
            cut = cut or _ends_early(error)
        except ValueError:
            raise NotJsonError("holds a number too long to be smartctl's, run smartctl again") from None
        except RecursionError:
            raise NotJsonError("is nested too deeply to be smartctl's, run smartctl again") from None
    raise NotJsonError(_explain_not_json(written, cut))


def split_json_documents(document: bytes) -> Iterator[bytes]:
    """Yield the JSON documents of several runs, as a loop over the disks prints them; text between them is passed
    over.

    A document that is cut or broken ends at the line that begins the next one. If there is no document, the whole is
    yielded, so that decoding it gives the reason.
    """
    written = _convert_to_utf8(document).decode("utf-8", "replace")
    begins = None if _other_form(document) else _ANOTHER.search(written)
    if begins is None:
        yield document
    while begins:
        end = _find_document_end(written, begins.start())
        yield written[begins.start() : end].encode()
        begins = _ANOTHER.search(written, end)


def _other_form(written: bytes) -> str | None:
    return next((name for name, form in _OTHER_FORMS if form.match(written)), None)


def _find_document_end(written: str, start: int) -> int:
    try:
        return _TOLERANT.raw_decode(written, start)[1]
    except (ValueError, RecursionError):
        line = _NEXT.search(written, start + 1)
        return line.end() if line else len(written)


def is_list(document: bytes) -> bool:
    """Return whether a JSON list begins here; a shell's prompt also begins with a bracket (`[root@host ~]#`)."""
    return _LIST.match(document) is not None


def _convert_to_utf8(document: bytes) -> bytes:
    """Convert UTF-16, as PowerShell redirects output, to UTF-8."""
    for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        if document.startswith(mark):
            return document.decode("utf-16", "replace").encode("utf-8", "replace")
    return document.removeprefix(codecs.BOM_UTF8)


def _find_object_starts(written: bytes) -> Iterator[int]:
    """Yield the positions at which the object may begin: smartctl before 7.3 could print text, with
    braces, ahead of it.
    """
    first = written.find(b"{")
    if first >= 0 and not is_list(written):
        yield first
        line = written.find(b"\n{", first)
        if line >= 0:
            yield line + 1


def _require_json_object(value: object) -> JsonObject:
    if not isinstance(value, dict):
        raise NotJsonError("is JSON but no object, pass what `smartctl -x --json` prints")
    return value


def _parse_json_tolerantly(written: str) -> JsonObject:
    value, end = _TOLERANT.raw_decode(written)
    if _ANOTHER.search(written, end):
        raise NotJsonError("holds more than one JSON document, pass them one by one")
    return _require_json_object(value)


def _ends_early(error: json.JSONDecodeError) -> bool:
    """Return whether the text ended too early: at its end, or inside a word or string there."""
    written = error.doc.rstrip()
    if error.pos >= len(written):
        return True
    return not written.endswith("}") and (error.pos >= len(written) - 8 or "Unterminated" in error.msg)


def _explain_not_json(written: bytes, cut: bool) -> str:
    head = written[:65536].decode("utf-8", "replace")
    if not head.strip():
        return "is empty, run smartctl again"
    if is_list(written):
        return "is a JSON list, pass the output of one smartctl run as one file"
    if cut:
        return f"is cut off after {len(written)} bytes, run smartctl again"
    return "is neither JSON nor a text of smartctl's, pass what `smartctl -x` prints, with --json or without"

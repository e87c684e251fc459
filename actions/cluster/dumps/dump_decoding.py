"""Decoding of an answer into a typed value, or into one sentence that names the answer, the field and the remedy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from predrain.data.refusal import Refusal

T = TypeVar("T")

_COMMANDS = {"pg_sum": "pg dump sum", "pg_brief": "pg dump pgs_brief", "pg_ls_by_osd": "pg ls-by-osd"}
"""Read commands whose name differs from Ceph's command."""

LARGEST = 1 << 30
"""Largest answer that is read, in B. The largest of a cluster of 6,000 OSDs, a full `pg dump` of 65,536 PGs, has 0.2
GB.
"""

_SIGN_OF_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(?:inf|nan)", re.IGNORECASE)
_STRING_OR_NO_NUMBER = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\b(?:inf(?:inity)?|nan)\b', re.IGNORECASE)


class NotUnderstood(Refusal):
    """An answer of the cluster cannot be read. Nothing moves until it can be."""


def _format_ceph_command(name: str) -> str:
    asked = name.partition(".")[0]
    return f"ceph {_COMMANDS.get(asked, asked.replace('_', ' '))}"


def not_answered(name: str) -> NotUnderstood:
    """Build the error for an answer without which there is no view."""
    return NotUnderstood(
        f"`{_format_ceph_command(name)}` was refused or not asked, and without it nothing is known of the "
        "cluster; try it by "
        "hand with the same user (`predrain ceph auth` prints what it must be allowed)."
    )


def not_understood(name: str, what: str) -> NotUnderstood:
    """Build the error in one sentence. name: of the read command. what: the field and what is wrong with it."""
    command = _format_ceph_command(name)
    return NotUnderstood(
        f"The answer to `{command}` is not understood: {what}; nothing moves until it is. "
        f"Look at that place in `{command} --format json`."
    )


def decode_answer(name: str, raw: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return the typed value in `raw`. Raises NotUnderstood.

    Fields that newer releases added are ignored. `inf` and `nan`, which Ceph prints in places though they are no JSON,
    become null.
    """
    if len(raw) > LARGEST:
        raise not_understood(name, f"it has {len(raw):,} bytes, more than any cluster known here prints")
    try:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            if raw.lstrip()[:1] not in (b"{", b"[") or not _SIGN_OF_NO_NUMBER.search(raw):
                raise
            return decoder.decode(_STRING_OR_NO_NUMBER.sub(_null_for_no_number, raw))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise not_understood(name, str(error).rstrip(".")) from error
    except RecursionError as error:
        raise not_understood(name, "it is nested too deeply") from error


def _null_for_no_number(found: re.Match[bytes]) -> bytes:
    return found[0] if found[0].startswith(b'"') else b"null"


def require_in_range(name: str, field: str, value: float, least: float, most: float = math.inf) -> float:
    """Return `value` if it is a number in [least, most]. Raises NotUnderstood."""
    if not least <= value <= most:
        wanted = f"at least {least:g}" if most == math.inf else f"in [{least:g}, {most:g}]"
        raise not_understood(name, f"{field} is {value:g}, which must be {wanted}")
    return value


class CachedParser(Generic[T]):
    """A parser that runs only if the bytes have changed; equal bytes give the identical value."""

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self._parse = parse
        self._last: tuple[bytes, T] | None = None

    def __call__(self, raw: bytes) -> T:
        """Return the parsed value. Raises what the parser raises."""
        if self._last is None or self._last[0] != raw:
            self._last = (raw, self._parse(raw))
        return self._last[1]

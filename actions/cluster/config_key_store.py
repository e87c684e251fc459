"""`ConfigKeys`: small texts in the cluster's own `config-key`, under `predrain/`, any length, never half a text.

A key takes at most 65,536 bytes (ceph.md i). A longer text is cut in pieces, which lie beside it in one of two
places; the head under the name itself says which, how many, and their checksum. Pieces are written first, the head
last, so that a write that breaks off leaves the old text.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.ceph_mgr.predrain.signing import HALT
from predrain.actions.cluster.channel import CommandChannel, DaemonReply
from predrain.actions.cluster.port import ClusterUnreachable, Damaged

PREFIX = "predrain/"
PIECE_BYTES = 60_000
_HEAD = "predrain-pieces"
_MARK = "#"
_PLACES = ("a", "b")
_READ_AGAIN = 3


@dataclass(frozen=True, slots=True)
class _Head:
    place: str
    pieces: int
    digest: str

    def text(self) -> str:
        return f"{_HEAD} {self.place} {self.pieces} {self.digest}"

    @classmethod
    def of(cls, value: bytes) -> _Head | None:
        words = value.decode("utf-8", "replace").split(" ")
        if len(words) != 4 or words[0] != _HEAD or words[1] not in _PLACES or not words[2].isdecimal():
            return None
        return cls(words[1], int(words[2]), words[3])


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """`actions.cluster.port.Keep` over a channel. Safe from any thread; two writers of one name need a lease."""

    channel: CommandChannel

    def read(self, name: str) -> str | None:
        """The text, or None when there is none. Raises ClusterUnreachable, Damaged."""
        value = self._get(_key(name))
        for _ in range(_READ_AGAIN):
            if value is None:
                return None
            head = _Head.of(value)
            if head is None:
                return value.decode("utf-8", "replace")
            whole = self._gathered(name, head)
            if whole is not None:
                return whole
            before, value = value, self._get(_key(name))
            if value == before:
                break
        raise Damaged(
            f"the cluster's text {_key(name)} is not whole; remove it with `ceph config-key rm {_key(name)}`"
        )

    def names(self, under: str = "") -> tuple[str, ...]:
        """All names that begin with `under` and hold a text, sorted. Raises ClusterUnreachable."""
        # With a prefix, so that a key may be allowed to see ours and nobody else's.
        prefix = PREFIX + under
        reply = self._ask("config-key dump", {"key": prefix, "format": "json"})
        try:
            found = json.loads(reply.out)
        except ValueError as error:
            raise ClusterUnreachable(
                f"`config-key dump {prefix}` did not answer in JSON ({error})"
            ) from error
        if not isinstance(found, dict):
            raise ClusterUnreachable(f"`config-key dump {prefix}` did not answer with keys")
        ours = (key[len(PREFIX) :] for key in found if key.startswith(prefix))
        return tuple(sorted(name for name in ours if _MARK not in name))

    def write(self, name: str, text: str) -> None:
        """Replace the text, whole: a reader sees the old one or the new one. Raises ClusterUnreachable."""
        old = self._head(name)
        value = text.encode()
        if len(value) <= PIECE_BYTES and _Head.of(value) is None:
            self._set(_key(name), value)
        else:
            place = _PLACES[1] if old is not None and old.place == _PLACES[0] else _PLACES[0]
            pieces = [value[at : at + PIECE_BYTES] for at in range(0, len(value), PIECE_BYTES)]
            for number, piece in enumerate(pieces):
                self._set(_piece(name, place, number), piece)
            head = _Head(place, len(pieces), hashlib.sha256(value).hexdigest())
            self._set(_key(name), head.text().encode())
            self._drop(name, place, len(pieces))
        if old is not None:
            self._drop(name, old.place, 0)

    def remove(self, name: str) -> None:
        """Forget it; nothing when there is none. Raises ClusterUnreachable."""
        self._ask("config-key rm", {"key": _key(name)})
        for place in _PLACES:
            self._drop(name, place, 0)

    def _head(self, name: str) -> _Head | None:
        value = self._get(_key(name))
        return None if value is None else _Head.of(value)

    def _gathered(self, name: str, head: _Head) -> str | None:
        pieces = [self._get(_piece(name, head.place, number)) for number in range(head.pieces)]
        whole = b"".join(piece or b"" for piece in pieces)
        return whole.decode() if hashlib.sha256(whole).hexdigest() == head.digest else None

    def _drop(self, name: str, place: str, since: int) -> None:
        """Remove the pieces from number `since` on; they have no gaps."""
        number = since
        while self._there(_piece(name, place, number)):
            number += 1
        for last in reversed(range(since, number)):
            self._ask("config-key rm", {"key": _piece(name, place, last)})

    def _there(self, key: str) -> bool:
        reply = self.channel.ask("mon", "config-key exists", {"key": key})
        return reply.rc != -errno.ENOENT and _accepted(reply, "config-key exists", key).ok

    def _get(self, key: str) -> bytes | None:
        reply = self.channel.ask("mon", "config-key get", {"key": key})
        if reply.rc == -errno.ENOENT:
            return None
        return _accepted(reply, "config-key get", key).out

    def _set(self, key: str, value: bytes) -> None:
        # As input, not as an argument: the mon writes arguments into its audit log.
        reply = self.channel.ask("mon", "config-key set", {"key": key}, given=value)
        _accepted(reply, "config-key set", key)

    def _ask(self, prefix: str, arguments: Mapping[str, str]) -> DaemonReply:
        return _accepted(self.channel.ask("mon", prefix, arguments), prefix, arguments["key"])


def _accepted(reply: DaemonReply, prefix: str, key: str) -> DaemonReply:
    """The answer, where it is one. Raises ClusterUnreachable with the cure."""
    if reply.ok:
        return reply
    if reply.rc in (-errno.EACCES, -errno.EPERM) and (prefix, key) == ("config-key rm", f"{PREFIX}{HALT}"):
        raise ClusterUnreachable(
            "this key may set a halt and not lift one; `ceph predrain unhalt` lifts it, or an admin's `ceph config-key "
            f"rm {PREFIX}{HALT}`"
        )
    if reply.rc in (-errno.EACCES, -errno.EPERM):
        raise ClusterUnreachable(
            f"the cluster refuses `{prefix} {key}` to this key; give it the caps that `predrain ceph auth` prints"
        )
    said = reply.err.strip() or errno.errorcode.get(-reply.rc, str(reply.rc))
    raise ClusterUnreachable(f"`{prefix} {key}` failed: {said}")


def _key(name: str) -> str:
    return f"{PREFIX}{name}"


def _piece(name: str, place: str, number: int) -> str:
    return f"{PREFIX}{name}{_MARK}{place}.{number}"

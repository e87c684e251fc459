"""`ConfigKeys`: small texts of any length in the cluster's own `config-key`, under `predrain/`, always read complete.

A key holds at most 65,536 B (ceph.md i). A longer text is split into pieces, which are stored in one of two places
beside it. The head, stored under the name itself, gives the place, the number of pieces and their checksum. Pieces are
written first and the head last, so that an interrupted write leaves the old text.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from predrain.actions.ceph_mgr.predrain.text_signing import HALT
from predrain.actions.cluster.channel import CommandChannel, DaemonReply
from predrain.actions.cluster.cluster_port import ClusterUnreachable, DamagedConfigKey

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
    def from_bytes(cls, value: bytes) -> _Head | None:
        words = value.decode("utf-8", "replace").split(" ")
        if len(words) != 4 or words[0] != _HEAD or words[1] not in _PLACES or not words[2].isdecimal():
            return None
        return cls(words[1], int(words[2]), words[3])


@dataclass(frozen=True, slots=True)
class ConfigKeys:
    """A `ConfigKeyStore` over a channel. Safe from any thread; two writers of one name need a lease."""

    channel: CommandChannel

    def read(self, name: str) -> str | None:
        """Return the text, or None if there is none. Raises ClusterUnreachable and DamagedConfigKey."""
        value = self._get(_build_config_key(name))
        for _ in range(_READ_AGAIN):
            if value is None:
                return None
            head = _Head.from_bytes(value)
            if head is None:
                return value.decode("utf-8", "replace")
            whole = self._gathered(name, head)
            if whole is not None:
                return whole
            before, value = value, self._get(_build_config_key(name))
            if value == before:
                break
        raise DamagedConfigKey(
            f"the cluster's text {_build_config_key(name)} is not whole; remove it with `ceph config-key "
            f"rm {_build_config_key(name)}`"
        )

    def names(self, under: str = "") -> tuple[str, ...]:
        """Return all names that begin with `under` and hold a text, sorted. Raises ClusterUnreachable."""
        # With a prefix, so that the caps of a key can be limited to predrain's names.
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
        """Replace the whole text: a reader sees the old one or the new one. Raises ClusterUnreachable."""
        old = self._head(name)
        value = text.encode()
        if len(value) <= PIECE_BYTES and _Head.from_bytes(value) is None:
            self._set(_build_config_key(name), value)
        else:
            place = _PLACES[1] if old is not None and old.place == _PLACES[0] else _PLACES[0]
            pieces = [value[at : at + PIECE_BYTES] for at in range(0, len(value), PIECE_BYTES)]
            for number, piece in enumerate(pieces):
                self._set(_build_piece_key(name, place, number), piece)
            head = _Head(place, len(pieces), hashlib.sha256(value).hexdigest())
            self._set(_build_config_key(name), head.text().encode())
            self._drop(name, place, len(pieces))
        if old is not None:
            self._drop(name, old.place, 0)

    def remove(self, name: str) -> None:
        """Remove the text. Do nothing if there is none. Raises ClusterUnreachable."""
        self._ask("config-key rm", {"key": _build_config_key(name)})
        for place in _PLACES:
            self._drop(name, place, 0)

    def _head(self, name: str) -> _Head | None:
        value = self._get(_build_config_key(name))
        return None if value is None else _Head.from_bytes(value)

    def _gathered(self, name: str, head: _Head) -> str | None:
        pieces = [self._get(_build_piece_key(name, head.place, number)) for number in range(head.pieces)]
        whole = b"".join(piece or b"" for piece in pieces)
        return whole.decode() if hashlib.sha256(whole).hexdigest() == head.digest else None

    def _drop(self, name: str, place: str, since: int) -> None:
        """Remove the pieces from number `since` on; they have no gaps."""
        number = since
        while self._there(_build_piece_key(name, place, number)):
            number += 1
        for last in reversed(range(since, number)):
            self._ask("config-key rm", {"key": _build_piece_key(name, place, last)})

    def _there(self, key: str) -> bool:
        reply = self.channel.ask("mon", "config-key exists", {"key": key})
        return reply.rc != -errno.ENOENT and _require_ok_reply(reply, "config-key exists", key).ok

    def _get(self, key: str) -> bytes | None:
        reply = self.channel.ask("mon", "config-key get", {"key": key})
        if reply.rc == -errno.ENOENT:
            return None
        return _require_ok_reply(reply, "config-key get", key).out

    def _set(self, key: str, value: bytes) -> None:
        # As input, not as an argument: the mon writes arguments into its audit log.
        reply = self.channel.ask("mon", "config-key set", {"key": key}, given=value)
        _require_ok_reply(reply, "config-key set", key)

    def _ask(self, prefix: str, arguments: Mapping[str, str]) -> DaemonReply:
        return _require_ok_reply(self.channel.ask("mon", prefix, arguments), prefix, arguments["key"])


def _require_ok_reply(reply: DaemonReply, prefix: str, key: str) -> DaemonReply:
    """Return the reply if it reports success. Raises ClusterUnreachable with the remedy."""
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


def _build_config_key(name: str) -> str:
    return f"{PREFIX}{name}"


def _build_piece_key(name: str, place: str, number: int) -> str:
    return f"{PREFIX}{name}{_MARK}{place}.{number}"

"""A channel over a mon in memory that keeps config-keys and one lock, for faults that a real one shows rarely."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from predrain.actions.cluster.channel import Argument, DaemonReply, Locker
from predrain.actions.cluster.cluster_port import ClusterUnreachable


@dataclass
class MonInMemory:
    """The part of `Channel` that Keep and Lease use. `calls_left`: after so many calls every one fails."""

    keys: dict[str, bytes] = field(default_factory=dict)
    calls_left: int | None = None
    refuses: bool = False
    now: Callable[[], float] = lambda: 0.0
    pools: frozenset[str] = frozenset({"predrain"})
    owner: str | None = None
    expires: float = 0.0
    writes: int = 0
    client: int = 4100

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        assert to == "mon"
        assert seconds is None
        self._count()
        key = str((arguments or {})["key"])
        if self.refuses:
            return DaemonReply(-errno.EACCES, b"", "access denied")
        match prefix:
            case "config-key get":
                found = self.keys.get(key)
                return DaemonReply(-errno.ENOENT, b"", "") if found is None else DaemonReply(0, found, "")
            case "config-key exists":
                return DaemonReply(0 if key in self.keys else -errno.ENOENT, b"", "")
            case "config-key set":
                if len(given) > 65_536:
                    return DaemonReply(-errno.EFBIG, b"", "error: entry size limited to 65536 bytes")
                self.keys[key] = given
                self.writes += 1
                return DaemonReply(0, b"", f"set {key}")
            case "config-key rm":
                self.keys.pop(key, None)
                self.writes += 1
                return DaemonReply(0, b"", "key deleted")
            case "config-key dump":
                shown = {name: value.decode() for name, value in self.keys.items() if name.startswith(key)}
                return DaemonReply(0, json.dumps(shown).encode(), "")
        raise AssertionError(prefix)

    def ask_all(self, asked: tuple[tuple[str, str, Mapping[str, Argument]], ...]) -> tuple[DaemonReply, ...]:
        return tuple(self.ask(*one) for one in asked)

    def lock(self, pool: str, name: str, cookie: str, seconds: float, *, renew: bool = False) -> DaemonReply:
        assert name
        self._count()
        if pool not in self.pools:
            return DaemonReply(-errno.ENOENT, b"", "no such pool")
        if self.now() >= self.expires:
            self.owner = None
        if self.owner not in (None, cookie):
            return DaemonReply(-errno.EBUSY, b"", "")
        if renew and self.owner is None:
            return DaemonReply(-errno.ENOENT, b"", "")
        if not renew and self.owner == cookie:
            return DaemonReply(-errno.EEXIST, b"", "")
        self.owner, self.expires = cookie, self.now() + seconds
        return DaemonReply(0, b"", "")

    def unlock(self, pool: str, name: str, cookie: str) -> DaemonReply:
        assert name
        assert pool in self.pools
        self._count()
        if self.owner != cookie:
            return DaemonReply(-errno.ENOENT, b"", "")
        self.owner = None
        return DaemonReply(0, b"", "")

    def list_lockers(self, pool: str, name: str) -> tuple[Locker, ...]:
        assert name
        self._count()
        if pool not in self.pools or self.owner is None or self.now() >= self.expires:
            return ()
        return (Locker((8, self.client), self.owner, datetime.fromtimestamp(self.expires, UTC)),)

    def break_lock(self, pool: str, name: str, locker: Locker) -> DaemonReply:
        assert name
        assert pool in self.pools
        self._count()
        if (self.owner, (8, self.client)) != (locker.cookie, locker.client):
            return DaemonReply(-errno.ENOENT, b"", "")
        self.owner = None
        return DaemonReply(0, b"", "")

    def probe(self, pool: str, name: str, size: int) -> float:
        raise AssertionError((pool, name, size))

    def close(self) -> None:
        return

    def _count(self) -> None:
        if self.calls_left is None:
            return
        if self.calls_left == 0:
            raise ClusterUnreachable("no answer within 5 s")
        self.calls_left -= 1

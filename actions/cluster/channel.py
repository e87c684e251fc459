"""The channel: one command to a real cluster and its answer, in raw bytes; what `rados.py` speaks and tests break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

Argument = str | int | float | bool | list[str] | list[int]


@dataclass(frozen=True, slots=True)
class DaemonReply:
    """What a daemon answered. `rc` is 0 or a negative errno; some commands answer 0 and do nothing: read back."""

    rc: int
    out: bytes
    err: str

    @property
    def ok(self) -> bool:
        """Whether the daemon said that it was done."""
        return self.rc == 0


@dataclass(frozen=True, slots=True)
class Locker:
    """A holder of a RADOS lock. `client`: the type and the number of its connection, as Ceph names clients."""

    client: tuple[int, int]
    cookie: str
    expires_at: datetime | None
    """By the OSD's clock; None for a lock that does not expire."""


class CommandChannel(Protocol):
    """Commands to mon, mgr and OSDs, and the few object operations that lease and probe need.

    Every call ends by its deadline: an answer, or `ClusterUnreachable` (then it is not known whether it was done).
    Safe from any thread; calls of several threads take turns.
    """

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        """Send one command to `mon`, `mgr` or `osd.N`. JSON answers need `format: json` among the arguments."""
        ...

    def ask_all(self, asked: tuple[tuple[str, str, Mapping[str, Argument]], ...]) -> tuple[DaemonReply, ...]:
        """Send several commands (to, prefix, arguments) before waiting for any: they reach the mon together, so that
        it may put them into one map. Answers in the order asked."""
        ...

    def lock(self, pool: str, name: str, cookie: str, seconds: float, *, renew: bool = False) -> DaemonReply:
        """Take or renew the exclusive RADOS lock `name` on the object of that name, for `seconds`.
        rc: 0 held, -16 another holds it, -17 held by this cookie already (renew it), -2 nothing to renew."""
        ...

    def unlock(self, pool: str, name: str, cookie: str) -> DaemonReply:
        """Give the lock back; -2 when it is not held."""
        ...

    def list_lockers(self, pool: str, name: str) -> tuple[Locker, ...]:
        """Those who hold the lock `name`; empty when it is free. Raises ClusterUnreachable, also when the cluster does
        not say."""
        ...

    def break_lock(self, pool: str, name: str, locker: Locker) -> DaemonReply:
        """Take the lock from that one locker; -2 when it does not hold it any more."""
        ...

    def probe(self, pool: str, name: str, size: int) -> float:
        """Seconds that writing, then reading `size` bytes of the object `name` took. Raises ClusterUnreachable."""
        ...

    def close(self) -> None:
        """Let the connection go."""
        ...

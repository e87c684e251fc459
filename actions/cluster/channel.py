"""The channel: one command to a real cluster and its answer, in raw bytes. `rados.py` implements it; tests
replace it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

Argument = str | int | float | bool | list[str] | list[int]


@dataclass(frozen=True, slots=True)
class DaemonReply:
    """The answer of a daemon. `rc` is 0 or a negative errno. Some commands answer 0 and do nothing: read the result
    back.
    """

    rc: int
    out: bytes
    err: str

    @property
    def ok(self) -> bool:
        """Return whether the daemon reported success."""
        return self.rc == 0


@dataclass(frozen=True, slots=True)
class Locker:
    """A holder of a RADOS lock. `client`: the type and the number of its connection, as Ceph names clients."""

    client: tuple[int, int]
    cookie: str
    expires_at: datetime | None
    """The expiry by the OSD's clock; None for a lock that does not expire."""


class CommandChannel(Protocol):
    """Commands to mon, mgr and OSDs, and the few object operations that the lease and the probe need.

    Every call ends by its deadline with an answer or `ClusterUnreachable`; after the latter the outcome is unknown.
    Calls from several threads are safe and run one after another.
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
        """Send several commands (to, prefix, arguments) before waiting for any of them, and return the answers in that
        order. The commands reach the mon together, so that it may put them into one map.
        """
        ...

    def lock(self, pool: str, name: str, cookie: str, seconds: float, *, renew: bool = False) -> DaemonReply:
        """Take or renew the exclusive RADOS lock `name` on the object of that name, for `seconds`.

        The reply's rc is 0 (held), -16 (another client holds it), -17 (this cookie holds it already: renew it), or -2
        (nothing to renew).
        """
        ...

    def unlock(self, pool: str, name: str, cookie: str) -> DaemonReply:
        """Release the lock. The reply's rc is -2 if it is not held."""
        ...

    def list_lockers(self, pool: str, name: str) -> tuple[Locker, ...]:
        """List the holders of the lock `name`; none if it is free. Raises ClusterUnreachable, also if the cluster does
        not report them.
        """
        ...

    def break_lock(self, pool: str, name: str, locker: Locker) -> DaemonReply:
        """Remove the lock of that one locker. The reply's rc is -2 if the locker no longer holds it."""
        ...

    def probe(self, pool: str, name: str, size: int) -> float:
        """Write and then read `size` bytes of the object `name`. Return the seconds that this took. Raises
        ClusterUnreachable.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...

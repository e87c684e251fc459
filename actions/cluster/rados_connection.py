"""The channel to a real cluster: librados in a child process that is killed at its deadline (`rados_child.py`)."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from predrain.actions.cluster.channel import Argument, DaemonReply, Locker
from predrain.actions.cluster.child_process import Child, ChildSilent
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.data.outside_text import CLUSTER_WORDS, clean_text
from predrain.data.refusal import Refusal

ANSWER_SECONDS = 15.0
RESTART_SECONDS = 3.0
"""The least time between two starts of a child, so that a cluster that does not answer is not flooded with
connections.
"""

EPERM, ENOENT, EIO, EACCES, EINVAL, EOPNOTSUPP, ETIMEDOUT = -1, -2, -5, -13, -22, -95, -110


@dataclass(frozen=True, slots=True)
class Connection:
    """The way to reach a cluster. Paths are as the interpreter sees them; an empty path means Ceph's own default."""

    conf: str = ""
    name: str = "client.predrain"
    keyring: str = ""
    cluster_name: str = "ceph"
    interpreter: tuple[str, ...] = ("/usr/bin/python3",)
    """The start of a command line that runs a Python with the cluster's release of `rados`."""


class NotConnected(ClusterUnreachable, Refusal):
    """There is no connection, for a reason that does not end by waiting."""


class Rados:
    """A `CommandChannel`. It sends one request at a time. At the deadline the child is killed; a later call starts a
    new one.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        seconds: float = ANSWER_SECONDS,
        restart_seconds: float = RESTART_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection, self._seconds, self._restart_seconds = connection, seconds, restart_seconds
        self._now = now
        self._turn = threading.Lock()
        self._child: Child | None = None
        self._started: float | None = None
        self._why = ""

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        """See `CommandChannel`."""
        return _in_time(
            self._request({"op": "ask", **_build_command_request(to, prefix, arguments)}, given, seconds)
        )

    def ask_all(self, asked: tuple[tuple[str, str, Mapping[str, Argument]], ...]) -> tuple[DaemonReply, ...]:
        """See `CommandChannel`."""
        if not asked:
            return ()
        reply = self._request({"op": "ask all", "all": [_build_command_request(*each) for each in asked]})
        heads, _, out = reply.out.partition(b"\n")
        replies, begin = [], 0
        for head in json.loads(heads):
            end = begin + head["size"]
            replies.append(_in_time(_build_daemon_reply(head, out[begin:end])))
            begin = end
        return tuple(replies)

    def lock(self, pool: str, name: str, cookie: str, seconds: float, *, renew: bool = False) -> DaemonReply:
        """See `CommandChannel`."""
        whole = math.ceil(seconds)
        return self._object("lock", pool, name, cookie=cookie, seconds=whole, renew=renew)

    def unlock(self, pool: str, name: str, cookie: str) -> DaemonReply:
        """See `CommandChannel`."""
        return self._object("unlock", pool, name, cookie=cookie)

    def list_lockers(self, pool: str, name: str) -> tuple[Locker, ...]:
        """See `CommandChannel`."""
        reply = self._object("lockers", pool, name)
        if reply.rc == ENOENT:
            return ()  # no lock was ever taken there
        if not reply.ok:
            raise ClusterUnreachable(
                f"the cluster does not say which client holds the lock {name}: {reply.err} ({reply.rc})"
            )
        return tuple(
            Locker(
                (one["client"][0], one["client"][1]),
                one["cookie"],
                datetime.fromtimestamp(one["expires_at"], UTC) if one["expires_at"] else None,
            )
            for one in json.loads(reply.out)
        )

    def break_lock(self, pool: str, name: str, locker: Locker) -> DaemonReply:
        """See `CommandChannel`."""
        return self._object("break", pool, name, client=locker.client, cookie=locker.cookie)

    def probe(self, pool: str, name: str, size: int) -> float:
        """See `CommandChannel`."""
        reply = self._object("probe", pool, name, bytes=size)
        if not reply.ok:
            raise ClusterUnreachable(f"the probe of pool {pool} failed: {reply.err} ({reply.rc})")
        return float(reply.out)

    def close(self) -> None:
        """See `CommandChannel`. A later call connects again."""
        with self._turn:
            self._drop()

    def _object(self, op: str, pool: str, name: str, **asked: Any) -> DaemonReply:
        return _in_time(self._request({"op": op, "pool": pool, "name": name, **asked}))

    def _request(
        self, asked: Mapping[str, Any], given: bytes = b"", seconds: float | None = None
    ) -> DaemonReply:
        within = self._seconds if seconds is None else seconds
        until = self._now() + within
        if not self._turn.acquire(timeout=within):
            raise ClusterUnreachable(f"other requests to the cluster took {within:g} s: no turn for this one")
        try:
            head, out = self._connected(until).request(asked, given, until)
            return _build_daemon_reply(head, out)
        except ChildSilent as silent:
            self._why = f"{silent} ({within:g} s)" if self._now() >= until else str(silent)
            self._drop()
            raise ClusterUnreachable(f"no answer from the cluster: {self._why}") from silent
        finally:
            self._turn.release()

    def _connected(self, until: float) -> Child:
        """Return a child that is connected. Raises ChildSilent, ClusterUnreachable and NotConnected."""
        if self._child is not None and self._child.alive():
            return self._child
        self._drop()
        if self._started is not None and (left := self._started + self._restart_seconds - self._now()) > 0:
            last = self._why or "the child process ended"
            raise ClusterUnreachable(f"not connected to the cluster, next try in {left:.1f} s; last: {last}")
        self._started = self._now()
        try:
            self._child = Child(self._connection.interpreter, self._now)
        except OSError as error:
            self._why = f"{self._connection.interpreter[0]} cannot be run: {error.strerror}"
            raise NotConnected(f"{self._why}; [ceph] python names the interpreter that has rados") from error
        head, _ = self._child.request(self._hello(), b"", until)
        if head["rc"] == 0:
            self._why = ""
            return self._child
        self._drop()
        lasting, self._why = why_not(self._connection, head["stage"], head["rc"], head["err"])
        raise (NotConnected if lasting else ClusterUnreachable)(self._why)

    def _hello(self) -> dict[str, Any]:
        return {
            "conf": self._connection.conf,
            "keyring": self._connection.keyring,
            "name": self._connection.name,
            "cluster": self._connection.cluster_name,
            "object_seconds": max(1, int(self._seconds * 2 / 3)),
        }

    def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()


def why_not(connection: Connection, stage: str, rc: int, said: str) -> tuple[bool, str]:
    """Explain why there is no connection. Return whether the reason is permanent, and the reason as a sentence."""
    python = " ".join(connection.interpreter[-1:])
    keyring = connection.keyring or "Ceph's default keyrings"
    make = "`predrain ceph auth` prints the line that makes one"
    if stage == "module":
        cure = "install python3-rados of the cluster's release, or name in [ceph] python an interpreter that has it"
        return True, f"{python} has no rados module ({said}): {cure}"
    if stage == "conf":
        return (
            True,
            f"{connection.conf or 'ceph.conf'} cannot be read ({said}): [ceph] conf names the cluster's",
        )
    if stage == "keyring":
        return (
            True,
            f"the keyring of {connection.name} cannot be read ({said}): {make}, [ceph] keyring names its file",
        )
    if rc in (EPERM, EACCES):
        return True, f"the cluster does not accept the key of {connection.name} in {keyring}: {make}"
    if rc == ENOENT:
        conf = connection.conf or "ceph.conf"
        return True, f"{conf} names no monitor (mon_host): [ceph] conf names the cluster's configuration"
    if rc in (EIO, EINVAL, EOPNOTSUPP):
        why = "older ones cannot read a key of 20.x; [ceph] python names one with the cluster's own release"
        return True, f"rados of {python} cannot use the key in {keyring}: {why}"
    return False, f"no connection to the cluster: {said} ({rc})"


def _build_daemon_reply(head: Mapping[str, Any], out: bytes) -> DaemonReply:
    """Build a reply with the daemon's message as one sanitized line."""
    return DaemonReply(head["rc"], out, clean_text(head["err"], CLUSTER_WORDS.limit))


def _in_time(reply: DaemonReply) -> DaemonReply:
    """Return the reply. Raises ClusterUnreachable if librados gave up waiting: the outcome of the command is then
    unknown.
    """
    if reply.rc == ETIMEDOUT:
        raise ClusterUnreachable(f"no answer from the cluster in time: {reply.err or 'librados gave up'}")
    return reply


def _build_command_request(to: str, prefix: str, arguments: Mapping[str, Argument] | None) -> dict[str, Any]:
    if to not in ("mon", "mgr") and not re.fullmatch(r"osd\.\d+", to):
        raise ValueError(f"{to!r} takes no commands: mon, mgr or osd.N")
    return {"to": to, "command": {**(arguments or {}), "prefix": prefix}}

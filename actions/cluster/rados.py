"""The channel to a real cluster: librados in a child process, with deadlines that hold (`rados_child.py`)."""

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
from predrain.actions.cluster.child import Child, ChildSilent
from predrain.actions.cluster.port import ClusterUnreachable
from predrain.data.outside_text import CLUSTER_WORDS, clean_text
from predrain.data.refusal import Refusal

ANSWER_SECONDS = 15.0
RESTART_SECONDS = 3.0
"""A new child at most so often: a cluster that does not answer is not stormed with connections."""

EPERM, ENOENT, EIO, EACCES, EINVAL, EOPNOTSUPP, ETIMEDOUT = -1, -2, -5, -13, -22, -95, -110


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster. Paths are as the interpreter sees them; an empty one is Ceph's own default."""

    conf: str = ""
    name: str = "client.predrain"
    keyring: str = ""
    cluster_name: str = "ceph"
    interpreter: tuple[str, ...] = ("/usr/bin/python3",)
    """The start of a command line that runs a Python with the cluster's release of `rados`."""


class NotConnected(ClusterUnreachable, Refusal):
    """No connection, for a reason that waiting does not cure."""


class Rados:
    """A `Channel`. One request at a time; at its deadline the child is killed, and a later call starts a new one."""

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
        """See `Channel`."""
        return _in_time(self._request({"op": "ask", **_command(to, prefix, arguments)}, given, seconds))

    def ask_all(self, asked: tuple[tuple[str, str, Mapping[str, Argument]], ...]) -> tuple[DaemonReply, ...]:
        """See `Channel`."""
        if not asked:
            return ()
        reply = self._request({"op": "ask all", "all": [_command(*each) for each in asked]})
        heads, _, out = reply.out.partition(b"\n")
        replies, begin = [], 0
        for head in json.loads(heads):
            end = begin + head["size"]
            replies.append(_in_time(_reply(head, out[begin:end])))
            begin = end
        return tuple(replies)

    def lock(self, pool: str, name: str, cookie: str, seconds: float, *, renew: bool = False) -> DaemonReply:
        """See `Channel`."""
        whole = math.ceil(seconds)
        return self._object("lock", pool, name, cookie=cookie, seconds=whole, renew=renew)

    def unlock(self, pool: str, name: str, cookie: str) -> DaemonReply:
        """See `Channel`."""
        return self._object("unlock", pool, name, cookie=cookie)

    def list_lockers(self, pool: str, name: str) -> tuple[Locker, ...]:
        """See `Channel`."""
        reply = self._object("lockers", pool, name)
        if reply.rc == ENOENT:
            return ()  # no lock was ever taken there
        if not reply.ok:
            raise ClusterUnreachable(f"who holds the lock {name} is not told: {reply.err} ({reply.rc})")
        return tuple(
            Locker(
                (one["client"][0], one["client"][1]),
                one["cookie"],
                datetime.fromtimestamp(one["expires_at"], UTC) if one["expires_at"] else None,
            )
            for one in json.loads(reply.out)
        )

    def break_lock(self, pool: str, name: str, locker: Locker) -> DaemonReply:
        """See `Channel`."""
        return self._object("break", pool, name, client=locker.client, cookie=locker.cookie)

    def probe(self, pool: str, name: str, size: int) -> float:
        """See `Channel`."""
        reply = self._object("probe", pool, name, bytes=size)
        if not reply.ok:
            raise ClusterUnreachable(f"the probe of pool {pool} failed: {reply.err} ({reply.rc})")
        return float(reply.out)

    def close(self) -> None:
        """See `Channel`. A later call connects again."""
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
            return _reply(head, out)
        except ChildSilent as silent:
            self._why = f"{silent} ({within:g} s)" if self._now() >= until else str(silent)
            self._drop()
            raise ClusterUnreachable(f"no answer from the cluster: {self._why}") from silent
        finally:
            self._turn.release()

    def _connected(self, until: float) -> Child:
        """The child, connected. Raises Silent, ClusterUnreachable, NotConnected."""
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
    """Why there is no connection, as a sentence, and whether waiting will not cure it."""
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


def _reply(head: Mapping[str, Any], out: bytes) -> DaemonReply:
    """What a daemon answered, its message as one clean line."""
    return DaemonReply(head["rc"], out, clean_text(head["err"], CLUSTER_WORDS.limit))


def _in_time(reply: DaemonReply) -> DaemonReply:
    """The answer. Raises ClusterUnreachable where librados gave up waiting: it is not known whether it was done."""
    if reply.rc == ETIMEDOUT:
        raise ClusterUnreachable(f"no answer from the cluster in time: {reply.err or 'librados gave up'}")
    return reply


def _command(to: str, prefix: str, arguments: Mapping[str, Argument] | None) -> dict[str, Any]:
    if to not in ("mon", "mgr") and not re.fullmatch(r"osd\.\d+", to):
        raise ValueError(f"{to!r} takes no commands: mon, mgr or osd.N")
    return {"to": to, "command": {**(arguments or {}), "prefix": prefix}}

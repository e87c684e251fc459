"""An interpreter for the rados channel whose `rados` plays a recorded cluster that several processes share.

    python cluster_played.py RECORDING SHARED -I -c PROGRAM

The map and the statistics are those of the recording and never change. The file SHARED holds the cluster's config-keys
and the one lock. The answers for the lock class of OSDs have Ceph's own encoding.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import struct
import sys
import time
import types
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CLIENT = 8
"""The type of a client's name."""


class Refused(Exception):
    """As rados.Error: with an errno."""

    def __init__(self, number: int) -> None:
        super().__init__(os.strerror(number))
        self.errno = number


@contextmanager
def shared(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the state that all processes share, and write it back; no other process can read the file meanwhile."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        state = json.loads(file.read() or '{"keys": {}, "lock": null, "sent": []}')
        if state["lock"] and state["lock"]["expires"] < time.time():
            state["lock"] = None
        yield state
        file.seek(0)
        file.truncate()
        json.dump(state, file)


def framed(content: bytes) -> bytes:
    return struct.pack("<BBI", 1, 1, len(content)) + content


def text(value: str) -> bytes:
    return struct.pack("<I", len(value)) + value.encode()


class Pool:
    """rados.Ioctx."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def lock_exclusive(self, _: str, name: str, cookie: str, __: str, seconds: float, flags: int) -> None:
        assert name == "lease"
        mine = [os.getpid(), cookie]
        with shared(self.path) as state:
            lock = state["lock"]
            if lock and lock["by"] != mine:
                raise Refused(errno.EBUSY)
            if flags and not lock:
                raise Refused(errno.ENOENT)
            if lock and not flags:
                raise Refused(errno.EEXIST)
            state["lock"] = {"by": mine, "expires": time.time() + seconds}

    def unlock(self, _: str, __: str, cookie: str) -> None:
        with shared(self.path) as state:
            if not state["lock"] or state["lock"]["by"] != [os.getpid(), cookie]:
                raise Refused(errno.ENOENT)
            state["lock"] = None

    def execute(self, _: str, cls: str, method: str, given: bytes, length: int = 8192) -> tuple[int, bytes]:
        assert cls == "lock"
        with shared(self.path) as state:
            lock = state["lock"]
            if method == "get_info":
                assert given == framed(text("lease"))
                out = self._info(lock)
                assert len(out) <= length
                return len(out), out
            assert method == "break_lock"
            if not lock:
                raise Refused(errno.ENOENT)
            client, cookie = lock["by"]
            if given != framed(text("lease") + struct.pack("<Bq", CLIENT, client) + text(cookie)):
                raise Refused(errno.ENOENT)
            state["lock"] = None
            return 0, b""

    def _info(self, lock: dict[str, Any] | None) -> bytes:
        entries = b""
        if lock:
            client, cookie = lock["by"]
            address = struct.pack("<B", 1) + framed(struct.pack("<III", 2, 77, 16) + b"\2\0" + bytes(14))
            entries = framed(struct.pack("<Bq", CLIENT, client) + text(cookie))
            entries += framed(struct.pack("<II", int(lock["expires"]), 0) + address + text("predrain"))
        return framed(struct.pack("<I", bool(lock)) + entries + struct.pack("<B", 1) + text(""))

    def write_full(self, *_: object) -> None:
        return

    def read(self, *_: object) -> bytes:
        return b""


class Cluster:
    """rados.Rados."""

    recording, path = Path(), Path()

    def __init__(self, **_: Any) -> None:
        with zipfile.ZipFile(self.recording) as file:
            self.raw = {one.removesuffix(".json"): file.read(one) for one in file.namelist()}

    def connect(self) -> None:
        return

    def open_ioctx(self, _: str) -> Pool:
        return Pool(self.path)

    def mon_command(self, command: str, given: bytes) -> tuple[int, bytes, str]:
        asked = json.loads(command)
        prefix = asked["prefix"]
        if prefix.startswith("config-key"):
            return self._keys(prefix.split()[1], asked["key"], given)
        return self._recorded(prefix.replace(" ", "_"), asked)

    mgr_command = mon_command

    def osd_command(self, *_: object) -> tuple[int, bytes, str]:
        return -errno.EAGAIN, b"", "it is played"

    def _recorded(self, name: str, asked: dict[str, Any]) -> tuple[int, bytes, str]:
        if name == "pg_dump":
            name = {"sum": "pg_sum", "pgs": "pg_dump", "pgs_brief": "pg_brief"}[asked["dumpcontents"][0]]
        if name in self.raw:
            return 0, self.raw[name], ""
        if "format" not in asked:
            with shared(self.path) as state:
                state["sent"].append(asked)
        return -errno.EINVAL, b"", "not recorded"

    def _keys(self, verb: str, key: str, given: bytes) -> tuple[int, bytes, str]:
        with shared(self.path) as state:
            keys = state["keys"]
            if verb == "set":
                keys[key] = given.decode()
            elif verb == "rm":
                keys.pop(key, None)
            elif verb == "dump":
                found = {name: value for name, value in keys.items() if name.startswith(key)}
                return 0, json.dumps(found).encode(), ""
            elif key not in keys:
                return -errno.ENOENT, b"", ""
            return 0, keys.get(key, "").encode() if verb == "get" else b"", ""


def play_cluster(cluster: type[Cluster], arguments: Sequence[str]) -> None:
    """Run the program of the rados channel with `cluster` as `rados.Rados`."""
    cluster.recording, cluster.path = Path(arguments[1]), Path(arguments[2])
    played = types.ModuleType("rados")
    played.Rados = cluster  # type: ignore[attr-defined]
    sys.modules["rados"] = played
    exec(compile(arguments[-1], "rados_child.py", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    play_cluster(Cluster, sys.argv)

"""One librados client of a test cluster in a process of its own: commands, objects written and read back.

The second half runs in the release's own interpreter, which gets this file's text as its program.
"""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any


class Agent:
    """The caller's half. Safe from any thread."""

    def __init__(self, interpreter: tuple[str, ...], conf: Path, name: str, seconds: int = 60) -> None:
        argv = [*interpreter, "-c", Path(__file__).read_text(), str(conf), name, str(seconds)]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._turn = threading.Lock()
        self.ask(op="hello")

    def ask(self, **request: Any) -> tuple[int, bytes, str]:
        """One request; (rc, output, error text). Raises RuntimeError when the other half is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._turn:
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                raise RuntimeError("the test cluster's client has ended") from None
            line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the test cluster's client has ended")
        reply = json.loads(line)
        return reply["rc"], base64.b64decode(reply["out"]), reply["err"]

    def alive(self) -> bool:
        """Return True while the other half still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def answer(cluster: Any, op: str, **asked: Any) -> tuple[int, bytes, str]:
    """Carry out one request; return (rc, output, error text)."""
    if op == "command":
        to, command, given = asked["to"], json.dumps(asked["cmd"]), base64.b64decode(asked.get("inbuf", ""))
        if to.startswith("osd."):
            rc, out, err = cluster.osd_command(int(to[4:]), command, given, timeout=asked["timeout"])
        elif to.startswith("pg "):
            rc, out, err = cluster.pg_command(to[3:], command, given, timeout=asked["timeout"])
        else:
            rc, out, err = {"mon": cluster.mon_command, "mgr": cluster.mgr_command}[to](command, given)
        return rc, out or b"", err if isinstance(err, str) else (err or b"").decode()
    if op == "write":
        with cluster.open_ioctx(asked["pool"]) as pool:
            return 0, json.dumps(write(pool, asked["objects"], asked["size"], asked["start"])).encode(), ""
    if op == "read back":
        with cluster.open_ioctx(asked["pool"]) as pool:
            return (
                0,
                json.dumps({each.key: checksum(pool, each.key) for each in pool.list_objects()}).encode(),
                "",
            )
    return 0, b"", ""


def write(pool: Any, objects: int, size: int, start: int) -> dict[str, str]:
    """Objects that all differ, 32 under way at once; their checksums. Raises OSError where one is not acknowledged."""
    import os

    body, sums, pending = os.urandom(size), {}, []
    for index in range(start, start + objects):
        name = f"object-{index:06d}"
        data = (name.encode() + body)[:size]
        sums[name] = hashlib.sha256(data).hexdigest()
        pending.append((name, pool.aio_write_full(name, data)))
        if len(pending) == 32:
            acknowledge(*pending.pop(0))
    for one in pending:
        acknowledge(*one)
    return sums


def acknowledge(name: str, completion: Any) -> None:
    """Wait until the cluster has the object. Raises OSError."""
    completion.wait_for_complete_and_cb()
    code = completion.get_return_value()
    if code < 0:
        raise OSError(-code, f"the cluster did not acknowledge {name}")


def checksum(pool: Any, name: str) -> str:
    """SHA-256 of a whole object."""
    return hashlib.sha256(pool.read(name, length=pool.stat(name)[0])).hexdigest()


def serve(conf: str, name: str, seconds: str) -> None:
    """One JSON request a line, one JSON reply a line."""
    import rados  # type: ignore[import-not-found]

    limits = {"client_mount_timeout": "15", "rados_osd_op_timeout": seconds, "rados_mon_op_timeout": seconds}
    cluster = rados.Rados(name=name, conffile=conf, conf=limits)
    cluster.connect(timeout=15)
    for line in sys.stdin:
        try:
            rc, out, err = answer(cluster, **json.loads(line))
        except Exception as error:
            rc, out, err = -(getattr(error, "errno", None) or 5), b"", f"{type(error).__name__}: {error}"
        print(json.dumps({"rc": rc, "out": base64.b64encode(out).decode(), "err": err}), flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])

"""The caller's half of the open-loop clients: start them, set their rate, keep what each operation took."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.roots import CLEAN

_PROGRAM = Path(__file__).with_name("client.py")


class Op(NamedTuple):
    """One operation: when it was due (monotonic seconds), what it took from then, and on which PG."""

    due: float
    ms: float
    pg: str

    @property
    def back(self) -> float:
        """When its answer came, monotonic seconds."""
        return self.due + self.ms / 1000


class Clients:
    """Operations on every PG of some pools, spread evenly over `objects` a pool."""

    def __init__(self, cluster: MiniCluster, pools: Mapping[str, int]) -> None:
        self.failed = 0
        self._pg = {
            (pool, key): cluster.json("osd map", pool=pool, object=key)["pgid"]
            for pool, objects in pools.items()
            for key in (f"op{number:05d}" for number in range(objects))
        }
        where = cluster.where()
        argv = [*cluster.interpreter(), "-c", _PROGRAM.read_text(), where.conf, where.name, where.keyring]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=CLEAN
        )
        self._say({"pools": dict(pools)})
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the clients did not start")
        self._ops: list[Op] = []
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def rate(self, a_second: float) -> None:
        """Operations due a second from now on; 0 rests."""
        self._say({"rate": a_second})

    def between(self, begin: float, end: float) -> list[Op]:
        """Operations due in [begin, end), in that order. Ask some seconds after `end`: late ones come late."""
        ops = sorted(self._ops)
        return ops[bisect_left(ops, Op(begin, 0, "")) : bisect_left(ops, Op(end, 0, ""))]

    def close(self) -> None:
        """End them."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._process.stdout.close()

    def _say(self, order: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            for due, ms, pool, key in json.loads(line):
                if ms is None:
                    self.failed += 1
                else:
                    self._ops.append(Op(due, ms, self._pg[(pool, key)]))


def settled(seconds: float) -> tuple[float, float]:
    """Let a window of so many seconds pass; its begin and end."""
    begin = time.monotonic()
    time.sleep(seconds)
    return begin, time.monotonic()

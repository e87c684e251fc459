"""A controller in a process of its own, on a cluster that lives in another one, which can be made to eat memory.

python -m tests.service.memory_victim STORE SOCKET (steadily | hungrily)
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from datetime import datetime
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.controller import Controller
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState
from predrain.data.store.sqlite_store import SqliteStore

KEY = b"between two processes of one test"
MOVED_BEFORE_HUNGER = 2
"""PGs that the drain has moved before the process begins to eat memory."""
TICK_SECONDS = 0.5
"""The seconds between two ticks once the process eats memory. A tiny drain would else end before memory runs out."""


class SharedCluster:
    """A simulated cluster as another process may call it."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster, self._lock = cluster, threading.Lock()

    def view(self) -> ClusterView:
        """Return the present view of the cluster."""
        with self._lock:
            return self._cluster.view()

    def apply(self, command: Command) -> CommandResult:
        """Carry a command out."""
        with self._lock:
            return self._cluster.apply(command)

    def advance(self, seconds: float) -> datetime:
        """Let the cluster's time pass; returns what it is then."""
        with self._lock:
            self._cluster.advance(seconds)
            return self._cluster.now


class ClusterManager(BaseManager):
    """Carries calls between the processes."""


ClusterManager.register("cluster", exposed=("view", "apply", "advance"))


def main(store_path: Path, socket: str, hungrily: bool) -> None:
    """Drain until every drain is verified, or until memory ends."""
    manager = ClusterManager(socket, KEY)
    manager.connect()
    cluster: Any = manager.cluster()  # type: ignore[attr-defined]
    store = SqliteStore(store_path)
    controller = Controller(cluster, store, Policy())
    eating = False
    while True:
        now = cluster.advance(10.0)
        controller.tick(now)
        (drain,) = store.drains()
        if drain.state is DrainState.VERIFIED:
            return
        if hungrily and not eating and drain.progress.moved_pgs >= MOVED_BEFORE_HUNGER:
            eating = True
            print("eating", flush=True)
            threading.Thread(target=eat, daemon=True).start()
        if eating:
            time.sleep(TICK_SECONDS)


def eat() -> None:
    """Take memory until the kernel, or a limit of the process, ends it."""
    taken: list[bytearray] = []
    try:
        while True:
            taken.append(bytearray(b"x") * (4 << 20))
            time.sleep(0.001)
    except MemoryError:
        os.kill(os.getpid(), signal.SIGKILL)  # where no group of the kernel could be had


if __name__ == "__main__":
    if limit := os.environ.get("VICTIM_DATA_BYTES"):
        resource.setrlimit(resource.RLIMIT_DATA, (int(limit), int(limit)))
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "hungrily")

"""A simulated cluster that the test holds, and `predrain up` in a process of its own on it, as on a real cluster.

    python cluster_apart.py SOCKET up --state STATE

The cluster and what it keeps outlive the service. At each poll of the service ten seconds pass on the cluster. Its time
is also that of the service.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.simulator import SimulatedCluster
from predrain.service.cli import main
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.processes import up
from tests.actions.made_channel import MonInMemory
from tests.actions.made_config_keys import SIGNING_KEY, LeaseInHand

POLL_SECONDS = 10.0
_KEY = b"of one test"


class ClusterApart:
    """The cluster and its monitor, one call at a time."""

    def __init__(self, cluster: SimulatedCluster, mon: MonInMemory) -> None:
        self._cluster, self._mon, self._lock = cluster, mon, threading.Lock()

    def view(self) -> ClusterView:
        with self._lock:
            self._cluster.advance(POLL_SECONDS)
            return self._cluster.view()

    def apply(self, command: Command) -> CommandResult:
        with self._lock:
            return self._cluster.apply(command)

    def now(self) -> datetime:
        return self._cluster.now

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self._cluster.advance(seconds)

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        with self._lock:
            return self._mon.ask(to, prefix, arguments, given=given, seconds=seconds)

    def ask_all(self, asked: tuple[tuple[str, str, Mapping[str, Argument]], ...]) -> tuple[DaemonReply, ...]:
        with self._lock:
            return self._mon.ask_all(asked)


@contextmanager
def hold_cluster(apart: ClusterApart, socket: Path) -> Iterator[None]:
    """Answer other processes on the socket."""

    class Holder(BaseManager):
        pass

    Holder.register("held", callable=lambda: apart)
    multiprocessing.current_process().authkey = _KEY
    server: Any = Holder(str(socket), _KEY).get_server()
    server.stop_event = threading.Event()
    # `serve_forever` would take the standard output away from pytest, and end its thread by an exception.
    threading.Thread(target=server.accepter, daemon=True).start()
    try:
        yield
    finally:
        server.stop_event.set()


def run_service(socket: str, *words: str) -> int:
    """Run a command of predrain whose cluster is the one behind the socket."""

    class Holder(BaseManager):
        pass

    Holder.register("held")
    multiprocessing.current_process().authkey = _KEY
    manager = Holder(socket, _KEY)
    manager.connect()
    held: Any = manager.held()  # type: ignore[attr-defined]
    up.SystemClock = lambda: held  # type: ignore[assignment,misc]
    up._make_controlled_cluster = lambda *_: LiveClusterParts(  # type: ignore[assignment]
        held, SignedKeys(ConfigKeys(held), SIGNING_KEY), LeaseInHand(), "stor-mon-1"
    )
    return main(words)


if __name__ == "__main__":
    sys.exit(run_service(*sys.argv[1:]))

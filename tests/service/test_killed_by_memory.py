"""If the kernel kills a controller for lack of memory in the middle of a drain, the next one continues the drain."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from predrain.actions.controller.controller import Controller
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState
from predrain.data.ids import OsdId
from predrain.data.store.sqlite_store import SqliteStore
from tests.service.memory_victim import KEY, ClusterManager, SharedCluster
from tests.service.test_drains import seated

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
LIMIT_BYTES = 256 << 20
GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
)


@contextmanager
def group_with_limit() -> Iterator[Path | None]:
    """A control group of the kernel that ends who takes more than `LIMIT_BYTES`; None where none can be made."""
    for root, limit in GROUPS:
        group = root / f"predrain-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        # In a folder that is no mount of control groups, no file comes of itself.
        if not (group / limit).exists():
            group.rmdir()
            continue
        (group / limit).write_text(str(LIMIT_BYTES))
        try:
            yield group
        finally:
            group.rmdir()
        return
    yield None


@contextmanager
def shared(cluster: SimulatedCluster, folder: Path) -> Iterator[str]:
    """`cluster` on a socket, so that it outlives who controls it."""
    one = SharedCluster(cluster)

    class Serving(ClusterManager):
        pass

    Serving.register("cluster", callable=lambda: one, exposed=("view", "apply", "advance"))
    socket = str(folder / "cluster.socket")
    server = Serving(socket, KEY).get_server()

    def serve() -> None:
        with suppress(SystemExit):  # so it ends
            server.serve_forever()

    threading.Thread(target=serve, daemon=True).start()
    yield socket
    server.stop_event.set()  # type: ignore[attr-defined]


def control(store: Path, socket: str, how: str, group: Path | None = None) -> subprocess.Popen[str]:
    """A controller in a process of its own, in `group` from its first line on."""
    command = [sys.executable, "-m", "tests.service.memory_victim", str(store), socket, how]
    environment = dict(os.environ)
    if group is not None:
        entering = f'echo $$ > "{group}/cgroup.procs" && exec "$@"'
        command = ["/bin/sh", "-c", entering, "sh", *command]
    elif how == "hungrily":
        environment["VICTIM_DATA_BYTES"] = str(LIMIT_BYTES)
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def test_a_drain_goes_on_after_its_controller_was_killed_for_want_of_memory(tmp_path: Path) -> None:
    cluster, path = seated(), tmp_path / "store.sqlite"
    store = SqliteStore(path)
    controller = Controller(cluster, store, Policy())
    for _ in range(5):
        cluster.advance(10)
        controller.tick(cluster.now)
    asked = controller.requests.propose("osd.0", "anna", "noisy", cluster.now)
    controller.requests.approve(asked.id, "anna", cluster.now)
    held = sum(cluster.truth().used_bytes.values())
    with shared(cluster, tmp_path) as socket, group_with_limit() as group:
        with control(path, socket, "hungrily", group) as victim:
            assert victim.wait(200) == -signal.SIGKILL
            assert victim.stdout is not None
            assert victim.stdout.read() == "eating\n"
        half = store.drain(asked.id)
        assert half is not None
        assert half.state is DrainState.DRAINING
        journal = store.journal(asked.id)
        with control(path, socket, "steadily") as successor:
            assert successor.wait(200) == 0
    whole = store.drain(asked.id)
    assert whole is not None
    assert whole.state is DrainState.VERIFIED
    assert whole.progress.moved_pgs == whole.progress.planned_pgs
    assert store.journal(asked.id)[: len(journal)] == journal, "what the victim wrote is still there"
    truth = cluster.truth()
    assert truth.lost == frozenset()
    assert truth.used_bytes[OsdId(0)] == 0
    assert sum(truth.used_bytes.values()) == held
    store.close()

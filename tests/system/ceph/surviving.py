"""A real cluster with objects, a store, and controller processes that a test begins, watches and kills."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.controller.controller import Controller
from predrain.data.drain import Drain
from predrain.data.store.sqlite_store import SqliteStore
from tests.deadlines import idle_seconds
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.runner import POLICY, as_given

POOL = "rep"


@dataclass
class Life:
    """One controller process and what it said."""

    process: subprocess.Popen[str]
    said: list[dict[str, Any]] = field(default_factory=list)
    _lines: SimpleQueue[str] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @classmethod
    def begin(cls, cluster: MiniCluster, store: Path, **orders: object) -> Life:
        given = json.dumps({"connection": as_given(cluster.connection()), "store": str(store), **orders})
        command = [sys.executable, "-m", "tests.system.ceph.runner", given]
        return cls(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))

    def until(
        self, wanted: Callable[[dict[str, Any]], bool], what: str, seconds: float = 240
    ) -> dict[str, Any]:
        """The first line it says from now on that is wanted."""
        ends = idle_seconds() + seconds
        while line := self._line(ends):
            if wanted(line):
                return line
        raise AssertionError(f"{what}: not said in {seconds:.0f} s; {self.said[-3:]}")

    def rest(self) -> list[dict[str, Any]]:
        """Everything until it ends."""
        self.process.wait(240)
        self._listener.join(10)
        while not self._lines.empty() and self._line(idle_seconds() + 1):
            pass
        return self.said

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            for line in said:
                self._lines.put(line)
        self._lines.put("")

    def _line(self, ends: float) -> dict[str, Any] | None:
        """The next that it says; None when it has ended or time is up."""
        while True:
            try:
                line = self._lines.get(timeout=min(1.0, max(0.0, ends - idle_seconds())))
                break
            except Empty:
                if idle_seconds() >= ends:
                    return None
        if not line:
            return None
        self.said.append(json.loads(line))
        return self.said[-1]

    def end(self) -> None:
        """Kill the process, even if it is stopped, and wait until it has ended."""
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self._listener.join(10)


@dataclass
class World:
    """A cluster with objects, and a store for one drain after another."""

    cluster: MiniCluster
    folder: Path
    lives: list[Life] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = self.folder / "store.db"
        # The tests of a file share the cluster: objects that an earlier test left are read first, and stay as they are.
        self.written = self.cluster.read_back(POOL) | self.cluster.write(POOL, objects=60)
        self.cluster.wait_clean()
        self.channel = Rados(self.cluster.connection())
        self.before = self.map()

    def controller(self, store: SqliteStore) -> Controller:
        return Controller(LiveCluster(self.channel, now), store, POLICY)

    def propose(self, osd: int) -> Drain:
        """A drain that may begin."""
        store = SqliteStore(self.store)
        controller = self.controller(store)
        drain = controller.requests.propose(f"osd.{osd}", "operator", "test", now())
        approved = controller.requests.approve(drain.id, "operator", now())
        store.close()
        return approved

    def cancel(self, drain: Drain) -> None:
        store = SqliteStore(self.store)
        self.controller(store).requests.cancel(drain.id, "operator", now())
        store.close()

    def life(self, store: Path | None = None, **orders: object) -> Life:
        life = Life.begin(self.cluster, store or self.store, **orders)
        self.lives.append(life)
        return life

    def known(self, drain: Drain, path: Path | None = None) -> Drain:
        store = SqliteStore(path or self.store)
        try:
            found = store.drain(drain.id)
            assert found is not None
            return found
        finally:
            store.close()

    def journal(self, drain: Drain, path: Path | None = None) -> str:
        store = SqliteStore(path or self.store)
        try:
            return "\n".join(f"{e.seen} {e.decided} {e.answered}" for e in store.journal(drain.id))
        finally:
            store.close()

    def map(self) -> dict[str, Any]:
        """Return the values of the map and of the settings that a cancel must put back."""
        dump = self.cluster.json("osd dump")
        config = self.cluster.json("config dump")
        return {
            "weights": {osd["osd"]: (osd["weight"], osd["primary_affinity"]) for osd in dump["osds"]},
            "upmaps": dump["pg_upmap_items"],
            "flags": dump["flags"],
            "config": sorted(
                (row["section"], row["name"], row["value"])
                for row in config
                if "capacity" not in row["name"]  # OSDs measure theirs
            ),
            "balancer": self.cluster.json("balancer status", to="mgr")["active"],
        }

    def empty(self, osd: int) -> bool:
        return not any(osd in (*pg["up"], *pg["acting"]) for pg in self.cluster.pgs())

    def check_drained(self, drain: Drain) -> None:
        """No PG names the disk, every PG is whole, no upmap names it, every object reads back equal."""
        self.cluster.wait_clean()
        osd = drain.osds[0]
        assert self.empty(osd)
        assert all(len(set(pg["acting"])) == 3 for pg in self.cluster.pgs())
        assert not [
            row
            for row in self.cluster.json("osd dump")["pg_upmap_items"]
            for pair in row["mappings"]
            if pair["to"] == osd
        ]
        assert self.cluster.find_wrong_objects(POOL, self.written) == {}

    def put_back(self, drain: Drain) -> None:
        """Cancel, and find everything as it was."""
        self.cancel(drain)
        self.life(until=["cancelled"], lease_seconds=3.0, tick_seconds=0.5).until(done, "cancelled")
        self.cluster.wait_clean()
        assert self.map() == self.before
        assert self.cluster.find_wrong_objects(POOL, self.written) == {}

    def close(self) -> None:
        """Leave to the next test a cluster as this one found it, also after a failure."""
        for life in self.lives:
            life.end()
        for name in ConfigKeys(self.channel).names():
            ConfigKeys(self.channel).remove(name)
        self.channel.close()
        if self.map() != self.before:
            self._restore()

    def _restore(self) -> None:
        for osd, (weight, _) in self.before["weights"].items():
            if not self.cluster.alive(f"osd.{osd}"):
                self.cluster.spawn(f"osd.{osd}")
            self.cluster.command("osd reweight", id=osd, weight=float(weight))
        for row in self.cluster.json("osd dump")["pg_upmap_items"]:
            self.cluster.command("osd rm-pg-upmap-items", pgid=row["pgid"])
        self.cluster.command("balancer on", to="mgr")
        self.cluster.wait(lambda: len(self.cluster.osds()) == len(self.before["weights"]), 60, "all OSDs up")
        self.cluster.wait_clean()


def small(release: str, pgs: int) -> Iterator[MiniCluster]:
    """Four hosts of one OSD, PGs with objects, statistics every second; for a fixture `kept`."""
    with MiniCluster(release, hosts=4, per_host=1, size_gib=1) as running:
        running.command("config set", who="mgr", name="mgr_stats_period", value="1")
        running.command("config set", who="mgr", name="mgr/balancer/active", value="true")
        running.pool(POOL, pg_num=pgs, size=3)
        running.pool("predrain", pg_num=1, size=3)
        yield running


def now() -> datetime:
    return datetime.now(UTC)


def done(line: dict[str, Any]) -> bool:
    return line["what"] == "done"


def sent(line: dict[str, Any]) -> bool:
    return line["what"] == "sent" and "Upmap" in line["command"]


def held(word: str) -> Callable[[dict[str, Any]], bool]:
    return lambda line: line["what"] == "state" and any(word in sentence for sentence in line["held"])

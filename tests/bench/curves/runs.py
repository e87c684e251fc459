"""Three ways to lose a disk, on one cluster under one load: drained by predrain, put out in one step, stopped."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.latency_observer import LatencyObserver
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Rados
from predrain.actions.cluster.signed_keys import SignedKeys
from predrain.actions.controller.controller import Controller
from predrain.actions.core.decision_answers import TickReport
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.in_flight import list_watched_osds
from predrain.data.drain import Drain, DrainState
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.scheduler import LookCadence
from tests.bench.curves.client_latency import Window, by_second, window
from tests.bench.curves.load import Clients, settled
from tests.system.ceph.minicluster import CommandError, MiniCluster

Say = Callable[[str], None]
LATE = 4.0
"""Seconds that operations of a window are waited for, and that a window starts after what came before."""
LEAD = 5
"""Seconds before a run that its curve shows."""


@dataclass(slots=True)
class Run:
    """One way, from its first second to its last."""

    name: str
    begin: float
    end: float = 0.0
    felt: Window | None = None
    seconds: list[tuple[float, int, float]] = field(default_factory=list)
    idle: list[tuple[float, int]] = field(default_factory=list)
    """PGs that were not active in each dump, with its time (once a second; statistics are up to 5 s old)."""
    maps: int = 0
    """OSD maps that were made in it."""
    moved_bytes: int = 0
    """The bytes that moved, by the maps before and after the run."""
    note: str = ""

    @property
    def pgs_peering(self) -> int:
        """The most PGs that were not active in any dump."""
        return self.peering_between(self.begin, self.end)

    def peering_between(self, begin: float, end: float) -> int:
        """The same of a stretch of it."""
        return max((count for at, count in self.idle if begin <= at < end), default=0)


class Bench:
    """A cluster with data and clients at their rate."""

    def __init__(
        self, cluster: MiniCluster, clients: Clients, victim: int, data_shards: Mapping[str, int], say: Say
    ) -> None:
        """data_shards: by pool, how many shards hold an object's bytes between them."""
        self.cluster, self.clients, self.victim, self.say = cluster, clients, victim, say
        pools = cluster.json("osd dump")["pools"]
        self._data_shards = {str(pool["pool"]): data_shards.get(pool["pool_name"], 1) for pool in pools}

    def peak(self) -> float:
        """Operations a second that the cluster bears: the last step of a ramp whose p99 stays under 100 ms."""
        rate, borne = 100.0, 100.0
        while rate <= 20_000:
            self.clients.rate(rate)
            time.sleep(1)
            begin, end = settled(4)
            time.sleep(0.5)
            felt = window(self.clients.between(begin - LATE, end), begin, end)
            self.say(
                f"ramp: {rate:.0f} a second due, {felt.served / felt.seconds:.0f} served, p99 {felt.p99_ms:.0f} ms"
            )
            if felt.served < 0.95 * rate * felt.seconds or felt.p99_ms > 100:
                break
            borne, rate = rate, rate * 1.5
        self.clients.rate(0)
        time.sleep(3)
        return borne

    def timed(self, name: str, work: Callable[[], None]) -> Run:
        """One run, watched to its end."""
        run, over = Run(name, time.monotonic()), threading.Event()
        before, first = self._placed(), self.epoch()
        watcher = threading.Thread(target=self._watch, args=(run, over))
        watcher.start()
        work()
        over.set()
        watcher.join()
        run.end = time.monotonic()
        run.maps = self.epoch() - first
        run.moved_bytes = sum(
            size * len(set(members) - set(before[pg][0])) for pg, (members, size) in self._placed().items()
        )
        time.sleep(LATE)
        ops = self.clients.between(run.begin - LATE - LEAD, run.end)
        run.felt = window(ops, run.begin, run.end)
        rows = by_second(ops, run.begin - LEAD, run.end)
        run.seconds = [(second - LEAD, back, worst) for second, back, worst in rows]
        return run

    def epoch(self) -> int:
        """Return the epoch of the newest OSD map."""
        return int(self.cluster.json("osd stat")["epoch"])

    def _placed(self) -> dict[str, tuple[list[int], int]]:
        """Return the OSDs that serve each PG, and the bytes of one shard.

        Moved bytes are computed from maps, not from counters (ceph.md c).
        """
        return {
            pg["pgid"]: (
                pg["acting"],
                pg["stat_sum"]["num_bytes"] // self._data_shards[pg["pgid"].split(".")[0]],
            )
            for pg in self.cluster.pgs()
        }

    def _watch(self, run: Run, over: threading.Event) -> None:
        """Count PGs that are not active, once a second."""
        while not over.wait(1.0):
            with suppress(CommandError):
                idle = sum("active" not in pg["state"] for pg in self.cluster.pgs())
                run.idle.append((time.monotonic(), idle))

    def out(self) -> None:
        """`ceph osd out` under the release's defaults, to the last PG."""
        self.cluster.command("osd out", ids=[str(self.victim)])
        self._until_healed()

    def stopped(self) -> None:
        """The OSD dies; it is put out at once, where a cluster would wait ten minutes."""
        self.cluster.kill(f"osd.{self.victim}")
        others = len(self.cluster.osds(up_only=False)) - 1
        self.cluster.wait(
            lambda: self.cluster.json("osd stat")["num_up_osds"] == others, 60, "the death is seen"
        )
        self.cluster.command("osd out", ids=[str(self.victim)])
        self._until_healed()

    def restore(self) -> None:
        """Everything as it was, as fast as it goes; nobody measures."""
        if not self.cluster.alive(f"osd.{self.victim}"):
            self.cluster.restart(f"osd.{self.victim}")
            self.cluster.wait(lambda: self.victim in self.cluster.osds(), 60, "the OSD is up again")
        haste = {"osd_max_backfills": "8", "osd_recovery_max_active": "16", "osd_recovery_sleep_hdd": "0"}
        with suppress(CommandError):  # Pacific knows no such option
            self.cluster.command(
                "config set", who="osd", name="osd_mclock_override_recovery_settings", value="true"
            )
            time.sleep(1)  # values that reach an OSD before the override are ignored
        for name, value in haste.items():
            self.cluster.command("config set", who="osd", name=name, value=value)
        self.cluster.command("osd in", ids=[str(self.victim)])
        self.cluster.command("osd reweight", id=self.victim, weight=1.0)
        for item in self.cluster.json("osd dump")["pg_upmap_items"]:
            self.cluster.command("osd rm-pg-upmap-items", pgid=item["pgid"])
        self._until_healed()
        for name in haste:
            self.cluster.command("config rm", who="osd", name=name)
        with suppress(CommandError):
            self.cluster.command("config rm", who="osd", name="osd_mclock_override_recovery_settings")
        time.sleep(5)

    def _until_healed(self) -> None:
        def healed() -> bool:
            pgs = self.cluster.pgs()
            return all(pg["state"].startswith("active+clean") and pg["up"] == pg["acting"] for pg in pgs)

        time.sleep(6)
        self.cluster.flush()
        self.cluster.wait(healed, 900, "every PG where it belongs")


class Drainage:
    """predrain's own controller over the live cluster. The controller acts only in the methods of this class."""

    def __init__(self, cluster: MiniCluster, victim: int, policy: Policy, say: Say) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._store = SqliteStore(Path(self._folder.name, "store.db"))
        self._channel = Rados(cluster.connection())
        senses = LatencyObserver(self._channel, "predrain", lambda: list_watched_osds(self._store.drains()))
        live = LiveCluster(self._channel, now, senses=senses)
        self.policy, self._say, self._cluster = policy, say, cluster
        self._cadence = LookCadence(policy)
        # A controller sets fast maps only with a config_key store, where another controller can find the setting.
        keep = SignedKeys(ConfigKeys(self._channel), "a key for benches, of thirty-two letters or more")
        self.controller = Controller(live, self._store, policy, keep=keep)
        self.controller.tick(now())
        asked = self.controller.requests.propose(f"osd.{victim}", "bench", "the three curves", now())
        self._id = self.controller.requests.approve(asked.id, "bench", now()).id

    @property
    def drain(self) -> Drain:
        """The drain as the store has it."""
        return self.controller.requests.get_drain(self._id)

    @property
    def over(self) -> bool:
        """Nothing is left to move."""
        return self.drain.state in (DrainState.DRAINED, DrainState.VERIFIED)

    def prepare(self) -> None:
        """Plan it and come to the point where the next tick moves data."""
        while self.drain.state in (DrainState.APPROVED, DrainState.PREPARING):
            self._tick()

    def pace_maps(self, seconds: float | None) -> None:
        """Let maps follow each other at this interval while PGs move (None: as Ceph does), seen in force. One look."""
        self.controller.policy = self.policy = replace(self.policy, fast_maps_seconds=seconds)
        self._tick()
        self.rest(60)
        wanted = f"{seconds:.6f}" if seconds else None
        rows = {
            row["value"]
            for row in self._cluster.json("config dump")
            if row["name"] == "paxos_propose_interval"
        }
        self._say(f"maps at {seconds or 1:g} s: {'in force' if rows == {wanted} - {None} else rows}")

    def go(self, seconds: float) -> None:
        """Drain for so long, or to the end."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.over:
            self._tick()
            time.sleep(max(0.0, min(self._cadence.seconds, until - time.monotonic())))

    def hold(self, seconds: float) -> None:
        """Look as often as while draining, and move nothing: a pause, so that only the moving tells the two apart."""
        self.controller.requests.pause(self._id, "bench", now())
        self.go(seconds)
        self.controller.requests.resume(self._id, "bench", now())

    def rest(self, seconds: float) -> None:
        """Send nothing until what is on its way has arrived, for at most so long."""

        def arrived() -> bool:
            return all(pg["up"] == pg["acting"] for pg in self._cluster.pgs())

        with suppress(TimeoutError):
            self._cluster.wait(arrived, seconds, "what is on its way has arrived")

    def close(self) -> None:
        """Let cluster and store go."""
        self._channel.close()
        self._store.close()
        self._folder.cleanup()

    def _tick(self) -> TickReport:
        report = self.controller.tick(now())
        self._cadence.note_look(report)
        done = self.drain.progress
        words = "; ".join(f"{step.decided} ({step.seen})" for step in report.steps) or " ".join(
            self.drain.held_by
        )
        if words or report.trouble:
            self._say(f"{self.drain.state}: {done.moved_pgs}/{done.planned_pgs} PGs; {words}{report.trouble}")
        return report


def now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)

"""A controller on a simulated cluster, watched from outside; time passes only when a test says so."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from predrain.actions.cluster.cluster_port import Cluster
from predrain.actions.controller.controller import Controller
from predrain.actions.core.decision_answers import ProposalRefusal, TickReport
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import Refuse
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import Drain, DrainState, JournalEntry
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import Outlook
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import Store
from tests.actions.checkers import Watched
from tests.actions.made import keep_history

ENOUGH = 3_000
"""Ticks after which a drain that has not ended is stuck."""


def scratch() -> Path:
    """A folder for one store; in memory where the machine has such a place, for nothing is measured on it."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="predrain-", dir=memory if memory.is_dir() else None))


@dataclass
class Run:
    """One cluster, one store, one controller after another."""

    spec: ClusterSpec
    seed: int = 1
    policy: Policy = field(default_factory=Policy)
    tick_seconds: float = 10.0
    outlooks: dict[DeviceId, Outlook] = field(default_factory=dict)

    _recorded: dict[DeviceId, Outlook] = field(default_factory=dict)
    """The outlooks whose readings the store has."""

    def __post_init__(self) -> None:
        self.folder = scratch()
        self.cluster = SimulatedCluster(self.spec, self.seed)
        self.store: Store = SqliteStore(self.folder / "store.db")
        self.watched = Watched(
            self.cluster,
            self.policy,
            lambda: self.store.halt_reason() is not None,
            lambda: self.store.drains(),
        )
        self.controller = self.started()

    def close(self) -> None:
        """Let go of the store and its folder."""
        self.store.close()
        for path in self.folder.iterdir():
            path.unlink()
        self.folder.rmdir()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def started(self, cluster: Cluster | None = None, store: Store | None = None) -> Controller:
        """A new process on the same store."""
        self.controller = Controller(cluster or self.watched, store or self.store, self.policy)
        return self.controller

    def tick(self, seconds: float | None = None) -> TickReport:
        """Time passes, then the controller ticks."""
        self.cluster.advance(self.tick_seconds if seconds is None else seconds)
        self.record()
        report = self.controller.tick(self.cluster.now, self.outlooks)
        self.watched.check_between()
        if report.halted is not None and report.view is not None:
            self.watched.check_halted(report.commands)
        return report

    def record(self) -> None:
        """Let the store have the readings that bear the outlooks out."""
        for outlook in self.outlooks.values():
            if self._recorded.get(outlook.device) != outlook:
                keep_history(self.store, outlook)
                self._recorded[outlook.device] = outlook

    def ticks(self, count: int) -> None:
        """`count` ticks."""
        for _ in range(count):
            self.tick()

    def drain(self, target: str) -> Drain:
        """Propose and approve a drain by a person's word."""
        if self.controller.view is None:
            self.tick()
        drain = self.controller.requests.propose(target, "operator", "test", self.cluster.now)
        return self.controller.requests.approve(drain.id, "operator", self.cluster.now)

    def known(self, drain: Drain) -> Drain:
        """The drain as the store has it."""
        return self.controller.requests.get_drain(drain.id)

    def until(self, drain: Drain, *states: DrainState, most: int = ENOUGH) -> Drain:
        """Tick until the drain is in one of `states`."""
        for _ in range(most):
            found = self.known(drain)
            if found.state in states:
                return found
            self.tick()
        found = self.known(drain)
        raise AssertionError(f"{found.state} after {most} ticks, held by {found.held_by}, {found.progress}")

    def transcript(self, drain: Drain) -> str:
        """The drain's journal as text: seconds since the start, seen, decided, answered."""
        lines = [self._line(entry) for entry in self.store.journal(drain.id)]
        return "\n".join(lines) + "\n"

    def _line(self, entry: JournalEntry) -> str:
        at = (entry.at - self.cluster.now).total_seconds() + self.elapsed
        words = [word for word in (entry.seen, entry.decided, entry.answered) if word]
        return f"{at:7.0f} s  {' -> '.join(words)}" + (
            f" ({entry.caller})" if entry.caller != "controller" else ""
        )

    @property
    def elapsed(self) -> float:
        """Seconds since the simulation began."""
        begun = SimulatedCluster(self.spec, self.seed).now
        return (self.cluster.now - begun).total_seconds()


def list_refusals(report: TickReport) -> Mapping[DeviceId, tuple[Refuse, ...]]:
    """The bad disks for which nothing was proposed, with the reasons."""
    return {one.device: one.refusals for one in report.answers if isinstance(one, ProposalRefusal)}


def map_of(run: Run) -> Mapping[str, object]:
    """Everything of the map and the settings that a drain may touch."""
    view = run.cluster.view()
    return {
        "weights": {
            osd.id: (osd.reweight, osd.crush_weight, osd.primary_affinity) for osd in view.osds.values()
        },
        "upmaps": dict(view.upmap_items),
        "up": {pg.id: pg.up for pg in view.pgs.values()},
        "flags": view.flags,
        "settings": dict(view.settings),
        "balancer": view.balancer_active,
    }


def whole(run: Run, ids: Iterable[str] | None = None) -> bool:
    """Return whether every PG really has all its copies."""
    return all(pg.copies == pg.pool.size for pg in run.cluster.truth().pgs.values())


def empty(run: Run, osd: int) -> bool:
    """Return whether no PG names the OSD and the OSD holds no data."""
    truth = run.cluster.truth()
    named = any(osd in pg.up or osd in pg.acting for pg in truth.pgs.values())
    return not named and truth.used_bytes[OsdId(osd)] == 0

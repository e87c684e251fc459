"""The mgr's knowledge of the PGs: true some seconds ago, empty after a restart, and wrong during an injected
fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from predrain.actions.cluster.cluster_view import Pg
from predrain.actions.simulator.cluster_spec import Physics
from predrain.actions.simulator.event_queue import Timeline
from predrain.data.ids import PgId

_CLEAN = frozenset({"active", "clean"})
_UNKNOWN = frozenset({"unknown"})
_UNHEALTHY = frozenset({"degraded", "undersized", "peering", "down", "peered", "stale", "backfill_toofull"})
_DUMP_SECONDS = 2.0


class ReportingMgr:
    """The mgr. Reports come from each PG's primary and arrive `report_seconds` after the change that caused
    them.
    """

    def __init__(
        self,
        timeline: Timeline,
        physics: Physics,
        random: Random,
        pgs: Mapping[int, PgId],
        read: Callable[[int], Pg],
    ) -> None:
        """pgs: every PG by its index, as the map has them at any time. read: returns what a PG's primary
        would report now.
        """
        self._timeline, self._physics, self._random, self._read = timeline, physics, random, read
        self._pgs = pgs
        self._due: set[int] = set()
        self._held: set[int] = set()
        self._number, self._began = 1, timeline.now
        self._blocked_until = self._empty_until = self._frozen_until = self._lying_until = -1.0
        self._frozen_at = 0.0
        self._unhealthy = 0
        self.pgs: dict[PgId, Pg] = {pg: read(index) for index, pg in pgs.items()}
        self._shown: dict[PgId, Pg] | None = None

    @property
    def id(self) -> str:
        """The mgr's id. Another id means another mgr."""
        return f"mgr.{self._number}"

    @property
    def is_blocked(self) -> bool:
        """True while commands to the mgr hang."""
        return self._timeline.now < self._blocked_until

    @property
    def is_empty(self) -> bool:
        """True until the mgr has received reports from OSDs."""
        return self._timeline.now < self._empty_until

    @property
    def stamp(self) -> float:
        """The time at which the statistics were taken."""
        now = self._frozen_at if self._frozen else self._timeline.now
        return now - (now - self._began) % _DUMP_SECONDS

    @property
    def version(self) -> int:
        """The version of the PG dump. It grows with each dump and starts again with a new mgr."""
        return 2 + int((self.stamp - self._began) / _DUMP_SECONDS)

    @property
    def has_unhealthy_pgs(self) -> bool:
        """True if the known PGs keep the health from HEALTH_OK; unknown PGs do not (as recorded)."""
        return self._unhealthy > 0

    def list_pgs(self) -> Mapping[PgId, Pg]:
        """Return the known PGs at this instant: the same mapping as before if no report has come since."""
        if self._shown is None:
            self._shown = dict(self.pgs)
        return self._shown

    def queue_report(self, index: int) -> None:
        """Schedule the report of a PG that changed."""
        if index not in self._due:
            self._due.add(index)
            self._timeline.schedule_after(
                self._random.uniform(*self._physics.report_seconds), _Arrival(self, index)
            )

    def receive_report(self, index: int) -> None:
        """Receive a PG's report of the present state."""
        self._due.discard(index)
        if index not in self._pgs:
            return
        if self._frozen or self.is_empty or self._lying:
            self._held.add(index)
            return
        self._keep(self._read(index))

    def restart(self) -> None:
        """Replace the mgr by another one: first silent, then without statistics, then with all of them."""
        now = self._timeline.now
        self._number += 1
        self._blocked_until = now + self._physics.mgr_blocked_seconds
        self._empty_until = now + self._physics.mgr_empty_seconds
        self._frozen_until = self._lying_until = -1.0
        self._began = now
        for pg in list(self.pgs.values()):
            self._keep(replace(pg, states=_UNKNOWN, up=(), acting=(), reported_epoch=0))
        self._timeline.schedule_at(self._empty_until, self._hear_all)

    def freeze(self, seconds: float) -> None:
        """Stop incoming statistics and the dump's stamp."""
        if not self._frozen:
            self._frozen_at = self._timeline.now
        self._frozen_until = self._timeline.now + seconds
        self._timeline.schedule_at(self._frozen_until, self._hear_held)

    def start_lying(self, seconds: float) -> None:
        """Make the dump say `active+clean` of every PG, with fresh stamps and the members last known."""
        self._lying_until = self._timeline.now + seconds
        for pg in list(self.pgs.values()):
            if pg.states != _CLEAN:
                self._held.add(self._index_of(pg.id))
                self._keep(replace(pg, states=_CLEAN, degraded_objects=0))
        self._timeline.schedule_at(self._lying_until, self._hear_held)

    @property
    def _frozen(self) -> bool:
        return self._timeline.now < self._frozen_until

    @property
    def _lying(self) -> bool:
        return self._timeline.now < self._lying_until

    def _index_of(self, pg: PgId) -> int:
        return next(index for index, known in self._pgs.items() if known == pg)

    def _hear_held(self) -> None:
        if not (self._frozen or self.is_empty or self._lying):
            held, self._held = sorted(self._held), set()
            for index in held:
                self.receive_report(index)

    def _hear_all(self) -> None:
        if not self.is_empty:
            self._held.clear()
            for index in self._pgs:
                self._keep(self._read(index))

    def learn_pgs(self, pool: int) -> None:
        """Update the PGs of a pool. A new PG is unknown until it reports, and a merged one is forgotten."""
        known = set(self._pgs.values())
        self._shown = None
        for gone in self.pgs.keys() - known:
            self._unhealthy -= bool(_UNHEALTHY & self.pgs.pop(gone).states)
        for pg in sorted(known - self.pgs.keys()):
            self._keep(Pg(pg, pool, _UNKNOWN, up=(), acting=(), shard_bytes=0))

    def _keep(self, report: Pg) -> None:
        self._shown = None
        before = self.pgs.get(report.id)
        self._unhealthy += bool(_UNHEALTHY & report.states)
        self._unhealthy -= before is not None and bool(_UNHEALTHY & before.states)
        self.pgs[report.id] = report


class _Arrival:
    __slots__ = ("_index", "_mgr")

    def __init__(self, mgr: ReportingMgr, index: int) -> None:
        self._mgr, self._index = mgr, index

    def __call__(self) -> None:
        self._mgr.receive_report(self._index)

"""What the mgr knows of the PGs: true some seconds ago, empty after a restart, and now and then a lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from predrain.actions.cluster.view import Pg
from predrain.actions.simulator.events import Timeline
from predrain.actions.simulator.spec import Physics
from predrain.data.ids import PgId

_CLEAN = frozenset({"active", "clean"})
_UNKNOWN = frozenset({"unknown"})
_UNHEALTHY = frozenset({"degraded", "undersized", "peering", "down", "peered", "stale", "backfill_toofull"})
_DUMP_SECONDS = 2.0


class ReportingMgr:
    """Reports travel from each PG's primary and arrive `report_seconds` after the change that caused them."""

    def __init__(
        self,
        timeline: Timeline,
        physics: Physics,
        random: Random,
        pgs: Mapping[int, PgId],
        read: Callable[[int], Pg],
    ) -> None:
        """pgs: every PG by its index, as the map has them at any time. read: what a PG's primary would say now."""
        self._timeline, self._physics, self._random, self._read = timeline, physics, random, read
        self._pgs = pgs
        self._due: set[int] = set()
        self._held: set[int] = set()
        self._number, self._began = 1, timeline.now
        self._blocked_until = self._empty_until = self._frozen_until = self._lying_until = -1.0
        self._frozen_at = 0.0
        self._unhealthy = 0
        self.pgs: dict[PgId, Pg] = {pg: read(index) for index, pg in pgs.items()}

    @property
    def id(self) -> str:
        """Another id is another mgr."""
        return f"mgr.{self._number}"

    @property
    def blocked(self) -> bool:
        """Commands to it hang."""
        return self._timeline.now < self._blocked_until

    @property
    def empty(self) -> bool:
        """It has heard from no OSD yet."""
        return self._timeline.now < self._empty_until

    @property
    def stamp(self) -> float:
        """When the statistics were taken."""
        now = self._frozen_at if self._frozen else self._timeline.now
        return now - (now - self._began) % _DUMP_SECONDS

    @property
    def version(self) -> int:
        """Of the PG dump; grows with each, starts anew with the mgr."""
        return 2 + int((self.stamp - self._began) / _DUMP_SECONDS)

    @property
    def unhealthy(self) -> bool:
        """Whether the PGs that it knows keep it from HEALTH_OK; unknown ones do not (as recorded)."""
        return self._unhealthy > 0

    def note(self, index: int) -> None:
        """A PG changed; its report is on the way."""
        if index not in self._due:
            self._due.add(index)
            self._timeline.after(self._random.uniform(*self._physics.report_seconds), _Arrival(self, index))

    def arrive(self, index: int) -> None:
        """A report comes in with what is true now."""
        self._due.discard(index)
        if index not in self._pgs:
            return
        if self._frozen or self.empty or self._lying:
            self._held.add(index)
            return
        self._keep(self._read(index))

    def restart(self) -> None:
        """Another mgr takes over: first silent, then without statistics, then whole again."""
        now = self._timeline.now
        self._number += 1
        self._blocked_until = now + self._physics.mgr_blocked_seconds
        self._empty_until = now + self._physics.mgr_empty_seconds
        self._frozen_until = self._lying_until = -1.0
        self._began = now
        for pg in list(self.pgs.values()):
            self._keep(replace(pg, states=_UNKNOWN, up=(), acting=(), reported_epoch=0))
        self._timeline.at(self._empty_until, self._hear_all)

    def freeze(self, seconds: float) -> None:
        """No statistics come in and the dump's stamp stands still."""
        if not self._frozen:
            self._frozen_at = self._timeline.now
        self._frozen_until = self._timeline.now + seconds
        self._timeline.at(self._frozen_until, self._hear_held)

    def lie(self, seconds: float) -> None:
        """The dump has fresh stamps and says `active+clean` of every PG, as it last knew their members."""
        self._lying_until = self._timeline.now + seconds
        for pg in list(self.pgs.values()):
            if pg.states != _CLEAN:
                self._held.add(self._index_of(pg.id))
                self._keep(replace(pg, states=_CLEAN, degraded_objects=0))
        self._timeline.at(self._lying_until, self._hear_held)

    @property
    def _frozen(self) -> bool:
        return self._timeline.now < self._frozen_until

    @property
    def _lying(self) -> bool:
        return self._timeline.now < self._lying_until

    def _index_of(self, pg: PgId) -> int:
        return next(index for index, known in self._pgs.items() if known == pg)

    def _hear_held(self) -> None:
        if not (self._frozen or self.empty or self._lying):
            held, self._held = sorted(self._held), set()
            for index in held:
                self.arrive(index)

    def _hear_all(self) -> None:
        if not self.empty:
            self._held.clear()
            for index in self._pgs:
                self._keep(self._read(index))

    def learn_pgs(self, pool: int) -> None:
        """A pool has other PGs by now: of a new one nobody has told yet, and a merged one is forgotten."""
        known = set(self._pgs.values())
        for gone in self.pgs.keys() - known:
            self._unhealthy -= bool(_UNHEALTHY & self.pgs.pop(gone).states)
        for pg in sorted(known - self.pgs.keys()):
            self._keep(Pg(pg, pool, _UNKNOWN, up=(), acting=(), shard_bytes=0))

    def _keep(self, report: Pg) -> None:
        before = self.pgs.get(report.id)
        self._unhealthy += bool(_UNHEALTHY & report.states)
        self._unhealthy -= before is not None and bool(_UNHEALTHY & before.states)
        self.pgs[report.id] = report


class _Arrival:
    __slots__ = ("_index", "_mgr")

    def __init__(self, mgr: ReportingMgr, index: int) -> None:
        self._mgr, self._index = mgr, index

    def __call__(self) -> None:
        self._mgr.arrive(self._index)

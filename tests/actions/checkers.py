"""Checkers that stand outside the engine: they sit between it and the simulated cluster and read what
really is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from actions.cluster.port import (
    Answer,
    Command,
    CrushReweight,
    PrimaryAffinity,
    RemoveUpmap,
    Reweight,
    SetUpmap,
)
from actions.cluster.simulated import SimulatedCluster
from actions.cluster.view import ClusterView
from actions.crush.map import ITEM_NONE
from actions.policy import Policy
from data.drain import Drain, DrainState
from data.ids import OsdId, PgId

_MOVING = (DrainState.PREPARING, DrainState.DRAINING, DrainState.HOLDING)
_MAP_CHANGES = (SetUpmap, RemoveUpmap, Reweight, CrushReweight, PrimaryAffinity)


class UnsafeStep(AssertionError):  # noqa: N818  (it is a verdict)
    """The engine did what it must never do."""


@dataclass
class Watched:
    """A cluster whose every command is judged by what it does to the truth."""

    cluster: SimulatedCluster
    policy: Policy
    halted: Callable[[], bool]
    commands: list[Command] = field(default_factory=list)
    _peering: set[PgId] = field(default_factory=set)
    _shard_bytes: dict[PgId, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._shard_bytes = {pg.id: pg.shard_bytes for pg in self.cluster.view().pgs.values()}

    def view(self) -> ClusterView:
        """The port's look; a new look begins a new tick."""
        self._peering = set()
        return self.cluster.view()

    def apply(self, command: Command) -> Answer:
        """Send the command, and compare what was with what is."""
        if self.halted():
            raise UnsafeStep(f"{command} was sent while everything is halted")
        truth = self.cluster.truth().pgs
        before = {id_: (pg.copies, pg.up) for id_, pg in truth.items()}
        stranded = self._over_limit()
        self.commands.append(command)
        try:
            return self.cluster.apply(command)
        finally:
            self._judge(command, before, stranded)

    def _judge(
        self, command: Command, before: dict[PgId, tuple[int, tuple[int, ...]]], stranded: set[OsdId]
    ) -> None:
        truth = self.cluster.truth().pgs
        for id_, (copies, up) in before.items():
            pg = truth[id_]
            if pg.copies < copies:
                raise UnsafeStep(f"{command}: PG {id_} had {copies} copies and has {pg.copies}")
            if pg.up != up:
                self._peering.add(id_)
                live = [osd for osd in pg.up if osd != ITEM_NONE]
                if len(set(live)) < len(set(up) - {ITEM_NONE}):
                    raise UnsafeStep(f"{command}: PG {id_} up {up} became {pg.up}")
        if isinstance(command, _MAP_CHANGES) and len(self._peering) > self.policy.peering_max:
            raise UnsafeStep(
                f"{command}: {len(self._peering)} PGs peer at once, limit {self.policy.peering_max}"
            )
        fresh = self._over_limit() - stranded
        if fresh and isinstance(command, SetUpmap):
            raise UnsafeStep(f"{command}: osd.{min(fresh)} would pass its limit")

    def _over_limit(self) -> set[OsdId]:
        """OSDs that would pass the limit once everything that is on its way to them has arrived."""
        spec, truth = self.cluster.spec, self.cluster.truth()
        limit = min(spec.nearfull_ratio, spec.backfillfull_ratio - self.policy.backfillfull_margin)
        coming: dict[int, int] = {}
        for pg in truth.pgs.values():
            for osd in set(pg.up) - set(pg.members) - {ITEM_NONE}:
                coming[osd] = coming.get(osd, 0) + self._shard_bytes[pg.id]
        return {
            osd
            for osd, size in truth.size_bytes.items()
            if truth.used_bytes[osd] + coming.get(osd, 0) > limit * size
        }

    def check_between(self, drains: tuple[Drain, ...]) -> None:
        """Between ticks: PGs on their way for drains, and drains a host."""
        draining = {osd for drain in drains if drain.state in _MOVING for osd in drain.osds}
        flying = [
            pg.id
            for pg in self.cluster.truth().pgs.values()
            if draining & (set(pg.members) - set(pg.up)) and self._dead_free(pg.up)
        ]
        if len(flying) > self.policy.in_flight_max:
            raise UnsafeStep(f"{len(flying)} PGs on their way, limit {self.policy.in_flight_max}")
        host = {osd.id: osd.host for osd in self.cluster.spec.osds}
        hosts = [host[drain.osds[0]] for drain in drains if drain.state in _MOVING]
        most = max((hosts.count(host) for host in hosts), default=0)
        if most > self.policy.drains_per_host:
            raise UnsafeStep(f"{most} drains on one host, limit {self.policy.drains_per_host}")

    def _dead_free(self, up: tuple[int, ...]) -> bool:
        return all(osd in self.cluster.truth().up for osd in up if osd != ITEM_NONE)

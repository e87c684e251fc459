"""A light probe: a few small writes and reads of our own a look, each at an OSD that leads a PG of our pool."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import lru_cache

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.latency import LatencySample, LatencySource
from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.view import ClusterView
from predrain.actions.crush.naming import names_of
from predrain.data.clock import lately
from predrain.data.ids import OsdId, pg_id

PROBES = 8
"""At most so many a look; one of them goes to OSDs of no plan, which may be in one tomorrow."""
SECONDS = 1.0
"""Once a look's probes took so long together, the rest wait for the next look."""
BYTES = 4096
_SILENT_FOR = timedelta(minutes=10)
_PREFIX = "probe."
_PGS_MAX = 4096


class Probes:
    """Takes turns among OSDs: those that it asked longest ago come first."""

    def __init__(self, channel: CommandChannel, pool: str) -> None:
        self._channel, self._pool = channel, pool
        self._asked: dict[OsdId, int] = {}
        self._silent: dict[OsdId, datetime] = {}
        self._turn = 0

    def take(
        self, view: ClusterView, moving: Collection[OsdId], planned: Collection[OsdId], now: datetime
    ) -> tuple[LatencySample, ...]:
        """Probe a few OSDs: `moving` ones, which move data for a drain, before `planned` ones before others. Only OSDs
        that lead an active PG of the pool can be asked; without the pool there are no samples, and an OSD that did not
        answer is left alone for ten minutes, since each silence costs a look its deadline.
        """
        self._silent = {osd: at for osd, at in self._silent.items() if lately(at, now, _SILENT_FOR)}
        leads = self._leads(view)
        able = leads.keys() - self._silent.keys()
        first, rest = self._by_turn(able & set(moving)), self._by_turn(able & set(planned) - set(moving))
        others = self._by_turn(able - set(moving) - set(planned))
        chosen = [*first[: PROBES - bool(rest) - bool(others)], *rest][: PROBES - bool(others)]
        chosen += others[: PROBES - len(chosen)]
        samples: list[LatencySample] = []
        for osd in chosen:
            self._turn += 1
            self._asked[osd] = self._turn
            try:
                took = self._channel.probe(self._pool, leads[osd], BYTES)
            except ClusterUnreachable:
                self._silent[osd] = now
                break
            samples.append(LatencySample(osd, now, LatencySource.PROBE, 1000 * took))
            if sum(sample.ms for sample in samples) >= 1000 * SECONDS:
                break
        return tuple(samples)

    def _by_turn(self, osds: Collection[OsdId]) -> list[OsdId]:
        return sorted(osds, key=lambda osd: (self._asked.get(osd, 0), osd))

    def _leads(self, view: ClusterView) -> dict[OsdId, str]:
        """The name of one object that each OSD leads."""
        pool = next((pool for pool in view.pools.values() if pool.name == self._pool), None)
        if pool is None or pool.pg_num > _PGS_MAX:
            return {}
        leads: dict[OsdId, str] = {}
        for seed, name in _names(pool.pg_num).items():
            pg = view.pgs.get(pg_id(pool.id, seed))
            if pg is not None and "active" in pg.states and pg.acting and OsdId(pg.acting[0]) in view.osds:
                leads.setdefault(OsdId(pg.acting[0]), name)
        return leads


@lru_cache(maxsize=4)
def _names(pg_num: int) -> dict[int, str]:
    return names_of(pg_num, _PREFIX)

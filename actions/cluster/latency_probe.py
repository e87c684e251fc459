"""A light probe: a few small writes and reads per poll, each at an OSD that is the primary of a PG of our pool."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from functools import lru_cache

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_latency import LatencySample, LatencySource
from predrain.actions.crush.object_hash import names_of
from predrain.data.clock import is_within_last
from predrain.data.ids import OsdId, pg_id

PROBES = 8
"""The most probes per poll. One of them goes to OSDs without a plan, which may be part of one later."""
SECONDS = 1.0
"""When the probes of a poll have taken this long together, the rest wait for the next poll."""
BYTES = 4096
_SILENT_FOR = timedelta(minutes=10)
_PREFIX = "probe."
_PGS_MAX = 4096


class Probes:
    """Probes OSDs in turn, beginning with those probed longest ago."""

    def __init__(self, channel: CommandChannel, pool: str) -> None:
        self._channel, self._pool = channel, pool
        self._asked: dict[OsdId, int] = {}
        self._silent: dict[OsdId, datetime] = {}
        self._turn = 0

    def probe_osds(
        self, view: ClusterView, moving: Collection[OsdId], planned: Collection[OsdId], now: datetime
    ) -> tuple[LatencySample, ...]:
        """Probe a few OSDs: first `moving` ones, which move data for a drain, then `planned` ones, then others.

        Only an OSD that is the primary of an active PG of the pool can be probed. Without the pool there are no
        samples. An OSD that did not answer is left out for ten minutes, since each missing answer costs a poll its
        deadline.
        """
        self._silent = {osd: at for osd, at in self._silent.items() if is_within_last(at, now, _SILENT_FOR)}
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
        """Return, for each OSD, the name of one object whose PG has the OSD as its primary."""
        pool = next((pool for pool in view.pools.values() if pool.name == self._pool), None)
        if pool is None or pool.pg_num > _PGS_MAX:
            return {}
        leads: dict[OsdId, str] = {}
        for seed, name in _name_probe_objects(pool.pg_num).items():
            pg = view.pgs.get(pg_id(pool.id, seed))
            if pg is not None and "active" in pg.states and pg.acting and OsdId(pg.acting[0]) in view.osds:
                leads.setdefault(OsdId(pg.acting[0]), name)
        return leads


@lru_cache(maxsize=4)
def _name_probe_objects(pg_num: int) -> dict[int, str]:
    return names_of(pg_num, _PREFIX)

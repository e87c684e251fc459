"""What clients feel: closed-loop reads and writes over all PGs, slowed by peering, backfill and sick disks.

An op on a PG that peers waits until it has peered; any other op takes a floor plus an exponential tail on
the disk that serves it, stretched by that disk's slowness and by the backfills it serves. Clients keep
their ops in flight, so IOPS fall as mean latency rises. Calibrated on real clusters: p50 3.4 ms, p99 12 ms
at rest; all disks backfilling once each takes about a tenth of the IOPS; a peering PG holds an op for up to
two seconds, and for four where an OSD ended suddenly. Long waits are counted of the ops that were due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from predrain.actions.simulator.spec import Physics

_SLOW_OP_SECONDS = 0.25
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """What clients saw since the last look. Rates are means over the window; latencies hold for its ops."""

    seconds: float
    offered_iops: float
    served_iops: float
    p50_ms: float
    p99_ms: float
    worst_ms: float
    slow_ops: float
    """Ops over 250 ms."""


class Clients:
    """The load on the cluster, integrated between events."""

    def __init__(self, physics: Physics, osds: list[int], pgs: int) -> None:
        self._physics, self._pgs = physics, max(1, pgs)
        self._row = {osd: row for row, osd in enumerate(osds)}
        self._streams = np.zeros(len(osds))
        self._slow = np.ones(len(osds))
        self._usual: dict[int, tuple[float, float]] = {}
        self._strain = float(len(osds))
        self._peering = 0
        self._peering_seconds = 0.0
        self._blocked = 0
        self._seconds = self._served = self._waited = self._slow_ops = self._worst_ms = 0.0

    def load(self, osd: int, streams: float) -> None:
        """The OSD serves so many backfills now."""
        self._change(osd, streams=streams)

    def slow(self, osd: int, factor: float, now: float) -> None:
        """The disk answers `factor` times as slowly as a healthy one from now on."""
        self._usual[osd] = (self._usually(osd, now), now)
        self._change(osd, slow=factor)

    def slowness(self, osd: int) -> float:
        return float(self._slow[self._row[osd]])

    def count_pgs(self, pgs: int) -> None:
        """Their ops are spread over so many PGs from now on."""
        self._pgs = max(1, pgs)

    def begin_peering(self, seconds: float) -> None:
        """One more PG peers; its ops wait up to `seconds`."""
        self._peering += 1
        self._peering_seconds += seconds
        arrivals = self._physics.client_iops / self._pgs * seconds
        self._worst_ms = max(self._worst_ms, 1000 * seconds * arrivals / (1 + arrivals))

    def end_peering(self, seconds: float) -> None:
        """A PG that was said to peer for so long has peered."""
        self._peering -= 1
        self._peering_seconds = self._peering_seconds - seconds if self._peering else 0.0

    def block(self, change: int) -> None:
        """So many more PGs serve nobody (down, or below min_size)."""
        self._blocked += change

    def pass_time(self, seconds: float) -> None:
        """Account a stretch during which nothing changed."""
        physics = self._physics
        wait = self._peering_seconds / self._peering / 2 if self._peering else 0.0
        waiting = self._peering / self._pgs
        at_rest = physics.latency_floor_ms + physics.latency_tail_ms
        latency = at_rest * self._mean_strain() + waiting * wait * 1000
        served = physics.client_iops * (1 - self._blocked / self._pgs) * at_rest / latency
        self._seconds += seconds
        self._served += served * seconds
        self._waited += served * waiting * seconds
        long = max(0.0, 1 - _SLOW_OP_SECONDS / (2 * wait)) if wait else 0.0
        # Who waits sends none, and would not count those that it did not send.
        self._slow_ops += physics.client_iops * waiting * long * seconds

    def look(self) -> ClientLoad:
        """The load since the last look; starts a new window."""
        if not self._seconds:
            self.pass_time(1e-9)
        waiting = self._waited / self._served if self._served else 0.0
        load = ClientLoad(
            seconds=self._seconds,
            offered_iops=self._physics.client_iops,
            served_iops=self._served / self._seconds,
            p50_ms=self._quantile(0.5, waiting),
            p99_ms=self._quantile(0.99, waiting),
            worst_ms=max(self._worst_ms, self._quantile(0.9999, 0.0)),
            slow_ops=self._slow_ops,
        )
        self._reset()
        return load

    def ratio(self, osd: int, now: float) -> float:
        """The OSD's latency now over its own hour before."""
        row = self._row[osd]
        return float(self._strain_of(row) / self._usually(osd, now))

    def strained(self, now: float) -> list[int]:
        """OSDs whose ratio may differ from 1."""
        self._usual = {
            osd: (usual, since)
            for osd, (usual, since) in self._usual.items()
            if self._slow[self._row[osd]] != 1.0 or now - since < 12 * _HOUR
        }
        rows = np.flatnonzero(self._streams).tolist()
        osds = list(self._row)
        return [osds[row] for row in rows] + [osd for osd in self._usual if not self._streams[self._row[osd]]]

    def _reset(self) -> None:
        self._seconds = self._served = self._waited = self._slow_ops = self._worst_ms = 0.0

    def _usually(self, osd: int, now: float) -> float:
        """The slowness of the hour before, as an exponential mean; backfills do not count as usual."""
        current = float(self._slow[self._row[osd]])
        if osd not in self._usual:
            return current
        usual, since = self._usual[osd]
        return current + (usual - current) * math.exp(-(now - since) / _HOUR)

    def _change(self, osd: int, streams: float | None = None, slow: float | None = None) -> None:
        row = self._row[osd]
        self._strain -= self._strain_of(row)
        if streams is not None:
            self._streams[row] = streams
        if slow is not None:
            self._slow[row] = slow
        self._strain += self._strain_of(row)

    def _strain_of(self, row: int) -> float:
        return float(self._slow[row] * (1 + self._physics.latency_per_stream * self._streams[row]))

    def _mean_strain(self) -> float:
        """Half of the ops read one disk, half write to three: two disks are met by an op on average."""
        count = len(self._row)
        return 1 + 2 * (self._strain - count) / count

    def _quantile(self, share: float, waiting: float) -> float:
        """Latency in ms that `share` of the window's ops stay under."""
        physics = self._physics
        if waiting >= 1 - share:
            within = 1 - (1 - share) / waiting
            return 1000 * physics.asking_peering_seconds[1] * max(0.1, within)
        strain, counts = np.unique(
            self._slow * (1 + physics.latency_per_stream * self._streams), return_counts=True
        )
        weights = counts / counts.sum()
        low, high = physics.latency_floor_ms, 1e5
        for _ in range(50):
            middle = (low + high) / 2
            beyond = np.minimum(
                1.0,
                np.exp(-np.maximum(middle / strain - physics.latency_floor_ms, 0) / physics.latency_tail_ms),
            )
            if float((weights * beyond).sum()) + waiting > 1 - share:
                low = middle
            else:
                high = middle
        return high

"""The client load: closed-loop reads and writes over all PGs, slowed by peering, backfill and sick disks.

An op on a PG that peers waits until it has peered. Any other op takes a minimum time plus an exponential tail
on the disk that serves it, multiplied by that disk's slowness and by the backfills that it serves. Clients
keep their ops in flight, so IOPS fall as mean latency rises.

The model is calibrated on real clusters. At rest p50 is 3.4 ms and p99 is 12 ms. One backfill on every disk
takes about a tenth of the IOPS. A peering PG holds an op for up to 2 s, and for 4 s after an OSD ended
suddenly. Long waits are counted among the ops that were due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from predrain.actions.simulator.cluster_spec import Physics

_SLOW_OP_SECONDS = 0.25
_HOUR = 3600.0

_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClientLoad:
    """The load that clients saw since the last call of `take_load`. Rates are means over the window;
    latencies are for its ops.
    """

    seconds: float
    offered_iops: float
    served_iops: float
    p50_ms: float
    p99_ms: float
    worst_ms: float
    slow_ops: float
    """Ops that took more than 250 ms."""


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

    def set_backfill_streams(self, osd: int, streams: float) -> None:
        """Set the number of backfills that the OSD serves now."""
        self._change(osd, streams=streams)

    def set_slow_factor(self, osd: int, factor: float, now: float) -> None:
        """Make the disk answer `factor` times as slowly as a healthy one from now on."""
        self._usual[osd] = (self._usually(osd, now), now)
        self._change(osd, slow=factor)

    def slowness(self, osd: int) -> float:
        return float(self._slow[self._row[osd]])

    def count_pgs(self, pgs: int) -> None:
        """Set the number of PGs that the ops are spread over from now on."""
        self._pgs = max(1, pgs)

    def begin_peering(self, seconds: float) -> None:
        """Count one more PG that peers; its ops wait up to `seconds`."""
        self._peering += 1
        self._peering_seconds += seconds
        arrivals = self._physics.client_iops / self._pgs * seconds
        self._worst_ms = max(self._worst_ms, 1000 * seconds * arrivals / (1 + arrivals))

    def end_peering(self, seconds: float) -> None:
        """Count a PG as peered; `seconds` is the duration that `begin_peering` got for it."""
        self._peering -= 1
        self._peering_seconds = self._peering_seconds - seconds if self._peering else 0.0

    def add_blocked_pgs(self, change: int) -> None:
        """Count this many more PGs that serve no clients (down, or below min_size)."""
        self._blocked += change

    def pass_time(self, seconds: float) -> None:
        """Account for a period without changes."""
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
        # A client that waits sends nothing, so ops that it did not send would not be counted.
        self._slow_ops += physics.client_iops * waiting * long * seconds

    def take_load(self) -> ClientLoad:
        """Return the load since the last call and start a new window."""
        if not self._seconds:
            self.pass_time(1e-9)
        waiting = self._waited / self._served if self._served else 0.0
        strains = self._count_strains()
        load = ClientLoad(
            seconds=self._seconds,
            offered_iops=self._physics.client_iops,
            served_iops=self._served / self._seconds,
            p50_ms=self._quantile(0.5, waiting, *strains),
            p99_ms=self._quantile(0.99, waiting, *strains),
            worst_ms=max(self._worst_ms, self._quantile(0.9999, 0.0, *strains)),
            slow_ops=self._slow_ops,
        )
        self._reset()
        return load

    def compute_latency_ratio(self, osd: int, now: float) -> float:
        """Return the OSD's latency now, relative to its own last hour."""
        row = self._row[osd]
        return float(self._strain_of(row) / self._usually(osd, now))

    def find_strained_osds(self, now: float) -> list[int]:
        """Return the OSDs whose ratio may differ from 1."""
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
        """Return the slowness of the last hour as an exponential mean; backfills do not count as usual."""
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
        """Return the mean strain of an op. Half of the ops read one disk, half write to three: an op uses two
        on average.
        """
        count = len(self._row)
        return 1 + 2 * (self._strain - count) / count

    def _count_strains(self) -> tuple[_Floats, _Floats]:
        """Return the strains of the disks, ascending, and the share of the disks with each."""
        strain, counts = np.unique(
            self._slow * (1 + self._physics.latency_per_stream * self._streams), return_counts=True
        )
        return strain, counts / counts.sum()

    def _quantile(self, share: float, waiting: float, strain: _Floats, weights: _Floats) -> float:
        """Return the latency in ms that `share` of the window's ops stay under."""
        physics = self._physics
        if waiting >= 1 - share:
            within = 1 - (1 - share) / waiting
            return 1000 * physics.asking_peering_seconds[1] * max(0.1, within)
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

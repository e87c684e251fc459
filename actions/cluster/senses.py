"""What a view cannot tell of OSDs: how long they take now, and how many backfills they allow at once.

In order of trust, latency is what an OSD's host counted, a light probe of our own, and `osd perf`. Reservations are
what the host read at the OSD's admin socket; where no host told of late they are asked of the OSD, which a key may only
with `osd allow *`; else they stay unverified. Of two answers the later one holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.dumps.decoding import NotUnderstood, decoded
from predrain.actions.cluster.latency import LatencyHistory, LatencySample, LatencySource
from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.probing import Probes
from predrain.actions.cluster.view import ClusterView
from predrain.data.clock import lately
from predrain.data.host_names import choose_tellers
from predrain.data.ids import OsdId
from predrain.data.reading import LatencySummary

_HOUR = timedelta(hours=1)
_REFUSED_FOR = timedelta(minutes=10)
_RESERVATIONS_KEPT = timedelta(minutes=2)
_TOLD_LATE = timedelta(minutes=5)
"""How long after the beginning of its window a summary may arrive and still be read."""
_RESERVATIONS = 32
_SECONDS = 3.0
_EACCES, _EPERM = -13, -1
_OPERATIONS = 20
"""A summary of fewer says nothing of a p99."""

Summaries = Callable[[OsdId, datetime], Iterable[LatencySummary]]
"""What hosts counted of an OSD since a moment, oldest first."""


class Senses:
    """Adds latencies and reservations to views. Not for several threads at once."""

    def __init__(
        self,
        channel: CommandChannel,
        pool: str,
        at_work: Callable[[], Collection[OsdId]],
        summaries: Summaries = lambda _osd, _since: (),
    ) -> None:
        """pool: ours, for the probe. at_work: OSDs that drains read from or write to, or soon will."""
        self._channel, self._at_work, self._summaries = channel, at_work, summaries
        self._probes, self._latencies = Probes(channel, pool), LatencyHistory()
        self._told: dict[OsdId, datetime] = {}
        self._allowed: dict[OsdId, tuple[datetime, int]] = {}
        self._hosted: dict[OsdId, datetime] = {}
        self._refused: datetime | None = None

    def onto(self, view: ClusterView, now: datetime) -> ClusterView:
        """The view with `latency_ratio`, `slowest_ms` and `backfills_in_force`. What does not answer stays unknown."""
        wanted = tuple(sorted(osd for osd in self._at_work() if osd in view.osds))
        moving = busy(view)
        counted = [summary for osd in wanted for summary in self._counted(view, osd, now)]
        self._allow(counted, now)
        samples = [sample for summary in counted for sample in from_summary(summary)]
        try:
            samples += self._perf(now)
            samples += self._probes.take(view, moving & set(wanted), wanted, now)
            self._ask_reservations(view, wanted, now)
        except ClusterUnreachable:
            pass  # the next look asks again; what is known is used, what is not known is not a signal
        self._latencies.forget(view.osds.keys())
        return replace(
            view,
            latency_ratio=self._latencies.seen(now, samples, moving),
            slowest_ms=self._latencies.slowest_ms(now),
            backfills_in_force={osd: most for osd, (at, most) in self._allowed.items() if _kept(at, now)},
        )

    def _counted(self, view: ClusterView, osd: OsdId, now: datetime) -> Iterable[LatencySummary]:
        """What hosts counted of the OSD since the last look; a host has no say about OSDs of another one."""
        since = self._told.get(osd, now - _HOUR)
        self._told[osd] = now - _TOLD_LATE
        found = tuple(self._summaries(osd, since))
        tellers = choose_tellers(view.osds[osd].machine, view.machines, {one.host for one in found})
        return tuple(one for one in found if one.host in tellers)

    def _allow(self, counted: Iterable[LatencySummary], now: datetime) -> None:
        """Take over what hosts read of reservations, unless something later is known; the future is not known."""
        for summary in counted:
            at = ended(summary)
            before, _ = self._allowed.get(summary.osd, (at, 0))
            if summary.backfills_max is not None and (before <= at or before > now) and at <= now:
                self._allowed[summary.osd] = (at, summary.backfills_max)
                self._hosted[summary.osd] = at

    def _perf(self, now: datetime) -> tuple[LatencySample, ...]:
        reply = self._channel.ask("mgr", "osd perf", {"format": "json"})
        try:
            return from_perf(reply.out, now) if reply.ok else ()
        except NotUnderstood:
            return ()

    def _ask_reservations(self, view: ClusterView, wanted: Iterable[OsdId], now: datetime) -> None:
        if self._refused is not None and lately(self._refused, now, _REFUSED_FOR):
            return
        long_ago = now - 2 * _RESERVATIONS_KEPT
        silent = [osd for osd in wanted if not _kept(self._hosted.get(osd, long_ago), now)]
        due = sorted(
            (osd for osd in silent if view.osds[osd].up),
            key=lambda osd: (self._allowed.get(osd, (long_ago, 0))[0], osd),
        )
        for osd in due[:_RESERVATIONS]:
            self._allowed.pop(osd, None)
            reply = self._channel.ask(
                f"osd.{osd}", "dump_recovery_reservations", {"format": "json"}, seconds=_SECONDS
            )
            if reply.rc in (_EACCES, _EPERM):
                self._refused = now
                return
            most = backfills_allowed(reply.out) if reply.ok else None
            if most is not None:
                self._allowed[osd] = (now, most)


def _kept(at: datetime, now: datetime) -> bool:
    return lately(at, now, _RESERVATIONS_KEPT + timedelta.resolution)


def busy(view: ClusterView) -> frozenset[OsdId]:
    """OSDs that give or take a PG now."""
    moving = (pg for pg in view.pgs.values() if pg.up != pg.acting)
    return frozenset(OsdId(osd) for pg in moving for osd in (*pg.up, *pg.acting))


def from_summary(summary: LatencySummary) -> tuple[LatencySample, ...]:
    """What a host counted of an OSD over a window that ends when the sample is dated; nothing when it was idle."""
    if summary.operations < _OPERATIONS:
        return ()
    counted = (
        (LatencySource.READ, summary.read_ms_p99),
        (LatencySource.WRITE, summary.write_ms_p99 or summary.commit_ms_p99),
    )
    at, seconds, moving = ended(summary), summary.window_seconds, summary.recovering is True
    return tuple(LatencySample(summary.osd, at, source, ms, seconds, moving) for source, ms in counted if ms)


def ended(summary: LatencySummary) -> datetime:
    """When its window was over, which is what its figures are of."""
    return summary.window_start + timedelta(seconds=summary.window_seconds)


class _Stats(msgspec.Struct):
    commit_latency_ms: float = 0
    apply_latency_ms: float = 0


class _Info(msgspec.Struct):
    id: int
    perf_stats: _Stats


class _Infos(msgspec.Struct):
    osd_perf_infos: tuple[_Info, ...] = ()


class _Perf(msgspec.Struct):
    osdstats: _Infos


class _Local(msgspec.Struct):
    max_allowed: int


class _Reservations(msgspec.Struct):
    local_reservations: _Local


_PERF = msgspec.json.Decoder(_Perf)
_RESERVED = msgspec.json.Decoder(_Reservations)


def from_perf(raw: bytes, at: datetime) -> tuple[LatencySample, ...]:
    """`osd perf`: whole milliseconds, of which 0 is no data (an OSD at rest, or a fast one). Raises NotUnderstood."""
    infos = decoded("osd_perf", raw, _PERF).osdstats.osd_perf_infos
    told = (
        (info.id, max(info.perf_stats.commit_latency_ms, info.perf_stats.apply_latency_ms)) for info in infos
    )
    return tuple(
        LatencySample(OsdId(osd), at, LatencySource.PERF, ms) for osd, ms in told if 0 < ms < float("inf")
    )


def backfills_allowed(raw: bytes) -> int | None:
    """`dump_recovery_reservations`: how many backfills the OSD lets run at once as a primary; None: not understood."""
    try:
        return decoded("dump_recovery_reservations", raw, _RESERVED).local_reservations.max_allowed
    except NotUnderstood:
        return None

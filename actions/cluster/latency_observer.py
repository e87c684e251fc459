"""Data about OSDs that Ceph's maps do not have: their present latency, and the backfills that each allows at once.

In order of trust, latency is what an OSD's host counted, the result of a light probe, and `osd perf`. Reservations are
what the host read at the OSD's admin socket. If no host reported them lately, the OSD is asked, which needs a key with
`osd allow *`; otherwise they stay unverified. Of two answers the later one holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.dump_decoding import NotUnderstood, decode_answer
from predrain.actions.cluster.latency_probe import Probes
from predrain.actions.cluster.osd_latency import LatencyHistory, LatencySample, LatencySource
from predrain.data.clock import is_within_last
from predrain.data.host_names import choose_tellers
from predrain.data.ids import OsdId
from predrain.data.latency_windows import LatencySummary

_HOUR = timedelta(hours=1)
_REFUSED_FOR = timedelta(minutes=10)
_RESERVATIONS_KEPT = timedelta(minutes=2)
_TOLD_LATE = timedelta(minutes=5)
"""A summary may arrive this long after the beginning of its window and is still read."""
_RESERVATIONS = 32
_SECONDS = 3.0
_EACCES, _EPERM = -13, -1
_OPERATIONS = 20
"""The fewest operations of a usable summary. With fewer operations a p99 has no meaning."""

Summaries = Callable[[OsdId, datetime], Iterable[LatencySummary]]
"""A function that returns what hosts counted for an OSD since a time, oldest first."""


class LatencyObserver:
    """Adds latencies and reservations to views. Not safe for several threads at once."""

    def __init__(
        self,
        channel: CommandChannel,
        pool: str,
        at_work: Callable[[], Collection[OsdId]],
        summaries: Summaries = lambda _osd, _since: (),
    ) -> None:
        """pool: our own, for the probe. at_work: returns the OSDs that drains read from or write to, or soon will."""
        self._channel, self._at_work, self._summaries = channel, at_work, summaries
        self._probes, self._latencies = Probes(channel, pool), LatencyHistory()
        self._told: dict[OsdId, datetime] = {}
        self._allowed: dict[OsdId, tuple[datetime, int]] = {}
        self._hosted: dict[OsdId, datetime] = {}
        self._refused: datetime | None = None

    def add_to_view(self, view: ClusterView, now: datetime) -> ClusterView:
        """Return the view with `latency_ratio`, `slowest_ms` and `backfills_in_force`. Values without an answer stay
        unknown.
        """
        wanted = tuple(sorted(osd for osd in self._at_work() if osd in view.osds))
        moving = find_moving_osds(view)
        counted = [summary for osd in wanted for summary in self._counted(view, osd, now)]
        self._allow(counted, now)
        samples = [sample for summary in counted for sample in from_summary(summary)]
        try:
            samples += self._perf(now)
            samples += self._probes.probe_osds(view, moving & set(wanted), wanted, now)
            self._ask_reservations(view, wanted, now)
        except ClusterUnreachable:
            pass  # the next poll asks again; known values are used, and an unknown value is no signal
        self._latencies.drop_absent_osds(view.osds.keys())
        return replace(
            view,
            latency_ratio=self._latencies.update_ratios(now, samples, moving),
            slowest_ms=self._latencies.slowest_ms(now),
            backfills_in_force={
                osd: most for osd, (at, most) in self._allowed.items() if _is_reservation_fresh(at, now)
            },
        )

    def _counted(self, view: ClusterView, osd: OsdId, now: datetime) -> Iterable[LatencySummary]:
        """Return what hosts counted for the OSD since the last poll. Data of a host on which the OSD does not run is
        ignored.
        """
        since = self._told.get(osd, now - _HOUR)
        self._told[osd] = now - _TOLD_LATE
        found = tuple(self._summaries(osd, since))
        tellers = choose_tellers(view.osds[osd].machine, view.machines, {one.host for one in found})
        return tuple(one for one in found if one.host in tellers)

    def _allow(self, counted: Iterable[LatencySummary], now: datetime) -> None:
        """Store the reservations that hosts read, unless a later value is known. A value dated in the future is not
        used.
        """
        for summary in counted:
            at = compute_window_end(summary)
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
        if self._refused is not None and is_within_last(self._refused, now, _REFUSED_FOR):
            return
        long_ago = now - 2 * _RESERVATIONS_KEPT
        silent = [osd for osd in wanted if not _is_reservation_fresh(self._hosted.get(osd, long_ago), now)]
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


def _is_reservation_fresh(at: datetime, now: datetime) -> bool:
    return is_within_last(at, now, _RESERVATIONS_KEPT + timedelta.resolution)


def find_moving_osds(view: ClusterView) -> frozenset[OsdId]:
    """Return the OSDs that a PG now leaves or enters."""
    moving = (pg for pg in view.pgs.values() if pg.up != pg.acting)
    return frozenset(OsdId(osd) for pg in moving for osd in (*pg.up, *pg.acting))


def from_summary(summary: LatencySummary) -> tuple[LatencySample, ...]:
    """Return samples of what a host counted for an OSD, dated at the end of the window; none if the OSD was idle."""
    if summary.operations < _OPERATIONS:
        return ()
    counted = (
        (LatencySource.READ, summary.read_ms_p99),
        (LatencySource.WRITE, summary.write_ms_p99 or summary.commit_ms_p99),
    )
    at, seconds, moving = compute_window_end(summary), summary.window_seconds, summary.recovering is True
    return tuple(LatencySample(summary.osd, at, source, ms, seconds, moving) for source, ms in counted if ms)


def compute_window_end(summary: LatencySummary) -> datetime:
    """Return the end of the summary's window, which dates its values."""
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
    """Parse `osd perf`: whole milliseconds, of which 0 means no data (an idle or a fast OSD). Raises NotUnderstood."""
    infos = decode_answer("osd_perf", raw, _PERF).osdstats.osd_perf_infos
    told = (
        (info.id, max(info.perf_stats.commit_latency_ms, info.perf_stats.apply_latency_ms)) for info in infos
    )
    return tuple(
        LatencySample(OsdId(osd), at, LatencySource.PERF, ms) for osd, ms in told if 0 < ms < float("inf")
    )


def backfills_allowed(raw: bytes) -> int | None:
    """Parse `dump_recovery_reservations`. Return how many backfills the OSD allows at once as a primary; None if
    unreadable.
    """
    try:
        return decode_answer("dump_recovery_reservations", raw, _RESERVED).local_reservations.max_allowed
    except NotUnderstood:
        return None

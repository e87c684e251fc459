"""Parses the counters of one OSD from the answers of its admin socket (Pacific to Tentacle).

Latencies of client operations come from `perf histogram dump`, so their quantiles are those of real operations.
Commits are counted only as sum and number, so each sample has just their mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

import msgspec

from predrain.collector.latency.latency_histogram import Histogram
from predrain.data.ids import ClusterId, parse_cluster_id

T = TypeVar("T")

HISTOGRAMS = b'{"prefix":"perf histogram dump","logger":"osd","format":"json"}'
RECOVERIES = b'{"prefix":"perf dump","logger":"osd","counter":"recovery_ops","format":"json"}'
COMMITS = b'{"prefix":"perf dump","logger":"bluestore","format":"json"}'
RESERVATIONS = b'{"prefix":"dump_recovery_reservations","format":"json"}'
SCRUBS = b'{"prefix":"dump_scrub_reservations","format":"json"}'
SLOW = b'{"prefix":"dump_blocked_ops_count","format":"json"}'
SLOW_LISTED = b'{"prefix":"dump_blocked_ops","format":"json"}'
"""The list of blocked operations, which ends with their number. Pacific has no command that gives only the number."""

STATUS = b'{"prefix":"status","format":"json"}'
"""The OSD's own identity, with the fsid of its cluster."""

COMMANDS = (HISTOGRAMS, RECOVERIES, COMMITS, RESERVATIONS, SCRUBS)

_NS_IN_MS = 1e6

_MOST = 1 << 53
_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


@dataclass(frozen=True, slots=True)
class TimedCounter:
    """The number of events since the OSD started, and their total duration."""

    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class OsdCounters:
    """One OSD at one instant: counters since its start, and its present state.

    None means that the OSD did not report it.
    """

    reads: Histogram
    writes: Histogram
    """Operations that only write, and operations that read and write."""
    commits: TimedCounter | None = None
    """BlueStore's transactions, including those for replicas."""
    recoveries: int | None = None
    """Objects recovered or backfilled as a primary."""
    slow_ops: int | None = None
    """Operations that have by now waited for longer than the OSD's complaint time."""
    backfills_max: int | None = None
    recovering: bool | None = None
    """Whether the OSD holds a reservation for recovery or backfill, as a primary or as a target."""
    scrubbing: bool | None = None
    """Whether the OSD holds a reservation for a scrub, as a primary or as a replica."""


class NotCounted(Exception):
    """The answers hold no latencies; the text follows the OSD's name."""


def parse_cluster(status: bytes) -> ClusterId | None:
    """Return the cluster of an OSD from its answer to STATUS, or None if the answer names none."""
    found = _decode_or_none(_STATUS, status)
    return parse_cluster_id(found.cluster_fsid) if found is not None else None


def parse_osd_counters(answers: Sequence[bytes], slow: bytes) -> OsdCounters:
    """Parse the counters from the answers to COMMANDS, in that order, and from `slow`, the answer to SLOW or
    SLOW_LISTED.

    Any other part that is missing or not understood stays unknown. Raises NotCounted.
    """
    histograms, recoveries, commits, reservations, scrubs = answers
    reads, writes = _parse_latencies(histograms)
    recovered, stored = _decode_or_none(_RECOVERIES, recoveries), _decode_or_none(_COMMITS, commits)
    reserved, scrubbed, waiting = (
        _decode_or_none(_RESERVATIONS, reservations),
        _decode_or_none(_SCRUBS, scrubs),
        _decode_or_none(_SLOW, slow),
    )
    pair = (
        stored.bluestore and (stored.bluestore.commit_lat or stored.bluestore.txc_commit_lat)
        if stored
        else None
    )
    return OsdCounters(
        reads,
        writes,
        commits=TimedCounter(pair.avgcount, pair.sum) if pair else None,
        recoveries=recovered.osd.recovery_ops if recovered else None,
        slow_ops=waiting.num_blocked_ops if waiting else None,
        backfills_max=reserved.local_reservations.max_allowed if reserved else None,
        recovering=reserved.has_reservations if reserved else None,
        scrubbing=scrubbed.is_scrubbing if scrubbed else None,
    )


def unknown_command(answer: bytes) -> bool:
    """Return whether this answer means that the release has no such command."""
    return answer.startswith(b"ERROR: (22)")


class _Range(msgspec.Struct):
    min: _Count | None = None
    """The first bucket has no minimum: it holds durations below zero, measured when a clock was set back."""


class _Axis(msgspec.Struct):
    ranges: list[_Range]


class _Grid(msgspec.Struct):
    """Counts by latency, and within that by size. The latency is in nanoseconds, even if the axis has another name."""

    axes: tuple[_Axis, _Axis]
    values: list[list[int]]
    """Bounds are checked on the sums: checking each of the thousand numbers would double the work."""


class _Latencies(msgspec.Struct):
    op_r_latency_out_bytes_histogram: _Grid
    op_w_latency_in_bytes_histogram: _Grid
    op_rw_latency_in_bytes_histogram: _Grid


class _HistogramDump(msgspec.Struct):
    osd: _Latencies


class _RecoveryOps(msgspec.Struct):
    recovery_ops: _Count


class _RecoveryDump(msgspec.Struct):
    osd: _RecoveryOps


class _Pair(msgspec.Struct):
    avgcount: _Count
    sum: _Seconds


class _BlueStore(msgspec.Struct):
    commit_lat: _Pair | None = None
    txc_commit_lat: _Pair | None = None
    """The name of `commit_lat` since Quincy."""


class _CommitDump(msgspec.Struct):
    bluestore: _BlueStore | None = None


class _Reserver(msgspec.Struct):
    in_progress: list[msgspec.Raw]
    max_allowed: _Count = 0


class _Reservations(msgspec.Struct):
    local_reservations: _Reserver
    remote_reservations: _Reserver

    @property
    def has_reservations(self) -> bool:
        return bool(self.local_reservations.in_progress or self.remote_reservations.in_progress)


class _Scrubs(msgspec.Struct):
    scrubs_local: _Count
    scrubs_remote: _Count = 0
    remote_scrub_reservations: _Reserver | None = None
    """Replaces `scrubs_remote` on Tentacle."""

    @property
    def is_scrubbing(self) -> bool:
        remote = self.remote_scrub_reservations
        return bool(self.scrubs_local or self.scrubs_remote or (remote and remote.in_progress))


class _Status(msgspec.Struct):
    cluster_fsid: str = ""


class _Slow(msgspec.Struct):
    num_blocked_ops: _Count


_HISTOGRAMS = msgspec.json.Decoder(_HistogramDump)
_RECOVERIES = msgspec.json.Decoder(_RecoveryDump)
_COMMITS = msgspec.json.Decoder(_CommitDump)
_RESERVATIONS = msgspec.json.Decoder(_Reservations)
_SCRUBS = msgspec.json.Decoder(_Scrubs)
_SLOW = msgspec.json.Decoder(_Slow)
_STATUS = msgspec.json.Decoder(_Status)


def _decode_or_none(decoder: msgspec.json.Decoder[T], raw: bytes) -> T | None:
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _parse_latencies(raw: bytes) -> tuple[Histogram, Histogram]:
    dump = _decode_or_none(_HISTOGRAMS, raw)
    if dump is None:
        raise NotCounted(
            f"tells no latencies (`perf histogram dump` answers {raw[:60]!r}): it may be starting, or be no OSD of"
            " Pacific to Tentacle"
        )
    reads = _by_latency(dump.osd.op_r_latency_out_bytes_histogram)
    writes = _by_latency(dump.osd.op_w_latency_in_bytes_histogram).plus(
        _by_latency(dump.osd.op_rw_latency_in_bytes_histogram)
    )
    if writes is None:
        raise NotCounted("counts writes in two kinds of buckets: predrain knows no such release of Ceph")
    return reads, writes


def _by_latency(grid: _Grid) -> Histogram:
    """Sum the counts over the sizes, and leave out the bucket below zero."""
    begins = [one.min for one in grid.axes[0].ranges]
    rows = [
        (begin / _NS_IN_MS, sum(row))
        for begin, row in zip(begins, grid.values, strict=False)
        if begin is not None
    ]
    if len(begins) != len(grid.values) or sorted(rows) != rows:
        raise NotCounted("counts in buckets that are out of order: predrain knows no such release of Ceph")
    if not all(0 <= count <= _MOST for _, count in rows):
        raise NotCounted("counts less than nothing, or more than can be: look whether it is an OSD's socket")
    return Histogram(tuple(edge for edge, _ in rows), tuple(count for _, count in rows))

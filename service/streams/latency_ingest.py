"""Move latencies from the log into the store, where the latency observer and the slow-OSD detector read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from predrain.data.clock import Clock
from predrain.data.ids import ClusterId, HostName
from predrain.data.latency_windows import LatencyBatch, LatencyWindows
from predrain.data.log.log_port import Delivered, Log, Record, Topic
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store
from predrain.data.wire import DeadLetter, NotAccepted, RefusedForTime, accept_source, accept_windows
from predrain.service.storage.record_sender import RecordSender
from predrain.service.streams.dead_letters import decode_log_record

GROUP = "latency"
REMEMBERED = 10_000
"""Batches with reported losses that are remembered, so that a repeated batch, which follows soon, is recognized."""

Told = dict[tuple[HostName, datetime], int]
"""The summaries that a batch reports as lost, by host and the batch's newest window."""


@dataclass(frozen=True, slots=True)
class LatencyIngestResult:
    """The counts of one step."""

    taken: int = 0
    """Records that were read from the log."""
    summaries: int = 0
    dead: int = 0
    """Records that became dead letters; some of their summaries may have been kept."""
    lost: int = 0
    """Summaries that hosts reported as lost."""


class LatencyIngest:
    """Appends batches to the latency topic, and consumes them. Delivery is at least once; a summary's key is
    (cluster, osd, window_start).
    """

    def __init__(self, log: Log, store: Store, clock: Clock, sender: RecordSender) -> None:
        self._log, self._store, self._clock, self._sender = log, store, clock, sender
        self._foreign: set[tuple[HostName, ClusterId | None]] = set()
        """Hosts that report OSDs of another cluster, with that cluster."""
        self._counted: Told = {}
        """The last batches whose losses were counted, since a batch may come twice, and a backlog may follow
        newer batches.
        """

    def ingest(self, batches: Sequence[LatencyBatch]) -> tuple[tuple[int, Refusal], ...]:
        """Append batches to the log; return the index and the refusal of each batch of which something was
        refused.

        A batch with some refused summaries is accepted without them. A batch with a time in the future is refused
        as a whole, and its sender keeps all of it. Raises LogFull; then nothing was accepted.
        """
        now, accepted = self._clock.now(), []
        told: list[tuple[int, Refusal]] = []
        for place, batch in enumerate(batches):
            if (ahead := _find_future_refusal(batch, now)) is not None:
                told.append((place, ahead))
                continue
            kept, refused = _validate_windows(batch, now)
            if refused:
                told.append((place, NotAccepted(_describe_refused_summaries(batch, refused))))
            if kept or not refused:
                whole = replace(batch, windows=kept)
                accepted.append(Record(batch.host, self._sender.encode_envelope(whole)))
        self._log.append(Topic.LATENCY, accepted)
        return tuple(told)

    def step(self, limit: int = 500) -> LatencyIngestResult:
        """Read up to `limit` batches from the log, store the valid summaries and commit.

        Raises what log and store raise; then nothing is committed and the next step starts over.
        """
        records = self._log.read(Topic.LATENCY, GROUP, limit)
        if not records:
            return LatencyIngestResult()
        windows, letters, lost, told = self._judge(records)
        self._warn_of_other_clusters(windows)
        self._store.add_latency(windows)
        self._log.append(
            Topic.DEAD_LETTERS, [Record(one.key, self._sender.encode_envelope(one)) for one in letters]
        )
        self._log.commit(Topic.LATENCY, GROUP, records)
        if told:
            self._counted = dict([*self._counted.items(), *told.items()][-REMEMBERED:])
        return LatencyIngestResult(len(records), sum(len(one.osd) for one in windows), len(letters), lost)

    def _warn_of_other_clusters(self, windows: Sequence[LatencyWindows]) -> None:
        """Log once each host that reports OSDs of another cluster.

        The store keeps their latencies apart, and nothing uses them.
        """
        own = self._store.get_cluster()
        if own is None:
            return
        foreign = {(one.host, one.cluster) for one in windows if one.cluster not in (None, own)}
        for host, cluster in sorted(foreign - self._foreign, key=str):
            structlog.get_logger().warning(
                "a host reports OSDs of another cluster", host=host, cluster=cluster, own=own
            )
        self._foreign |= foreign

    def _judge(
        self, records: Sequence[Delivered]
    ) -> tuple[list[LatencyWindows], list[DeadLetter], int, Told]:
        """Return the valid windows, a dead letter per record with an invalid one, the number of losses, and the
        batches that report them.
        """
        windows: list[LatencyWindows] = []
        letters: list[DeadLetter] = []
        told: Told = {}
        lost, now = 0, self._clock.now()
        for record in records:
            try:
                batch = decode_log_record(record, LatencyBatch)
            except Refusal as refusal:
                letters.append(DeadLetter.from_delivered(Topic.LATENCY, record, refusal, now))
                continue
            kept, refused = _validate_windows(batch, now)
            windows += kept
            newest = max((one.window_start for one in batch.windows), default=None)
            if newest is None:
                lost += batch.lost
            elif batch.lost and (batch.host, newest) not in self._counted:
                told[batch.host, newest] = batch.lost
            if refused:
                letters.append(
                    DeadLetter.from_delivered(
                        Topic.LATENCY, record, _describe_refused_summaries(batch, refused), now
                    )
                )
        return windows, letters, lost + sum(told.values()), told


def _describe_refused_summaries(batch: LatencyBatch, refused: Sequence[str]) -> str:
    """Describe the refused summaries in one sentence, since a host with a wrong clock may send a backlog of any
    length.
    """
    whole = sum(len(one.osd) for one in batch.windows)
    return f"{len(refused)} of {whole} summaries are refused, the first: {refused[0]}"


def _find_future_refusal(batch: LatencyBatch, now: datetime) -> RefusedForTime | None:
    """Return the reason why the batch is not accepted yet, or None if its time has come."""
    for one in batch.windows:
        try:
            accept_source(one.host, one.window_start, now)
        except RefusedForTime as ahead:
            return ahead
        except NotAccepted:
            continue
    return None


def _validate_windows(
    batch: LatencyBatch, now: datetime
) -> tuple[tuple[LatencyWindows, ...], tuple[str, ...]]:
    """Return the windows of the batch that are accepted, and the reasons for the others."""
    judged = [accept_windows(one, now) for one in batch.windows]
    kept = tuple(windows for windows, _ in judged if windows is not None)
    return kept, tuple(why for _, refused in judged for why in refused)

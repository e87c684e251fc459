"""Latencies from the log into the store, where the senses and the slow-OSD detector look for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from predrain.data.clock import Clock
from predrain.data.ids import HostName
from predrain.data.log.port import Delivered, Log, Record, Topic
from predrain.data.reading import LatencyBatch
from predrain.data.refusal import Refusal
from predrain.data.store.port import Store
from predrain.data.windows import Windows
from predrain.data.wire import Ahead, DeadLetter, NotAccepted, accept_source, accept_windows
from predrain.service.scoring.deadletters import opened
from predrain.service.scoring.sender import Sender

GROUP = "latency"
REMEMBERED = 10_000
"""Batches that told of losses and are known when they come again, which is soon after."""

Told = dict[tuple[HostName, datetime], int]
"""By host and the newest window of a batch: summaries that it says are lost."""


@dataclass(frozen=True, slots=True)
class LatencyIngestResult:
    """What one step did."""

    taken: int = 0
    """Records that left the log."""
    summaries: int = 0
    dead: int = 0
    """Records that went to the dead letters, some of them with summaries that were kept."""
    lost: int = 0
    """Summaries that hosts said they had lost."""


class LatencyIngest:
    """Takes batches into the latency topic, and is one consumer of it. Delivery is at least once; a summary is keyed by
    (osd, window_start).
    """

    def __init__(self, log: Log, store: Store, clock: Clock, sender: Sender) -> None:
        self._log, self._store, self._clock, self._sender = log, store, clock, sender
        self._counted: Told = {}
        """The last batches whose losses were counted: a batch may come twice, and a backlog after what is newer."""

    def ingest(self, batches: Sequence[LatencyBatch]) -> tuple[tuple[int, Refusal], ...]:
        """Accept batches into the log; returns for each of which something was refused its place and why.

        A batch with some summaries refused is taken with the others, but nothing of one that tells of a time to come:
        its sender keeps it whole. Raises LogFull; then nothing was accepted.
        """
        now, accepted = self._clock.now(), []
        told: list[tuple[int, Refusal]] = []
        for place, batch in enumerate(batches):
            if (ahead := _ahead(batch, now)) is not None:
                told.append((place, ahead))
                continue
            kept, refused = _judged(batch, now)
            if refused:
                told.append((place, NotAccepted(_refusal(batch, refused))))
            if kept or not refused:
                whole = replace(batch, windows=kept)
                accepted.append(Record(batch.host, self._sender.seal(whole)))
        self._log.append(Topic.LATENCY, accepted)
        return tuple(told)

    def step(self, limit: int = 500) -> LatencyIngestResult:
        """Take up to `limit` batches from the log, keep what may be kept, commit.

        Raises what log and store raise; then nothing is committed and the next step starts over.
        """
        records = self._log.read(Topic.LATENCY, GROUP, limit)
        if not records:
            return LatencyIngestResult()
        windows, letters, lost, told = self._judge(records)
        self._store.add_latency(windows)
        self._log.append(Topic.DEAD_LETTERS, [Record(one.key, self._sender.seal(one)) for one in letters])
        self._log.commit(Topic.LATENCY, GROUP, records)
        if told:
            self._counted = dict([*self._counted.items(), *told.items()][-REMEMBERED:])
        return LatencyIngestResult(len(records), sum(len(one.osd) for one in windows), len(letters), lost)

    def _judge(self, records: Sequence[Delivered]) -> tuple[list[Windows], list[DeadLetter], int, Told]:
        """Windows that are kept, a letter for each record with any that is not, how many hosts have lost, and by which
        batches they say so."""
        windows: list[Windows] = []
        letters: list[DeadLetter] = []
        told: Told = {}
        lost, now = 0, self._clock.now()
        for record in records:
            try:
                batch = opened(record, LatencyBatch)
            except Refusal as refusal:
                letters.append(DeadLetter.of(Topic.LATENCY, record, refusal, now))
                continue
            kept, refused = _judged(batch, now)
            windows += kept
            newest = max((one.window_start for one in batch.windows), default=None)
            if newest is None:
                lost += batch.lost
            elif batch.lost and (batch.host, newest) not in self._counted:
                told[batch.host, newest] = batch.lost
            if refused:
                letters.append(DeadLetter.of(Topic.LATENCY, record, _refusal(batch, refused), now))
        return windows, letters, lost + sum(told.values()), told


def _refusal(batch: LatencyBatch, refused: Sequence[str]) -> str:
    """In one sentence, however many: who sent a backlog under a wrong clock reads no answer without end."""
    whole = sum(len(one.osd) for one in batch.windows)
    return f"{len(refused)} of {whole} summaries are refused, the first: {refused[0]}"


def _ahead(batch: LatencyBatch, now: datetime) -> Ahead | None:
    """Why nothing of the batch is taken yet; None where its time has come."""
    for one in batch.windows:
        try:
            accept_source(one.host, one.window_start, now)
        except Ahead as ahead:
            return ahead
        except NotAccepted:
            continue
    return None


def _judged(batch: LatencyBatch, now: datetime) -> tuple[tuple[Windows, ...], tuple[str, ...]]:
    """Windows of the batch that are taken, and why the others are not."""
    judged = [accept_windows(one, now) for one in batch.windows]
    kept = tuple(windows for windows, _ in judged if windows is not None)
    return kept, tuple(why for _, refused in judged for why in refused)

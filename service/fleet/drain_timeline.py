"""The course of a drain on one time axis: bytes left, PGs in flight, worst latency ratio, and its holds."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import Drain, DrainState
from predrain.data.hold_reason import HoldCause, HoldReason
from predrain.data.log.log_port import Delivered, Record
from predrain.data.refusal import Refusal

RUNNING = frozenset(
    {DrainState.PREPARING, DrainState.DRAINING, DrainState.HOLDING, DrainState.PAUSED, DrainState.CANCELLING}
)


@dataclass(frozen=True, slots=True)
class DrainSample:
    """One drain at one tick."""

    drain: str
    at: datetime
    bytes_left: int
    in_flight: int
    latency_ratio: float | None
    """The worst ratio among the drain's sources and targets; None without a signal."""
    held_by: tuple[str, ...] = ()
    hold: HoldCause | None = None
    """The cause of the hold; None if nothing holds the drain, and in a sample of version 0.1.0."""

    @property
    def hold_cause(self) -> HoldCause | None:
        """The cause of the hold; all holds of version 0.1.0 count as one."""
        return HoldCause(HoldReason.OTHER) if self.held_by and self.hold is None else self.hold


@dataclass(frozen=True, slots=True)
class HoldPeriod:
    """The period (end None: still) in which a drain held for one cause, and the first sentence of its begin."""

    start: datetime
    end: datetime | None
    why: str


class ForeignSample(Refusal):
    """A record of the actions topic that is no sample."""


def sample_drain(drain: Drain, view: ClusterView | None, now: datetime) -> DrainSample:
    """Make the sample of `drain` at one tick."""
    osds = set(drain.osds)
    if drain.plan is not None:
        osds |= {move.target for move in drain.plan.moves}
    ratios = [view.latency_ratio[osd] for osd in osds & view.latency_ratio.keys()] if view else []
    progress = drain.progress
    return DrainSample(
        drain.id, now, max(0, progress.planned_bytes - progress.moved_bytes), progress.in_flight,
        max(ratios, default=None), drain.held_by, drain.hold_cause,
    )  # fmt: skip


def find_hold_periods(samples: Sequence[DrainSample]) -> tuple[HoldPeriod, ...]:
    """Return runs of samples that were held for the same cause, in order."""
    found: list[HoldPeriod] = []
    cause: HoldCause | None = None
    for one in samples:
        if one.hold_cause == cause:
            continue
        if cause is not None:
            found[-1] = replace(found[-1], end=one.at)
        cause = one.hold_cause
        if cause is not None:
            found.append(HoldPeriod(one.at, None, one.held_by[0]))
    return tuple(found)


class Timelines:
    """The samples of every drain, thinned to `kept` each. Thread-safe."""

    def __init__(self, kept: int = 2000) -> None:
        self._kept = kept
        self._samples: dict[str, list[DrainSample]] = {}
        self._lock = threading.Lock()

    def add_samples(self, samples: Iterable[DrainSample]) -> tuple[DrainSample, ...]:
        """Store the samples that contain something new; return them."""
        kept = []
        with self._lock:
            for one in samples:
                line = self._samples.setdefault(one.drain, [])
                if line and (one.at <= line[-1].at or _is_same_sample(one, line[-1])):
                    continue
                line.append(one)
                kept.append(one)
                if len(line) > self._kept:
                    # Every second sample of the older half is dropped: long drains lose detail, never their
                    # ends.
                    half = self._kept // 2
                    line[:half] = line[:half:2]
        return tuple(kept)

    def list_samples(self, drain: str) -> tuple[DrainSample, ...]:
        """Return a drain's samples, oldest first."""
        with self._lock:
            return tuple(self._samples.get(drain, ()))

    def sample_running_drains(
        self, drains: Iterable[Drain], view: ClusterView | None, now: datetime
    ) -> tuple[DrainSample, ...]:
        """Sample the running drains, and those that ended since their last sample; return the new samples."""
        due: Mapping[str, Drain] = {
            drain.id: drain for drain in drains if drain.state in RUNNING or self._unfinished(drain)
        }
        return self.add_samples(sample_drain(drain, view, now) for drain in due.values())

    def _unfinished(self, drain: Drain) -> bool:
        with self._lock:
            line = self._samples.get(drain.id)
            return bool(line) and line[-1].at < drain.updated_at if line else False


def _is_same_sample(one: DrainSample, other: DrainSample) -> bool:
    left, right = (
        (sample.bytes_left, sample.in_flight, sample.latency_ratio, sample.hold_cause)
        for sample in (one, other)
    )
    return left == right


def encode_drain_sample(one: DrainSample) -> Record:
    """Encode a sample for the actions topic, so that a restart remembers the curve."""
    return Record(one.drain, msgspec.json.encode(one))


def decode_drain_sample(delivered: Delivered) -> DrainSample:
    """Decode a record of the actions topic. Raises ForeignSample."""
    try:
        return msgspec.json.decode(delivered.value, type=DrainSample)
    except msgspec.DecodeError as error:
        raise ForeignSample(
            f"offset {delivered.offset} of the actions topic is no sample: {error}"
        ) from error

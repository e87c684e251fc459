"""A drain over time, on one axis: bytes left, PGs in flight, worst latency ratio, and its holds."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from predrain.actions.cluster.view import ClusterView
from predrain.data.drain import Drain, DrainState
from predrain.data.log.port import Delivered, Record
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
    """The worst among the drain's sources and targets; None without a signal."""
    held_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HoldPeriod:
    """From when to when (None: still) a drain held, and the first guard's sentence."""

    start: datetime
    end: datetime | None
    why: str


class ForeignSample(Refusal):
    """A record of the actions topic that is no sample."""


def sample(drain: Drain, view: ClusterView | None, now: datetime) -> DrainSample:
    """What a tick saw of `drain`."""
    osds = set(drain.osds)
    if drain.plan is not None:
        osds |= {move.target for move in drain.plan.moves}
    ratios = [ratio for osd, ratio in view.latency_ratio.items() if osd in osds] if view else []
    progress = drain.progress
    return DrainSample(
        drain.id, now, max(0, progress.planned_bytes - progress.moved_bytes), progress.in_flight,
        max(ratios, default=None), drain.held_by,
    )  # fmt: skip


def holds(samples: Sequence[DrainSample]) -> tuple[HoldPeriod, ...]:
    """Runs of samples held for the same reason, in order."""
    found: list[HoldPeriod] = []
    why = ""
    for one in samples:
        now_why = one.held_by[0] if one.held_by else ""
        if now_why == why:
            continue
        if why:
            found[-1] = HoldPeriod(found[-1].start, one.at, why)
        if now_why:
            found.append(HoldPeriod(one.at, None, now_why))
        why = now_why
    return tuple(found)


class Timelines:
    """The samples of every drain, thinned to `kept` each. Thread-safe."""

    def __init__(self, kept: int = 2000) -> None:
        self._kept = kept
        self._samples: dict[str, list[DrainSample]] = {}
        self._lock = threading.Lock()

    def take(self, samples: Iterable[DrainSample]) -> tuple[DrainSample, ...]:
        """Keep those that tell something new; returns them."""
        kept = []
        with self._lock:
            for one in samples:
                line = self._samples.setdefault(one.drain, [])
                if line and (one.at <= line[-1].at or _same(one, line[-1])):
                    continue
                line.append(one)
                kept.append(one)
                if len(line) > self._kept:
                    # Every second one of the older half goes: long drains lose detail, never their ends.
                    half = self._kept // 2
                    line[:half] = line[:half:2]
        return tuple(kept)

    def of(self, drain: str) -> tuple[DrainSample, ...]:
        """A drain's samples, oldest first."""
        with self._lock:
            return tuple(self._samples.get(drain, ()))

    def running(
        self, drains: Iterable[Drain], view: ClusterView | None, now: datetime
    ) -> tuple[DrainSample, ...]:
        """Sample the drains that run, and those that ended since their last sample; returns what was new."""
        due: Mapping[str, Drain] = {
            drain.id: drain for drain in drains if drain.state in RUNNING or self._unfinished(drain)
        }
        return self.take(sample(drain, view, now) for drain in due.values())

    def _unfinished(self, drain: Drain) -> bool:
        with self._lock:
            line = self._samples.get(drain.id)
            return bool(line) and line[-1].at < drain.updated_at if line else False


def _same(one: DrainSample, other: DrainSample) -> bool:
    return (one.bytes_left, one.in_flight, one.held_by) == (
        other.bytes_left,
        other.in_flight,
        other.held_by,
    ) and (one.latency_ratio == other.latency_ratio)


def record(one: DrainSample) -> Record:
    """For the actions topic, so that a restart remembers the curve."""
    return Record(one.drain, msgspec.json.encode(one))


def parse(delivered: Delivered) -> DrainSample:
    """A record of the actions topic. Raises ForeignSample."""
    try:
        return msgspec.json.decode(delivered.value, type=DrainSample)
    except msgspec.DecodeError as error:
        raise ForeignSample(
            f"offset {delivered.offset} of the actions topic is no sample: {error}"
        ) from error

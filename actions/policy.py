"""The policy: every limit a drain lives under, with design 5's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Mode(StrEnum):
    """OBSERVE: forecasts only. PROPOSE: drains are proposed, a person approves. ACT: bad disks are drained."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    ACT = "act"


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits. Ratios are in [0, 1]."""

    mode: Mode = Mode.PROPOSE
    tick_seconds: float = 10.0
    drains_per_host: int = 1
    drains_per_rack: int = 2
    drains_per_cluster: int = 4
    out_share_max: float = 0.02
    """Share of all OSDs that may be out or draining."""
    peering_max: int = 3
    in_flight_max: int = 8
    backfillfull_margin: float = 0.05
    """A target's limit is min(nearfull, backfillfull - this)."""
    suspicion_min: int = 3
    suspicion_share: float = 0.05
    suspicion_window: timedelta = timedelta(days=7)
    """More than max(suspicion_min, suspicion_share) newly bad of one model in the window: the model is sick."""
    trust_readings: int = 3
    trust_hours: float = 24.0
    hard_readings: int = 2
    hard_hours: float = 1.0
    outlook_age_max: timedelta = timedelta(hours=36)
    view_age_max: timedelta = timedelta(seconds=60)
    latency_hold: float = 1.2
    latency_halve: float = 1.5
    latency_pull_back: float = 2.0
    latency_grow: float = 1.1
    known_releases: frozenset[str] = frozenset({"pacific", "quincy", "reef", "squid", "tentacle"})

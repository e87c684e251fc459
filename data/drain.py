"""A drain: what was planned for an OSD, how far it is, and every line of what was seen, decided and answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from data.ids import DeviceId, OsdId, PgId


class DrainState(StrEnum):
    """States of design 6.2. FAILED needs a person and says for what."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    PREPARING = "preparing"
    DRAINING = "draining"
    HOLDING = "holding"
    DRAINED = "drained"
    VERIFIED = "verified"
    HANDED_OVER = "handed_over"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Intent(StrEnum):
    """REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0."""

    REPLACE = "replace"
    REMOVE = "remove"


class Mechanic(StrEnum):
    """How data leaves an OSD (design 6.4)."""

    UPMAP_WALK = "walk by upmap"
    OVERRIDE_LADDER = "ladder by override reweight"
    CRUSH_LADDER = "ladder by CRUSH weight"
    REBUILD = "rebuild"


@dataclass(frozen=True, slots=True)
class Move:
    """One PG's shard from the suspect to where the final map puts it."""

    pg: PgId
    source: OsdId
    target: OsdId
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Computed on the real map before anything moves; `moves` is in the order of risk x redundancy."""

    mechanic: Mechanic
    why: str
    epoch: int
    moves: tuple[Move, ...]
    fullest_osd: OsdId | None
    fullest_after: float | None
    """Fullness in [0, 1] of the fullest target once all has moved."""
    cluster_after: float | None
    eta_hours: float | None
    bottleneck: str
    refusals: tuple[str, ...] = ()
    """Sentences that make the plan illegal now; empty when it may go."""

    @property
    def bytes(self) -> int:
        """Bytes to move in all."""
        return sum(move.bytes for move in self.moves)


@dataclass(frozen=True, slots=True)
class Progress:
    """Invariant: 0 <= moved_pgs <= planned_pgs."""

    planned_pgs: int = 0
    moved_pgs: int = 0
    planned_bytes: int = 0
    moved_bytes: int = 0
    in_flight: int = 0
    budget: int = 1
    """PGs that pacing allows in flight now."""


@dataclass(frozen=True, slots=True)
class Drain:
    """One drain of one device. A value: every change makes a new one with a higher `revision`."""

    id: str
    device: DeviceId | None
    osds: tuple[OsdId, ...]
    state: DrainState
    intent: Intent
    asked_by: str
    reason: str
    created_at: datetime
    updated_at: datetime
    revision: int = 0
    plan: Plan | None = None
    progress: Progress = field(default_factory=Progress)
    saved: Mapping[str, str] = field(default_factory=dict)
    """Settings as they were before we touched them, to restore (`osd.3/reweight`: `1.0`)."""
    ours: Mapping[str, str] = field(default_factory=dict)
    """What we set that still stands, under the same keys: the `conflict` guard compares it with the map."""
    policy: Mapping[str, str] = field(default_factory=dict)
    """Snapshot of the policy under which it was approved."""
    resume_to: DrainState | None = None
    """Where a person's resume leads, while PAUSED."""
    held_by: tuple[str, ...] = ()
    """Sentences of the guards that refuse now."""
    ended_why: str = ""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a drain's journal; append-only. What was seen, what was decided, what the cluster answered."""

    drain: str
    at: datetime
    seen: str
    decided: str
    answered: str = ""
    epoch: int | None = None
    caller: str = "controller"

"""A drain: what was planned for an OSD, how far it is, and every line of what was seen, decided and answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from predrain.data.ids import DeviceId, OsdId, PgId
from predrain.data.refusal import Refusal
from predrain.data.setting import Setting


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
    """REPLACE keeps the slot (and its CRUSH weight) for a new disk; REMOVE ends at CRUSH weight 0.

    QUARANTINE moves no data: the OSD stops leading PGs, and leads them again when it is no longer slow. FILL is the
    way back: a new, empty disk in the slot gets its share.
    """

    REPLACE = "replace"
    REMOVE = "remove"
    QUARANTINE = "quarantine"
    FILL = "fill"

    @property
    def moves_data(self) -> bool:
        """Whether balancer and throttles are held, and the pace follows what clients feel."""
        return self is not Intent.QUARANTINE

    @property
    def empties_osd(self) -> bool:
        """Whether no data is left on its OSDs when it ends."""
        return self in (Intent.REPLACE, Intent.REMOVE)

    @property
    def fills_osd(self) -> bool:
        """Whether its OSDs have their whole share of the data when it ends."""
        return self is Intent.FILL

    @property
    def removes_osd(self) -> bool:
        """Whether the CRUSH weight of its OSDs is 0 when it ends."""
        return self is Intent.REMOVE


class Mechanic(StrEnum):
    """How data leaves an OSD (design 6.4)."""

    UPMAP_WALK = "walk by upmap"
    OVERRIDE_LADDER = "ladder by override reweight"
    CRUSH_LADDER = "ladder by CRUSH weight"
    REBUILD = "rebuild"
    PRIMARY_AFFINITY = "primary affinity"


@dataclass(frozen=True, slots=True)
class Move:
    """One PG's shard from the suspect to where the final map puts it."""

    pg: PgId
    source: OsdId
    target: OsdId
    bytes: int


@dataclass(frozen=True, slots=True)
class Target:
    """What one OSD is to receive. Fullness in [0, 1], after with everything else that is promised to it."""

    osd: OsdId
    pgs: int
    bytes: int
    before: float | None
    after: float | None


AFTER = "then "
"""Begins the name of a bound that follows when no data is left; the others stand beside each other until then."""
AFTER_OVERRIDE, AFTER_WEIGHT = f"{AFTER}override 0", f"{AFTER}CRUSH weight 0"


@dataclass(frozen=True, slots=True)
class Bound:
    """One thing that takes at least so long; the longest is the plan's bottleneck."""

    name: str
    hours: float


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
    targets: tuple[Target, ...] = ()
    """Who receives what, the fullest first."""
    bounds: tuple[Bound, ...] = ()
    """What the ETA is made of, the longest first."""
    ticks: int = 0
    """Looks of the controller that the whole takes, by the longest bound."""
    rejected: tuple[str, ...] = ()
    """Other mechanics and why they were not taken, one sentence each."""
    stirred: tuple[PgId, ...] = ()
    """PGs that the device's CRUSH weight can move at all on its way to 0; empty where that weight stays."""
    survives: float | None = None
    """Chance in [0, 1] that the device lives as long as the ETA; None: its outlook has no curve."""

    @property
    def bytes(self) -> int:
        """Bytes to move in all."""
        return sum(move.bytes for move in self.moves)


@dataclass(frozen=True, slots=True)
class Progress:
    """Invariant: 0 <= moved_pgs + lost_pgs <= planned_pgs."""

    planned_pgs: int = 0
    moved_pgs: int = 0
    planned_bytes: int = 0
    moved_bytes: int = 0
    in_flight: int = 0
    budget: int = 1
    """PGs that pacing allows in flight now."""
    started: int = 0
    """PGs that the last step sent on their way."""
    asked: str = ""
    """What the last look's latency asked of the budget; the same twice running changes it."""
    lost_pgs: int = 0
    """PGs whose copy on the old disk is gone without having been moved; Ceph rebuilds it from the others."""

    @property
    def counted(self) -> tuple[int, int, int]:
        """What stays the same for as long as nothing moves."""
        return self.moved_pgs, self.moved_bytes, self.in_flight


@dataclass(frozen=True, slots=True)
class Insistence:
    """A person lets a drain pass some guards for a while, in the step in which the drain is now."""

    guards: tuple[str, ...]
    """Codes of the guards that are overruled."""
    by: str
    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A person gave up the cancel of a drain: what would move data is left as it stands."""

    by: str
    at: datetime


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
    saved: Mapping[Setting, str] = field(default_factory=dict)
    """Settings as they were before we touched them, to restore (`osd.3/reweight`: `1.0`)."""
    ours: Mapping[Setting, str] = field(default_factory=dict)
    """What we set that still stands, under the same keys: the `conflict` guard compares it with the map."""
    policy: Mapping[str, str] = field(default_factory=dict)
    """Snapshot of the policy under which it was approved."""
    resume_to: DrainState | None = None
    """Where a person's resume leads, while PAUSED."""
    held_by: tuple[str, ...] = ()
    """Sentences of the guards that refuse now."""
    held_for: tuple[str, ...] = ()
    """Codes of what `held_by` says; empty where the sentence is no guard's."""
    held_since: datetime | None = None
    """Since when it has been held for the same codes without a break."""
    ended_why: str = ""
    cancelled_by: str = ""
    """The person who cancelled it; empty where it ended by itself."""
    spare_reads: bool = False
    """Reading the disk hurts clients: it stops leading PGs before its data leaves (`Mechanic.REBUILD`)."""
    avoided: tuple[OsdId, ...] = ()
    """OSDs that a person had left out as targets; every later plan leaves them out as well."""
    insistence: Insistence | None = None
    """Guards that a person overruled; it stands until its time or the end of the step."""
    given_up: GivenUp | None = None
    """Of a cancel whose data cannot go back: who gave it up."""

    @property
    def emptied(self) -> bool:
        """Whether no data is left on its OSDs: a disk that was filled has its share, and serves."""
        over = (DrainState.VERIFIED, DrainState.HANDED_OVER)
        return self.state in over and self.intent.empties_osd


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


class DrainStands(Refusal):
    """The OSD has a drain that has not ended."""

    def __init__(self, drain: Drain) -> None:
        self.drain = drain
        cure = "cancel it first"
        if drain.state is DrainState.VERIFIED:
            cure = f"hand it over first: predrain drain done {drain.id}"
        elif drain.state is DrainState.CANCELLING:
            cure = "ask again when a controller has put everything back"
        super().__init__(f"osd.{drain.osds[0]} already has drain {drain.id} ({drain.state.value}); {cure}")

"""A drain: its plan for an OSD, its progress, and a journal of observations, decisions and the cluster's answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from predrain.data.hold_reason import HoldCause, HoldReason
from predrain.data.ids import ClusterId, DeviceId, OsdId, PgId
from predrain.data.plan_refusal import PlanRefusal
from predrain.data.refusal import Refusal
from predrain.data.setting import Setting
from predrain.data.wire_names import name_on_wire


class DrainState(StrEnum):
    """The states of a drain (design 6.2). FAILED needs a person, and the drain gives the reason."""

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

    QUARANTINE moves no data: the OSD is the primary of no PG until it is no longer slow. FILL is the way back: a new,
    empty disk in the slot gets its share.
    """

    REPLACE = "replace"
    REMOVE = "remove"
    QUARANTINE = "quarantine"
    FILL = "fill"

    @property
    def moves_data(self) -> bool:
        """True if balancer and throttles are held, and the pace follows the latency of the clients."""
        return self is not Intent.QUARANTINE

    @property
    def empties_osd(self) -> bool:
        """True if the drain's OSDs hold no data when it ends."""
        return self in (Intent.REPLACE, Intent.REMOVE)

    @property
    def fills_osd(self) -> bool:
        """True if the drain's OSDs have their whole share of the data when it ends."""
        return self is Intent.FILL

    @property
    def removes_osd(self) -> bool:
        """True if the CRUSH weight of the drain's OSDs is 0 when it ends."""
        return self is Intent.REMOVE


class Mechanic(StrEnum):
    """The ways in which data leaves an OSD (design 6.4)."""

    UPMAP_WALK = "walk by upmap"
    OVERRIDE_LADDER = "ladder by override reweight"
    CRUSH_LADDER = "ladder by CRUSH weight"
    REBUILD = "rebuild"
    PRIMARY_AFFINITY = "primary affinity"


@dataclass(frozen=True, slots=True)
class Move:
    """The move of one PG's shard from the suspect OSD to its place in the final map."""

    pg: PgId
    source: OsdId
    target: OsdId
    bytes: int


@dataclass(frozen=True, slots=True)
class Target:
    """The load that one OSD is to receive.

    `before` and `after` are its fullness in [0, 1]; `after` includes everything else that is promised to it.
    """

    osd: OsdId
    pgs: int
    bytes: int
    before: float | None
    after: float | None


class BoundKind(StrEnum):
    """The causes that limit how soon a plan can end."""

    TARGET_STARTS = "target_starts"
    """One target receives many PGs, and only a few may be on their way to it at once."""
    TARGET_WRITES = "target_writes"
    """One target receives many bytes."""
    SOURCE_READS = "source_reads"
    """One OSD reads many bytes."""
    PRIMARY_FILLS = "primary_fills"
    """One primary fills its PGs one at a time."""
    HOST_NETWORK = "host_network"
    IN_FLIGHT = "in_flight"
    """The policy limits the PGs in flight."""
    PEERING = "peering"
    """The policy limits the PGs that peer at once."""
    ONE_BY_ONE = "one_by_one"
    """There is no latency signal, so PGs move one at a time."""
    POLLS = "polls"
    """Polls of the controller in which nothing starts."""
    OVERRIDE_ZERO = "override_zero"
    """The override goes to 0 when no data is left, and PGs peer once more."""
    WEIGHT_ZERO = "weight_zero"
    """The CRUSH weight goes to 0 when no data is left."""

    @property
    def follows_data(self) -> bool:
        """True if the bound begins when no data is left. All other bounds run side by side until then."""
        return self in (BoundKind.POLLS, BoundKind.OVERRIDE_ZERO, BoundKind.WEIGHT_ZERO)


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower limit for the duration, from one cause. The longest bound is the plan's bottleneck."""

    kind: BoundKind
    hours: float
    osd: OsdId | None = None
    host: str = ""
    pgs: int = 0
    at_once: int = 0
    """PGs that may be under way, in flight or peering at once."""
    bytes: int = 0
    bytes_per_second: float = 0.0
    polls: int = 0
    text: str = ""
    """The words of a document of before, which has no figures; empty otherwise."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Computed on the real map before any data moves; `moves` is in the order of risk x redundancy."""

    mechanic: Mechanic
    why: str
    epoch: int
    moves: tuple[Move, ...]
    fullest_osd: OsdId | None
    fullest_after: float | None
    """Fullness in [0, 1] of the fullest target after all moves."""
    cluster_after: float | None
    eta_hours: float | None
    refusals: tuple[PlanRefusal, ...] = ()
    """Causes that make the plan not permitted now; empty if it may begin."""
    targets: tuple[Target, ...] = ()
    """The receiving OSDs, the fullest first."""
    bounds: tuple[Bound, ...] = ()
    """The bounds of the ETA, the longest first."""
    ticks: int = 0
    """Polls of the controller that the whole drain takes, by the longest bound."""
    rejected: tuple[str, ...] = ()
    """The other mechanics and why they were not chosen, one sentence each."""
    affected_pgs: tuple[PgId, ...] = field(default=(), metadata=name_on_wire("stirred"))
    """PGs that can move while the device's CRUSH weight goes to 0; empty if that weight stays."""
    survives: float | None = None
    """Probability in [0, 1] that the device lives as long as the ETA; None: its outlook has no curve."""

    @property
    def bytes(self) -> int:
        """Total bytes to move."""
        return sum(move.bytes for move in self.moves)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a drain. Invariant: 0 <= moved_pgs + lost_pgs <= planned_pgs."""

    planned_pgs: int = 0
    moved_pgs: int = 0
    planned_bytes: int = 0
    moved_bytes: int = 0
    in_flight: int = 0
    budget: int = 1
    """PGs that pacing allows in flight now."""
    started: int = 0
    """PGs whose move the last step began."""
    asked: str = ""
    """The change of the budget that the last poll's latency called for. The same call twice in a row changes the
    budget."""
    lost_pgs: int = 0
    """PGs whose copy on the old disk is lost before it was moved; Ceph rebuilds it from the other copies."""

    @property
    def movement_key(self) -> tuple[int, int, int]:
        """The values that stay the same for as long as no data moves."""
        return self.moved_pgs, self.moved_bytes, self.in_flight


@dataclass(frozen=True, slots=True)
class Insistence:
    """A person's order to let a drain pass some guards for a while, within its present step."""

    guards: tuple[str, ...]
    """Codes of the guards that are overruled."""
    by: str
    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A person gave up the cancel of a drain: the settings that would move data stay as they are."""

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
    """Settings as they were before the drain changed them, for restoring (`osd.3/reweight`: `1.0`)."""
    ours: Mapping[Setting, str] = field(default_factory=dict)
    """Settings that the drain wrote and that still stand, under the same keys: the `conflict` guard compares them
    with the map."""
    policy: Mapping[str, str] = field(default_factory=dict)
    """Snapshot of the policy under which the drain was approved."""
    resume_to: DrainState | None = None
    """The state to which a person's resume leads, while the drain is PAUSED."""
    held_by: tuple[str, ...] = ()
    """Sentences of the guards that refuse now."""
    held_for: tuple[HoldReason, ...] = ()
    """The reasons of the sentences in `held_by`; empty if a sentence has no reason of the list."""
    held_osd: OsdId | None = None
    """The OSD that the first sentence in `held_by` is about; None if it is about no single OSD."""
    held_since: datetime | None = None
    """Time since which the drain has been held for the same codes without a break."""
    ended_why: str = ""
    cancelled_by: str = ""
    """The person who cancelled the drain; empty if it ended by itself."""
    spare_reads: bool = False
    """True if reading the disk slows clients: the OSD stops being primary before its data leaves
    (`Mechanic.REBUILD`)."""
    avoided: tuple[OsdId, ...] = ()
    """OSDs that a person excluded as targets; every later plan excludes them as well."""
    insistence: Insistence | None = None
    """Guards that a person overruled, valid until its time or the end of the step."""
    given_up: GivenUp | None = None
    """The person who gave up a cancel whose data cannot go back."""

    @property
    def hold_cause(self) -> HoldCause | None:
        """The cause of the present hold, for programs; None if nothing holds the drain."""
        if not self.held_by:
            return None
        return HoldCause(self.held_for[0] if self.held_for else HoldReason.OTHER, self.held_osd)

    @property
    def is_emptied(self) -> bool:
        """True if no data is left on the drain's OSDs. A disk that was filled has its share, and serves."""
        over = (DrainState.VERIFIED, DrainState.HANDED_OVER)
        return self.state in over and self.intent.empties_osd


class JournalEvent(StrEnum):
    """The lines of a journal by which programs decide. The sentence in `JournalEntry.decided` is for people only."""

    BEGUN = "begun"
    """The drain began: from now on it may send commands."""
    COUNTED = "counted"
    """Every copy of the drain's PGs was counted on other OSDs."""
    HELD = "held"
    """Guards hold the drain."""
    WAITED = "waited"
    """No guard holds the drain, and nothing has moved for long."""
    HALTED = "halted"
    """A person halted everything, for `JournalEntry.reason`."""
    HALT_LIFTED = "halt_lifted"


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One line of a drain's journal, which is append-only: the observation, the decision and the cluster's answer."""

    drain: str
    at: datetime
    seen: str
    decided: str
    answered: str = ""
    epoch: int | None = None
    caller: str = "controller"
    event: JournalEvent | None = None
    """The event for programs. None: no program decides by this line."""
    reason: str = ""
    """The reason that a person gave for a halt, as the person wrote it."""
    cluster: ClusterId | None = None
    """The cluster of the drain. None: the line is about no single cluster (audit, halt), or it is older than this
    field and about the cluster to which its store is bound."""


class DrainStands(Refusal):
    """The OSD has a drain that has not ended."""

    def __init__(self, drain: Drain) -> None:
        self.drain = drain
        cure = "cancel it first"
        if drain.state is DrainState.VERIFIED:
            cure = f"hand it over first: predrain drain hand-over {drain.id}"
        elif drain.state is DrainState.CANCELLING:
            cure = "ask again when a controller has put everything back"
        super().__init__(f"osd.{drain.osds[0]} already has drain {drain.id} ({drain.state.value}); {cure}")


class OfOtherCluster(Refusal):
    """A journal line or a request names another cluster than that of the store."""

    def __init__(self, what: str, cluster: ClusterId, own: ClusterId) -> None:
        super().__init__(
            f"{what} is about cluster {cluster}, and this store is about cluster {own}, whose OSDs are other disks: "
            "nothing is done. Send it to the predrain of that cluster"
        )


class NoSuchTarget(Refusal):
    """A target of a drain that is neither an OSD of the map nor a device under one."""

    def __init__(self, target: str) -> None:
        super().__init__(
            f"'{target}' is neither an OSD (osd.N) nor a device of this cluster; "
            "see `predrain cluster status`"
        )

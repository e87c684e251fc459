"""Fast maps: the monitors publish maps sooner while a drain moves PGs, so that operations wait less for them.

A PG that moves makes three or four maps at any interval, and what clients feel of the move is the wait for them
(docs/explanation/peering.md). The interval is `paxos_propose_interval` of all monitors. A drain holds it down as it
holds a throttle: the value before stands in its ledger before the command goes out. It is given back as soon as nothing
moves, when another hand touches it, and when maps, monitors or OSDs do not keep up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from predrain.actions.ceph_mgr.predrain.signing import strip_signature
from predrain.actions.cluster.port import ClusterUnreachable, Keep
from predrain.actions.cluster.view import PROPOSE_INTERVAL, ClusterView
from predrain.actions.controller.journal import Journalled, Sent
from predrain.actions.core.claimed_settings import FAST_MAPS, command_for, found, same
from predrain.actions.core.in_flight import in_flight
from predrain.actions.core.interval_claims import (
    MOVING,
    claim_interval,
    follow_setting,
    has_interval_claim,
    holds_down,
    name_interval,
    release_interval,
)
from predrain.actions.core.map_pace import MapPace
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context, engaged
from predrain.actions.engine.progress import find_current_osd
from predrain.actions.guards.cluster import foreign_trouble
from predrain.data.clock import lately
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import Yielded
from predrain.data.store.port import RevisionConflict

RECORD = "fast-maps"
"""The text in the cluster's keys that says what stands and what stood before, for who finds it left."""
RENEWED_EVERY = timedelta(seconds=30)
RESTS = timedelta(minutes=1)
"""So long after it was given back it is not set again, or a drain that stops and goes on would set it at each look."""
RESTS_AFTER_TROUBLE = timedelta(minutes=10)
SLOW_ANSWER_SECONDS = 2.0
"""The slowest of our commands in the last minute took so long: the monitors are slow to commit."""
LAG = timedelta(seconds=20)
"""So much later than statistics take, a PG that our commands changed has not reported from the map that they made."""
ATTEMPTS = 3
_DEFAULT_SECONDS = 1.0
_STAMP = "%Y-%m-%dT%H:%M:%SZ"


def is_moving(view: ClusterView, drain: Drain, context: Context) -> bool:
    """Whether PGs of the drain move now, or will at the next step."""
    if drain.state not in MOVING or drain.held_by or not drain.intent.moves_data:
        return False
    if in_flight(drain, context):
        return True
    return drain.state is DrainState.DRAINING and find_current_osd(view, drain, context) is not None


def find_obstacle(view: ClusterView, policy: Policy, context: Context) -> str | None:
    """Who does not want maps to come faster now, as a sentence; None where nobody objects."""
    if policy.fast_maps is None:
        return "the policy does not ask for it"
    if context.halted is not None:
        return "everything is halted"
    if any(Yielded(FAST_MAPS) in drain.ours for drain in context.drains if engaged(drain)):
        return "somebody else has set it since"
    if rows := sorted(key for key in view.settings if _is_single(key)):
        return f"{rows[0]} passes over what is set for all monitors"
    return None


def find_cost(policy: Policy, context: Context, pace: MapPace) -> str | None:
    """Why the cluster should not make more maps now; None where it bears them."""
    if (rate := pace.per_second()) is not None and rate > policy.fast_maps_budget:
        return f"{rate:.1f} maps a second came within the last minute, budget {policy.fast_maps_budget:g}"
    if (slowest := pace.slowest()) > SLOW_ANSWER_SECONDS:
        return f"the monitors took {slowest:.1f} s to answer a command, limit {SLOW_ANSWER_SECONDS:g} s"
    if context.memory.unreported and context.now - context.memory.trusted_from > LAG:
        return f"the OSDs of PG {min(context.memory.unreported)} have not followed the newest map"
    if foreign_trouble(context):
        return "there is degradation that is not ours"
    return None


def _is_single(key: str) -> bool:
    """Whether a row is of one monitor, or of those that a mask names."""
    section, _, name = key.rpartition("/")
    return name == PROPOSE_INTERVAL and section not in ("mon", "global")


@dataclass(frozen=True, slots=True)
class IntervalRecord:
    """What a controller says in the cluster of the interval that it holds down, and when it said so last."""

    value: str
    was: str
    at: datetime

    def write(self) -> str:
        """As text."""
        return f"{self.value} {self.was} {self.at:{_STAMP}}"


def parse_record(text: str) -> IntervalRecord | None:
    """The inverse of `IntervalRecord.write`, of a text with or without a signature; None where it says nothing."""
    words = strip_signature(text).split()
    try:
        value, was, at = words
        return IntervalRecord(value, was, datetime.strptime(at, _STAMP).replace(tzinfo=UTC))
    except ValueError:
        return None


@dataclass(slots=True)
class FastMaps:
    """Sets the monitors' interval for the time of moves, and gives it back. One a controller.

    keep: where the cluster keeps what stood before, so that somebody else than this process can give it back; without
    it nothing is set. save: stores a drain and its copy; whether the cluster took it. journal: sends the commands.
    """

    keep: Keep | None
    save: Callable[[Drain], bool]
    journal: Journalled
    pace: MapPace = field(default_factory=MapPace)
    refused: str = ""
    """Why the cluster does not take it; it is not asked again by this process."""
    copied: bool = True
    """Whether the cluster took every drain that was saved since the look began."""
    _attempts: int = 0
    _rests_until: datetime | None = None
    _renewed_at: datetime | None = None
    _sent_at: datetime | None = None
    _sent_again: int = 0

    def _is_off(self, policy: Policy, drains: Iterable[Drain]) -> bool:
        """Whether there is nothing to set and nothing to give back."""
        return policy.fast_maps is None and not any(has_interval_claim(drain) for drain in drains)

    def follow(
        self, view: ClusterView, policy: Policy, drains: Iterable[Drain], see: Callable[[], Context]
    ) -> None:
        """After a look at `drains` and what was decided on it: `see` tells how they are now. What another process
        changed meanwhile is left to the next look.
        """
        if self._is_off(policy, drains):
            return
        context = see()
        self.pace.note(view.epoch, context.now)
        self.copied = True
        try:
            self._follow(view, policy, context)
        except RevisionConflict:
            return

    def _follow(self, view: ClusterView, policy: Policy, context: Context) -> None:
        now = found(view, FAST_MAPS)
        drains = tuple(
            self._saved(drain, follow_setting(drain, now), context.now) for drain in context.drains
        )
        context = replace(context, drains=drains)
        holding = [drain for drain in drains if holds_down(drain)]
        objection = self._find_objection(view, policy, context, standing=bool(holding))
        cost = None if objection else find_cost(policy, context, self.pace)
        moving = [] if objection or cost else [d for d in drains if is_moving(view, d, context)]
        if moving:
            self._hold(policy, moving, holding, now, context.now)
        elif holding:
            self._rests_until = context.now + (RESTS_AFTER_TROUBLE if cost else RESTS)
            self._give_back(holding, now, objection or cost or "nothing moves", context.now)
        elif lagging := [
            drain for drain in drains if has_interval_claim(drain)
        ]:  # the map does not show it yet
            self._send_again(lagging[0], context.now)
        else:
            self._forget_record()

    def _find_objection(
        self, view: ClusterView, policy: Policy, context: Context, *, standing: bool
    ) -> str | None:
        if self.keep is None:
            return "the cluster keeps nothing for this controller"
        if self.refused:
            return f"the cluster refused it: {self.refused}"
        why = find_obstacle(view, policy, context)
        if why is None and not standing:
            rests = self._rests_until is not None and context.now < self._rests_until
            why = "it was given back a moment ago" if rests else _find_faster(view, policy)
        return why

    def _hold(
        self, policy: Policy, moving: list[Drain], holding: list[Drain], now: str, at: datetime
    ) -> None:
        """Every drain that moves claims it, so that the last of them gives it back; those that do not, let go."""
        value = holding[0].ours[FAST_MAPS] if holding else repr(policy.fast_maps)
        was = holding[0].saved[FAST_MAPS] if holding else now
        for drain in holding:
            if all(drain.id != other.id for other in moving):
                self._saved(drain, release_interval(drain), at)
        stands = same(FAST_MAPS, now, value)
        if not self._renew_record(value, was, at, always=not stands) and not stands:
            return  # what is set must stand where the next one finds it
        claimed = [
            drain if holds_down(drain) else self._saved(drain, claim_interval(drain, value, was, now), at)
            for drain in moving
        ]
        if stands:
            self._attempts = 0
            return
        if self._attempts >= ATTEMPTS:
            self.refused = f"it was set {ATTEMPTS} times and never showed"
            self._give_back(claimed, now, self.refused, at)
            return
        if not self.copied:
            return
        self._attempts += 1
        decided = f"{name_interval(value)} while PGs move"
        sent = self.journal.send(claimed[0].id, command_for(FAST_MAPS, value), decided, at)
        if sent is Sent.REFUSED:
            self.refused = f"drain {claimed[0].id} has its answer in the journal"
            for drain in claimed:
                self._saved(drain, release_interval(drain), at)

    def _give_back(self, holding: list[Drain], now: str, why: str, at: datetime) -> None:
        was = holding[0].saved[FAST_MAPS]
        for drain in holding:
            self._saved(drain, claim_interval(drain, was, was, now), at)
        self._sent_again = 0
        self._send(holding[0], was, f"as it was: {why}", at)

    def _send_again(self, drain: Drain, at: datetime) -> None:
        """At each look at first, later once a minute: a mon that refuses it need not fill the journal."""
        if self._sent_again < ATTEMPTS or self._sent_at is None or not lately(self._sent_at, at, RESTS):
            self._sent_again += 1
            self._send(drain, drain.saved[FAST_MAPS], "once more", at)

    def _send(self, drain: Drain, was: str, why: str, at: datetime) -> None:
        """Give it back, under a halt, too."""
        self._sent_at = at
        self.journal.send(
            drain.id, command_for(FAST_MAPS, was), f"{name_interval(was)} {why}", at, gives_back=True
        )

    def _saved(self, drain: Drain, changed: Drain, at: datetime) -> Drain:
        """Stored where it differs, one revision on. Raises RevisionConflict."""
        if changed is drain:
            return drain
        changed = replace(changed, revision=drain.revision + 1, updated_at=at)
        self.copied = self.save(changed) and self.copied
        return changed

    def _renew_record(self, value: str, was: str, at: datetime, *, always: bool = False) -> bool:
        """What stands and what stood before, with the time: what is not renewed is left. Whether it is written."""
        assert self.keep is not None
        if not always and self._renewed_at is not None and lately(self._renewed_at, at, RENEWED_EVERY):
            return True
        try:
            self.keep.write(RECORD, IntervalRecord(value, was, at).write())
        except ClusterUnreachable:
            return False
        self._renewed_at = at
        return True

    def _forget_record(self) -> None:
        if self.keep is None or self._renewed_at is None:
            return
        try:
            self.keep.remove(RECORD)
        except ClusterUnreachable:
            return
        self._renewed_at = None


def _find_faster(view: ClusterView, policy: Policy) -> str | None:
    """Whether what is in force is as fast already, as an obstacle."""
    row = view.settings.get(f"mon/{PROPOSE_INTERVAL}", view.settings.get(f"global/{PROPOSE_INTERVAL}"))
    try:
        now = float(row) if row is not None else _DEFAULT_SECONDS
    except ValueError:
        return f"{PROPOSE_INTERVAL} is {row}, which is no number"
    return None if policy.fast_maps is not None and now > policy.fast_maps else f"it is {now:g} s already"

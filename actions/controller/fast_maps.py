"""Fast maps: the monitors publish maps sooner while a drain moves PGs, so that client operations wait less for them.

A PG that moves makes three or four maps at any interval, and the delay that clients notice during the move is the wait
for these maps (docs/explanation/peering.md). The interval is `paxos_propose_interval` of all monitors. A drain lowers
it as it lowers a throttle: the value before is recorded in the drain before the command is sent. The interval is
restored as soon as nothing moves, when another process or a person changes it, and when maps, monitors or OSDs do not
keep up. The rate of new maps and the response time of the monitors are measured by this process's own polls and
commands (`MapPace`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from time import monotonic

from predrain.actions.ceph_mgr.predrain.text_signing import strip_signature
from predrain.actions.cluster.cluster_port import (
    Cluster,
    ClusterUnreachable,
    Command,
    CommandResult,
    ConfigKeyStore,
)
from predrain.actions.cluster.cluster_view import PROPOSE_INTERVAL, ClusterView
from predrain.actions.controller.journal import JournalWriter, SentCommand
from predrain.actions.core.claimed_settings import (
    FAST_MAPS,
    MOVING,
    claim_interval,
    command_for,
    follow_setting,
    has_interval_claim,
    holds_down,
    is_same_setting_value,
    name_interval,
    read_setting_value,
    release_interval,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.in_flight import in_flight
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.engine.strategies import STRATEGIES
from predrain.actions.guards.cluster_guards import foreign_trouble
from predrain.data.clock import is_within_last
from predrain.data.drain import Drain, DrainState
from predrain.data.setting import YieldedValue
from predrain.data.store.store_port import RevisionConflict

OVER = timedelta(minutes=1)
"""The period over which rates are averaged."""
_ENOUGH = timedelta(seconds=30)


@dataclass(slots=True)
class MapPace:
    """The epochs that the polls of the last minute found, and the seconds that our commands of that minute
    took.
    """

    clock: Callable[[], float] = monotonic
    _looks: deque[tuple[datetime, int]] = field(default_factory=deque)
    _answers: deque[tuple[float, float]] = field(default_factory=deque)

    def note_epoch(self, epoch: int, now: datetime) -> None:
        """Record the epoch that a poll found. If the clock was set back, the record starts again."""
        if self._looks and now < self._looks[-1][0]:
            self._looks.clear()
        self._looks.append((now, epoch))
        while len(self._looks) > 2 and now - self._looks[1][0] >= OVER:
            self._looks.popleft()

    def per_second(self) -> float | None:
        """Return the maps per second over the last minute; None if the polls span less than half of it."""
        if not self._looks:
            return None
        (began, first), (ended, last) = self._looks[0], self._looks[-1]
        if ended - began < _ENOUGH:
            return None
        return (last - first) / (ended - began).total_seconds()

    def find_slowest_seconds(self) -> float:
        """Return the seconds that the slowest command of the last minute took; 0 if there was none."""
        since = self.clock() - OVER.total_seconds()
        while self._answers and self._answers[0][0] < since:
            self._answers.popleft()
        return max((seconds for _, seconds in self._answers), default=0.0)

    def note_answer(self, seconds: float) -> None:
        """Record how many seconds one of our commands took to be answered."""
        self._answers.append((self.clock(), seconds))


@dataclass(slots=True)
class TimedCluster:
    """A cluster that records how long each command takes."""

    cluster: Cluster
    pace: MapPace

    def view(self) -> ClusterView:
        """Return a view of the cluster. Raises ClusterUnreachable."""
        return self.cluster.view()

    def apply(self, command: Command) -> CommandResult:
        """Send one command. Raises ClusterUnreachable."""
        began = self.pace.clock()
        try:
            return self.cluster.apply(command)
        finally:
            self.pace.note_answer(self.pace.clock() - began)


RECORD = "fast-maps"
"""The text in the config-key store that gives the set value and the value before, for a process that finds it left
behind.
"""
RENEWED_EVERY = timedelta(seconds=30)
RESTS = timedelta(minutes=1)
"""The interval is not set again for this long after it was restored. A drain that stops and goes on would otherwise
set it at each poll.
"""
RESTS_AFTER_TROUBLE = timedelta(minutes=10)
SLOW_ANSWER_SECONDS = 2.0
"""Limit of the slowest answer to our commands in the last minute. Above it the monitors are slow to commit."""
LAG = timedelta(seconds=20)
"""If a PG that our commands changed has not reported from the new map this long after its statistics were due, OSDs
lag behind the map.
"""
ATTEMPTS = 3
_DEFAULT_SECONDS = 1.0
_STAMP = "%Y-%m-%dT%H:%M:%SZ"


def is_moving(view: ClusterView, drain: Drain, context: Context) -> bool:
    """Return whether PGs of the drain move now, or will at the next step."""
    if drain.state not in MOVING or drain.held_by or not drain.intent.moves_data:
        return False
    if in_flight(drain, context):
        return True
    movement = STRATEGIES[drain.intent].movement
    return (
        drain.state is DrainState.DRAINING
        and movement is not None
        and movement.find_current_osd(view, drain, context) is not None
    )


def find_obstacle(view: ClusterView, policy: Policy, context: Context) -> str | None:
    """Return why maps must not come faster now, as a sentence; None if nothing prevents it."""
    if policy.fast_maps_seconds is None:
        return "the policy does not ask for it"
    if context.halted is not None:
        return "everything is halted"
    if any(YieldedValue(FAST_MAPS) in drain.ours for drain in context.drains if is_drain_engaged(drain)):
        return "another party has set it since"
    if rows := sorted(key for key in view.settings if _is_single(key)):
        return f"{rows[0]} passes over what is set for all monitors"
    return None


def find_cost(policy: Policy, context: Context, pace: MapPace) -> str | None:
    """Return why the cluster should not make more maps now, as a sentence; None if the cluster keeps up."""
    if (rate := pace.per_second()) is not None and rate > policy.fast_maps_max_per_second:
        return f"{rate:.1f} maps a second came within the last minute, budget {policy.fast_maps_max_per_second:g}"
    if (slowest := pace.find_slowest_seconds()) > SLOW_ANSWER_SECONDS:
        return f"the monitors took {slowest:.1f} s to answer a command, limit {SLOW_ANSWER_SECONDS:g} s"
    if context.memory.unreported and context.now - context.memory.trusted_from > LAG:
        return f"the OSDs of PG {min(context.memory.unreported)} have not followed the newest map"
    if foreign_trouble(context):
        return "there is degradation that is not ours"
    return None


def _is_single(key: str) -> bool:
    """Return whether a config row concerns one monitor, or those that a mask names."""
    section, _, name = key.rpartition("/")
    return name == PROPOSE_INTERVAL and section not in ("mon", "global")


@dataclass(frozen=True, slots=True)
class IntervalRecord:
    """A controller's record in the cluster of the interval that it has lowered, and the time of its last renewal."""

    value: str
    was: str
    at: datetime

    def write(self) -> str:
        """Return the record as text."""
        return f"{self.value} {self.was} {self.at:{_STAMP}}"


def parse_record(text: str) -> IntervalRecord | None:
    """Parse a text that `IntervalRecord.write` made, with or without a signature; return None for any other text."""
    words = strip_signature(text).split()
    try:
        value, was, at = words
        return IntervalRecord(value, was, datetime.strptime(at, _STAMP).replace(tzinfo=UTC))
    except ValueError:
        return None


@dataclass(slots=True)
class FastMaps:
    """Lowers the monitors' interval while PGs move, and restores it. Each controller has one.

    - keep: the config-key store with the record of the value before, so that another process can restore it. Without
      it the interval is not set.
    - save: stores a drain and its copy; returns whether the cluster accepted the copy.
    - journal: sends the commands.
    """

    keep: ConfigKeyStore | None
    save: Callable[[Drain], bool]
    journal: JournalWriter
    pace: MapPace = field(default_factory=MapPace)
    refused: str = ""
    """The reason why the cluster refuses the command; this process does not send it again."""
    copied: bool = True
    """True if the cluster accepted every drain that was saved since the poll began."""
    _attempts: int = 0
    _rests_until: datetime | None = None
    _renewed_at: datetime | None = None
    _sent_at: datetime | None = None
    _sent_again: int = 0

    def adjust_interval(
        self, view: ClusterView, policy: Policy, drains: Iterable[Drain], see: Callable[[], Context]
    ) -> None:
        """Adjust the interval after a poll that read `drains` and the decisions on it.

        `see` returns the present state of the drains. If another process changed a drain meanwhile, the next poll
        handles it.
        """
        if policy.fast_maps_seconds is None and not any(has_interval_claim(drain) for drain in drains):
            return
        context = see()
        self.pace.note_epoch(view.epoch, context.now)
        self.copied = True
        try:
            self._follow(view, policy, context)
        except RevisionConflict:
            return

    def _follow(self, view: ClusterView, policy: Policy, context: Context) -> None:
        now = read_setting_value(view, FAST_MAPS)
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
        ]:  # the view does not show it yet
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
        """Claim the interval for every moving drain, so that the last of them restores it. Release the claims of other
        drains.
        """
        value = holding[0].ours[FAST_MAPS] if holding else repr(policy.fast_maps_seconds)
        was = holding[0].saved[FAST_MAPS] if holding else now
        for drain in holding:
            if all(drain.id != other.id for other in moving):
                self._saved(drain, release_interval(drain), at)
        stands = is_same_setting_value(FAST_MAPS, now, value)
        if not self._renew_record(value, was, at, always=not stands) and not stands:
            return  # the record must exist before the value is set, so that the next process can restore it
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
        if sent is SentCommand.REFUSED:
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
        """Send the value again: at each poll at first, later once a minute, so that a refusing mon does not fill the
        journal.
        """
        if (
            self._sent_again < ATTEMPTS
            or self._sent_at is None
            or not is_within_last(self._sent_at, at, RESTS)
        ):
            self._sent_again += 1
            self._send(drain, drain.saved[FAST_MAPS], "once more", at)

    def _send(self, drain: Drain, was: str, why: str, at: datetime) -> None:
        """Send the value that restores the interval, under a halt too."""
        self._sent_at = at
        self.journal.send(
            drain.id, command_for(FAST_MAPS, was), f"{name_interval(was)} {why}", at, gives_back=True
        )

    def _saved(self, drain: Drain, changed: Drain, at: datetime) -> Drain:
        """Store a drain that has changed, with the next revision. Raises RevisionConflict."""
        if changed is drain:
            return drain
        changed = replace(changed, revision=drain.revision + 1, updated_at=at)
        self.copied = self.save(changed) and self.copied
        return changed

    def _renew_record(self, value: str, was: str, at: datetime, *, always: bool = False) -> bool:
        """Write the set value, the value before and the time. Return whether the record is written and recent.

        A record that is not renewed counts as left behind.
        """
        assert self.keep is not None
        if (
            not always
            and self._renewed_at is not None
            and is_within_last(self._renewed_at, at, RENEWED_EVERY)
        ):
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
    """Return, as an obstacle, that the value in force is already as fast; None if it is not."""
    row = view.settings.get(f"mon/{PROPOSE_INTERVAL}", view.settings.get(f"global/{PROPOSE_INTERVAL}"))
    try:
        now = float(row) if row is not None else _DEFAULT_SECONDS
    except ValueError:
        return f"{PROPOSE_INTERVAL} is {row}, which is no number"
    return (
        None
        if policy.fast_maps_seconds is not None and now > policy.fast_maps_seconds
        else f"it is {now:g} s already"
    )

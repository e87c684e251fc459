"""The controller: look, decide, write down, act, write down the answer. It can be killed between any two
of these.

Everything that must survive is in the store before a command is sent; what is only in `Memory` makes the next
process wait once, never act wrongly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from threading import RLock
from time import perf_counter

from actions.cluster.port import Cluster, ClusterUnreachable
from actions.cluster.view import ClusterView
from actions.context import Context, Memory
from actions.decide import decide
from actions.guards import Pass, Refuse, judge
from actions.ledger import found, key_of, same
from actions.policy import Policy
from actions.proposals import serving
from actions.requests import Requests
from actions.states import ENDED, Event, after, can
from actions.steps import Answer, Decisions, Hold, Propose, Refusal, Step, Turn, Wait
from actions.survey import Survey, survey
from data.drain import Drain, DrainState, JournalEntry
from data.ids import DeviceId
from data.outlook import Outlook, Status
from data.store.port import RevisionConflict, Store

_FAILURES_BEFORE_A_PERSON = 3


@dataclass(frozen=True, slots=True)
class TickReport:
    """What one tick saw and did. `view` is None when the cluster did not answer."""

    at: datetime
    view: ClusterView | None
    answers: tuple[Answer, ...]
    commands: int
    seconds: float
    halted: str | None = None
    trouble: str = ""
    """Why nothing could be decided, when nothing could."""
    idle: bool = False
    """No drain waited and no bad disk served, so nothing was decided."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The answers that sent commands."""
        return tuple(answer for answer in self.answers if isinstance(answer, Step))

    @property
    def refused(self) -> Mapping[DeviceId, tuple[Refuse, ...]]:
        """Bad disks for which nothing was proposed, and why."""
        return {answer.device: answer.refusals for answer in self.answers if isinstance(answer, Refusal)}


@dataclass(slots=True)
class Controller:
    """Drives drains on one cluster. Ticks and requests of one process take turns; other processes are
    met by revision.

    `bundle_since`: when the forecast's bundle replaced another one (None: not within memory). `lease_held`:
    kept up to date by whoever renews the lease.
    """

    cluster: Cluster
    store: Store
    policy: Policy
    bundle_since: datetime | None = None
    lease_held: bool = True
    _memory: Memory | None = None
    _surveyed: Survey | None = None
    _bad_since: dict[DeviceId, datetime] = field(default_factory=dict)
    _outlooks: Mapping[DeviceId, Outlook] = field(default_factory=dict)
    _failures: dict[str, int] = field(default_factory=dict)
    _lock: RLock = field(default_factory=RLock)

    @property
    def view(self) -> ClusterView | None:
        """The last look; None before the first."""
        return self._surveyed.view if self._surveyed else None

    def tick(self, now: datetime, outlooks: Mapping[DeviceId, Outlook] | None = None) -> TickReport:
        """One look and at most one small step a drain. `outlooks`: the newest of each device, else
        the store's.
        """
        with self._lock:
            began = perf_counter()
            halted = self.store.halt_reason()
            self._outlooks = self.store.latest_outlooks() if outlooks is None else outlooks
            drains = self.store.drains()
            self._follow_suspicion(now)
            try:
                view = self._look(now)
            except ClusterUnreachable as trouble:
                sentence = f"The cluster does not answer: {trouble}."
                self._hold_all(drains, sentence, now)
                return TickReport(now, None, (), 0, perf_counter() - began, halted, sentence)
            self._read_back(view, drains)
            if self._idle(view, drains):
                return TickReport(now, view, (), 0, perf_counter() - began, halted, idle=True)
            decisions = self._decide(view, drains, now, halted)
            commands = sum(self._carry_out(answer, view, drains, now) for answer in decisions.answers)
            return TickReport(now, view, decisions.answers, commands, perf_counter() - began, halted)

    def explain(self, id_: str, now: datetime) -> tuple[tuple[str, Pass | Refuse], ...]:
        """Every guard that has a say about a drain now, with its answer; empty before the first look."""
        with self._lock:
            if self._surveyed is None:
                return ()
            drain = self.requests.known(id_)
            return judge(self._surveyed.view, drain, self.policy, self._context(now))

    @property
    def requests(self) -> Requests:
        """What a person may ask of the controller's drains."""
        return Requests(self.store, self.policy, self._lock)

    def propose(self, target: str, caller: str, reason: str, now: datetime, intent: str = "replace") -> Drain:
        """A person's drain of `osd.N` or a device, with its plan, to be approved. Raises
        NoSuchTarget, DrainStands.
        """
        with self._lock:
            view = self._surveyed.view if self._surveyed else self._look(now)
            return self.requests.propose(view, target, caller, reason, self._context(now), intent)

    def hand_over(self, id_: str, caller: str, now: datetime) -> Drain:
        """A verified disk may be pulled, by a person's word. Raises NotNow with every sentence that
        refuses.
        """
        with self._lock:
            view = self._look(now)
            return self.requests.hand_over(id_, caller, view, self._context(now))

    def _look(self, now: datetime) -> ClusterView:
        view = self.cluster.view()
        self._memory = (
            Memory.starting(view, now, self.policy)
            if self._memory is None
            else self._memory.looked(view, now, self.policy)
        )
        self._surveyed = survey(view, self._surveyed)
        return view

    def _read_back(self, view: ClusterView, drains: tuple[Drain, ...]) -> None:
        """Forget the attempts at what the map now shows, and at what a person stopped.

        The mon answers "set" also to pins that it drops seconds later, so this waits until all has settled.
        """
        if self._memory is None or not self._memory.attempts or not self._memory.settled(view):
            return
        shown = [
            key
            for drain in drains
            for key, value in drain.ours.items()
            if key in self._memory.attempts
            and (drain.state in (DrainState.PAUSED, DrainState.FAILED) or same(key, found(view, key), value))
        ]
        self._memory = self._memory.arrived(shown)

    def _idle(self, view: ClusterView, drains: tuple[Drain, ...]) -> bool:
        """Nothing waits, and no bad disk serves: one that was pulled or has died keeps its outlook for ever."""
        if any(drain.state not in ENDED for drain in drains):
            return False
        bad = {device for device, outlook in self._outlooks.items() if outlook.status is Status.BAD}
        return not bad or bad.isdisjoint(serving(view))

    def _context(self, now: datetime) -> Context:
        assert self._surveyed is not None
        assert self._memory is not None
        return Context(
            survey=self._surveyed,
            outlooks=self._outlooks,
            drains=self.store.drains(),
            now=now,
            memory=self._memory,
            halted=self.store.halt_reason(),
            lease_held=self.lease_held,
            bad_since=self._bad_since,
            bundle_since=self.bundle_since,
        )

    def _decide(
        self, view: ClusterView, drains: tuple[Drain, ...], now: datetime, halted: str | None
    ) -> Decisions:
        assert self._memory is not None
        decisions = decide(
            view,
            self._outlooks,
            drains,
            self.policy,
            now,
            self._memory,
            surveyed=self._surveyed,
            halted=halted,
            lease_held=self.lease_held,
            bad_since=self._bad_since,
            bundle_since=self.bundle_since,
        )
        if decisions.planned:
            self._memory = replace(self._memory, planned={**self._memory.planned, **decisions.planned})
        return decisions

    def _carry_out(self, answer: Answer, view: ClusterView, drains: tuple[Drain, ...], now: datetime) -> int:
        """Write the answer down and do it; returns how many commands were sent."""
        try:
            match answer:
                case Step():
                    return self._send(answer, view, now)
                case Turn(drain=drain, seen=seen, decided=decided):
                    self._write(drain.id, now, seen, decided, epoch=view.epoch)
                    self.store.save_drain(drain)
                case Hold(drain=drain, refusals=refusals):
                    if _stored(drain, drains):
                        decided = "hold: " + " ".join(refuse.sentence for refuse in refusals)
                        if not _same_reasons(refusals, drain, drains):
                            self._write(drain.id, now, f"epoch {view.epoch}", decided, epoch=view.epoch)
                        self.store.save_drain(drain)
                case Wait(drain=drain):
                    self._keep_progress(drain, drains)
                case Propose(drain=drain):
                    self._write(drain.id, now, drain.reason, "propose a drain", epoch=view.epoch)
                    self.store.save_drain(drain)
                case Refusal():
                    pass
        except RevisionConflict:
            return 0  # somebody else changed this drain since it was read; the next tick reads it again
        return 0

    def _send(self, step: Step, view: ClusterView, now: datetime) -> int:
        """The intent first, then each command, then what the cluster said. Halt is read before every
        command.
        """
        assert self._memory is not None
        self._write(step.drain.id, now, step.seen, step.decided, epoch=view.epoch)
        self.store.save_drain(step.drain)
        sent = 0
        said: list[str] = []
        epoch, failed = view.epoch, False
        for command in step.commands:
            if (why := self.store.halt_reason()) is not None:
                said.append(f"not sent, halted: {why}")
                break
            self._memory = self._memory.sent(dict.fromkeys(step.pgs, epoch), (), now, self.policy)
            try:
                answer = self.cluster.apply(command)
            except ClusterUnreachable as trouble:
                said.append(f"no answer: {trouble}; whether it was done is not known")
                failed = True
                break
            sent += 1
            failed = failed or not answer.ok
            if answer.ok:
                self._memory = self._memory.sent({}, (key_of(command),), now, self.policy)
            said.append(answer.text or ("ok" if answer.ok else "refused"))
            epoch = max(epoch, answer.epoch or epoch + 1)
        self._memory = self._memory.sent(dict.fromkeys(step.pgs, epoch), (), now, self.policy)
        self._write(step.drain.id, now, "", "", answered="; ".join(dict.fromkeys(said)), epoch=epoch)
        self._count_failure(step.drain, failed, said[-1] if said else "", now)
        return sent

    def _count_failure(self, drain: Drain, failed: bool, said: str, now: datetime) -> None:
        """What the cluster refuses three times running is not tried a fourth time without a person."""
        if not failed:
            self._failures.pop(drain.id, None)
            return
        self._failures[drain.id] = self._failures.get(drain.id, 0) + 1
        if self._failures[drain.id] >= _FAILURES_BEFORE_A_PERSON and can(drain, Event.BREAK):
            del self._failures[drain.id]
            times = _FAILURES_BEFORE_A_PERSON
            why = f"The cluster refused {times} times running: {said}. Cure it, then resume or cancel."
            self._write(drain.id, now, said, "a person is needed")
            self.store.save_drain(after(drain, Event.BREAK, now, why=why))

    def _keep_progress(self, drain: Drain, drains: tuple[Drain, ...]) -> None:
        old = next((known for known in drains if known.id == drain.id), None)
        if old is not None and old.revision == drain.revision and old != drain:
            self.store.save_drain(replace(drain, revision=drain.revision + 1, held_by=()))

    def _hold_all(self, drains: tuple[Drain, ...], sentence: str, now: datetime) -> None:
        for drain in drains:
            if drain.state is DrainState.DRAINING:
                self._write(drain.id, now, sentence, "hold")
                held = replace(after(drain, Event.REFUSED, now), held_by=(sentence,))
                self.store.save_drain(held)

    def _follow_suspicion(self, now: datetime) -> None:
        """Since when each bad device has been bad without a break; read back from the store after a start."""
        bad = {device for device, outlook in self._outlooks.items() if outlook.status is Status.BAD}
        for device in self._bad_since.keys() - bad:
            del self._bad_since[device]
        for device in bad - self._bad_since.keys():
            since = self._outlooks[device].as_of
            history = self.store.outlooks(
                device, now - 2 * max(self.policy.suspicion_window, timedelta(days=1))
            )
            for outlook in reversed(history):
                if outlook.status is not Status.BAD:
                    break
                since = min(since, outlook.as_of)
            self._bad_since[device] = since

    def _write(
        self,
        id_: str,
        now: datetime,
        seen: str,
        decided: str,
        *,
        answered: str = "",
        epoch: int | None = None,
    ) -> None:
        self.store.add_journal([JournalEntry(id_, now, seen, decided, answered, epoch)])


def _stored(drain: Drain, drains: tuple[Drain, ...]) -> bool:
    """Whether the drain differs from what was read (a hold that says nothing new is not written again)."""
    old = next((known for known in drains if known.id == drain.id), None)
    return old is None or drain.revision > old.revision


def _same_reasons(refusals: tuple[Refuse, ...], drain: Drain, drains: tuple[Drain, ...]) -> bool:
    """Whether the hold is for the same guards as before, with other numbers: equal holds are folded
    in the journal.
    """
    old = next((known for known in drains if known.id == drain.id), None)
    if old is None or len(old.held_by) != len(refusals):
        return False
    return all(
        _words(was) == _words(refuse.sentence) for was, refuse in zip(old.held_by, refusals, strict=True)
    )


def _words(sentence: str) -> tuple[str, ...]:
    return tuple(word for word in sentence.split() if not any(letter.isdigit() for letter in word))

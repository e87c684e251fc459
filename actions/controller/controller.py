"""The controller: look, decide, write down, act, write down the answer. It can be killed between any two of these.

Everything that must survive is in the store before a command is sent; what is only in `Memory` makes the next
process wait once, never act wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import RLock
from time import perf_counter

from predrain.actions.cluster.port import Cluster, ClusterUnreachable, Command, DeviceLight, Keep, Lease
from predrain.actions.cluster.view import ClusterView
from predrain.actions.controller.cleanup import arrived, leftovers
from predrain.actions.controller.cluster_identity import ClusterIdentity
from predrain.actions.controller.disk_evidence import DiskEvidence
from predrain.actions.controller.failed_steps import FailureCount
from predrain.actions.controller.fast_maps import FastMaps
from predrain.actions.controller.journal import LIFE, Journalled, Sent
from predrain.actions.controller.leadership import Lead
from predrain.actions.controller.life_expectancy import Publisher
from predrain.actions.controller.replication import Copies
from predrain.actions.controller.requests import NotLeading, Requests
from predrain.actions.controller.tick_report import TickReport
from predrain.actions.core.answers import Answer, Decisions, Hold, ProposalRefusal, Propose, Step, Turn, Wait
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.actions.core.flags import left_set
from predrain.actions.core.map_pace import MapPace, TimedCluster
from predrain.actions.core.pg_survey import Survey, survey
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context, Memory
from predrain.actions.core.state_machine import Event, after
from predrain.actions.engine.claims import follow_map
from predrain.actions.engine.decide import decide
from predrain.actions.engine.journal_compaction import held_on, is_new, same_reasons
from predrain.actions.engine.proposals import idle
from predrain.actions.guards import HALT_ENDS
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.residence import Residence
from predrain.data.setting import UpmapItem
from predrain.data.slow import Slowness
from predrain.data.store.port import RevisionConflict, Store

__all__ = ["Controller", "TickReport"]


@dataclass(slots=True)
class Controller:
    """Drives drains on one cluster. Ticks and requests of one process take turns; other processes are
    met by revision.

    `bundle_since`: when the forecast's bundle replaced another one (None: not within memory). `keep`: where the
    cluster itself keeps drains and a halt. `lease`, `owner`: who may act, and this process, unlike any other.
    Without keep and lease the store is all there is, and this controller alone.
    """

    cluster: Cluster
    store: Store
    policy: Policy
    bundle_since: datetime | None = None
    slow: Slowness = field(default_factory=Slowness)
    """OSDs slower than their peers, by the newest latencies; kept up to date by whoever reads those."""
    residences: Mapping[DeviceId, Residence] = field(default_factory=dict)
    """Of disks that more than one host ever named; kept up to date by whoever files their readings."""
    keep: Keep | None = None
    lease: Lease | None = None
    owner: str = ""
    _memory: Memory | None = None
    _surveyed: Survey | None = None
    _evidence: DiskEvidence = field(default_factory=DiskEvidence)
    _outlooks: Mapping[DeviceId, Outlook] = field(default_factory=dict)
    _failures: FailureCount = field(default_factory=FailureCount)
    _lock: RLock = field(default_factory=RLock)
    _identity: ClusterIdentity = field(init=False)
    _lead: Lead = field(init=False)
    _copies: Copies = field(init=False)
    _journal: Journalled = field(init=False)
    _publisher: Publisher | None = None
    _timed: TimedCluster = field(init=False)
    _fast_maps: FastMaps = field(init=False)

    def __post_init__(self) -> None:
        self._identity = ClusterIdentity(self.store)
        self._timed = TimedCluster(self.cluster, MapPace())
        self._publisher = Publisher(self.keep) if self.keep is not None else None
        self._lead = Lead(self.store, self.keep, self.lease, self.owner)
        self._copies = Copies(self.store, self.keep, self._lead.unchallenged)
        self._journal = Journalled(self.store, self._timed, self._lead)
        self._fast_maps = FastMaps(self.keep, self._copies.save, self._journal, self._timed.pace)

    @property
    def view(self) -> ClusterView | None:
        """The last look; None before the first."""
        return self._surveyed.view if self._surveyed else None

    def tick(self, now: datetime, outlooks: Mapping[DeviceId, Outlook] | None = None) -> TickReport:
        """One look and at most one small step a drain. `outlooks`: the newest of each device, else
        the store's. What breaks it off, a store that is full above all, ends the lead.
        """
        with self._lock, self._lead.while_whole():
            began = perf_counter()
            self._outlooks = self.store.latest_outlooks() if outlooks is None else outlooks
            halted, trouble = self._lead.halted(), self.lead(now)
            drains = self.store.drains()
            try:
                view = self._look(now)
            except ClusterUnreachable as silent:
                trouble = trouble or f"The cluster does not answer: {silent}."
                self._hold_all(drains, halted, trouble, now)
                return TickReport(now, None, (), 0, perf_counter() - began, halted, trouble)
            known = self._evidence.follow(view, self._context(now, drains), self.store, self.policy)
            trouble = trouble or self._lead.lost()  # a look may take longer than the lease stands
            if trouble:
                self._hold_all(drains, halted, trouble, now)
                return TickReport(now, view, (), 0, perf_counter() - began, halted, trouble)
            advice = self._publish(view, drains, now) if halted is None else ""
            drains = self._clear_up(view, drains, now, halted=halted is not None)
            if idle(view, drains, known):
                self._fast_maps.follow(view, self.policy, drains, lambda: self._context(now))
                return TickReport(now, view, (), 0, perf_counter() - began, halted, idle=True, advice=advice)
            decisions = self._decide(view, drains, known)
            commands = sum(self._carry_out(answer, view, drains, now) for answer in decisions.answers)
            self._fast_maps.follow(view, self.policy, drains, lambda: self._context(now))
            seconds = perf_counter() - began
            return TickReport(now, view, decisions.answers, commands, seconds, halted, advice=advice)

    def halt(self, why: str | None) -> str | None:
        """Halt with a reason, in the store and in the cluster, or lift both (None); returns what stands then.

        Raises ClusterUnreachable: the halt stands in the store alone until `halt_heard`, or is not lifted.
        """
        self._lead.halt(why)
        return self._lead.halted()

    @property
    def halt_heard(self) -> bool:
        """Whether no halt stands here that the cluster was not told."""
        return self._lead.heard()

    def give_up(self) -> None:
        """Let the next controller lead at once; this one again when its store takes a line."""
        with self._lock:
            self._lead.give_up()

    def rest(self, seconds: float) -> None:
        """Begin no step any more, and let the one that has begun end, within so many seconds: the process ends."""
        self._lead.rest(seconds)

    def look(self, now: datetime) -> ClusterView:
        """See the cluster, decide nothing. Raises ClusterUnreachable."""
        with self._lock:
            return self._look(now)

    @property
    def requests(self) -> Requests:
        """What a person may ask of the controller's drains."""
        return Requests(self.store, self.policy, self._lock, self._asked, self._see, self._recall)

    def propose(
        self,
        target: str,
        caller: str,
        reason: str,
        now: datetime,
        intent: str = "replace",
        *,
        spare_reads: bool = False,
    ) -> Drain:
        """A person's drain of `osd.N` or a device, with its plan, to be approved. Raises NoSuchTarget, DrainStands."""
        with self._lock:
            self._led(now)
            view, context = self._see(now)
            return self.requests.propose(
                view, target, caller, reason, context, intent, spare_reads=spare_reads
            )

    def hand_over(self, id_: str, caller: str, now: datetime) -> Drain:
        """A verified disk may be pulled, by a person's word; its light is lit where that can be done.
        Raises NotNow with every sentence that refuses.
        """
        with self._lock:
            view = self._look(now)
            drain = self.requests.hand_over(id_, caller, view, self._context(now))
            if drain.device is not None and drain.intent.empties_osd:
                self._journal.send(id_, DeviceLight(drain.device, on=True), "light the disk", now)
            return drain

    def lead(self, now: datetime) -> str:
        """Lead, with all that the cluster keeps taken over and all of ours there; else why this one looks on."""
        with self._lock, self._lead.while_whole():
            if other := self._identity.refuse_silent_cluster(lambda: self.view or self._look(now)):
                return other
            if not self._lead.take():
                self._forget(now)
                return self._lead.lost()
            try:
                if not self._lead.unchallenged():
                    self._forget(now)
                    self._lead.claim()
                self._copies.recover(now, outranked=self._lead.outranked)
                self._lead.confirm()
                self._copies.catch_up()
            except ClusterUnreachable as trouble:
                return f"What the cluster keeps of drains cannot be read: {trouble}."
            return ""

    def _forget(self, now: datetime) -> None:
        """Another controller may act now: what the cluster keeps is read again, and what that one sent must show."""
        self._copies.forget()
        if self._memory is not None:
            self._memory = self._memory.sent({}, (), now, self.policy)
        if self._publisher is not None:
            self._publisher.forget()

    def _led(self, now: datetime) -> None:
        other = self._identity.refuse_other_cluster(lambda: self.view or self._look(now))
        if why := other or self.lead(now):
            raise NotLeading(why)

    def _asked(self, drain: Drain) -> bool:
        """Save what a person asked; whether the cluster took it, too. Raises RevisionConflict, NotLeading."""
        self._led(drain.updated_at)
        with self._lead.while_whole():
            return self._copies.save(drain)

    def _look(self, now: datetime) -> ClusterView:
        view = self.cluster.view()
        self._memory = (
            Memory.starting(view, now, self.policy)
            if self._memory is None
            else self._memory.looked(view, now, self.policy)
        )
        self._surveyed = survey(view, self._surveyed)
        return view

    def _context(self, now: datetime, drains: tuple[Drain, ...] | None = None) -> Context:
        assert self._surveyed is not None
        assert self._memory is not None
        context = Context(
            survey=self._surveyed,
            outlooks=self._outlooks,
            drains=self.store.drains() if drains is None else drains,
            now=now,
            memory=self._memory,
            halted=self._lead.halted(),
            lease_held=self._lead.leads,
            bundle_since=self.bundle_since,
            slow=self.slow,
            residences=self.residences,
        )
        return self._evidence.fill_in(context)

    def _recall(self, now: datetime) -> tuple[ClusterView, Context] | None:
        """The last look with what is known now; None before the first."""
        return None if self._surveyed is None else self._see(now)

    def _see(self, now: datetime) -> tuple[ClusterView, Context]:
        """The last look, or the first, with what is known now. Raises ClusterUnreachable."""
        view = self._surveyed.view if self._surveyed else self._look(now)
        return view, self._context(now)

    def _decide(self, view: ClusterView, drains: tuple[Drain, ...], known: Context) -> Decisions:
        assert self._memory is not None
        decisions = decide(
            view, self._outlooks, drains, self.policy, known.now, self._memory, surveyed=self._surveyed,
            halted=known.halted, lease_held=self._lead.leads, bad_since=known.bad_since, forecasts=known.forecasts,
            weighed=known.weighed, bytes_per_second=known.bytes_per_second, bundle_since=self.bundle_since,
            slow=self.slow, residences=self.residences,
        )  # fmt: skip
        self._memory = self._memory.note_decisions(decisions.planned, decisions.paced)
        return decisions

    def _carry_out(self, answer: Answer, view: ClusterView, drains: tuple[Drain, ...], now: datetime) -> int:
        """Write the answer down and do it; returns how many commands were sent."""
        try:
            match answer:
                case Step():
                    with self._lead.stepping() as may:
                        return self._send(answer, view, now) if may else 0
                case Turn(drain=drain, seen=seen, decided=decided):
                    self._journal.write(drain.id, now, seen, decided, epoch=view.epoch)
                    self._copies.save(drain)
                case Hold(drain=drain, refusals=refusals):
                    if is_new(drain, drains):
                        decided = "hold: " + " ".join(refuse.sentence for refuse in refusals)
                        if not same_reasons(refusals, drain, drains):
                            self._journal.write(
                                drain.id, now, f"epoch {view.epoch}", decided, epoch=view.epoch
                            )
                        self._copies.save(drain)
                case Wait(drain=drain):
                    self._copies.progressed(drain, drains)
                    if self._surveyed is not None:
                        self._journal.wait(answer, self._surveyed, now)
                case Propose(drain=drain):
                    self._journal.write(drain.id, now, drain.reason, "propose a drain", epoch=view.epoch)
                    self._copies.save(drain)
                case ProposalRefusal():
                    pass
        except RevisionConflict:
            return 0  # somebody else changed this drain since it was read; the next tick reads it again
        return 0

    def _send(self, step: Step, view: ClusterView, now: datetime) -> int:
        """The intent first, to store and cluster, then each command, then what was said. Halt, lease and step counter
        are read before every command; a step that they cut short gives its flags back.
        """
        assert self._memory is not None
        self._journal.write(step.drain.id, now, step.seen, step.decided, epoch=view.epoch)
        copied = self._copies.save(step.drain)
        refused = self._lead.step() if copied else "not sent, the cluster did not take its copy of the drain"
        if refused is not None:
            self._journal.write(step.drain.id, now, "", "", answered=refused, epoch=view.epoch)
            return 0
        sent = 0
        said: list[str] = []
        epoch, failed = view.epoch, False
        for command in step.commands:
            if (refused := self._lead.refusal()) is not None:
                said.append(refused)
                break
            before, pgs = self._memory, step.remapped_by(command)
            self._memory = before.sent(dict.fromkeys(pgs, epoch), (), now, self.policy)
            try:
                answer = self._timed.apply(command)
            except ClusterUnreachable as trouble:
                said.append(f"no answer: {trouble}; whether it was done is not known")
                failed = True
                break
            sent += 1
            failed = failed or not answer.ok
            said.append(answer.text or ("ok" if answer.ok else "refused"))
            if answer.ok:
                epoch = max(epoch, answer.epoch or epoch + 1)
            # What is refused counts as an attempt and is not waited for.
            waits_for, known = dict.fromkeys(pgs, epoch) if answer.ok else {}, answer.epoch is not None
            self._memory = before.sent(waits_for, (key_of(command),), now, self.policy, known=known)
        self._journal.write(step.drain.id, now, "", "", answered="; ".join(dict.fromkeys(said)), epoch=epoch)
        left = left_set(step.commands[:sent]) if refused is not None else ()
        self._put_back(((step.drain.id, command) for command in left), now)
        if (broken := self._failures.count_step(step.drain, failed, said, now)) is not None:
            self._journal.write(step.drain.id, now, said[-1], "a person is needed")
            self._copies.save(broken)
        return sent

    def _publish(self, view: ClusterView, drains: tuple[Drain, ...], now: datetime) -> str:
        """Life expectancies that changed; returns what a person might do."""
        if self._publisher is None:
            return ""

        def send(command: Command) -> bool:
            decided = f"{key_of(command)} {value_of(command)}"
            return self._journal.send(LIFE, command, decided, now) is not Sent.WITHHELD

        try:
            return self._publisher.look(view, self._outlooks, drains, self.policy, now, send)
        except ClusterUnreachable as trouble:
            return f"Life expectancies are not published: {trouble}."

    def _clear_up(
        self, view: ClusterView, drains: tuple[Drain, ...], now: datetime, *, halted: bool
    ) -> tuple[Drain, ...]:
        """The drains without claims to what stands no more; and what is left standing of those that are over is put
        back. Flags of a step that was cut short go at once under a halt, under which nobody pins on.
        """
        assert self._memory is not None
        settled = self._memory.settled(view)
        if settled:
            shown = arrived(drains, view, self._memory.attempts)
            # The mon answers "set" also to pins that it drops seconds later.
            if not self._memory.is_trusted(view):
                shown = frozenset(key for key in shown if not isinstance(key, UpmapItem))
            self._memory = self._memory.arrived(shown)
        self._put_back(leftovers(drains, view, halted=halted) if settled or halted else (), now)
        freed = follow_map(view, drains) if settled else drains
        for drain, free in zip(drains, freed, strict=True):
            if free is not drain:
                with suppress(RevisionConflict):  # the next look reads it again
                    self._copies.save(free)
        return freed

    def _put_back(self, left: Iterable[tuple[str, Command]], now: datetime) -> None:
        if self._journal.put_back(left, now) and self._memory is not None:
            self._memory = self._memory.sent({}, (), now, self.policy)

    def _hold_all(self, drains: tuple[Drain, ...], halted: str | None, trouble: str, now: datetime) -> None:
        told = f"{trouble} The drain goes on by itself when that is over."
        sentences = (told,) if halted is None else (f"Halted: {halted}. {HALT_ENDS}", told)
        for drain in drains if self._lead.leads else ():
            if drain.state is DrainState.DRAINING:
                self._journal.write(drain.id, now, trouble, "hold")
                self._copies.save(replace(after(drain, Event.REFUSED, now), held_by=sentences))
            elif drain.state is DrainState.HOLDING and drain.held_by != sentences:
                self._copies.save(held_on(drain, sentences, now))

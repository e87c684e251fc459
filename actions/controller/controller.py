"""The controller: read, decide, record, act, record the answer. It can be killed between any two of these.

All data that must survive is in the store before a command is sent. Data that is only in `SentMemory` makes the next
process wait once; its loss never causes a wrong action.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import RLock
from time import perf_counter

from predrain.actions.cluster.cluster_port import (
    Cluster,
    ClusterUnreachable,
    Command,
    ConfigKeyStore,
    Lease,
)
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.cleanup import build_cleanup_commands, find_resolved_attempts, left_set
from predrain.actions.controller.disk_evidence import DiskEvidence
from predrain.actions.controller.failed_steps import FailureCount
from predrain.actions.controller.fast_maps import FastMaps, MapPace, TimedCluster
from predrain.actions.controller.journal import LIFE, JournalWriter, SentCommand
from predrain.actions.controller.leadership import Leadership
from predrain.actions.controller.life_expectancy import LifeExpectancyPublisher
from predrain.actions.controller.replication import DrainReplication
from predrain.actions.controller.request_execution import (
    NotLeading,
    RequestExecutor,
    RequestNotReplicated,
    ViewInContext,
)
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.actions.core.decision_answers import (
    Answer,
    Decisions,
    DrainProposal,
    Hold,
    ProposalRefusal,
    StateChange,
    Step,
    TickReport,
    Wait,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import Refuse
from predrain.actions.core.pg_survey import Survey, survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.engine.decision import decide_drain_steps
from predrain.actions.engine.journal_compaction import hold_drain, is_new, same_reasons
from predrain.actions.engine.map_claims import follow_map
from predrain.actions.engine.proposals import is_engine_idle
from predrain.actions.guards import HALT_ENDS
from predrain.data.drain import Drain, DrainState, JournalEntry, JournalEvent
from predrain.data.halt_state import Halt
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook
from predrain.data.residence import Residence
from predrain.data.setting import UpmapItem
from predrain.data.slow_osd import Slowness
from predrain.data.store.store_port import AUDIT, RevisionConflict, Store


@dataclass(slots=True)
class Controller:
    """Drives drains on one cluster. Ticks and requests of one process take turns; a change by another process is
    detected by its revision.

    - bundle_since: when the forecast's bundle replaced another one (None: unknown).
    - keep: the cluster's config-key store, which holds drains and a halt.
    - lease, owner: the right to act, and the unique name of this process.

    Without keep and lease only the store is used, and this controller must be the only one.
    """

    cluster: Cluster
    store: Store
    policy: Policy
    bundle_since: datetime | None = None
    slow: Slowness = field(default_factory=Slowness)
    """OSDs slower than their peers, by the newest latencies. The caller that reads latencies keeps the field up to
    date.
    """
    residences: Mapping[DeviceId, Residence] = field(default_factory=dict)
    """Hosts of the disks that more than one host ever reported. The caller that files readings keeps the field up to
    date.
    """
    keep: ConfigKeyStore | None = None
    lease: Lease | None = None
    owner: str = ""
    _memory: SentMemory | None = None
    _surveyed: Survey | None = None
    _evidence: DiskEvidence = field(default_factory=DiskEvidence)
    _outlooks: Mapping[DeviceId, Outlook] = field(default_factory=dict)
    _failures: FailureCount = field(default_factory=FailureCount)
    _lock: RLock = field(default_factory=RLock)
    _recognised: bool = False
    """True once the cluster that answers is known to be the one of the store."""
    _lead: Leadership = field(init=False)
    _copies: DrainReplication = field(init=False)
    _journal: JournalWriter = field(init=False)
    _publisher: LifeExpectancyPublisher | None = None
    _timed: TimedCluster = field(init=False)
    _fast_maps: FastMaps = field(init=False)

    def __post_init__(self) -> None:
        self._timed = TimedCluster(self.cluster, MapPace())
        self._publisher = LifeExpectancyPublisher(self.keep) if self.keep is not None else None
        self._lead = Leadership(self.store, self.keep, self.lease, self.owner)
        self._copies = DrainReplication(self.store, self.keep, self._lead.is_unchallenged)
        self._journal = JournalWriter(self.store, self._timed, self._lead)
        self._fast_maps = FastMaps(self.keep, self._copies.save, self._journal, self._timed.pace)

    @property
    def view(self) -> ClusterView | None:
        """Return the last view; None before the first."""
        return self._surveyed.view if self._surveyed else None

    def tick(self, now: datetime, outlooks: Mapping[DeviceId, Outlook] | None = None) -> TickReport:
        """Poll the cluster once, and execute at most one small step per drain.

        `outlooks`: the newest of each device; by default those of the store. An error that ends the tick, above all a
        full store, makes this controller release the lease.
        """
        with self._lock, self._lead.while_whole():
            began = perf_counter()
            self._outlooks = self.store.latest_outlooks() if outlooks is None else outlooks
            halt = self._lead.find_halt()
            refused: Refuse | None = None
            try:
                refused = self.take_leadership(now)
                drains = self.store.drains()
                view = self._look(now)
            except ClusterUnreachable as silent:
                refused = refused or _refuse_silent_cluster(silent)
                self._hold_all(self.store.drains(), halt, refused, now)
                return TickReport(now, None, (), 0, perf_counter() - began, halt, refused.sentence)
            known = self._evidence.update_evidence(view, self._context(now, drains), self.store, self.policy)
            refused = (
                refused or self._refuse_lost_lease()
            )  # reading the cluster may take longer than the lease lasts
            if refused is not None:
                self._hold_all(drains, halt, refused, now)
                return TickReport(now, view, (), 0, perf_counter() - began, halt, refused.sentence)
            advice = self._publish(view, drains, now) if halt is None else ""
            drains = self._clear_up(view, drains, now, halted=halt is not None)
            if is_engine_idle(view, drains, known):
                self._fast_maps.adjust_interval(view, self.policy, drains, lambda: self._context(now))
                return TickReport(now, view, (), 0, perf_counter() - began, halt, idle=True, advice=advice)
            decisions = self._decide(view, drains, known)
            commands = sum(self._carry_out(answer, view, drains, now) for answer in decisions.answers)
            self._fast_maps.adjust_interval(view, self.policy, drains, lambda: self._context(now))
            seconds = perf_counter() - began
            return TickReport(now, view, decisions.answers, commands, seconds, halt, advice=advice)

    def halt(self, why: str | None) -> str | None:
        """Halt with a reason, in the store and in the cluster, or lift both halts (None). Return the reason then in
        force.

        Raises ClusterUnreachable: a halt is then only in the store until `halt_heard` is true, and a halt that was to
        be lifted stays.
        """
        self._lead.halt(why)
        return self._lead.find_halt_reason()

    @property
    def halt_heard(self) -> bool:
        """Return whether the cluster knows of the halt in the store, or there is none."""
        return self._lead.is_halt_reported()

    def give_up(self) -> None:
        """Release the lease, so that another controller can take it at once. This one takes it again only when its
        store can be written.
        """
        with self._lock:
            self._lead.give_up()

    def stop_new_steps(self, seconds: float) -> None:
        """Start no further step, and wait at most `seconds` for a step that has begun, because the process ends."""
        self._lead.stop_new_steps(seconds)

    def poll_cluster(self, now: datetime) -> ClusterView:
        """Read the cluster without deciding anything. Raises ClusterUnreachable."""
        with self._lock:
            return self._look(now)

    @property
    def requests(self) -> RequestExecutor:
        """Return the executor of people's requests about the controller's drains."""
        return RequestExecutor(
            self.store, self.policy, self._journal, self._lock, self._lead_or_refuse, self._save_request,
            self._look_with_context, self._recall,
        )  # fmt: skip

    def take_leadership(self, now: datetime) -> Refuse | None:
        """Take the lease, bring store and cluster to the same drains, and return None; otherwise return why this
        controller only watches.

        A store belongs to the first cluster that answered: its drains must never be executed on another one, where the
        same OSD numbers are other disks. Raises ClusterUnreachable before the cluster is recognised. A cluster that
        does not report its fsid is not judged.
        """
        with self._lock:
            if not self._recognised and (fsid := (self.view or self._look(now)).fsid):
                if (bound := self.store.bind_cluster(fsid)) != fsid:
                    return Refuse(
                        HoldReason.LEASE,
                        f"The store is about cluster {bound}, and cluster {fsid} answers, whose OSDs are other disks: "
                        "nothing is changed there. Point predrain at the first one, or give this one a store of its "
                        "own ([store] in the settings).",
                    )
                self._recognised = True
            with self._lead.while_whole():
                if not self._lead.take_lease():
                    self._forget(now)
                    return self._refuse_lost_lease()
                try:
                    if not self._lead.is_unchallenged():
                        self._forget(now)
                        self._lead.claim_leadership()
                    if not self._copies.recovered:
                        self._copies.recover(now, outranked=self._lead.outranked)
                        self._lead.confirm_recovery()
                    self._copies.catch_up()
                except ClusterUnreachable as trouble:
                    sentence = f"The drains in the cluster's config_key store cannot be read: {trouble}."
                    return Refuse(HoldReason.UNREACHABLE, sentence)
                return None

    def _refuse_lost_lease(self) -> Refuse | None:
        why = self._lead.explain_lost_lease()
        return Refuse(HoldReason.LEASE, why) if why else None

    def _forget(self, now: datetime) -> None:
        """Forget what another controller may have changed: the cluster's copies are read again, and the effect of that
        controller's commands must show before a step.
        """
        self._copies.mark_unrecovered()
        if self._memory is not None:
            self._memory = self._memory.after_command({}, (), now, self.policy)
        if self._publisher is not None:
            self._publisher.forget()

    def _lead_or_refuse(self, now: datetime) -> None:
        """Raise NotLeading if this controller may not change drains."""
        if refused := self.take_leadership(now):
            raise NotLeading(refused.sentence)

    def _save_request(self, drain: Drain, entries: Sequence[JournalEntry]) -> None:
        """Save a drain with a person's request, and its journal lines. Raises RevisionConflict, NotLeading and
        RequestNotReplicated.
        """
        self._lead_or_refuse(drain.updated_at)
        with self._lead.while_whole():
            is_copied = self._copies.save(drain)
        cluster = self.store.get_cluster()
        self.store.add_journal(
            [line if line.drain == AUDIT else replace(line, cluster=cluster) for line in entries]
        )
        if not is_copied:
            raise RequestNotReplicated(drain)

    def _look(self, now: datetime) -> ClusterView:
        view = self.cluster.view()
        self._memory = (
            SentMemory.for_new_process(view, now, self.policy)
            if self._memory is None
            else self._memory.after_poll(view, now, self.policy)
        )
        self._surveyed = survey_pgs(view, self._surveyed)
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
            halted=self._lead.find_halt_reason(),
            lease_held=self._lead.holds_lease,
            bundle_since=self.bundle_since,
            slow=self.slow,
            residences=self.residences,
        )
        return self._evidence.fill_in(context)

    def _look_with_context(self, now: datetime) -> ViewInContext:
        return self._look(now), self._context(now)

    def _recall(self, now: datetime) -> ViewInContext | None:
        """Return the last view with the present context; None before the first."""
        return None if self._surveyed is None else (self._surveyed.view, self._context(now))

    def _decide(self, view: ClusterView, drains: tuple[Drain, ...], known: Context) -> Decisions:
        assert self._memory is not None
        context = replace(known, drains=drains, memory=self._memory, lease_held=self._lead.holds_lease)
        decisions = decide_drain_steps(view, self.policy, context)
        self._memory = self._memory.note_decisions(decisions.planned, decisions.paced)
        return decisions

    def _carry_out(self, answer: Answer, view: ClusterView, drains: tuple[Drain, ...], now: datetime) -> int:
        """Record an answer of the engine and execute it. Return how many commands were sent."""
        try:
            match answer:
                case Step():
                    with self._lead.begin_step() as may:
                        return self._send(answer, view, now) if may else 0
                case StateChange(drain=drain, seen=seen, decided=decided, event=event):
                    self._journal.write(drain.id, now, seen, decided, epoch=view.epoch, event=event)
                    self._copies.save(drain)
                case Hold(drain=drain, refusals=refusals):
                    self._save_hold(drain, refusals, drains, now, view)
                case Wait(drain=drain):
                    self._copies.save_progress(drain, drains)
                    if self._surveyed is not None:
                        self._journal.note_standstill(answer, self._surveyed, now)
                case DrainProposal(drain=drain):
                    self._journal.write(drain.id, now, drain.reason, "propose a drain", epoch=view.epoch)
                    self._copies.save(drain)
                case ProposalRefusal():
                    pass
        except RevisionConflict:
            return 0  # another process changed this drain since it was read; the next tick reads it again
        return 0

    def _send(self, step: Step, view: ClusterView, now: datetime) -> int:
        """Execute a step: save the intent in store and cluster, then send each command, then record the answers.

        Halt, lease and step counter are read before every command. If they interrupt the step, the flags that it set
        are cleared. Return how many commands were sent.
        """
        assert self._memory is not None
        self._journal.write(step.drain.id, now, step.seen, step.decided, epoch=view.epoch)
        copied = self._copies.save(step.drain)
        refused = (
            self._lead.count_next_step()
            if copied
            else "not sent, the cluster did not take its copy of the drain"
        )
        if refused is not None:
            self._journal.write(step.drain.id, now, "", "", answered=refused, epoch=view.epoch)
            return 0
        sent = 0
        said: list[str] = []
        epoch, failed = view.epoch, False
        for command in step.commands:
            if (refused := self._lead.explain_refusal()) is not None:
                said.append(refused)
                break
            before, pgs = self._memory, step.remapped_by(command)
            self._memory = before.after_command(dict.fromkeys(pgs, epoch), (), now, self.policy)
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
            # A refused command counts as an attempt, and no effect of it is awaited.
            waits_for, known = dict.fromkeys(pgs, epoch) if answer.ok else {}, answer.epoch is not None
            self._memory = before.after_command(waits_for, (key_of(command),), now, self.policy, known=known)
        self._journal.write(step.drain.id, now, "", "", answered="; ".join(dict.fromkeys(said)), epoch=epoch)
        left = left_set(step.commands[:sent]) if refused is not None else ()
        self._put_back(((step.drain.id, command) for command in left), now)
        if (broken := self._failures.count_step(step.drain, failed, said, now)) is not None:
            self._journal.write(step.drain.id, now, said[-1], "a person is needed")
            self._copies.save(broken)
        return sent

    def _publish(self, view: ClusterView, drains: tuple[Drain, ...], now: datetime) -> str:
        """Publish life expectancies that changed. Return advice to a person, or ""."""
        if self._publisher is None:
            return ""

        def send(command: Command) -> bool:
            decided = f"{key_of(command)} {value_of(command)}"
            return self._journal.send(LIFE, command, decided, now) is not SentCommand.WITHHELD

        try:
            return self._publisher.publish_changes(view, self._outlooks, drains, self.policy, now, send)
        except ClusterUnreachable as trouble:
            return f"Life expectancies are not published: {trouble}."

    def _clear_up(
        self, view: ClusterView, drains: tuple[Drain, ...], now: datetime, *, halted: bool
    ) -> tuple[Drain, ...]:
        """Restore settings that ended drains left set, and return the drains without claims on settings that are gone.

        Under a halt, the flags of an interrupted step are cleared at once, because no further upmap item is then set.
        """
        assert self._memory is not None
        settled = self._memory.is_settled(view)
        if settled:
            shown = find_resolved_attempts(drains, view, self._memory.attempts)
            # The mon answers "set" also to upmap items that it drops seconds later.
            if not self._memory.is_trusted(view):
                shown = frozenset(key for key in shown if not isinstance(key, UpmapItem))
            self._memory = self._memory.after_arrival(shown)
        self._put_back(build_cleanup_commands(drains, view, halted=halted) if settled or halted else (), now)
        freed = follow_map(view, drains) if settled else drains
        for drain, free in zip(drains, freed, strict=True):
            if free is not drain:
                with suppress(RevisionConflict):  # the next poll reads it again
                    self._copies.save(free)
        return freed

    def _put_back(self, left: Iterable[tuple[str, Command]], now: datetime) -> None:
        if self._journal.put_back(left, now) and self._memory is not None:
            self._memory = self._memory.after_command({}, (), now, self.policy)

    def _save_hold(
        self,
        drain: Drain,
        refusals: tuple[Refuse, ...],
        drains: tuple[Drain, ...],
        now: datetime,
        view: ClusterView | None,
    ) -> None:
        """Save a drain that is held; the journal gets a line if the reasons are others than before."""
        if not is_new(drain, drains):
            return
        if not same_reasons(refusals, drain, drains):
            seen, epoch = ("", None) if view is None else (f"epoch {view.epoch}", view.epoch)
            decided = "hold: " + " ".join(refuse.sentence for refuse in refusals)
            self._journal.write(drain.id, now, seen, decided, epoch=epoch, event=JournalEvent.HELD)
        self._copies.save(drain)

    def _hold_all(self, drains: tuple[Drain, ...], halt: Halt | None, refused: Refuse, now: datetime) -> None:
        halted = () if halt is None else (Refuse(HoldReason.HALT, f"Halted: {halt.reason}. {HALT_ENDS}"),)
        goes_on = f"{refused.sentence} The drain goes on by itself when that is over."
        refusals = (*halted, replace(refused, sentence=goes_on))
        for drain in drains if self._lead.holds_lease else ():
            if drain.state in (DrainState.DRAINING, DrainState.HOLDING):
                self._save_hold(hold_drain(drain, refusals, now), refusals, drains, now, None)


def _refuse_silent_cluster(silent: ClusterUnreachable) -> Refuse:
    return Refuse(HoldReason.UNREACHABLE, f"The cluster does not answer: {silent}.")

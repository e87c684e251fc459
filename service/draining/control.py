"""The controller's place in the house: what it saw, what a person asks of it, its words for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

import structlog

from actions.cluster.port import Cluster
from actions.cluster.view import ClusterView
from actions.context import Context, Memory
from actions.controller import Controller, TickReport
from actions.guards import Refuse
from actions.policy import Policy
from actions.proposals import NoSuchTarget, drafted, target_of
from actions.survey import survey
from data.drain import Drain, Intent
from data.ids import DeviceId
from data.log.port import Log, LogFull, Topic
from data.outcome import Fate, Outcome
from data.store.port import Store
from service.draining import seals
from service.draining.timeline import RUNNING, Timelines, record
from service.draining.wishes import Judged, NotSeen, PlanMoved, UnknownTarget
from service.fleet import Fleet

DOWN_RULE = "rule:osd-down"


@dataclass(slots=True)
class Control:
    """One controller over one cluster. Any thread may call; the controller takes turns by itself."""

    cluster: Cluster
    store: Store
    log: Log
    policy: Policy
    fleet: Fleet
    timelines: Timelines
    _controller: Controller = field(init=False)
    _report: TickReport | None = None
    _down: set[DeviceId] = field(default_factory=set)
    _curving: bool = True

    def __post_init__(self) -> None:
        self._controller = Controller(self.cluster, self.store, self.policy)
        self._down = {one.device for one in self.store.outcomes() if one.source == DOWN_RULE}

    def new_bundle(self, since: datetime | None) -> None:
        """When the bundle that scores replaced another one."""
        self._controller.bundle_since = since

    def step(self, now: datetime) -> bool:
        """One look and what follows; returns whether a listener would see a difference."""
        before = self.fleet.view
        report = self._controller.tick(now, self.fleet.outlooks())
        if report.view is not None:
            self.fleet.look(report.view)
            self._suspect(report.view, now)
        if report.answers or self._curving:
            self._keep_curves(now)
        differs = self._report is None or report.answers or report.trouble != self._report.trouble
        self._report = report
        return bool(differs) or _differ(before, report.view)

    def says(self) -> str:
        """`running`, or `holding: ` and why nothing moves at all."""
        report = self._report
        if report is None:
            return "holding: the cluster has not been looked at yet"
        if (why := self.store.halt_reason()) is not None:
            return f"holding: halted ({why})"
        return f"holding: {report.trouble}" if report.trouble else "running"

    def propose(self, target: str, caller: str, reason: str, intent: Intent, now: datetime) -> Drain:
        """A person's drain, with its plan, to be approved. Raises what the actions room refuses."""
        try:
            return self._controller.propose(target, caller, reason, now, intent=intent.value)
        except NoSuchTarget as unknown:
            raise UnknownTarget(str(unknown)) from unknown

    def draft(self, target: str, intent: Intent, now: datetime) -> Drain:
        """The drain of `target` as it would be proposed; nothing is kept. Raises NotSeen, NoSuchTarget."""
        view = self._seen()
        try:
            device, osds = target_of(view, target)
        except NoSuchTarget as unknown:
            raise UnknownTarget(str(unknown)) from unknown
        context = Context(
            survey=survey(view, None),
            outlooks=self.fleet.outlooks(),
            drains=self.store.drains(),
            now=now,
            memory=Memory.starting(view, now, self.policy),
        )
        return drafted(
            view, device, osds, self.policy, context, asked_by="nobody", reason="a plan only", intent=intent
        )

    def approve(self, id_: str, seal: str, caller: str, now: datetime) -> Drain:
        """Let a drain begin if its plan is still the one that `seal` was made of. Raises PlanMoved."""
        drain = self._controller.requests.known(id_)
        if changes := seals.changes(seal, drain):
            raise PlanMoved(drain, changes)
        return self._controller.requests.approve(id_, caller, now)

    def pause(self, id_: str, caller: str, now: datetime) -> Drain:
        """No further step; what is on its way arrives."""
        return self._controller.requests.pause(id_, caller, now)

    def resume(self, id_: str, caller: str, now: datetime) -> Drain:
        """Go on where it was paused or broke."""
        return self._controller.requests.resume(id_, caller, now)

    def cancel(self, id_: str, caller: str, now: datetime) -> Drain:
        """Put everything back as it was found."""
        return self._controller.requests.cancel(id_, caller, now)

    def guards(self, id_: str, now: datetime) -> tuple[Judged, ...]:
        """Every guard that has a say about a drain now, with its answer."""
        return tuple(
            Judged(code, not isinstance(said, Refuse), said.sentence)
            for code, said in self._controller.explain(id_, now)
        )

    def _seen(self) -> ClusterView:
        view = self._controller.view
        if view is None:
            raise NotSeen("The cluster has not answered yet; ask again in a few seconds.")
        return view

    def _suspect(self, view: ClusterView, now: datetime) -> None:
        """A disk whose OSD is down may be dead: said once, until a person or a rule says what it was."""
        for osd in view.osds.values():
            if osd.device is None:
                continue
            if osd.up:
                self._down.discard(osd.device)
            elif osd.device not in self._down:
                self._down.add(osd.device)
                note = f"osd.{osd.id} is down in epoch {view.epoch}"
                self.store.add_outcome(Outcome(osd.device, now, Fate.SUSPECTED, DOWN_RULE, note))

    def _keep_curves(self, now: datetime) -> None:
        drains = self.store.drains()
        self._curving = any(drain.state in RUNNING for drain in drains)
        new = self.timelines.running(drains, self.fleet.view, now)
        if not new:
            return
        try:
            self.log.append(Topic.ACTIONS, [record(one) for one in new])
        except LogFull as full:
            # A curve is for people; the drain itself is in the store and must not stop for it.
            structlog.get_logger().warning("drain curves are kept in memory only", why=str(full))


def _differ(before: ClusterView | None, now: ClusterView | None) -> bool:
    if before is None or now is None:
        return before is not now
    return (before.epoch, before.health) != (
        now.epoch,
        now.health,
    ) or before.latency_ratio != now.latency_ratio

"""A clock that is set back, by an NTP correction or a VM that resumes: nothing waits until the old time comes again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.actions.cluster.channel import DaemonReply
from predrain.actions.cluster.cluster_port import Command, CommandResult, Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.dumps.view_questions import PG_DUMP
from predrain.actions.cluster.osd_latency import LatencyHistory, LatencySample, LatencySource
from predrain.actions.core.decision_answers import StateChange
from predrain.actions.engine.decision import decide_drain_steps
from predrain.data.clock import is_within_last
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import OsdId
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind
from tests.actions.made import POLICY, a_context, a_drain, a_plan, calm_view, settled_memory, wide_spec
from tests.actions.recordings import CLEAN
from tests.actions.run import Run, empty, whole
from tests.actions.test_dumps_looks import AT, LOOK, begun, names
from tests.actions.test_latency import ONE, looks
from tests.actions.test_senses import NOW, OsdsInMemory, pooled, told_by_host

S = DrainState
DAY = timedelta(days=1)
SPEC = wide_spec(hosts=8, per_host=2, racks=4, pg_num=64, used=0.4)
SETTLES = 2 * POLICY.mgr_stats_period_seconds


@dataclass
class Behind:
    """The cluster by the clock of a controller that is `by` behind; its reader dates no statistics in the future."""

    run: Run
    by: timedelta = timedelta(0)
    sent_at: list[datetime] = field(default_factory=list)

    def view(self) -> ClusterView:
        view = self.run.watched.view()
        return replace(view, as_of=view.as_of - self.by)

    def apply(self, command: Command) -> CommandResult:
        self.sent_at.append(self.run.cluster.now)
        return self.run.watched.apply(command)

    def ticks(self, drain: Drain, over: Callable[[Drain], bool]) -> int:
        """Ticks until it is over."""
        for tick in range(2_000):
            if over(self.run.known(drain)):
                return tick
            self.run.cluster.advance(10)
            self.run.controller.tick(self.run.cluster.now - self.by, {})
            self.run.watched.check_between()
        raise AssertionError(self.run.transcript(drain)[-800:])


@pytest.fixture
def run() -> Iterator[Run]:
    with Run(SPEC) as run:
        yield run


def begun_drain(run: Run, intent: Intent = Intent.REPLACE) -> tuple[Behind, Drain]:
    behind = Behind(run)
    run.started(behind)
    run.tick()
    drain = run.controller.requests.propose("osd.0", "operator", "test", run.cluster.now, intent)
    return behind, run.controller.requests.approve(drain.id, "operator", run.cluster.now)


@pytest.mark.slow
@pytest.mark.parametrize("by", [timedelta(hours=1), DAY])
@pytest.mark.parametrize("intent", [Intent.REPLACE, Intent.REMOVE])
def test_a_drain_whose_clock_is_set_back_in_the_middle_ends_as_if_it_had_not_been(
    run: Run, by: timedelta, intent: Intent
) -> None:
    with Run(SPEC) as calm:
        behind, drain = begun_drain(calm, intent)
        usual = behind.ticks(drain, lambda it: it.state is S.VERIFIED)
    behind, drain = begun_drain(run, intent)
    before = behind.ticks(drain, lambda it: it.progress.moved_pgs > 0 and it.progress.in_flight > 0)
    behind.by = by
    after = behind.ticks(drain, lambda it: it.state in (S.VERIFIED, S.FAILED))
    assert run.known(drain).state is S.VERIFIED
    assert empty(run, 0)
    assert whole(run)
    assert before + after <= usual + 5


def test_after_it_was_set_back_the_last_command_is_waited_for_anew_before_the_next_one(run: Run) -> None:
    behind, drain = begun_drain(run)
    behind.ticks(drain, lambda it: it.progress.in_flight > 0)
    sent = len(behind.sent_at)
    behind.by, set_back_at = DAY, run.cluster.now
    behind.ticks(drain, lambda _: len(behind.sent_at) > sent)
    assert (behind.sent_at[sent] - set_back_at).total_seconds() >= SETTLES


def test_a_look_that_is_dated_a_little_late_shortens_no_waiting() -> None:
    view = calm_view()
    now = view.as_of
    memory = settled_memory(view).after_command({}, (), now, POLICY)
    assert memory.after_poll(view, now - timedelta(seconds=30), POLICY).trusted_from == memory.trusted_from


def test_a_plan_of_the_future_is_made_anew_where_it_alone_holds_the_drain() -> None:
    view = calm_view()
    drain = a_drain(state=S.HOLDING)
    held = replace(
        drain, plan=replace(a_plan(view, drain), refusals=(PlanRefusal(PlanRefusalKind.OSD_GONE),))
    )

    def answers(planned_at: datetime) -> bool:
        context = a_context(view, held)
        fresh = decide_drain_steps(view, POLICY, context)
        mark = fresh.planned[held.id][0]
        memory = replace(context.memory, planned={held.id: (mark, planned_at)})
        (answer, *_) = decide_drain_steps(view, POLICY, replace(context, memory=memory)).answers
        return isinstance(answer, StateChange)

    now = a_context(view).now
    assert not answers(now)
    assert answers(now - POLICY.replan_after)
    assert answers(now + DAY)


def test_a_latency_is_neither_frozen_nor_forgotten_when_the_clock_is_set_back() -> None:
    latencies = LatencyHistory()
    *_, (_, ratio) = looks(1, lambda hour: 8.0 if hour < 0.9 else 16.0, latencies, noise=0.0)
    assert ratio == 2.0
    now = datetime(2026, 1, 1, 1, tzinfo=UTC) - DAY
    assert latencies.update_ratios(now, []) == {ONE: 2.0}
    calm = [now + timedelta(seconds=10 * n) for n in range(1, 10)]
    found = [
        latencies.update_ratios(at, [LatencySample(ONE, at, LatencySource.PROBE, 8.0)], {ONE})[ONE]
        for at in calm
    ]
    assert found[-1] == 1.0
    assert latencies.update_ratios(calm[-1] + timedelta(seconds=61), []) == {}


def test_a_host_whose_clock_runs_ahead_has_no_latency_once_it_says_nothing_more() -> None:
    latencies = LatencyHistory()
    *_, (_, ratio) = looks(1, lambda _: 8.0, latencies, source=LatencySource.READ, noise=0.0)
    assert ratio == 1.0
    now = datetime(2026, 1, 1, 1, 2, tzinfo=UTC)
    ahead = [LatencySample(ONE, now + DAY + timedelta(seconds=n), LatencySource.READ, 16.0) for n in range(4)]
    assert latencies.update_ratios(now, ahead) == {ONE: 2.0}
    assert latencies.update_ratios(now + timedelta(seconds=61), []) == {}


def test_reservations_that_a_host_told_of_in_the_future_are_not_in_force_and_the_osd_is_asked() -> None:
    channel = OsdsInMemory()
    asks = told_by_host((NOW, 1), channel=channel)
    assert dict(asks.add_to_view(pooled(), NOW).backfills_in_force) == {0: 1}
    assert "osd.0" not in channel.asked
    channel.reservations = lambda _: DaemonReply(0, b'{"local_reservations": {"max_allowed": 6}}', "")
    assert dict(asks.add_to_view(pooled(), NOW - DAY).backfills_in_force) == {0: 6}


def test_a_clock_set_back_does_not_prolong_the_watch_on_pgs_after_a_command() -> None:
    reader = begun()
    reader.note_command(Reweight(OsdId(0), 0.5), AT)
    reader.list_due_commands(AT - DAY)
    reader.view(replace(CLEAN, at=AT - DAY))
    assert PG_DUMP.name in names(reader, AT - DAY + LOOK)
    assert PG_DUMP.name not in names(reader, AT - DAY + timedelta(minutes=3))


def test_a_moment_of_the_future_was_not_lately() -> None:
    assert is_within_last(NOW, NOW, DAY)
    assert not is_within_last(NOW, NOW + DAY, DAY)
    assert not is_within_last(NOW + timedelta(microseconds=1), NOW, DAY)

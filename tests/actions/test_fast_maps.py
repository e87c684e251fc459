"""Fast maps are set while a drain moves PGs. The drain records the value before, which is restored whenever nothing
moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.actions.cluster.cluster_port import Command, CommandResult, SetFlag, SetOption
from predrain.actions.cluster.cluster_view import PROPOSE_INTERVAL, ClusterView
from predrain.actions.controller.controller import Controller
from predrain.actions.controller.fast_maps import RECORD, SLOW_ANSWER_SECONDS, MapPace, find_cost
from predrain.actions.core.claimed_settings import FAST_MAPS, describe_left
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import PgId
from predrain.data.setting import ValueBefore, YieldedValue, strip_note
from tests.actions.made import wide_spec
from tests.actions.made_config_keys import KeepInMemory
from tests.actions.run import Run

S = DrainState
ROW = f"mon/{PROPOSE_INTERVAL}"
FAST = Policy(fast_maps_seconds=0.25)


@contextmanager
def running(spec: ClusterSpec | None = None, policy: Policy = FAST, **settings: str) -> Iterator[Run]:
    """Yield a run whose controller has a config_key store. `settings`: rows of the mon's config."""
    rows = {key.replace("__", "/"): value for key, value in settings.items()}
    with Run(replace(spec or wide_spec(hosts=8, pg_num=32), settings=rows), policy=policy) as run:
        keep(run)
        yield run


def keep(run: Run, *, kept: KeepInMemory | None = None) -> KeepInMemory:
    """Give the run a new controller on this config_key store, or on an empty one. Return the store."""
    kept = kept or KeepInMemory()
    run.controller = Controller(run.watched, run.store, run.policy, keep=kept.signed)
    return kept


def interval(run: Run) -> str | None:
    return run.cluster.view().settings.get(ROW)


def fast(run: Run) -> Drain:
    """A drain whose PGs move, with fast maps in force."""
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(3)
    assert interval(run) == "0.25"
    return drain


def writes(run: Run) -> list[str | None]:
    sent = run.watched.commands
    return [one.value for one in sent if isinstance(one, SetOption) and one.name == PROPOSE_INTERVAL]


def test_without_the_setting_no_drain_touches_the_interval() -> None:
    with running(policy=Policy()) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert writes(run) == []


@pytest.mark.parametrize("before", [None, "0.8"])
def test_it_is_set_while_a_drain_moves_and_is_exactly_as_before_at_its_end(before: str | None) -> None:
    with running(**({} if before is None else {f"mon__{PROPOSE_INTERVAL}": before})) as run:
        drain = fast(run)
        run.until(drain, S.VERIFIED)
        assert interval(run) == before
        assert writes(run) == ["0.25", before]
        assert not any(strip_note(key) == FAST_MAPS for key in run.known(drain).ours)


def test_the_ledger_and_the_cluster_know_the_value_before_it_is_set() -> None:
    with running() as run:
        kept = keep(run)
        seen: list[tuple[str, str, str]] = []

        def note(command: Command) -> CommandResult:
            if isinstance(command, SetOption) and command.value == "0.25":
                drain = next(iter(run.store.drains()))
                seen.append((drain.saved[FAST_MAPS], drain.ours[FAST_MAPS], kept.signed.read(RECORD) or ""))
                assert "option/mon/paxos_propose_interval" in (kept.signed.read("drain/osd.0") or "")
            return run.watched.apply(command)

        run.controller = Controller(Noted(run, note), run.store, run.policy, keep=kept.signed)
        fast(run)
        assert [(was, ours, record.split()[:2]) for was, ours, record in seen] == [
            ("-", "0.25", ["0.25", "-"])
        ]


class Noted:
    """The run's cluster with a say in every command."""

    def __init__(self, run: Run, apply: object) -> None:
        self._run, self._apply = run, apply

    def view(self) -> ClusterView:
        return self._run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        assert callable(self._apply)
        answer = self._apply(command)
        assert isinstance(answer, CommandResult)
        return answer


def test_a_pause_gives_it_back_and_a_resume_sets_it_again_after_a_rest() -> None:
    with running() as run:
        drain = fast(run)
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        run.ticks(2)
        assert interval(run) is None
        run.controller.requests.resume(drain.id, "operator", run.cluster.now)
        run.ticks(2)
        assert interval(run) is None
        run.ticks(7)
        assert interval(run) == "0.25"
        run.until(drain, S.VERIFIED)
        assert interval(run) is None


def test_a_hold_gives_it_back_in_the_look_that_holds() -> None:
    with running() as run:
        drain = fast(run)
        run.cluster.apply(SetFlag("noout", on=True))
        run.until(drain, S.HOLDING, most=3)
        assert interval(run) is None


def test_a_halt_gives_it_back_at_the_next_look_and_says_meanwhile_that_it_stands() -> None:
    with running() as run:
        drain = fast(run)
        run.controller.halt("maintenance")
        report = run.tick()
        assert report.halted == "maintenance"
        assert interval(run) is None
        said = run.known(drain).held_by[0]
        assert "paxos_propose_interval of the monitors stands at 0.25 s" in said
        run.tick()
        assert run.known(drain).held_by == ("Halted: maintenance. Lift it with `predrain unhalt`.",)


def test_a_cancel_ends_with_the_value_that_was_found() -> None:
    with running(**{f"mon__{PROPOSE_INTERVAL}": "0.75"}) as run:
        drain = fast(run)
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        run.ticks(2)
        assert interval(run) == "0.75"


@pytest.mark.parametrize("theirs", ["0.5", None])
def test_an_interval_that_an_operator_sets_or_removes_stays_so_for_the_rest_of_the_drain(
    theirs: str | None,
) -> None:
    with running() as run:
        drain = fast(run)
        run.cluster.apply(SetOption(PROPOSE_INTERVAL, theirs, "mon"))
        run.ticks(3)
        assert YieldedValue(FAST_MAPS) in run.known(drain).ours
        run.until(drain, S.VERIFIED)
        assert interval(run) == theirs
        assert writes(run) == ["0.25"]


def test_an_interval_that_is_as_short_already_is_left_alone() -> None:
    with running(**{f"global__{PROPOSE_INTERVAL}": "0.2"}) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert writes(run) == []


def test_a_row_for_one_monitor_keeps_it_off() -> None:
    with running(**{f"mon.a__{PROPOSE_INTERVAL}": "1.0"}) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert writes(run) == []


def test_without_keys_in_the_cluster_it_stays_off() -> None:
    with Run(wide_spec(hosts=8, pg_num=32), policy=FAST) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert writes(run) == []


def test_a_key_without_the_right_tries_once_and_the_drain_goes_on() -> None:
    with running() as run:
        tried: list[Command] = []

        def refuse(command: Command) -> CommandResult:
            if isinstance(command, SetOption) and command.section == "mon":
                tried.append(command)
                return CommandResult(False, "access denied")
            return run.watched.apply(command)

        run.controller = Controller(Noted(run, refuse), run.store, run.policy, keep=KeepInMemory().signed)
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert tried == [SetOption(PROPOSE_INTERVAL, "0.25", "mon")]
        assert not any(strip_note(key) == FAST_MAPS for key in run.known(drain).ours)


def test_a_cluster_that_does_not_take_the_record_keeps_it_off() -> None:
    with running() as run:
        keep(run, kept=KeepInMemory(full=RECORD))
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert writes(run) == []


def test_the_next_process_gives_back_what_a_killed_one_set() -> None:
    with running() as run:
        kept = keep(run)
        drain = fast(run)
        keep(run, kept=kept)
        run.until(drain, S.VERIFIED)
        assert interval(run) is None


def test_two_drains_share_it_and_the_last_one_gives_it_back() -> None:
    policy = replace(FAST, out_share_max=0.5)
    with running(wide_spec(hosts=8, pg_num=64), policy) as run:
        first = fast(run)
        second = run.drain("osd.9")
        run.until(second, S.DRAINING)
        run.ticks(2)
        run.controller.requests.pause(first.id, "operator", run.cluster.now)
        run.ticks(2)
        assert interval(run) == "0.25"
        assert FAST_MAPS not in run.known(first).ours
        run.until(second, S.VERIFIED)
        assert interval(run) is None
        assert writes(run) == ["0.25", None]


def test_maps_from_other_causes_that_come_faster_than_the_budget_end_it() -> None:
    with running(policy=replace(FAST, fast_maps_max_per_second=2.0)) as run:
        fast(run)
        for _ in range(8):
            for _ in range(15):  # 30 maps in ten seconds
                run.cluster.apply(SetFlag("noscrub", on=True))
                run.cluster.apply(SetFlag("noscrub", on=False))
            run.tick()
        assert interval(run) is None
        run.ticks(3)
        assert interval(run) is None


def test_monitors_that_are_slow_to_answer_end_it() -> None:
    with running() as run:
        late = {"seconds": 0.0}

        def answer(command: Command) -> CommandResult:
            pace.note_answer(late["seconds"])
            return run.watched.apply(command)

        run.controller = Controller(Noted(run, answer), run.store, run.policy, keep=KeepInMemory().signed)
        pace = run.controller._timed.pace
        drain = fast(run)
        late["seconds"] = SLOW_ANSWER_SECONDS + 1
        run.ticks(4)
        assert interval(run) is None
        assert "the monitors took 3.0 s to answer a command, limit 2 s" in run.transcript(drain)


def test_a_pg_that_does_not_follow_the_newest_map_ends_it_only_after_a_while() -> None:
    with running() as run:
        fast(run)
        view, now = run.cluster.view(), run.cluster.now
        silent = SentMemory(trusted_from=now, unreported={PgId("1.0"): (1, 2, 3)})
        drains = run.store.drains()

        def find(later: timedelta) -> str | None:
            context = Context(survey_pgs(view), {}, drains, now + later, silent)
            return find_cost(run.policy, context, MapPace())

        assert find(timedelta(seconds=19)) is None
        assert "PG 1.0 have not followed the newest map" in (find(timedelta(seconds=21)) or "")


def test_the_record_goes_when_nothing_stands() -> None:
    with running() as run:
        kept = keep(run)
        drain = fast(run)
        assert kept.signed.read(RECORD) is not None
        run.until(drain, S.VERIFIED)
        run.ticks(2)
        assert kept.signed.read(RECORD) is None


def test_an_interval_that_is_left_set_is_reported_with_the_command_that_gives_it_back() -> None:
    with running(**{f"mon__{PROPOSE_INTERVAL}": "0.75"}) as run:
        drain = fast(run)
        view = run.cluster.view()
        assert describe_left(view, run.store.drains()) == ""
        stopped = replace(run.known(drain), state=S.HOLDING)
        assert "`ceph config set mon paxos_propose_interval 0.75` gives it back" in describe_left(
            view, [stopped]
        )


def test_the_pace_of_maps_is_known_after_half_a_minute() -> None:
    pace, at = MapPace(), datetime(2026, 3, 1, tzinfo=UTC)
    for n in range(3):
        pace.note_epoch(100 + 10 * n, at + timedelta(seconds=10 * n))
    assert pace.per_second() is None
    for n in range(3, 20):
        pace.note_epoch(100 + 10 * n, at + timedelta(seconds=10 * n))
    assert pace.per_second() == pytest.approx(1.0)


def test_the_slowest_answer_of_the_last_minute_counts() -> None:
    now = {"at": 0.0}
    pace = MapPace(clock=lambda: now["at"])
    pace.note_answer(3.0)
    now["at"] = 59.0
    assert pace.find_slowest_seconds() == 3.0
    now["at"] = 61.0
    assert pace.find_slowest_seconds() == 0.0


def test_a_mon_that_does_not_take_it_back_is_asked_each_look_at_first_and_then_once_a_minute() -> None:
    with running() as run:
        refuses = {"now": False}
        tried: list[Command] = []

        def refuse(command: Command) -> CommandResult:
            if refuses["now"] and isinstance(command, SetOption) and command.section == "mon":
                tried.append(command)
                return CommandResult(False, "access denied")
            return run.watched.apply(command)

        run.controller = Controller(Noted(run, refuse), run.store, run.policy, keep=KeepInMemory().signed)
        drain = fast(run)
        refuses["now"] = True
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        run.ticks(5)
        assert len(tried) == 4
        run.ticks(12)
        assert len(tried) == 6
        refuses["now"] = False
        run.ticks(8)
        assert interval(run) is None


def test_an_operators_hand_seen_by_a_held_drain_keeps_the_others_off_too() -> None:
    policy = replace(FAST, out_share_max=0.5)
    with running(wide_spec(hosts=8, pg_num=64), policy) as run:
        first = fast(run)
        run.cluster.apply(SetOption(PROPOSE_INTERVAL, "0.5", "mon"))
        run.ticks(2)
        run.controller.requests.pause(first.id, "operator", run.cluster.now)
        second = run.drain("osd.9")
        run.until(second, S.VERIFIED)
        assert interval(run) == "0.5"
        assert writes(run) == ["0.25"]


def test_an_interval_that_did_not_show_is_tried_three_times() -> None:
    with running() as run:

        def swallow(command: Command) -> CommandResult:
            if isinstance(command, SetOption) and command.section == "mon":
                run.watched.commands.append(command)
                return CommandResult(True, "")
            return run.watched.apply(command)

        run.controller = Controller(Noted(run, swallow), run.store, run.policy, keep=KeepInMemory().signed)
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        assert writes(run).count("0.25") == 3
        assert ValueBefore(FAST_MAPS) not in run.known(drain).ours

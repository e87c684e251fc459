"""A drain that cannot end is offered its ways out, and each of them leads to an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.cluster.cluster_port import Command, CommandResult, CrushReweight, Reweight, SetFlag
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.state_machine import NotInTable
from predrain.actions.engine.ways_out import WayNotOpen, list_ways_out
from predrain.data.drain import Drain, DrainState, Insistence
from predrain.data.ids import OsdId
from predrain.data.store.store_port import AUDIT
from predrain.data.way_out import WayOut
from tests.actions.made import (
    NOW,
    POLICY,
    a_context,
    a_drain,
    a_plan,
    calm_view,
    changed_osd,
    device,
    tiny_spec,
    wide_spec,
)
from tests.actions.run import Run, empty, map_of, whole

S = DrainState
SUSPECT = OsdId(0)
HOUR = timedelta(hours=1)


class Altered:
    """The cluster of a run, as it looks to a controller that sees it altered."""

    def __init__(self, run: Run, alter: Callable[[ClusterView], ClusterView]) -> None:
        self.run, self.alter = run, alter

    def view(self) -> ClusterView:
        return self.alter(self.run.watched.view())

    def apply(self, command: Command) -> CommandResult:
        return self.run.watched.apply(command)


def fill_suspect(view: ClusterView) -> ClusterView:
    """Something beside the PGs fills the suspect."""
    return changed_osd(view, SUSPECT, used_bytes=int(99e9))


@pytest.fixture
def run() -> Iterator[Run]:
    spec = replace(wide_spec(), balancer=True, settings={"osd/osd_max_backfills": "8"})
    with Run(spec) as run:
        yield run


def cancel_without_room(run: Run, *, moved: int = 8) -> Drain:
    """A cancel whose data cannot go back onto the suspect."""
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(moved)
    run.started(Altered(run, fill_suspect))
    run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
    for _ in range(60):
        run.tick()
        if any("no room for it any more" in sentence for sentence in run.known(drain).held_by):
            return run.known(drain)
    raise AssertionError(run.transcript(drain))


def ways_of(run: Run, drain: Drain) -> list[WayOut]:
    return [one.way for one in run.controller.requests.list_ways_out(drain.id, run.cluster.now)]


@pytest.mark.slow
def test_a_cancel_without_room_is_offered_its_ways_out_at_once_and_says_how_much_is_missing_where(
    run: Run,
) -> None:
    drain = cancel_without_room(run)
    assert ways_of(run, drain) == [WayOut.MAKE_ROOM, WayOut.STAY_DRAINED, WayOut.GIVE_UP_CANCEL]
    make_room = run.controller.requests.list_ways_out(drain.id, run.cluster.now)[0]
    assert "on osd.0: delete data, or add OSDs" in make_room.sentence
    assert "GiB" in make_room.sentence
    assert "It goes on as soon as there is room." in drain.held_by[0]


@pytest.mark.slow
def test_a_cancel_goes_on_by_itself_when_room_was_made(run: Run) -> None:
    drain = cancel_without_room(run)
    run.started()
    run.until(drain, S.CANCELLED)
    assert map_of(run)["settings"] == {"osd/osd_max_backfills": "8"}


@pytest.mark.slow
def test_a_request_to_stay_drained_takes_the_cancel_back_and_the_drain_ends(run: Run) -> None:
    run.tick()
    before = map_of(run)
    drain = cancel_without_room(run)
    stayed = run.controller.requests.stay_drained(drain.id, "operator", run.cluster.now)
    assert (stayed.state, stayed.cancelled_by) == (S.PREPARING, "")
    run.until(drain, S.VERIFIED)
    run.ticks(5)
    assert empty(run, 0)
    assert whole(run)
    after = map_of(run)
    assert (after["settings"], after["balancer"]) == (before["settings"], before["balancer"])
    handed = run.controller.requests.hand_over(drain.id, "operator", run.cluster.now)
    assert handed.state is S.HANDED_OVER


@pytest.mark.slow
def test_a_drain_that_stayed_can_be_cancelled_again_when_there_is_room() -> None:
    with Run(wide_spec()) as run:
        run.tick()
        before = map_of(run)
        drain = cancel_without_room(run)
        run.controller.requests.stay_drained(drain.id, "operator", run.cluster.now)
        run.until(drain, S.DRAINING)
        run.ticks(5)
        run.started()
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        run.ticks(20)
        assert map_of(run) == before


@pytest.mark.slow
def test_a_given_up_cancel_gives_settings_back_and_lists_the_upmaps_that_are_left(run: Run) -> None:
    run.tick()
    before = map_of(run)
    drain = cancel_without_room(run)
    assert run.cluster.view().balancer_active is False
    run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
    ended = run.until(drain, S.CANCELLED, most=10)
    run.ticks(2)
    left = {f"upmap/{pg}" for pg in run.cluster.view().upmap_items}
    assert left
    assert ended.ours == {}
    after = map_of(run)
    assert (after["settings"], after["balancer"]) == (before["settings"], True)
    assert "given up by admin" in ended.ended_why
    audited = [line for line in run.store.journal(AUDIT) if line.caller == "admin"]
    for told in (ended.ended_why, run.transcript(drain), audited[-1].decided):
        assert all(key in told for key in left)


@pytest.mark.slow
def test_a_given_up_cancel_ends_though_guards_refuse(run: Run) -> None:
    drain = cancel_without_room(run)
    assert run.cluster.apply(SetFlag("norebalance", on=True)).ok
    run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
    run.until(drain, S.CANCELLED, most=10)
    assert run.cluster.view().balancer_active
    assert run.cluster.view().settings["osd/osd_max_backfills"] == "8"


@pytest.mark.slow
def test_a_given_up_cancel_sends_nothing_under_a_halt_and_ends_after_it(run: Run) -> None:
    drain = cancel_without_room(run)
    run.store.set_halt("wait")
    run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
    sent = len(run.watched.commands)
    run.ticks(5)
    assert len(run.watched.commands) == sent
    assert "Halted: wait. Lift it with `predrain unhalt`." in run.known(drain).held_by
    run.store.set_halt(None)
    run.until(drain, S.CANCELLED, most=10)


@pytest.mark.slow
def test_a_given_up_cancel_moves_no_data_any_more(run: Run) -> None:
    drain = cancel_without_room(run)
    run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
    sent = len(run.watched.commands)
    run.until(drain, S.CANCELLED, most=10)
    kinds = {type(command).__name__ for command in run.watched.commands[sent:]}
    assert kinds <= {"SetOption", "Balancer"}


@pytest.mark.slow
def test_a_given_up_cancel_lets_the_osd_lead_again() -> None:
    with Run(tiny_spec()) as run:
        run.tick()
        drain = run.controller.requests.propose(
            "osd.0", "operator", "slow", run.cluster.now, spare_reads=True
        )
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        run.until(drain, S.DRAINING)
        for _ in range(200):
            run.tick()
            if run.cluster.view().upmap_items:
                break
        assert run.cluster.view().osds[SUSPECT].primary_affinity == 0.0
        run.started(Altered(run, fill_suspect))
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        for _ in range(100):
            run.tick()
            if "space" in run.known(drain).held_for:
                break
        run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
        ended = run.until(drain, S.CANCELLED, most=100)
        assert run.cluster.view().osds[SUSPECT].primary_affinity == 1.0
        assert "affinity" not in ended.ended_why


@pytest.mark.slow
def test_an_affinity_that_guards_keep_down_for_long_is_left_and_listed() -> None:
    with Run(tiny_spec(), policy=Policy(ways_out_after=timedelta(minutes=5))) as run:
        run.tick()
        drain = run.controller.requests.propose(
            "osd.0", "operator", "slow", run.cluster.now, spare_reads=True
        )
        run.controller.requests.approve(drain.id, "operator", run.cluster.now)
        while not run.cluster.view().upmap_items:
            run.tick()
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        assert run.cluster.apply(SetFlag("norebalance", on=True)).ok
        while not ways_of(run, drain):
            run.tick()
        run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
        run.ticks(20)
        assert run.known(drain).state is S.CANCELLING
        ended = run.until(drain, S.CANCELLED, most=15)
        assert "osd.0/affinity at 0.0 (was 1.0)" in ended.ended_why


class RefusesWeights:
    """The cluster of a run, whose mon refuses every weight."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def view(self) -> ClusterView:
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        if isinstance(command, Reweight | CrushReweight):
            return CommandResult(ok=False, text="Error EPERM: not you")
        return self.run.watched.apply(command)


@pytest.mark.slow
@pytest.mark.parametrize("way", [WayOut.STAY_DRAINED, WayOut.GIVE_UP_CANCEL])
def test_a_cancel_that_broke_has_ways_out_as_well(way: WayOut) -> None:
    with Run(wide_spec(used=0.3)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.VERIFIED)
        run.started(RefusesWeights(run))
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.FAILED)
        assert ways_of(run, drain) == [WayOut.STAY_DRAINED, WayOut.GIVE_UP_CANCEL]
        if way is WayOut.STAY_DRAINED:
            run.controller.requests.stay_drained(drain.id, "operator", run.cluster.now)
            run.until(drain, S.VERIFIED, most=200)
        else:
            run.controller.requests.give_up_cancel(drain.id, "admin", run.cluster.now)
            assert "osd.0/reweight at 0.0 (was 1.0)" in run.until(drain, S.CANCELLED, most=20).ended_why


def held_drain(*codes: str, since: timedelta = 2 * HOUR, state: DrainState = S.HOLDING) -> Drain:
    drain = a_drain(state=state, held_by=("It holds.",), held_for=codes, held_since=NOW - since)
    return replace(drain, plan=a_plan(calm_view(), drain))


def listed(drain: Drain, view: ClusterView | None = None) -> list[WayOut]:
    view = view or calm_view()
    return [one.way for one in list_ways_out(view, drain, POLICY, a_context(view, drain))]


@pytest.mark.parametrize("code", ["plan", "unhealthy", "space", "standstill", "conflict"])
def test_a_drain_that_is_held_for_long_is_offered_a_cancel(code: str) -> None:
    assert listed(held_drain(code)) == [WayOut.CANCEL]


def test_a_drain_is_offered_no_way_out_before_it_was_held_for_long() -> None:
    assert listed(held_drain("plan", since=HOUR - timedelta(seconds=1))) == []
    assert listed(held_drain("plan", since=HOUR)) == [WayOut.CANCEL]


@pytest.mark.parametrize(
    "codes", [("window",), ("budget",), ("window", "budget"), ("halt", "space"), ("lease",)]
)
def test_a_hold_that_ends_by_itself_and_one_under_which_nothing_is_sent_offer_no_way_out(
    codes: tuple[str, ...],
) -> None:
    assert listed(held_drain(*codes)) == []


@pytest.mark.parametrize("state", [S.PROPOSED, S.PAUSED, S.VERIFIED, S.CANCELLED, S.HANDED_OVER])
def test_a_drain_that_waits_for_a_person_or_is_over_is_offered_no_way_out(state: DrainState) -> None:
    assert listed(held_drain("plan", state=state)) == []


def test_a_cancel_that_is_held_for_long_may_be_taken_back_or_given_up() -> None:
    held = held_drain("unhealthy", state=S.CANCELLING)
    assert listed(held) == [WayOut.STAY_DRAINED, WayOut.GIVE_UP_CANCEL]


def test_a_cancel_that_cannot_be_computed_is_not_taken_back_for_the_drain_could_not_be_either() -> None:
    assert listed(held_drain("plan", state=S.CANCELLING)) == [WayOut.GIVE_UP_CANCEL]


def test_a_drain_does_not_stay_where_another_disk_is_in_the_slot() -> None:
    view = changed_osd(calm_view(), 0, device=device(99))
    assert listed(held_drain("unhealthy", state=S.CANCELLING), view) == [WayOut.GIVE_UP_CANCEL]


def test_a_way_that_is_not_open_is_refused_with_those_that_are(run: Run) -> None:
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    now = run.cluster.now
    with pytest.raises(WayNotOpen, match=r"choose_other_targets is not open .* it has none now"):
        run.controller.requests.choose_other_targets(drain.id, "operator", now)
    with pytest.raises(NotInTable, match="cannot take 'stay drained'"):
        run.controller.requests.stay_drained(drain.id, "operator", now)
    run.controller.requests.cancel(drain.id, "operator", now)
    with pytest.raises(WayNotOpen, match="give_up_cancel is not open"):
        run.controller.requests.give_up_cancel(drain.id, "operator", now)


def test_a_step_between_two_holds_begins_the_count_anew() -> None:
    with Run(wide_spec(used=0.3)) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.cluster.apply(SetFlag("norebalance", on=True))
        run.ticks(2)
        first = run.known(drain)
        assert first.held_for == ("operator-flags",)
        run.ticks(3)
        assert run.known(drain).held_since == first.held_since
        run.cluster.apply(SetFlag("norebalance", on=False))
        while run.known(drain).held_since is not None:
            run.tick()
        run.cluster.apply(SetFlag("norebalance", on=True))
        run.ticks(2)
        again = run.known(drain)
        assert first.held_since is not None
        assert again.held_since is not None
        assert again.held_since > first.held_since


def test_an_insistence_and_a_given_up_cancel_survive_the_store(run: Run) -> None:
    drain = a_drain(
        insistence=Insistence(("window",), "admin", "now", NOW), avoided=(OsdId(3),), held_since=NOW
    )
    run.store.save_drain(drain)
    assert run.store.drain(drain.id) == drain

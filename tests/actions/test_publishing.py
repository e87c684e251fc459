"""Life expectancies are published only where that moves nothing, never over another party's entry, and are withdrawn
when their reason has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from predrain.actions.cluster.cluster_port import PublishLife, WithdrawLife
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.controller.life_expectancy import (
    AT_ONCE,
    Ledger,
    LifeExpectancyUpdate,
    plan_life_expectancy_updates,
    read_ledger,
    write_ledger,
)
from predrain.actions.core.claimed_settings import key_of, value_of
from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import Outlook, Status
from predrain.data.setting import DeviceLife
from tests.actions.made import NOW, POLICY, a_drain, bad_outlook, calm_view, device, wide_spec
from tests.actions.test_replication import Kept

S = DrainState
TODAY = NOW.replace(hour=0)
BAD = (TODAY, TODAY + timedelta(days=14))
WARNING = (TODAY + timedelta(days=14), TODAY + timedelta(days=42))


def quiet(**changes: object) -> ClusterView:
    """A cluster whose mgr does not act on what is published."""
    return replace(calm_view(), self_heal=False, **changes)  # type: ignore[arg-type]


def judged(
    view: ClusterView, *outlooks: Outlook, ledger: Ledger | None = None, **more: object
) -> LifeExpectancyUpdate:
    by_device = {outlook.device: outlook for outlook in outlooks}
    drains = more.pop("drains", ())
    return plan_life_expectancy_updates(view, by_device, drains, ledger or {}, POLICY, NOW, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(("status", "span"), [(Status.BAD, BAD), (Status.WARNING, WARNING)])
def test_bad_is_told_as_two_weeks_and_warning_as_two_to_six(
    status: Status, span: tuple[datetime, datetime]
) -> None:
    told = judged(quiet(), bad_outlook(0, status=status))
    assert told.commands == (PublishLife(device(0), *span),)
    assert told.ledger == {device(0): (span,)}
    assert told.advice == ""


@pytest.mark.parametrize("self_heal", [True, None])
def test_while_the_mgr_would_act_on_it_nothing_is_told_ours_is_withdrawn_and_the_command_is_said(
    self_heal: bool | None,
) -> None:
    view = replace(quiet(lives={device(1): BAD}), self_heal=self_heal)
    told = judged(view, bad_outlook(0), bad_outlook(1), ledger={device(1): (BAD,)})
    assert told.commands == (WithdrawLife(device(1)),)
    assert "ceph config set mgr mgr/devicehealth/self_heal false" in told.advice


@pytest.mark.parametrize("status", [Status.GOOD, Status.BAD])
def test_a_life_expectancy_that_another_party_published_is_never_changed(status: Status) -> None:
    view = quiet(lives={device(0): (TODAY, TODAY + timedelta(days=3))})
    told = judged(view, bad_outlook(0, status=status), ledger={device(0): (BAD,)})
    assert told.commands == ()
    assert told.ledger == {}


def test_a_published_life_expectancy_is_not_published_again_until_it_is_a_week_old() -> None:
    fresh = quiet(lives={device(0): BAD})
    assert judged(fresh, bad_outlook(0), ledger={device(0): (BAD,)}).commands == ()
    old = (BAD[0] - timedelta(days=7), BAD[1] - timedelta(days=7))
    told = judged(quiet(lives={device(0): old}), bad_outlook(0), ledger={device(0): (old,)})
    assert told.commands == (PublishLife(device(0), *BAD),)
    assert told.ledger == {device(0): (old, BAD)}


def test_a_disk_that_is_better_has_ours_withdrawn_and_one_that_is_unknown_or_stale_keeps_it() -> None:
    view = quiet(lives={device(0): BAD})
    ledger = {device(0): (BAD,)}
    assert judged(view, bad_outlook(0, status=Status.GOOD), ledger=ledger).commands == (
        WithdrawLife(device(0)),
    )
    assert judged(view, bad_outlook(0, status=Status.UNKNOWN), ledger=ledger).commands == ()
    stale = bad_outlook(0, at=NOW - timedelta(days=3), status=Status.GOOD)
    assert judged(view, stale, ledger=ledger).commands == ()


@pytest.mark.parametrize("state", [S.CANCELLING, S.CANCELLED, S.HANDED_OVER])
def test_after_a_persons_cancel_and_after_the_hand_over_it_is_withdrawn(state: S) -> None:
    drain = a_drain(0, state=state, cancelled_by="operator", updated_at=NOW)
    told = judged(quiet(lives={device(0): BAD}), bad_outlook(0), ledger={device(0): (BAD,)}, drains=(drain,))
    assert told.commands == (WithdrawLife(device(0)),)


def test_few_are_told_at_once_and_those_just_told_are_waited_for() -> None:
    many = [bad_outlook(osd) for osd in range(8)]
    told = judged(quiet(), *many)
    assert len(told.commands) == AT_ONCE
    rest = judged(quiet(), *many, ledger=told.ledger, waiting=frozenset(told.ledger))
    assert {command.device for command in rest.commands} == {device(osd) for osd in range(AT_ONCE, 8)}
    assert told.ledger.items() <= rest.ledger.items()


def test_the_ledger_is_read_back_as_it_was_written() -> None:
    ledger = {DeviceId("A_B_1"): (BAD, WARNING), DeviceId("with a space"): (BAD,)}
    assert read_ledger(write_ledger(ledger)) == ledger


# -- on the simulated cluster
# -----------------------------------------------------------------------------------------------------


@pytest.fixture
def run() -> Iterator[Kept]:
    with Kept(replace(wide_spec(), self_heal=False)) as run:
        yield run


def suspect(run: Kept, osd: int = 0) -> None:
    run.outlooks = {device(osd): bad_outlook(osd, at=run.cluster.now, readings=0)}


def test_the_controller_tells_it_once_and_journals_it_and_nothing_is_thrown_out(run: Kept) -> None:
    run.tick()
    suspect(run)
    run.ticks(4)
    assert device(0) in run.cluster.view().lives
    sent = [command for command in run.watched.commands if isinstance(command, PublishLife)]
    assert len(sent) == 1
    assert key_of(sent[0]) == DeviceLife(device(0))
    assert any(value_of(sent[0]) in entry.decided for entry in run.store.journal("life"))
    run.cluster.advance(3600)
    assert run.cluster.view().osds[OsdId(0)].reweight == 1.0


def test_with_self_heal_on_a_published_life_outs_the_disk_in_one_step_which_is_why_none_is_published() -> (
    None
):
    with Kept(wide_spec()) as run:
        run.tick()
        suspect(run)
        reports = [run.tick() for _ in range(4)]
        assert "self_heal false" in reports[-1].advice
        assert run.cluster.view().lives == {}
        run.cluster.apply(PublishLife(device(0), run.cluster.now, run.cluster.now + timedelta(days=12)))
        run.cluster.advance(700)
        thrown = run.cluster.view().osds[OsdId(0)]
        assert (thrown.reweight, thrown.primary_affinity) == (0.0, 0.0)
        run.cluster.apply(WithdrawLife(device(0)))
        run.cluster.advance(700)
        assert run.cluster.view().osds[OsdId(0)].reweight == 0.0


def test_when_self_heal_is_turned_on_ours_is_withdrawn_before_the_mgr_looks(run: Kept) -> None:
    run.tick()
    suspect(run)
    run.ticks(20)
    run.cluster.devicehealth.self_heal = True
    run.ticks(2)
    assert run.cluster.view().lives == {}
    run.cluster.advance(3600)
    assert run.cluster.view().osds[OsdId(0)].reweight == 1.0


def test_a_halt_stops_it_too(run: Kept) -> None:
    run.tick()
    run.keep.texts["halt"] = "smoke"
    suspect(run)
    run.ticks(3)
    assert run.cluster.view().lives == {}


def test_the_next_process_knows_what_is_ours(run: Kept) -> None:
    run.tick()
    suspect(run)
    run.ticks(3)
    run.lose_the_store()
    run.outlooks = {}
    suspect(run)
    run.outlooks[device(0)] = replace(run.outlooks[device(0)], status=Status.GOOD)
    run.ticks(4)
    assert run.cluster.view().lives == {}

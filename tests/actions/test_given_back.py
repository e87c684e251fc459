"""The settings of the whole cluster that a drain holds are given back: after the end of the drain, by the next process,
and in real trouble.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable, Command, CommandResult, SetOption
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import OsdId
from tests.actions.made import wide_spec
from tests.actions.run import Run

S = DrainState
BACKFILLS = "osd/osd_max_backfills"
OVERRIDE = "osd/osd_mclock_override_recovery_settings"


def held(spec_settings: Mapping[str, str], **changes: object) -> Run:
    return Run(replace(wide_spec(pg_num=32), settings=spec_settings, **changes))  # type: ignore[arg-type]


def settings_of(run: Run) -> dict[str, str]:
    return dict(run.cluster.view().settings)


def test_mclock_values_under_the_override_are_held_and_given_back_with_the_override_untouched() -> None:
    before = {OVERRIDE: "true", BACKFILLS: "6"}
    with held(before, scheduler="mclock") as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        assert settings_of(run) == {OVERRIDE: "true", BACKFILLS: "1"}
        run.until(drain, S.VERIFIED)
        assert settings_of(run) == before


def test_a_profile_is_held_and_given_back() -> None:
    before = {"osd/osd_mclock_profile": "high_recovery_ops"}
    with held(before, scheduler="mclock", release="pacific") as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        assert settings_of(run) == {"osd/osd_mclock_profile": "high_client_ops"}
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        assert settings_of(run) == before


@pytest.mark.slow
def test_a_setting_that_the_mon_did_not_have_is_removed_again_and_not_set_to_a_default() -> None:
    before = {"global/osd_max_backfills": "8"}
    with held(before) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        assert settings_of(run) == {**before, BACKFILLS: "1"}
        run.until(drain, S.VERIFIED)
        assert settings_of(run) == before


@pytest.mark.slow
@pytest.mark.parametrize("theirs", ["4", None])
def test_a_setting_that_an_operator_changes_during_a_drain_stays_and_the_journal_says_so(
    theirs: str | None,
) -> None:
    with held({BACKFILLS: "8"}) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.ticks(3)
        run.cluster.apply(SetOption("osd_max_backfills", theirs))
        run.until(drain, S.VERIFIED)
        assert settings_of(run).get(BACKFILLS) == theirs
        assert f"leave option/osd_max_backfills at {theirs or '-'}: another party set it" in run.transcript(
            drain
        )


def test_a_setting_that_an_operator_changes_while_a_drain_is_paused_survives_the_cancel() -> None:
    with held({BACKFILLS: "8"}) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        run.cluster.apply(SetOption("osd_max_backfills", "4"))
        run.controller.requests.cancel(drain.id, "operator", run.cluster.now)
        run.until(drain, S.CANCELLED)
        assert settings_of(run) == {BACKFILLS: "4"}
        assert "left as found by others: option/osd_max_backfills" in run.transcript(drain)


def test_the_next_process_gives_back_what_a_killed_one_held() -> None:
    with held({BACKFILLS: "8"}) as run:
        drain = run.drain("osd.0")
        run.until(drain, S.DRAINING)
        run.started()
        run.until(drain, S.VERIFIED)
        assert settings_of(run) == {BACKFILLS: "8"}


# -- shared by two drains

SHARED = {BACKFILLS: "8"}


def shared_by_two() -> Run:
    spec = replace(wide_spec(hosts=8, pg_num=64), balancer=True, settings=SHARED)
    return Run(spec, policy=Policy(out_share_max=0.5))


def is_given_back(run: Run) -> bool:
    return run.cluster.view().balancer_active and settings_of(run) == SHARED


@pytest.mark.slow
@pytest.mark.parametrize("given_up", [(False, False), (True, True), (False, True), (True, False)])
def test_two_drains_that_end_in_one_look_give_back_what_they_shared(given_up: tuple[bool, bool]) -> None:
    with shared_by_two() as run:
        requests = run.controller.requests
        drains = [(run.drain(osd), gone) for osd, gone in zip(("osd.0", "osd.9"), given_up, strict=True)]
        while any(run.known(drain).state is not S.PAUSED for drain, _ in drains):
            run.tick()
            for drain, gone in drains:
                if run.known(drain).state is (S.DRAINING if gone else S.DRAINED):
                    requests.pause(drain.id, "operator", run.cluster.now)
        run.ticks(6)
        assert not run.cluster.view().balancer_active
        for drain, gone in drains:
            (requests.cancel if gone else requests.resume)(drain.id, "operator", run.cluster.now)
        for drain, gone in drains:
            run.until(drain, S.CANCELLED if gone else S.VERIFIED)
        assert is_given_back(run)


@pytest.mark.slow
def test_a_drain_that_begins_in_the_look_in_which_another_ends_holds_what_they_share() -> None:
    with shared_by_two() as run:
        requests = run.controller.requests
        ends, begins = run.drain("osd.0"), run.drain("osd.9")
        run.until(begins, S.PREPARING)
        requests.pause(begins.id, "operator", run.cluster.now)
        run.until(ends, S.DRAINED)
        requests.resume(begins.id, "operator", run.cluster.now)
        run.until(begins, S.DRAINING)
        run.ticks(3)
        assert run.known(begins).state is S.DRAINING
        assert settings_of(run)[BACKFILLS] == "1"
        run.until(begins, S.VERIFIED)
        assert is_given_back(run)


# -- degradation that is not ours


@dataclass
class Deaf:
    """A cluster whose mon takes the next `turns` settings not: it refuses, or does not answer."""

    run: Run
    turns: int
    answers: bool

    def view(self) -> ClusterView:
        return self.run.watched.view()

    def apply(self, command: Command) -> CommandResult:
        if not isinstance(command, SetOption) or not self.turns:
            return self.run.watched.apply(command)
        self.turns -= 1
        if self.answers:
            return CommandResult(False, "no quorum")
        raise ClusterUnreachable("no quorum")


def in_trouble(run: Run, turns: int = 0, *, answers: bool = True) -> Drain:
    """A drain under way, another OSD that has just died, and a mon that is deaf for so many turns."""
    drain = run.drain("osd.0")
    run.until(drain, S.DRAINING)
    run.ticks(6)
    run.started(Deaf(run, turns, answers))
    run.cluster.fail_osd(OsdId(9))
    return drain


@pytest.mark.slow
@pytest.mark.parametrize("answers", [True, False])
@pytest.mark.parametrize("turns", [1, 2, 5])
def test_a_throttle_that_real_trouble_wants_back_is_sent_until_it_stands(turns: int, answers: bool) -> None:
    with Run(replace(wide_spec(hosts=8), settings=SHARED), policy=Policy(out_share_max=0.5)) as run:
        drain = in_trouble(run, turns, answers=answers)
        run.ticks(turns + 1)
        assert settings_of(run) == SHARED
        tried = run.transcript(drain).count("back at once: degradation that is not ours")
        assert tried == turns + 1


def test_a_throttle_is_wanted_back_of_a_drain_that_a_person_paused_as_well() -> None:
    with Run(replace(wide_spec(hosts=8), settings=SHARED), policy=Policy(out_share_max=0.5)) as run:
        drain = in_trouble(run, 1)
        run.controller.requests.pause(drain.id, "operator", run.cluster.now)
        run.ticks(2)
        assert settings_of(run) == SHARED
        assert run.known(drain).state is S.PAUSED


@pytest.mark.slow
def test_a_throttle_that_an_operator_lowers_again_in_trouble_is_not_raised_again() -> None:
    with Run(replace(wide_spec(hosts=8), settings=SHARED), policy=Policy(out_share_max=0.5)) as run:
        drain = in_trouble(run)
        run.ticks(2)
        assert settings_of(run) == SHARED
        run.cluster.apply(SetOption("osd_max_backfills", "1"))
        run.ticks(10)
        assert settings_of(run) == {BACKFILLS: "1"}
        run.until(drain, S.VERIFIED)
        assert settings_of(run) == {BACKFILLS: "1"}
        assert "leave option/osd_max_backfills at 1: another party set it" in run.transcript(drain)


@pytest.mark.slow
@pytest.mark.parametrize("resumed", ["while the other drains", "when the other has ended"])
def test_a_throttle_that_one_drain_lowers_again_after_trouble_is_no_strangers_to_the_other(
    resumed: str,
) -> None:
    with shared_by_two() as run:
        waits, goes_on = run.drain("osd.0"), run.drain("osd.9")
        run.until(goes_on, S.DRAINING)
        run.until(waits, S.DRAINING)
        run.cluster.stop_osd(OsdId(5))
        run.ticks(4)
        assert settings_of(run)[BACKFILLS] == "8"
        run.controller.requests.pause(waits.id, "operator", run.cluster.now)
        run.cluster.revive(OsdId(5))
        run.until(goes_on, S.DRAINING)
        run.ticks(3)
        assert settings_of(run)[BACKFILLS] == "1"
        if resumed == "when the other has ended":
            run.until(goes_on, S.VERIFIED)
            assert settings_of(run)[BACKFILLS] == "8"
        run.controller.requests.resume(waits.id, "operator", run.cluster.now)
        run.until(waits, S.DRAINING)
        run.ticks(3)
        assert settings_of(run)[BACKFILLS] == "1"
        run.until(goes_on, S.VERIFIED)
        run.until(waits, S.VERIFIED)
        assert is_given_back(run)
        assert "another party" not in run.transcript(waits) + run.transcript(goes_on)

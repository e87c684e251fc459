"""Ways out, an insistence and a rejection, asked of a controller which does not lead: the leader carries them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.controller.forwarded_requests import Petition, Petitions, Wish, fulfilled
from predrain.data.drain import DrainState, GivenUp, Insistence
from predrain.data.store.port import AUDIT
from predrain.service.drains import plan_etags as seals
from predrain.service.drains.control import Control
from predrain.service.drains.drain_requests import RefusedElsewhere
from tests.actions.made import a_drain
from tests.actions.made_keep import KeepInMemory
from tests.service.test_requests_elsewhere import CALLER, Company

S = DrainState


@pytest.fixture
def company() -> Iterator[Company]:
    made = Company()
    yield made
    for store in made.stores:
        store.close()


def held_by_autoscale(company: Company, leader: Control) -> str:
    """A drain that begins when a pool has its number of PGs, which it never does here."""
    (pool,) = company.cluster.osdmap.pools.values()
    company.cluster.osdmap.pools[pool.id] = replace(pool, pg_num_target=pool.pg_num * 2)
    drain = company.propose(leader)
    leader._controller.requests.approve(drain.id, CALLER, company.cluster.now)
    company.step(leader)
    assert leader.store.drains()[0].held_for == ("autoscale",)
    return drain.id


def insist(
    control: Control, id_: str, company: Company, *guards: str, confirm: str = "osd.0"
) -> Insistence | None:
    return control.insist(id_, guards, "it dies", 30.0, confirm, CALLER, company.cluster.now).insistence


def test_an_insistence_reaches_the_controller_that_leads_and_is_kept_in_the_cluster(company: Company) -> None:
    leader = company.leader()
    id_ = held_by_autoscale(company, leader)
    beside = company.follower(lambda: company.step(leader))
    said = insist(beside, id_, company, "autoscale")
    assert said is not None
    assert (said.by, said.reason, said.guards) == (CALLER, "it dies", ("autoscale",))
    kept = leader.store.drain(id_)
    assert kept is not None
    assert kept.insistence == said
    for _ in range(3):
        company.step(leader)
    began = leader.store.drain(id_)
    assert began is not None
    assert began.state is S.PREPARING
    told = [line.decided for line in leader.store.journal(AUDIT)]
    assert any("insist: past autoscale" in line for line in told)


def test_an_insistence_that_the_leader_refuses_says_its_sentence(company: Company) -> None:
    leader = company.leader()
    id_ = held_by_autoscale(company, leader)
    beside = company.follower(lambda: company.step(leader))
    with pytest.raises(RefusedElsewhere, match="nobody may insist past 'space'"):
        insist(beside, id_, company, "space")
    with pytest.raises(RefusedElsewhere, match=r"type osd\.0 to confirm"):
        insist(beside, id_, company, "autoscale", confirm="osd.7")
    with pytest.raises(RefusedElsewhere, match="cannot take 'stay drained'"):
        beside.take_way_out(id_, Wish.STAY_DRAINED, CALLER, company.cluster.now)


def test_an_insistence_of_a_leader_that_was_killed_before_it_answered_is_carried_out_once(
    company: Company,
) -> None:
    leader = company.leader()
    id_ = held_by_autoscale(company, leader)
    insist(leader, id_, company, "autoscale")
    revision = leader.store.drains()[0].revision
    wish = Petition(
        "5", Wish.INSIST, company.cluster.now, CALLER, id_,
        reason="it dies", guards=("autoscale",), minutes=30.0, confirm="osd.0",
    )  # fmt: skip
    Petitions(KeepInMemory(company.texts).signed).lay(wish)
    leader._elsewhere.step(leader._executor.carry_out_once, company.cluster.now)  # type: ignore[union-attr]
    assert leader.store.drains()[0].revision == revision


def test_a_drain_that_the_leader_approved_before_it_heard_of_a_rejection_is_not_rejected(
    company: Company,
) -> None:
    leader = company.leader()
    drain = company.propose(leader)

    def approve_and_hear() -> None:
        leader.approve(drain.id, seals.seal(drain), "ada", company.cluster.now)
        company.step(leader)

    beside = company.follower(approve_and_hear)
    with pytest.raises(RefusedElsewhere, match=f"{drain.id} is .*, no longer proposed, and was not rejected"):
        beside.reject(drain.id, CALLER, company.cluster.now)
    (kept,) = leader.store.drains()
    assert kept.state in {S.APPROVED, S.PREPARING}
    assert company.left() == []


def test_a_rejection_beside_the_leader_ends_a_proposed_drain_and_may_be_said_twice(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    for _ in range(2):
        assert beside.reject(drain.id, CALLER, company.cluster.now).state is S.CANCELLED
    (kept,) = leader.store.drains()
    assert (kept.state, kept.cancelled_by) == (S.CANCELLED, CALLER)


def test_a_way_out_is_done_that_the_drain_shows() -> None:
    now = a_drain().created_at
    given_up = a_drain(state=S.CANCELLING, given_up=GivenUp(CALLER, now))
    assert fulfilled(Petition("1", Wish.GIVE_UP_CANCEL, now, CALLER, given_up.id), given_up)
    assert not fulfilled(
        Petition("1", Wish.GIVE_UP_CANCEL, now, CALLER, given_up.id), a_drain(state=S.CANCELLING)
    )
    assert fulfilled(Petition("1", Wish.STAY_DRAINED, now, CALLER, given_up.id), a_drain(state=S.PREPARING))
    assert not fulfilled(Petition("1", Wish.CHOOSE_OTHER_TARGETS, now, CALLER, given_up.id), a_drain())
    said = Insistence(("window",), CALLER, "now", now + timedelta(minutes=30))
    for minutes, done in ((30.0, True), (31.0, False)):
        wish = Petition("1", Wish.INSIST, now, CALLER, "x", reason="now", guards=("window",), minutes=minutes)
        assert fulfilled(wish, a_drain(insistence=said)) is done

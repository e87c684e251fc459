"""Ways out, an insistence and a rejection, asked of a controller which does not lead: the leader carries them out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.controller.forwarded_requests import ForwardedRequests
from predrain.actions.controller.person_request import PersonRequest, RequestKind, is_request_fulfilled
from predrain.data.drain import DrainState, GivenUp, Insistence
from predrain.data.store.store_port import AUDIT
from predrain.service.drains.drain_control import DrainControl
from predrain.service.drains.drain_requests import RefusedElsewhere
from tests.actions.made import a_drain
from tests.actions.made_config_keys import KeepInMemory
from tests.service.test_requests_elsewhere import CALLER, Company

S = DrainState


@pytest.fixture
def company() -> Iterator[Company]:
    made = Company()
    yield made
    for store in made.stores:
        store.close()


def held_by_autoscale(company: Company, leader: DrainControl) -> str:
    """A drain that begins when a pool has its number of PGs, which it never does here."""
    (pool,) = company.cluster.osdmap.pools.values()
    company.cluster.osdmap.pools[pool.id] = replace(pool, pg_num_target=pool.pg_num * 2)
    drain = company.propose(leader)
    leader._controller.requests.approve(drain.id, CALLER, company.cluster.now)
    company.step(leader)
    assert leader.store.drains()[0].held_for == ("autoscale",)
    return drain.id


def insist(
    control: DrainControl, id_: str, company: Company, *guards: str, confirm: str = "osd.0"
) -> Insistence | None:
    return company.ask(
        control, RequestKind.INSIST, id_, guards=guards, reason="it dies", minutes=30.0, confirm=confirm
    ).insistence


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
        company.ask(beside, RequestKind.STAY_DRAINED, id_)


def test_an_insistence_of_a_leader_that_was_killed_before_it_answered_is_carried_out_once(
    company: Company,
) -> None:
    leader = company.leader()
    id_ = held_by_autoscale(company, leader)
    insist(leader, id_, company, "autoscale")
    revision = leader.store.drains()[0].revision
    request = PersonRequest(RequestKind.INSIST, company.cluster.now, CALLER, id_,
        reason="it dies", guards=("autoscale",), minutes=30.0, confirm="osd.0", id="5")  # fmt: skip
    ForwardedRequests(KeepInMemory(company.texts).signed).submit_request(request)
    leader._elsewhere.exchange_requests(leader._controller.requests.execute_once, company.cluster.now)  # type: ignore[union-attr]
    assert leader.store.drains()[0].revision == revision


def test_a_drain_that_the_leader_approved_before_it_heard_of_a_rejection_is_not_rejected(
    company: Company,
) -> None:
    leader = company.leader()
    drain = company.propose(leader)

    def approve_and_hear() -> None:
        company.approve(leader, drain)
        company.step(leader)

    beside = company.follower(approve_and_hear)
    with pytest.raises(RefusedElsewhere, match=f"{drain.id} is .*, no longer proposed, and was not rejected"):
        company.ask(beside, RequestKind.REJECT, drain.id)
    (kept,) = leader.store.drains()
    assert kept.state in {S.APPROVED, S.PREPARING}
    assert company.left() == []


def test_a_rejection_beside_the_leader_ends_a_proposed_drain_and_may_be_said_twice(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    for _ in range(2):
        assert company.ask(beside, RequestKind.REJECT, drain.id).state is S.CANCELLED
    (kept,) = leader.store.drains()
    assert (kept.state, kept.cancelled_by) == (S.CANCELLED, CALLER)


def test_a_way_out_is_done_that_the_drain_shows() -> None:
    now = a_drain().created_at
    given_up = a_drain(state=S.CANCELLING, given_up=GivenUp(CALLER, now))
    assert is_request_fulfilled(
        PersonRequest(RequestKind.GIVE_UP_CANCEL, now, CALLER, given_up.id, id="1"), given_up
    )
    assert not is_request_fulfilled(
        PersonRequest(RequestKind.GIVE_UP_CANCEL, now, CALLER, given_up.id, id="1"),
        a_drain(state=S.CANCELLING),
    )
    assert is_request_fulfilled(
        PersonRequest(RequestKind.STAY_DRAINED, now, CALLER, given_up.id, id="1"), a_drain(state=S.PREPARING)
    )
    assert not is_request_fulfilled(
        PersonRequest(RequestKind.CHOOSE_OTHER_TARGETS, now, CALLER, given_up.id, id="1"), a_drain()
    )
    said = Insistence(("window",), CALLER, "now", now + timedelta(minutes=30))
    for minutes, done in ((30.0, True), (31.0, False)):
        request = PersonRequest(
            RequestKind.INSIST, now, CALLER, "x", reason="now", guards=("window",), minutes=minutes, id="1"
        )
        assert is_request_fulfilled(request, a_drain(insistence=said)) is done

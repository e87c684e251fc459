"""Requests in the cluster that are not what they seem: forged, put back, or of a process without a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from predrain.actions.ceph_mgr.predrain.text_signing import sign_text
from predrain.actions.cluster.signed_keys import SignedKeys, Unverified
from predrain.actions.controller.forwarded_requests import ANSWERS, REQUESTS, ForwardedRequests
from predrain.actions.controller.person_request import PersonRequest, RequestKind
from predrain.actions.controller.request_execution import NotLeading
from predrain.actions.core.drain_policy import Policy
from predrain.data.drain import DrainState, Intent
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.audit import AUDIT
from predrain.service.drains.drain_control import DrainControl
from predrain.service.drains.drain_requests import RefusedElsewhere
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.drains.view_only_cluster import PlanOnlyLease
from predrain.service.fleet.drain_timeline import Timelines
from predrain.service.fleet.fleet import Fleet
from predrain.service.notifications.cause import CLUSTER_KEYS
from tests.actions.made_config_keys import SIGNING_KEY, KeepInMemory
from tests.service.test_requests_elsewhere import CALLER, Company, LeaseOfOne, memory_of

S = DrainState


@pytest.fixture
def company() -> Iterator[Company]:
    made = Company()
    yield made
    for store in made.stores:
        store.close()


def forged_request(company: Company, target: str = "osd.0") -> PersonRequest:
    return PersonRequest(
        RequestKind.PROPOSE, company.cluster.now, "token-file", target=target, reason="a forged one", id="5"
    )


@pytest.mark.parametrize("kind", ["no signature", "another key", "another request's signature"])
def test_a_request_without_a_good_signature_is_not_carried_out_and_is_told_of(
    company: Company, kind: str
) -> None:
    leader = company.leader()
    plain = KeepInMemory()
    ForwardedRequests(plain).submit_request(forged_request(company))
    text = plain.texts[f"{REQUESTS}5"]
    put = {
        "no signature": text,
        "another key": sign_text("another key, of thirty-two letters or more", f"{REQUESTS}5", text),
        "another request's signature": sign_text(SIGNING_KEY, f"{REQUESTS}6", text),
    }[kind]
    company.texts[f"{REQUESTS}5"] = put
    beside = company.follower(lambda: company.step(leader))
    for _ in range(3):
        company.step(leader)
    assert leader.store.drains() == ()
    assert company.texts[f"{REQUESTS}5"] == put
    assert company.left() == [f"{REQUESTS}5"]
    assert "ceph config-key rm predrain/requests/5" in leader.troubles["cluster keys"]
    assert company.propose(beside).state is S.PROPOSED, "true requests are heard beside it"
    del company.texts[f"{REQUESTS}5"]
    company.step(leader)
    assert leader.troubles == {}


def test_forged_requests_in_numbers_do_not_keep_true_ones_from_being_heard(company: Company) -> None:
    leader = company.leader()
    company.texts.update({f"{REQUESTS}{number:04d}": "{}" for number in range(120)})
    beside = company.follower(lambda: company.step(leader))
    assert company.propose(beside).state is S.PROPOSED


def test_a_signed_request_that_is_put_back_is_not_carried_out_again(company: Company) -> None:
    leader = company.leader()
    drain = company.propose(leader)
    company.approve(leader, drain)
    ForwardedRequests(KeepInMemory(company.texts).signed).submit_request(
        PersonRequest(RequestKind.PAUSE, company.cluster.now, CALLER, drain.id, id="5")
    )
    old = company.texts[f"{REQUESTS}5"]
    company.step(leader)
    assert leader.store.drains()[0].state is S.PAUSED
    company.ask(leader, RequestKind.RESUME, drain.id)
    company.texts[f"{REQUESTS}5"] = old
    company.lock.owner = ""
    second = company.leader("second")
    company.step(leader)
    assert second.store.drains()[0].state is not S.PAUSED
    assert f"{REQUESTS}5" not in company.texts


def test_a_request_that_its_caller_carried_out_itself_is_not_carried_out_when_it_is_put_back(
    company: Company,
) -> None:
    company.leader()
    laid: list[str] = []

    def free() -> None:
        laid.extend(text for name, text in company.texts.items() if name.startswith(REQUESTS))
        company.lock.owner = ""

    beside = company.follower(free)
    drain = company.propose(beside)
    company.ask(beside, RequestKind.CANCEL, drain.id)
    before = len(beside.store.drains())
    (name,) = [line.split(" ")[0] for line in (memory_of(beside).signed.read("heard") or "").splitlines()]
    company.texts[f"{REQUESTS}{name}"] = laid[0]
    company.step(beside)
    assert len(beside.store.drains()) == before


def test_an_answer_without_a_good_signature_is_not_believed_by_who_asked(company: Company) -> None:
    company.leader()

    def forge() -> None:
        (name,) = [name for name in company.texts if name.startswith(REQUESTS)]
        company.texts[name.replace(REQUESTS, ANSWERS)] = '{"at": "2026-01-01T00:00:00Z", "drain": "osd.9-x"}'

    beside = company.follower(forge)
    with pytest.raises(Unverified, match="predrain/answers/"):
        company.propose(beside)


def test_a_request_stands_in_the_audit_of_who_carries_it_out_with_who_asked_and_where(
    company: Company,
) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    with suppress(RefusedElsewhere):
        company.ask(beside, RequestKind.PROPOSE, target="osd.0", caller="another", reason="again")
    lines = [(line.caller, line.decided, line.answered) for line in leader.store.journal(AUDIT)]
    asked = {(caller, decided.split(" {")[0], answered) for caller, decided, answered in lines}
    assert (CALLER, "request propose", f"drain {drain.id}") in asked
    assert any(caller == "another" and "already has drain" in said for caller, _, said in lines)
    assert all("from follower through" in line.seen for line in leader.store.journal(AUDIT))


def make_desk(company: Company) -> DrainControl:
    """Return the controller of a process without a signing key, which only plans."""
    store = SqliteStore(":memory:")
    company.stores.append(store)
    keep = SignedKeys(KeepInMemory(company.texts), None)
    live = LiveClusterParts(
        company.cluster, keep, PlanOnlyLease(LeaseOfOne(company.lock, "desk")), "desk", plans_only=True
    )
    return DrainControl(live, store, MemoryLog(), Policy(), Fleet(store), Timelines())


def test_a_process_without_a_key_says_that_the_cluster_keeps_a_drain_that_it_cannot_verify(
    company: Company,
) -> None:
    leader = company.leader()
    desk = make_desk(company)
    desk.poll_cluster(company.cluster.now)
    assert desk.troubles == {}
    company.propose(leader)
    desk.poll_cluster(company.cluster.now)
    assert "1 drain, signed" in desk.troubles[CLUSTER_KEYS]
    assert "signing_key" in desk.troubles[CLUSTER_KEYS]


def test_a_process_without_a_key_plans_and_is_refused_everything_else(company: Company) -> None:
    company.leader()
    desk = make_desk(company)
    desk.poll_cluster(company.cluster.now)
    assert desk.draft("osd.0", Intent.REPLACE, company.cluster.now).plan is not None
    with pytest.raises(NotLeading, match="--signing-key FILE"):
        company.propose(desk)
    assert company.left() == []

"""Requests that lie in the cluster stand in the audit of the controller that carries them out."""

from __future__ import annotations

from predrain.actions.controller.person_request import RequestKind
from predrain.data.drain import DrainState as S
from predrain.data.store.store_port import AUDIT
from tests.service.test_requests_elsewhere import CALLER, Company, company

__all__ = ["company"]


def test_every_request_from_the_cluster_stands_in_the_audit_of_who_carries_it_out(company: Company) -> None:
    leader = company.leader()
    beside = company.follower(lambda: company.step(leader))
    drain = company.propose(beside)
    assert company.ask(beside, RequestKind.CANCEL, drain.id).state in (S.CANCELLING, S.CANCELLED)
    lines = leader.store.journal(AUDIT)
    assert {line.caller for line in lines} == {CALLER}
    assert all(
        line.seen.startswith("from follower through the cluster's key predrain/requests/") for line in lines
    )
    asked = [(line.decided.split(" {")[0], line.answered.split(":")[0]) for line in lines]
    assert asked[0] == ("request propose", f"drain {drain.id}")
    assert '"reason":"noisy","target":"osd.0"' in lines[0].decided
    assert ("request cancel", f"drain {drain.id}") in asked
    assert leader.store.verify_audit().broken is None

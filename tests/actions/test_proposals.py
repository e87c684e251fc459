"""Which disks are proposed, and which are spoken for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from actions.proposals import proposals
from actions.steps import Propose
from data.drain import Drain, DrainState
from tests.actions.made import NOW, POLICY, a_context, a_drain, bad_outlook, calm_view, device


def proposed(ended: Drain) -> bool:
    view = calm_view()
    outlook = bad_outlook(0)
    context = a_context(view, ended, outlooks={device(0): outlook})
    return any(isinstance(answer, Propose) for answer in proposals(view, POLICY, context))


def cancelled(days: float, by: str) -> Drain:
    drain = a_drain(0, DrainState.CANCELLED, asked_by="predrain", cancelled_by=by)
    return replace(drain, updated_at=NOW - timedelta(days=days))


def test_a_disk_whose_drain_a_person_cancelled_is_left_alone_for_a_week() -> None:
    assert not proposed(cancelled(6, "operator"))
    assert proposed(cancelled(8, "operator"))


def test_a_proposal_that_was_withdrawn_by_itself_does_not_keep_the_disk_from_being_proposed_again() -> None:
    assert proposed(cancelled(1, ""))

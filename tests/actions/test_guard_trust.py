"""The conditions under which the forecast justifies a drain that no person asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from predrain.actions.core.cost_assessment import with_weighed_disks
from predrain.actions.guards import Pass, Refuse
from predrain.data.outlook import Advice, Status
from tests.actions.guarded import automatic, chancy, ruled, unsized, verdict
from tests.actions.made import NOW, POLICY, a_context, bad_outlook, calm_view, device


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (lambda: chancy(0.05), "A drain does not pay yet"),
        (lambda: chancy(0.6, readings=1, span_hours=0.0), "1 reading over 0 min bears out that a drain pays"),
        (lambda: chancy(0.11, readings=2, span_hours=1.0), "2 of one host over"),
        (lambda: unsized(), "How much the disk holds is not known"),
    ],
    ids=["it does not pay", "one reading", "not for long enough", "unknown bytes"],
)
def test_a_drain_whose_cost_or_evidence_does_not_carry_it_is_refused(
    told: Callable[[], tuple], says: str
) -> None:  # type: ignore[type-arg]
    answer = verdict("trust", *told())
    assert isinstance(answer, Refuse)
    assert says in answer.sentence


def test_hard_evidence_needs_two_readings_in_an_hour_only() -> None:
    arguments = ruled(automatic(), readings=2, span_hours=1.0, hard=True)
    assert isinstance(verdict("trust", *arguments), Pass)
    assert isinstance(verdict("trust", *ruled(automatic(), readings=2, span_hours=1.0)), Refuse)


def test_the_stronger_the_evidence_the_less_it_must_last() -> None:
    for within_30d, hours in ((0.11, 24.0), (0.3, 8.0), (0.95, 1.0)):
        passed = chancy(within_30d, readings=2, span_hours=hours)
        assert isinstance(verdict("trust", *passed), Pass)
        refused = chancy(within_30d, readings=2, span_hours=hours / 4)
        assert isinstance(verdict("trust", *refused), Refuse)


def test_a_warning_whose_drain_pays_is_trusted_like_any_other() -> None:
    passed = verdict("trust", *chancy(0.2, status=Status.WARNING))
    assert isinstance(passed, Pass)
    assert re.fullmatch(
        r"Moving \d+ GiB now costs \d+; waiting costs \d+\. The outlook is confirmed, and the bundle is proven\.",
        passed.sentence,
    )


def test_disks_whose_drain_came_to_pay_count_as_newly_bad_for_mass_suspicion_and_for_a_new_bundle() -> None:
    outlooks = {device(osd): bad_outlook(osd, status=Status.WARNING) for osd in range(5)}
    view, policy = calm_view(), replace(POLICY, new_bundle_quiet=timedelta(0))
    context = with_weighed_disks(view, policy, a_context(view, outlooks=outlooks))
    assert isinstance(verdict("mass-suspicion", view, automatic(), policy, context), Refuse)
    new = replace(context, bundle_since=NOW - timedelta(days=3))
    answer = verdict("trust", view, automatic(), policy, new)
    assert isinstance(answer, Refuse)
    assert "calls 5 of 12 disks newly bad" in answer.sentence


def lifted(status: Status, within_30d: float, **changes: object) -> tuple:  # type: ignore[type-arg]
    """A rule's outlook that keeps the milder forecast's chances."""
    return chancy(within_30d, status=status, source="rule:self-test", rule_score=0.9, **changes)


def test_a_disk_that_a_rule_calls_bad_is_drained_though_its_chance_alone_would_not_pay() -> None:
    assert isinstance(verdict("trust", *lifted(Status.BAD, 0.01)), Pass)
    refused = verdict("trust", *lifted(Status.BAD, 0.01, readings=1, span_hours=0.0))
    assert isinstance(refused, Refuse)
    assert "bear it out" in refused.sentence


def test_a_warning_by_a_rule_is_drained_only_where_its_chance_makes_that_pay() -> None:
    assert isinstance(verdict("trust", *lifted(Status.WARNING, 0.01)), Refuse)
    assert isinstance(verdict("trust", *lifted(Status.WARNING, 0.3)), Pass)


def test_a_disk_whose_cable_is_to_be_checked_is_not_drained_by_itself() -> None:
    refused = verdict("trust", *chancy(0.6, status=Status.WARNING, advice=Advice.CHECK_CABLE))
    assert isinstance(refused, Refuse)
    assert "cable or backplane" in refused.sentence

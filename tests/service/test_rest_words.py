"""REST's words for people: how sure an alert is, how long a disk lives, which OSD is slow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predrain.data.ids import DeviceId, OsdId
from predrain.data.outlook import Advice, Life, Outlook, Reason, Status
from predrain.service.fleet.probability_text import (
    describe_failure_chance,
    format_bounded_probability,
    format_life_expectancy,
)
from predrain.service.rest.osd_routes import build_osd_body, made_of
from predrain.service.rest.shared_bodies import outlook_body
from tests.service.conftest import NOON
from tests.service.test_drains import seated
from tests.service.test_tally import snapshot

SICK = Outlook(
    DeviceId("ST4000DM000_A"), NOON, Status.BAD, "model:default", (Reason("pending-rose", "It rose."),), "",
    p_fail_30d=0.68, life=Life(9, 40, 800),
)  # fmt: skip


def test_an_alert_says_its_horizon_and_the_span_of_a_life() -> None:
    assert describe_failure_chance(SICK) == "68 % within 30 days, likely 9 days to over a year"


def test_a_rule_shows_no_probability() -> None:
    assert describe_failure_chance(replace(SICK, source="rule:failing", p_fail_30d=None, life=None)) == (
        "By rule (failing), no probability."
    )


def test_a_rules_score_is_called_evidence_and_is_no_chance() -> None:
    ruled = replace(SICK, source="rule:spare", p_fail_30d=None, life=None, rule_score=0.9)
    assert describe_failure_chance(ruled) == "By rule (spare), evidence 0.90 of 1, no probability."
    body = outlook_body(ruled)
    assert (body.rule_score, body.p_fail_30d) == (0.9, None)


def test_the_clearing_condition_and_the_advice_of_a_flag_are_fields_of_their_own() -> None:
    told = replace(
        SICK,
        advice=Advice.SWAP_WORN,
        clears="Does not clear: wear does not go back.",
        endurance=Life(40, 120, None),
    )
    body = outlook_body(told).model_dump(mode="json")
    assert (body["advice"], body["clear_condition"]) == (
        "swap-worn",
        "Does not clear: wear does not go back.",
    )
    assert body["endurance"] == {"p10": 40, "p50": 120, "p90": None}


def test_an_outlook_of_an_older_predrain_is_answered_without_what_it_did_not_know() -> None:
    body = outlook_body(SICK)
    assert (body.advice, body.clear_condition, body.rule_score, body.endurance) == (None, "", None, None)


@pytest.mark.parametrize(
    ("life", "words"),
    [
        (Life(2, 30, 110), "2 to 110 days"),
        (Life(0.6, 1, 1.4), "1 day"),
        (Life(9.2, 100, 365.0), "9 to 365 days"),
        (Life(9.2, 100, None), "9 days to over a year"),
        (Life(1, 100, 366), "1 day to over a year"),
        (Life(400, 900, None), "over a year"),
        (Life(None, None, None), "over a year"),
    ],
)
def test_a_life_is_told_in_whole_days_up_to_a_year(life: Life, words: str) -> None:
    assert format_life_expectancy(life) == words


@pytest.mark.parametrize(
    ("p", "words"),
    [(0.0004, "under 0.1 %"), (0.004, "0.4 %"), (0.0096, "1 %"), (0.31, "31 %"), (0.97, "over 95 %")],
)
def test_a_chance_is_told_in_whole_percents_and_bounded(p: float, words: str) -> None:
    assert format_bounded_probability(p) == words


@pytest.mark.parametrize(
    ("source", "slow"), [("rule:slow", True), ("rule:slow-osd", True), ("model:slow", False), ("rule:failing", False)]
)  # fmt: skip
def test_an_osd_is_slow_only_by_a_rule_for_slow_disks(source: str, slow: bool) -> None:
    view = seated().view()
    seen = snapshot(replace(SICK, source=source), view=view)
    assert build_osd_body(*made_of(seen, view, OsdId(0), None)).slow is slow
    assert build_osd_body(*made_of(seen, view, OsdId(1), None)).slow is False

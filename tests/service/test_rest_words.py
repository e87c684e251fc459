"""REST's words for people: how sure an alert is, how long a disk lives, which OSD is slow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from data.ids import DeviceId
from data.outlook import Life, Outlook, Reason, Status
from service.rest.osds import _page
from service.rest.outlooks import percent, span, sure
from tests.service.conftest import NOON
from tests.service.test_drains import seated
from tests.service.test_tally import sight

SICK = Outlook(
    DeviceId("ST4000DM000_A"), NOON, Status.BAD, "model:default", (Reason("pending-rose", "It rose."),), "",
    p_fail_30d=0.68, life=Life(9, 40, 800),
)  # fmt: skip


def test_an_alert_says_its_horizon_and_the_span_of_a_life() -> None:
    assert sure(SICK) == "68 % within 30 days, likely 9 days to over a year"


def test_a_rule_shows_no_probability() -> None:
    assert sure(replace(SICK, source="rule:failing", p_fail_30d=None, life=None)) == (
        "By rule (failing), no probability."
    )


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
    assert span(life) == words


@pytest.mark.parametrize(
    ("p", "words"),
    [(0.0004, "under 0.1 %"), (0.004, "0.4 %"), (0.0096, "1 %"), (0.31, "31 %"), (0.97, "over 95 %")],
)
def test_a_chance_is_told_in_whole_percents_and_bounded(p: float, words: str) -> None:
    assert percent(p) == words


@pytest.mark.parametrize(
    ("source", "slow"), [("rule:slow", True), ("rule:slow-osd", True), ("model:slow", False), ("rule:failing", False)]
)  # fmt: skip
def test_an_osd_is_slow_only_by_a_rule_for_slow_disks(source: str, slow: bool) -> None:
    rows = {row.osd: row for row in _page(sight(replace(SICK, source=source), view=seated().view())).items}
    assert rows[0].slow is slow
    assert rows[1].slow is False

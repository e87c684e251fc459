"""The row of an OSD names the drain that stands in the way of another one, by the rule that judges a proposal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.conftest import Site
from tests.service.test_drains import World, ask_drain, proposed, site, world  # noqa: F401  (fixtures of a service over a cluster)


def row_of(site: Site, osd: int = 0) -> dict[str, Any]:  # noqa: F811
    return next(row for row in site.client.get("/api/v1/osds").json()["items"] if row["osd"] == osd)


def ask_again(site: Site) -> int:  # noqa: F811
    answer = site.client.post("/api/v1/drains", json={"target": "osd.0"}, headers=site.acting)
    return int(answer.status_code)


def test_a_drain_stands_in_the_way_of_another_one_until_it_was_rejected(world: World, site: Site) -> None:  # noqa: F811
    assert row_of(site)["blocking_drain"] is None
    drain = proposed(site)
    assert row_of(site)["blocking_drain"] == drain["id"]
    assert row_of(site, 1)["blocking_drain"] is None
    assert ask_again(site) == 409
    ask_drain(site, drain, "reject")
    assert row_of(site)["blocking_drain"] is None
    assert ask_again(site) == 201


@pytest.mark.parametrize(("verb", "blocks"), [("approve", True), ("cancel", False)])
def test_the_row_and_the_answer_to_a_proposal_agree(
    world: World,  # noqa: F811
    site: Site,  # noqa: F811
    verb: str,
    blocks: bool,
) -> None:
    drain = proposed(site)
    ask_drain(site, drain, "approve")
    if verb == "cancel":
        world.tick(3)
        ask_drain(site, drain, "cancel")
        world.tick(400)
    assert (row_of(site)["blocking_drain"] is not None) is blocks
    assert ask_again(site) == (409 if blocks else 201)


def test_a_quarantine_does_not_stand_in_the_way_of_a_drain(world: World, site: Site) -> None:  # noqa: F811
    asked = {"target": "osd.0", "intent": "quarantine", "reason": "slow"}
    assert site.client.post("/api/v1/drains", json=asked, headers=site.acting).status_code == 201
    assert row_of(site)["blocking_drain"] is None
    assert ask_again(site) == 201

"""The client for programs takes the ways out of a drain that cannot end, and insists past a guard."""

from __future__ import annotations

import pytest

from predrain import Client, ServiceProblem
from predrain.service.client.contract import WholeDrainBody
from tests.service.conftest import Site
from tests.service.test_drain_ways import (  # noqa: F401  (applications over a cluster)
    World,
    actor,
    closed,
    held_by_window,
    site,
    stuck_cancel,
    world,
)

pytestmark = pytest.mark.slow


def client_of(site: Site, token: str | None = None) -> Client:  # noqa: F811
    return Client(str(site.client.base_url), token or site.token)


@pytest.fixture
def client(site: Site) -> Client:  # noqa: F811
    """May do everything."""
    return client_of(site)


@pytest.fixture
def stuck(world: World, site: Site, client: Client) -> WholeDrainBody:  # noqa: F811
    """A cancel whose data has no room to go back."""
    return client.drain(stuck_cancel(world, site)["id"])


def test_a_stuck_cancel_shows_a_program_its_ways_out(client: Client, stuck: WholeDrainBody) -> None:
    ways = ["make_room", "stay_drained", "give_up_cancel"]
    assert [one.way for one in stuck.ways_out] == ways
    assert [one.way for one in next(client.drains()).ways_out] == ways
    assert "on osd.0" in stuck.ways_out[0].sentence


def test_a_program_takes_a_cancel_back(client: Client, stuck: WholeDrainBody) -> None:
    assert client.stay_drained(stuck).state == "preparing"
    assert client.drain(stuck.id).ways_out == []


def test_a_program_gives_a_cancel_up(client: Client, stuck: WholeDrainBody, world: World) -> None:  # noqa: F811
    assert client.give_up_cancel(stuck).state == "cancelling"
    world.tick(5)
    ended = client.drain(stuck.id)
    assert ended.state == "cancelled"
    assert "given up by" in ended.end_reason


def test_a_program_that_may_only_act_does_not_give_a_cancel_up(stuck: WholeDrainBody, site: Site) -> None:  # noqa: F811
    token = actor(site)["Authorization"].removeprefix("Bearer ")
    with pytest.raises(ServiceProblem) as refused:
        client_of(site, token).give_up_cancel(stuck)
    assert refused.value.status == 403


def test_a_way_out_that_is_not_open_is_a_problem_with_the_services_sentence(
    client: Client, stuck: WholeDrainBody
) -> None:
    with pytest.raises(ServiceProblem, match="cannot take 'choose other targets'") as refused:
        client.choose_other_targets(stuck)
    assert refused.value.status == 409


def test_a_program_insists_past_a_guard_that_refuses_and_may_be_overruled(closed: tuple[World, Site]) -> None:  # noqa: F811
    outside, service = closed
    client = client_of(service)
    drain = client.drain(held_by_window(outside, service)["id"])
    refusing = [one.code for one in drain.guards if not one.ok and one.insistable]
    assert refusing == ["window"]
    with pytest.raises(ServiceProblem, match=r"type osd\.0 to confirm"):
        client.insist(drain, refusing, "it dies tonight", confirm="osd.1")
    said = client.insist(drain, refusing, "it dies tonight", confirm="osd.0", minutes=30).insistence
    assert said is not None
    assert (said.guards, said.reason) == (["window"], "it dies tonight")
    assert [one.overruled for one in client.drain(drain.id).guards if one.code == "window"] == [True]

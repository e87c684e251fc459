"""Paths that name the cluster: an OSD of another cluster is never answered in place of the own one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predrain import Client, ServiceProblem
from predrain.actions.simulator.cluster_spec import SIMULATED_CLUSTER
from predrain.data.store.store_port import AUDIT
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.rest.request_head import BURST_SECONDS
from tests.service.conftest import Place, Serve, Site
from tests.service.person_requests import propose_drain
from tests.service.test_drains import World, made, site, world

__all__ = ["site", "world"]
HERE = f"/api/v1/clusters/{SIMULATED_CLUSTER}"
ELSEWHERE = "/api/v1/clusters/11111111-1111-4111-8111-111111111111"


def test_osds_and_slots_are_answered_with_and_without_the_own_fsid(world: World, site: Site) -> None:
    world.tick()
    for path in ("/osds", "/slots/0"):
        short, whole = site.client.get(f"/api/v1{path}"), site.client.get(f"{HERE}{path}")
        assert short.status_code == whole.status_code == 200
        assert short.json() == whole.json()


def test_an_fsid_in_upper_case_is_the_same_cluster(world: World, site: Site) -> None:
    world.tick()
    assert site.client.get(f"/api/v1/clusters/{SIMULATED_CLUSTER.upper()}/slots/0").status_code == 200


def test_the_fsid_of_another_cluster_is_a_404_with_a_sentence(world: World, site: Site) -> None:
    world.tick()
    for path in ("/osds", "/slots/0"):
        told = site.client.get(f"{ELSEWHERE}{path}")
        assert told.status_code == 404
        assert told.json()["detail"].endswith(f"this service is about cluster {SIMULATED_CLUSTER}.")


def test_a_caller_who_may_not_read_does_not_learn_which_cluster_is_here(world: World, site: Site) -> None:
    world.tick()
    for path in (HERE, ELSEWHERE):
        assert site.client.get(f"{path}/osds", headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_the_body_of_an_osd_and_of_its_slot_carry_the_cluster(world: World, site: Site) -> None:
    world.tick()
    assert {one["cluster"] for one in site.client.get("/api/v1/osds").json()["items"]} == {SIMULATED_CLUSTER}
    assert site.client.get("/api/v1/slots/0").json()["cluster"] == SIMULATED_CLUSTER


def test_a_drain_is_proposed_listed_approved_and_cancelled_below_the_fsid(world: World, site: Site) -> None:
    answer = site.client.post(f"{HERE}/drains", json={"target": "osd.0"}, headers=site.acting)
    assert answer.status_code == 201
    drain = answer.json()
    assert (drain["cluster"], drain["state"]) == (SIMULATED_CLUSTER, "proposed")
    assert [one["id"] for one in site.client.get(f"{HERE}/drains").json()["items"]] == [drain["id"]]
    whole = f"{HERE}/drains/{drain['id']}"
    for path in (whole, f"{whole}/plan", f"{whole}/journal"):
        assert site.client.get(path).json() == site.client.get(path.replace(HERE, "/api/v1")).json()
    approved = site.client.post(f"{whole}/approve", headers={**site.acting, "If-Match": drain["etag"]})
    assert (approved.status_code, approved.json()["state"]) == (200, "approved")
    cancelled = site.client.post(f"{whole}/cancel", headers=site.acting)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelling")
    lines = site.client.get(f"{whole}/journal").json()["items"]
    assert [line["decision"] for line in lines] == ["propose", "approve", "cancel"]
    assert {line["cluster"] for line in lines} == {SIMULATED_CLUSTER}


def test_a_request_about_a_drain_of_another_cluster_is_a_404_and_changes_nothing(
    world: World, site: Site
) -> None:
    drain = propose_drain(world.application, "osd.0", "anna", "noisy")
    for method, path in (
        ("GET", "drains"), ("GET", f"drains/{drain.id}"), ("GET", "plan?target=osd.1"), ("POST", "drains"),
        ("POST", f"drains/{drain.id}/cancel"), ("POST", f"drains/{drain.id}/stay_drained"),
    ):  # fmt: skip
        told = site.client.request(
            method,
            f"{ELSEWHERE}/{path}",
            headers=site.acting,
            json={"target": "osd.1"} if path == "drains" else None,
        )
        assert told.status_code == 404, path
        assert told.json()["detail"].endswith(f"this service is about cluster {SIMULATED_CLUSTER}.")
    assert world.application.store.drains() == (drain,)


def test_a_request_below_the_fsid_stands_in_the_audit(world: World, site: Site) -> None:
    site.client.post(f"{HERE}/drains", json={"target": "osd.0"}, headers=site.acting)
    assert [line.decided for line in world.application.store.journal(AUDIT)] == [
        f'POST {HERE}/drains {{"target":"osd.0"}}'
    ]


def test_a_token_that_may_only_act_may_act_below_the_fsid(world: World, site: Site) -> None:
    book = CredentialBook(world.application.store, world.application.clock)
    token = book.issue_credential(CredentialKind.TOKEN, "anna", [Scope.ACT], "bert")
    mine = {"Authorization": f"Bearer {token}"}
    assert site.client.post(f"{HERE}/drains", json={"target": "osd.0"}, headers=mine).status_code == 201
    assert site.client.get(f"{HERE}/drains", headers=mine).status_code == 403


def test_a_request_below_the_fsid_counts_once_for_the_rate_of_its_sender(place: Place, serve: Serve) -> None:
    access = place.settings.access.model_copy(update={"requests_per_second": 1.0})
    slow = replace(place, settings=place.settings.model_copy(update={"access": access}))
    for slow_world in made(slow):
        slow_world.tick()
        site = serve(slow_world.application)
        answers = [
            site.client.post(f"{HERE}/drains", json={"target": "no.0"}, headers=site.acting).status_code
            for _ in range(int(BURST_SECONDS))
        ]
        assert 429 not in answers


def test_a_client_of_one_cluster_gets_no_drains_of_another(world: World, site: Site) -> None:
    address = str(site.client.base_url)
    here = Client(address, site.token, cluster=SIMULATED_CLUSTER)
    drain = here.approve(here.propose("osd.0"))
    assert here.cancel(drain).cluster == SIMULATED_CLUSTER
    assert [one.id for one in here.drains()] == [here.drain(drain.id).id]
    with pytest.raises(ServiceProblem, match=f"this service is about cluster {SIMULATED_CLUSTER}"):
        list(Client(address, site.token, cluster=ELSEWHERE.rpartition("/")[2]).drains())

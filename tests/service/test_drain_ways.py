"""Ways out of a drain that cannot end, and insisting past a guard: over REST, with the real controller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Policy
from predrain.data.ids import OsdId
from predrain.data.store.store_port import AUDIT
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.cli import main
from tests.service.conftest import Place, Serve, Site, shut
from tests.service.test_drains import ClusterClock, Seated, World, ask_drain, proposed, seated

pytestmark = pytest.mark.slow


CLOSED = (2, 3)
"""Hours that the noon of the simulated cluster is outside of."""


class Filled(Seated):
    """The simulated cluster, whose osd.0 is full of something else when a test says so."""

    full = False

    def view(self) -> ClusterView:
        view = super().view()
        if not self.full:
            return view
        suspect = OsdId(0)
        return replace(
            view,
            osds={
                **view.osds,
                suspect: replace(view.osds[suspect], used_bytes=view.osds[suspect].size_bytes),
            },
        )


def made(place: Place, policy: Policy | None = None) -> Iterator[World]:
    cluster = seated()
    reach = Filled(cluster)
    there = replace(place, clock=ClusterClock(cluster), policy=policy or place.policy)  # type: ignore[arg-type]
    application = there.application(cluster=reach)
    application.start()
    yield World(application, cluster, reach)
    shut(application)


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    yield from made(place)


@pytest.fixture
def site(world: World, serve: Serve) -> Site:
    world.tick(5)
    return serve(world.application)


@pytest.fixture
def closed(place: Place, serve: Serve) -> Iterator[tuple[World, Site]]:
    """A service outside its hours."""
    for world in made(place, replace(place.policy, window=CLOSED)):
        world.tick(5)
        yield world, serve(world.application)


def actor(site: Site) -> dict[str, str]:
    """Return the headers of a caller that has the scopes read and act, and no other."""
    token = CredentialBook(site.application.store, site.application.clock).issue_credential(
        CredentialKind.TOKEN, "ada", [Scope.READ, Scope.ACT], "test"
    )
    return {"Authorization": f"Bearer {token}"}


def read(site: Site, drain: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = site.client.get(f"/api/v1/drains/{drain['id']}").json()
    return found


def stuck_cancel(world: World, site: Site) -> dict[str, Any]:
    """A cancel whose data cannot go back."""
    drain = proposed(site)
    ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    while not read(site, drain)["progress"]["moved_pgs"]:
        world.tick()
    world.reach.full = True  # type: ignore[attr-defined]
    ask_drain(site, drain, "cancel")
    for _ in range(100):
        world.tick()
        if read(site, drain)["ways_out"]:
            return read(site, drain)
    raise AssertionError(read(site, drain))


def insist(
    site: Site, drain: dict[str, Any], headers: dict[str, str] | None = None, **changed: Any
) -> httpx2.Response:
    body = {"guards": ["window"], "reason": "it dies tonight", "minutes": 30, "confirm": "osd.0", **changed}
    return site.client.post(f"/api/v1/drains/{drain['id']}/insist", json=body, headers=headers or site.acting)


def test_a_stuck_cancel_shows_its_ways_out_with_code_and_sentence(world: World, site: Site) -> None:
    drain = stuck_cancel(world, site)
    assert [one["way"] for one in drain["ways_out"]] == ["make_room", "stay_drained", "give_up_cancel"]
    assert "on osd.0" in drain["ways_out"][0]["sentence"]
    (row,) = site.client.get("/api/v1/drains").json()["items"]
    assert row["ways_out"] == drain["ways_out"]


def test_a_caller_with_scope_act_may_choose_stay_drained_and_the_disk_is_emptied(
    world: World, site: Site
) -> None:
    drain = stuck_cancel(world, site)
    answer = site.client.post(f"/api/v1/drains/{drain['id']}/stay_drained", headers=actor(site))
    assert (answer.status_code, answer.json()["state"]) == (200, "preparing")
    for _ in range(500):
        world.tick()
        if read(site, drain)["state"] == "verified":
            break
    assert read(site, drain)["state"] == "verified"
    assert read(site, drain)["ways_out"] == []


def test_only_an_admin_gives_up_a_cancel_and_the_audit_lists_what_is_left(world: World, site: Site) -> None:
    drain = stuck_cancel(world, site)
    path = f"/api/v1/drains/{drain['id']}/give_up_cancel"
    refused = site.client.post(path, headers=actor(site))
    assert refused.status_code == 403
    assert read(site, drain)["state"] == "cancelling"
    assert site.client.post(path, headers=site.acting).status_code == 200
    world.tick(5)
    ended = read(site, drain)
    assert ended["state"] == "cancelled"
    left = [f"upmap/{pg}" for pg in world.cluster.view().upmap_items]
    assert left
    told = [
        line.decided
        for line in world.application.store.journal(AUDIT)
        if "give up the cancel" in line.decided
    ]
    assert all(key in told[-1] and key in ended["end_reason"] for key in left)


def test_a_way_that_is_not_open_is_refused_with_a_sentence(world: World, site: Site) -> None:
    drain = proposed(site)
    ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    world.tick(5)
    for way in ("stay_drained", "choose_other_targets", "give_up_cancel"):
        answer = site.client.post(f"/api/v1/drains/{drain['id']}/{way}", headers=site.acting)
        assert answer.status_code == 409, way
        assert drain["id"] in answer.json()["detail"]
    assert site.client.post("/api/v1/drains/none/stay_drained", headers=site.acting).status_code == 404


def held_by_window(world: World, site: Site) -> dict[str, Any]:
    drain = proposed(site)
    ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    world.tick(3)
    return read(site, drain)


def test_an_admin_insists_past_the_window_and_the_drain_begins_the_step_that_was_meant(
    closed: tuple[World, Site],
) -> None:
    world, site = closed
    drain = held_by_window(world, site)
    assert drain["state"] == "approved"
    shown = {one["code"]: one for one in drain["guards"]}
    assert (shown["window"]["ok"], shown["window"]["insistable"]) == (False, True)
    assert shown["window"]["transient"]  # the hours begin by themselves
    answer = insist(site, drain)
    assert answer.status_code == 200, answer.text
    said = answer.json()["insistence"]
    assert (said["guards"], said["reason"]) == (["window"], "it dies tonight")
    assert {one["code"]: one for one in read(site, drain)["guards"]}["window"]["overruled"]
    world.tick(2)
    began = read(site, drain)
    assert (began["state"], began["insistence"]) == ("preparing", None)
    assert "Data moves only from" in began["held_by"][0]
    assert world.reach.commands == []
    assert insist(site, drain).status_code == 200
    world.tick(10)
    moving = read(site, drain)
    assert moving["state"] == "draining"
    assert moving["insistence"] is not None
    assert world.reach.commands
    world.cluster.advance(1800)
    world.tick(2)
    assert read(site, drain)["state"] == "holding"
    assert read(site, drain)["insistence"] is None
    (first, second) = [
        line for line in world.application.store.journal(AUDIT) if line.decided.startswith("insist")
    ]
    assert "past window" in first.decided
    assert "it dies tonight" in second.decided


def test_a_caller_with_scope_act_alone_may_not_insist(closed: tuple[World, Site]) -> None:
    world, site = closed
    drain = held_by_window(world, site)
    assert insist(site, drain, actor(site)).status_code == 403
    assert read(site, drain)["insistence"] is None


@pytest.mark.parametrize(
    ("changed", "status", "says"),
    [
        ({"minutes": 61}, 422, "minutes"),
        ({"minutes": 0}, 422, "minutes"),
        ({"reason": ""}, 422, "reason"),
        ({"reason": " "}, 422, "reason"),
        ({"guards": []}, 422, "guards"),
        ({"confirm": "osd.1"}, 409, "type osd.0 to confirm; 'osd.1' is not the OSD of this drain"),
        ({"guards": ["redundancy"]}, 409, "nobody may insist past 'redundancy'"),
        ({"guards": ["window", "halt"]}, 409, "nobody may insist past 'halt'"),
        ({"guards": ["no-such"]}, 409, "nobody may insist past 'no-such'"),
        ({"guards": ["upgrade"]}, 409, "upgrade does not refuse now"),
    ],
)
def test_an_insistence_that_is_not_deliberate_or_not_allowed_is_refused_with_its_cure(
    closed: tuple[World, Site], changed: dict[str, Any], status: int, says: str
) -> None:
    world, site = closed
    drain = held_by_window(world, site)
    answer = insist(site, drain, **changed)
    assert answer.status_code == status, answer.text
    assert says in answer.json()["detail"]
    assert read(site, drain)["insistence"] is None


Output = pytest.CaptureFixture[str]


def test_the_command_line_lists_the_ways_out_and_takes_one(
    world: World, site: Site, place: Place, capsys: Output
) -> None:
    drain = stuck_cancel(world, site)
    place.state.url.write_text(str(site.client.base_url))
    here = ["--state", str(place.state.path)]
    assert main(["drain", "way-out", "osd.0", *here]) == 0
    told = capsys.readouterr().out
    assert "has no room for it any more" in told
    assert f"predrain drain way-out {drain['id']} give-up-cancel" in told
    assert main(["drain", "way-out", "osd.0", "choose-other-targets", *here]) == 1
    assert "cannot take 'choose other targets'" in capsys.readouterr().err
    assert main(["drain", "way-out", "osd.0", "stay-drained", *here]) == 0
    assert capsys.readouterr().out == f"{drain['id']}: preparing\n"
    assert main(["drain", "explain", "osd.0", *here]) == 0
    assert "stay drained (" in capsys.readouterr().out


def test_the_command_line_insists_and_explains_who_does(
    closed: tuple[World, Site], place: Place, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    world, site = closed
    drain = held_by_window(world, site)
    place.state.url.write_text(str(site.client.base_url))
    here = ["--state", str(place.state.path)]
    said = ["drain", "insist", "osd.0", "--guard", "window", "--reason", "it dies", *here]
    assert main([*said, "--confirm", "osd.1"]) == 1
    assert "type osd.0 to confirm" in capsys.readouterr().err
    assert main(["drain", "explain", "osd.0", *here]) == 0
    assert "refuses, a person may insist" in capsys.readouterr().out
    assert main([*said, "--confirm", "osd.0", "--minutes", "20"]) == 0
    assert capsys.readouterr().out == f"{drain['id']}: approved\n"
    assert main(["drain", "explain", "osd.0", *here]) == 0
    told = capsys.readouterr().out
    assert "overruled" in told
    assert "insists past window until" in told
    assert told.count("it dies") >= 2

"""A drain from a person's request to an empty disk: over REST, on a simulated cluster, with the real controller."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable, Command, CommandResult, Reweight
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.drain_policy import Mode
from predrain.actions.guards import AUTOMATIC
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_tiny_cluster
from predrain.data.ids import DeviceId
from predrain.data.outcome import DriveFate
from predrain.service.app.application import Application
from predrain.service.cli import main
from tests.service.conftest import NOON, Place, Serve, Site, shut, week_of
from tests.service.person_requests import approve_drain, propose_drain
from tests.service.test_worker import work


@dataclass
class ClusterClock:
    """The cluster's own time, so that house and cluster agree."""

    cluster: SimulatedCluster

    def now(self) -> datetime:
        return self.cluster.now

    def sleep(self, seconds: float) -> None:
        self.cluster.advance(seconds)


class Seated:
    """The simulated cluster, with a drive of ours under osd.0, and out of reach when a test says so."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster, self.reachable = cluster, True
        self.commands: list[Command] = []

    def view(self) -> ClusterView:
        if not self.reachable:
            raise ClusterUnreachable("no answer in 10 s")
        return self.cluster.view()

    def apply(self, command: Command) -> CommandResult:
        self.commands.append(command)
        return self.cluster.apply(command)


@dataclass
class World:
    """An application over a tiny cluster."""

    application: Application
    cluster: SimulatedCluster
    reach: Seated

    def tick(self, times: int = 1, seconds: float = 10.0) -> None:
        for _ in range(times):
            self.cluster.advance(seconds)
            self.application.step_controller()


@pytest.fixture
def world(place: Place) -> Iterator[World]:
    yield from made(place)


def made(place: Place) -> Iterator[World]:
    cluster = seated()
    reach = Seated(cluster)
    on_its_time = replace(place, clock=ClusterClock(cluster))  # type: ignore[arg-type]
    application = on_its_time.application(cluster=reach)
    application.start()
    world = World(application, cluster, reach)
    yield world
    shut(application)


def seated() -> SimulatedCluster:
    """The tiny world, with the drive that readings speak of under osd.0."""
    spec = build_tiny_cluster(1)
    osds = (replace(spec.osds[0], device=DeviceId("ST4000DM000_A"), model="ST4000DM000"), *spec.osds[1:])
    return SimulatedCluster(replace(spec, osds=osds), 1, NOON)


@pytest.fixture
def site(world: World, serve: Serve) -> Site:
    world.tick(5)
    return serve(world.application)


def proposed(site: Site, target: str = "osd.0") -> dict:
    answer = site.client.post(
        "/api/v1/drains", json={"target": target, "reason": "noisy"}, headers=site.acting
    )
    assert answer.status_code == 201, answer.text
    return answer.json()


def ask_drain(site: Site, drain: dict, what: str, **headers: str) -> object:
    return site.client.post(f"/api/v1/drains/{drain['id']}/{what}", headers={**site.acting, **headers})


def test_osds_are_shown_with_their_hosts_and_what_is_unknown(site: Site) -> None:
    rows = site.client.get("/api/v1/osds").json()["items"]
    assert len(rows) == 12
    assert [row["slot"] for row in rows[:4]] == [0, 1, 2, 0]
    assert {row["status"] for row in rows} == {"unknown"}
    assert rows[0]["in"] is True
    assert rows[0]["p_fail_30d"] is None


def test_an_osd_shows_the_outlook_of_its_disk_and_how_it_was_a_week_ago(world: World, site: Site) -> None:
    world.application.ingest(week_of("A", world.application.clock.now(), pending=400))
    work(world.application)
    row = site.client.get("/api/v1/osds").json()["items"][0]
    assert row["status"] == "bad"
    assert row["reasons"]
    assert row["p_fail_30d_week_ago"] is not None
    assert row["p_fail_30d_week_ago"] < row["p_fail_30d"]
    (alert, *_) = site.client.get("/api/v1/alerts").json()["items"]
    assert alert["osd"] == 0


@pytest.mark.slow
def test_a_request_becomes_an_empty_disk(world: World, site: Site) -> None:
    drain = proposed(site)
    assert drain["state"] == "proposed"
    assert drain["plan"]["bytes"] > 0
    assert ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]}).status_code == 200
    began, left = world.cluster.now, {}
    for _ in range(2000):
        world.tick()
        now = site.client.get(f"/api/v1/drains/{drain['id']}").json()
        left[now["state"]] = now["remaining_hours"]
        if now["state"] == "verified":
            break
    assert now["state"] == "verified"
    assert left["draining"] > 0
    assert left["verified"] is None
    assert now["duration_hours"] == pytest.approx(
        (world.cluster.now - began).total_seconds() / 3600, abs=0.02
    )
    assert now["progress"]["moved_pgs"] == now["progress"]["planned_pgs"] > 0
    assert world.cluster.truth().used_bytes[0] == 0
    line = now["timeline"]
    assert len(line["t"]) == len(line["bytes_left"]) == len(line["latency_ratio"])
    assert line["bytes_left"][0] == drain["plan"]["bytes"]
    assert line["bytes_left"][-1] == 0
    journal = site.client.get(f"/api/v1/drains/{drain['id']}/journal").json()["items"]
    assert {entry["caller"] for entry in journal} == {"controller", "token-file"}
    row = site.client.get("/api/v1/osds").json()["items"][0]
    assert (row["drain"]["state"], row["drain"]["intent"]) == ("verified", "replace")


def test_an_approval_must_say_which_plan_it_means(site: Site) -> None:
    drain = proposed(site)
    assert ask_drain(site, drain, "approve").status_code == 428


def test_an_approval_of_a_plan_that_has_moved_starts_nothing_and_shows_the_new_one(
    world: World, site: Site
) -> None:
    drain = proposed(site)
    stored = world.application.store.drain(drain["id"])
    assert stored is not None
    assert stored.plan is not None
    fewer = replace(stored.plan, moves=stored.plan.moves[: len(stored.plan.moves) // 2])
    world.application.store.save_drain(replace(stored, plan=fewer, revision=stored.revision + 1))
    answer = ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    assert answer.status_code == 412
    assert "bytes to move" in answer.json()["detail"]
    assert answer.json()["drain"]["plan"]["bytes"] == fewer.bytes
    assert site.client.get(f"/api/v1/drains/{drain['id']}").json()["state"] == "proposed"


def test_a_tag_of_somebody_else_approves_nothing(site: Site) -> None:
    drain = proposed(site)
    assert ask_drain(site, drain, "approve", **{"If-Match": '"other"'}).status_code == 412


def test_a_second_drain_of_the_same_osd_is_refused(site: Site) -> None:
    proposed(site)
    answer = site.client.post("/api/v1/drains", json={"target": "ST4000DM000_A"}, headers=site.acting)
    assert answer.status_code == 409
    assert "already has drain" in answer.json()["detail"]


def test_a_target_that_nobody_knows_is_refused(site: Site) -> None:
    for path in ("/api/v1/plan?target=osd.999", "/api/v1/plan?target=osd.²", "/api/v1/plan?target=NOBODY"):
        assert site.client.get(path).status_code == 422


def test_a_plan_can_be_seen_without_a_trace(world: World, site: Site) -> None:
    plan = site.client.get("/api/v1/plan?target=osd.3").json()
    assert plan["moves"]
    assert sum(move["bytes"] for move in plan["moves"]) == plan["bytes"]
    assert sum(rack["bytes"] for rack in plan["targets"]) == plan["bytes"]
    assert world.application.store.drains() == ()


def test_a_request_that_the_state_of_the_drain_does_not_allow_is_refused_with_a_sentence(site: Site) -> None:
    drain = proposed(site)
    answer = ask_drain(site, drain, "resume")
    assert answer.status_code == 409
    assert answer.json()["detail"]
    assert ask_drain(site, {"id": "nobody"}, "pause").status_code == 404


@pytest.mark.slow
def test_a_cancelled_drain_puts_everything_back(world: World, site: Site) -> None:
    before = world.cluster.view()
    drain = proposed(site)
    ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    world.tick(30)
    assert site.client.get(f"/api/v1/drains/{drain['id']}").json()["progress"]["moved_pgs"] > 0
    assert ask_drain(site, drain, "cancel").status_code == 200
    for _ in range(2000):
        world.tick()
        if site.client.get(f"/api/v1/drains/{drain['id']}").json()["state"] == "cancelled":
            break
    after = world.cluster.view()
    assert after.upmap_items == before.upmap_items
    assert after.osds[0].reweight == before.osds[0].reweight


def test_a_halt_stops_a_drain_and_the_status_says_so(world: World, site: Site) -> None:
    drain = proposed(site)
    ask_drain(site, drain, "approve", **{"If-Match": drain["etag"]})
    world.tick(3)
    site.client.post("/api/v1/halt", json={"reason": "look first"}, headers=site.acting)
    assert site.client.get("/api/v1/status").json()["controller"] == "holding: halted (look first)"
    sent = list(world.reach.commands)
    world.tick(20)
    assert sent
    assert world.reach.commands == sent
    guards = site.client.get(f"/api/v1/drains/{drain['id']}").json()["guards"]
    assert {guard["code"]: guard["ok"] for guard in guards}["halt"] is False


def test_a_cluster_that_does_not_answer_holds_and_what_was_seen_stays_with_its_age(
    world: World, site: Site
) -> None:
    world.reach.reachable = False
    world.tick(6)
    status = site.client.get("/api/v1/status").json()
    assert status["controller"].startswith("holding: The cluster does not answer")
    assert status["view_age_seconds"] >= 60
    assert len(site.client.get("/api/v1/osds").json()["items"]) == 12


def test_a_look_that_changed_nothing_still_makes_the_view_young(world: World, site: Site) -> None:
    site.client.get("/api/v1/status")
    world.tick(60)
    assert site.client.get("/api/v1/status").json()["view_age_seconds"] < 60


def test_a_drains_curve_survives_a_restart(place: Place, serve: Serve) -> None:
    worlds = made(place)
    world = next(worlds)
    world.tick(5)
    drain = propose_drain(world.application, "osd.0", "test")
    approve_drain(world.application, drain, "test")
    world.tick(60)
    before = world.application.timelines.list_samples(drain.id)
    assert before
    again = replace(place, clock=ClusterClock(world.cluster)).application(cluster=world.reach)  # type: ignore[arg-type]
    assert again.timelines.list_samples(drain.id) == before
    shut(again)
    next(worlds, None)


def test_an_osd_that_goes_down_is_a_suspected_death_said_once(world: World, site: Site) -> None:
    world.cluster.fail_osd(world.cluster.view().osds[0].id)
    world.tick(4)
    said = [one for one in world.application.store.outcomes() if one.device == "ST4000DM000_A"]
    assert [one.fate for one in said] == [DriveFate.SUSPECTED]


def test_an_osd_that_was_taken_out_before_it_was_stopped_is_no_suspicion(world: World) -> None:
    osd = world.cluster.view().osds[0].id
    world.cluster.apply(Reweight(osd, 0.0))
    world.tick(4)
    world.cluster.stop_osd(osd)
    world.tick(4)
    assert world.application.store.outcomes() == ()


@pytest.mark.slow
def test_in_mode_act_a_bad_disk_is_drained_by_itself_once_it_is_believed(place: Place, serve: Serve) -> None:
    worlds = made(replace(place, policy=replace(place.policy, mode=Mode.ACT)))
    world = next(worlds)
    for day in range(4):
        now = world.application.clock.now()
        readings = week_of("A", now, pending=400) if day == 0 else week_of("A", now, pending=400)[-1:]
        world.application.ingest(readings)
        work(world.application)
        world.tick(3)
        world.cluster.advance(86400)
    world.application.ingest(week_of("A", world.application.clock.now(), pending=400)[-1:])
    work(world.application)
    world.tick(600)
    (drain,) = world.application.store.drains()
    assert drain.asked_by == AUTOMATIC
    assert drain.state.value in ("verified", "handed_over")
    next(worlds, None)


def test_the_command_line_plans_asks_approves_and_explains(
    world: World, site: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.url.write_text(str(site.client.base_url))
    here = ["--state", str(place.state.path)]
    assert main(["drain", "plan", "osd.0", *here]) == 0
    told = capsys.readouterr().out
    assert "walk by upmap" in told
    assert "fullest target after it: osd." in told
    assert main(["drain", "apply", "osd.0", "osd.999", "--yes", "--reason", "noisy", *here]) == 3
    told, refused = capsys.readouterr()
    assert ": approved" in told
    assert "osd.999" in refused
    (drain,) = world.application.store.drains()
    world.tick(30)
    assert main(["drain", "explain", drain.id, *here]) == 0
    told = capsys.readouterr().out
    assert "stale-view" in told
    assert "PGs in flight" in told
    for verb, state in (("pause", "paused"), ("resume", ""), ("cancel", "cancelling")):
        assert main(["drain", verb, drain.id, *here]) == 0
        assert f"{drain.id}: {state}" in capsys.readouterr().out
    assert main(["drain", "list", *here, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["id"] == drain.id
    assert main(["drain", "pause", "nobody", *here]) == 1
    assert "no drain nobody" in capsys.readouterr().err


def test_brackets_in_what_a_person_wrote_are_printed_and_no_line_is_cut(
    world: World,
    site: Site,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    place.state.url.write_text(str(site.client.base_url))
    here = ["--state", str(place.state.path)]
    reason = "[/red] rack [bold]7[/] of a ticket whose name is longer than half of a line"
    assert main(["drain", "apply", "osd.0", "--reason", reason, *here]) == 0
    (drain,) = world.application.store.drains()
    world.tick(30)
    for words in (["list"], ["explain", drain.id]):
        capsys.readouterr()
        assert main(["drain", *words, *here]) == 0
        told = capsys.readouterr().out
        assert "[bold]7[/]" in told
        assert "…" not in told
    assert f"{drain.created_at:%Y-%m-%d %H:%M:%S}Z" in told

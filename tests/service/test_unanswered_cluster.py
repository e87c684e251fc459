"""A process that the cluster has not answered yet: what a person asks of it waits, and is neither refused nor lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace

import httpx2
import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.rados_connection import NotConnected
from predrain.data.drain import Drain, DrainState
from predrain.service.cli import main
from predrain.service.terminal.waiting import WAIT_SECONDS
from tests.service.conftest import Place, Serve, Site
from tests.service.person_requests import propose_drain
from tests.service.test_drains import World, made


@contextmanager
def begun_anew(place: Place) -> Iterator[tuple[World, Drain]]:
    """A process that has just begun on a store with one proposed drain; its cluster does not answer yet."""
    before = made(place)
    world = next(before)
    world.tick(5)
    drain = propose_drain(world.application, "osd.0", "test")
    next(before, None)
    again = made(place)
    world = next(again)
    world.reach.reachable = False
    yield world, drain
    next(again, None)


@pytest.fixture
def new(place: Place) -> Iterator[tuple[World, Drain]]:
    with begun_anew(place) as begun:
        yield begun


def asked(site: Site, drain: Drain, verb: str, **headers: str) -> httpx2.Response:
    return site.client.post(f"/api/v1/drains/{drain.id}/{verb}", headers={**site.acting, **headers})


@dataclass
class Waiter:
    """The time of a command that waits. `then`: what happens in its first wait."""

    then: Callable[[], None]
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.then()


def at_the_command_line(
    place: Place, site: Site, monkeypatch: pytest.MonkeyPatch, then: Callable[[], None], *words: str
) -> tuple[int, Waiter]:
    waiter = Waiter(then)
    played = SimpleNamespace(monotonic=waiter.monotonic, sleep=waiter.sleep)
    monkeypatch.setattr("predrain.service.terminal.waiting.time", played)
    place.state.url.write_text(str(site.client.base_url))
    return main([*words, "--state", str(place.state.path)]), waiter


@pytest.mark.parametrize("verb", ["approve", "reject", "pause", "cancel"])
def test_a_request_before_the_first_look_is_told_when_to_ask_again_and_is_then_carried_out(
    new: tuple[World, Drain], serve: Serve, verb: str
) -> None:
    world, drain = new
    site = serve(world.application)
    shown = site.client.get(f"/api/v1/drains/{drain.id}").json()
    headers = {"If-Match": shown["etag"], "Idempotency-Key": "one request"}
    answer = asked(site, drain, verb, **headers)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "3"), answer.text
    assert answer.json()["waits_for"] == "cluster"
    assert world.application.store.drain(drain.id) == drain
    world.reach.reachable = True
    answer = asked(site, drain, verb, **headers)
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] != "proposed"


def test_a_drain_that_is_asked_for_or_planned_before_the_first_look_waits_as_well(
    new: tuple[World, Drain], serve: Serve
) -> None:
    site = serve(new[0].application)
    proposed = site.client.post("/api/v1/drains", json={"target": "osd.1"}, headers=site.acting)
    planned = site.client.get("/api/v1/plan?target=osd.1", headers=site.acting)
    for answer in (proposed, planned):
        assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "3"), answer.text


def test_an_error_that_waiting_does_not_cure_names_no_time_to_ask_again(
    new: tuple[World, Drain], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, drain = new
    site = serve(world.application)

    def refused() -> ClusterView:
        raise NotConnected("the cluster does not accept the key")

    monkeypatch.setattr(world.reach, "view", refused)
    answer = asked(site, drain, "pause")
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, False)
    assert "waits_for" not in answer.json()


def test_a_command_waits_until_the_cluster_has_answered_and_says_so(
    new: tuple[World, Drain],
    serve: Serve,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, drain = new

    def answers() -> None:
        world.reach.reachable = True

    site = serve(world.application)
    code, waiter = at_the_command_line(place, site, monkeypatch, answers, "drain", "reject", drain.id)
    printed = capsys.readouterr()
    assert (code, waiter.now) == (0, 3.0), printed.err
    assert "no answer in 10 s" in printed.err
    assert f"Waiting up to {WAIT_SECONDS:.0f} s for its answer." in printed.err
    assert "the cluster answered after 3.0 s" in printed.err
    rejected = world.application.store.drain(drain.id)
    assert rejected is not None
    assert rejected.state is DrainState.CANCELLED


def test_a_command_gives_up_after_a_bounded_time_with_the_services_own_sentence(
    new: tuple[World, Drain],
    serve: Serve,
    place: Place,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, drain = new
    site = serve(world.application)
    code, waiter = at_the_command_line(place, site, monkeypatch, lambda: None, "drain", "pause", drain.id)
    told = capsys.readouterr().err
    assert (code, waiter.now) == (1, WAIT_SECONDS)
    assert told.count("for the cluster's answer") == 4
    assert "nothing was changed, try again." in told.splitlines()[-1]
    assert world.application.store.drain(drain.id) == drain


def test_a_command_that_is_a_service_of_its_own_waits_for_the_first_look(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from predrain.actions.cluster.cluster_port import ClusterNotReadYet
    from predrain.service.cli.cluster_connection import look_at_cluster

    waiter = Waiter(lambda: None)
    monkeypatch.setattr(
        "predrain.service.terminal.waiting.time",
        SimpleNamespace(monotonic=waiter.monotonic, sleep=waiter.sleep),
    )
    faults: list[Exception] = [ClusterUnreachable("no mgr"), ClusterUnreachable("no mgr")]

    def look() -> None:
        if faults:
            fault = faults.pop()
            raise ClusterNotReadYet(f"The cluster does not answer: {fault}") from fault

    look_at_cluster(look)
    assert (waiter.now, faults) == (6.0, [])
    assert "The cluster does not answer: no mgr" in capsys.readouterr().err
    faults.append(NotConnected("no key"))
    with pytest.raises(ClusterNotReadYet, match="no key"):
        look_at_cluster(look)
    assert waiter.now == 6.0

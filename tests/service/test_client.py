"""The client for programs, against a real service: typed answers, pages, refusals, and what is sent again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from predrain import Client, ServiceProblem, Unreachable
from predrain.data.drain import DrainState
from predrain.service.client.http_exchange import Wire
from tests.service.conftest import Site, envelope, smart_reading, week_of
from tests.service.test_drains import World, site, world  # noqa: F401  (a house over a cluster)
from tests.service.test_worker import work


@pytest.fixture
def client(site: Site) -> Client:  # noqa: F811
    """May do everything."""
    return Client(str(site.client.base_url), site.token)


def test_sent_readings_are_read_back_as_typed_objects(site: Site, client: Client) -> None:  # noqa: F811
    now = site.application.clock.now()
    sent = [envelope(site.application, one) for one in week_of("A", now, pending=400)]
    taken = client.send_readings([*sent, {"schema": "reading", "version": 99}])
    assert (taken.accepted, [one.index for one in taken.refused]) == (8, [8])
    assert "version 99" in taken.refused[0].reason
    work(site.application)
    assert client.status().readings.fresh == 1
    whole = client.device("ST4000DM000_A")
    assert (whole.host, whole.osds, whole.severity) == ("stor-01", [0], "bad")
    assert (whole.state, whole.life.state) == ("in_service", "in_service")
    assert whole.outlook is not None
    assert whole.outlook.as_of == now
    assert [one.device for one in client.outlooks("bad")] == ["ST4000DM000_A"]
    assert list(client.outlooks("good")) == []


def test_a_drain_is_proposed_approved_paused_resumed_and_cancelled(
    client: Client,
    world: World,  # noqa: F811
) -> None:
    drain = client.propose("osd.0", "noisy")
    shown = client.drain(drain.id)
    assert all(getattr(shown, one.name) == getattr(drain, one.name) for one in msgspec.structs.fields(drain))
    approved = client.approve(drain)
    assert approved.state == DrainState.APPROVED
    world.tick(2)
    assert client.pause(approved).state == DrainState.PAUSED
    assert client.resume(approved).state != DrainState.PAUSED
    client.cancel(approved)
    assert next(client.drains()).state in (DrainState.CANCELLING, DrainState.CANCELLED)


def test_a_program_rejects_a_proposed_drain_and_no_approved_one(
    client: Client,
    world: World,  # noqa: F811
) -> None:
    assert client.reject(client.propose("osd.0")).state == "cancelled"
    world.tick()
    approved = client.approve(client.propose("osd.0"))
    with pytest.raises(ServiceProblem, match="is approved, no longer proposed") as refused:
        client.reject(approved)
    assert refused.value.status == 409
    assert client.drain(approved.id).state == "approved"


def test_an_approval_of_another_plan_is_a_problem_that_shows_the_drain_as_it_is(client: Client) -> None:
    drain = client.propose("osd.0")
    with pytest.raises(ServiceProblem) as refused:
        client.approve(msgspec.structs.replace(drain, etag='"another"'))
    assert refused.value.status == 412
    assert refused.value.body["drain"]["id"] == drain.id


def test_a_halt_stands_until_it_is_lifted(client: Client) -> None:
    assert client.halt("storm").by == "token-file"
    assert client.read_halt().halted == "storm"
    assert client.lift_halt().halted is None


def test_a_refusal_is_the_services_own_sentence(client: Client) -> None:
    with pytest.raises(ServiceProblem, match="No device NOBODY was ever read here") as refused:
        client.device("NOBODY")
    assert refused.value.status == 404


def test_devices_are_iterated_over_all_pages_while_more_come(site: Site, client: Client) -> None:  # noqa: F811
    site.application.ingest([smart_reading(f"{n:04d}", site.application.clock.now()) for n in range(1001)])
    work(site.application)
    devices = client.devices()
    first = next(devices)
    site.application.ingest([smart_reading("ZZ", site.application.clock.now())])
    work(site.application)
    names = [first.device, *(one.device for one in devices)]
    assert names == sorted(set(names))
    assert {f"ST4000DM000_{n:04d}" for n in range(1001)} | {"ST4000DM000_ZZ"} <= set(names)


def test_a_state_and_a_field_of_a_later_release_are_read(site: Site, client: Client, flaky: Any) -> None:  # noqa: F811
    site.application.ingest(week_of("A", site.application.clock.now(), pending=400))
    work(site.application)
    told = site.client.get("/api/v1/devices/ST4000DM000_A").json()
    later = told | {"state": "recycled", "shelf": "B7"}
    server, _, _ = flaky((200, {}, json.dumps(later).encode()))
    read = Client(server.url).device("ST4000DM000_A")
    assert read.state == "recycled"
    assert msgspec.structs.replace(read, state=told["state"]) == client.device("ST4000DM000_A")


class Flaky:
    """A server that gives one of the prepared answers to each request, and keeps the requests."""

    def __init__(self, answers: list[tuple[int, dict[str, str], bytes]]) -> None:
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        outer, left = self, answers

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, headers, body = left.pop(0)
                if status == 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *_: object) -> None:
                return

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def flaky() -> Iterator[Callable[..., tuple[Flaky, Wire, list[float]]]]:
    """A server with faults, a wire to it, and the waits between."""
    made: list[Flaky] = []

    def make(*answers: tuple[int, dict[str, str], bytes]) -> tuple[Flaky, Wire, list[float]]:
        server, waits = Flaky(list(answers)), list[float]()
        made.append(server)
        return server, Wire(server.url, "secret", sleep=waits.append), waits

    yield make
    for one in made:
        one.close()


OK: tuple[int, dict[str, str], bytes] = (200, {}, b"{}")
CUT_OFF: tuple[int, dict[str, str], bytes] = (0, {}, b"")


def test_an_act_that_was_cut_off_is_sent_again_under_the_same_key(flaky: Any) -> None:
    server, wire, waits = flaky(CUT_OFF, (503, {"Retry-After": "7"}, b"{}"), OK)
    wire.send_action("POST", "halt", {"reason": "x"})
    keys = {headers["idempotency-key"] for _, _, headers in server.asked}
    assert (len(server.asked), len(keys)) == (3, 1)
    assert waits == [0.5, 7.0]


def test_two_acts_have_two_keys(flaky: Any) -> None:
    server, wire, _ = flaky(OK, OK)
    wire.send_action("POST", "halt", {"reason": "x"})
    wire.send_action("POST", "halt", {"reason": "x"})
    assert len({headers["idempotency-key"] for _, _, headers in server.asked}) == 2


def test_a_refusal_is_not_asked_again(flaky: Any) -> None:
    server, wire, waits = flaky((409, {}, b'{"detail": "It stands."}'))
    with pytest.raises(ServiceProblem, match=r"It stands\."):
        wire.send_action("POST", "drains", {"target": "osd.1"})
    assert (len(server.asked), waits) == (1, [])


def test_a_service_that_stays_away_is_reported_as_unreachable_after_three_attempts(flaky: Any) -> None:
    server, wire, waits = flaky(CUT_OFF, CUT_OFF, CUT_OFF)
    with pytest.raises(Unreachable, match="no service answers at"):
        wire.get("status")
    assert (len(server.asked), waits) == (3, [0.5, 2.0])


def test_a_token_is_not_carried_to_another_address(flaky: Any) -> None:
    server, wire, _ = flaky((302, {"Location": "http://127.0.0.1:1/elsewhere"}, b""))
    with pytest.raises(ServiceProblem):
        wire.get("status")
    assert len(server.asked) == 1


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"items": 7}'])
def test_something_else_at_that_address_is_not_taken_for_predrain(flaky: Any, content: bytes) -> None:
    server, _, _ = flaky((200, {}, content))
    with pytest.raises(Unreachable, match="no predrain that this client knows"):
        Client(server.url).status()


def test_the_client_needs_nothing_but_msgspec() -> None:
    told = "import sys; from predrain import Client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert {"msgspec", "predrain"} <= foreign
    assert foreign.isdisjoint({"pydantic", "fastapi", "httpx2", "numpy", "structlog"})
    ours = {name.split(".")[1] for name in loaded if name.startswith("predrain.")}
    assert ours == {"service"}


def test_an_import_of_predrain_reads_the_client_only_when_it_is_named() -> None:
    told = "import sys, predrain; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert [name for name in run.stdout.split() if name.startswith(("predrain.", "msgspec", "http"))] == []
    with pytest.raises(ImportError, match="Predrain"):
        exec("from predrain import Predrain")


def test_the_example_in_the_reference_runs(site: Site) -> None:  # noqa: F811
    text = (Path(__file__).parents[2] / "docs" / "reference" / "rest.md").read_text()
    example = text.split("```python\n", 1)[1].split("```", 1)[0]
    site.application.ingest(week_of("A", site.application.clock.now(), pending=400))
    work(site.application)
    known = {"URL": str(site.client.base_url), "TOKEN": site.token}
    exec(compile(example, "rest.md", "exec"), known)
    (drain,) = Client(known["URL"], known["TOKEN"]).drains()
    assert drain.osds == [0]

"""REST over a real server: who may do what, and how a request is refused."""

from __future__ import annotations

import socket

import pytest

from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from tests.service.access.test_http_attacks import raw
from tests.service.conftest import Place, Serve, Site, shut, smart_reading, with_service
from tests.service.test_worker import work


def test_acting_without_the_token_names_the_file_that_has_it(site: Site, place: Place) -> None:
    answer = site.client.post("/api/v1/halt", json={"reason": "x"})
    assert answer.status_code == 401
    assert str(place.state.token) in answer.json()["detail"]
    assert site.application.store.halt_reason() is None


def test_a_stranger_is_not_told_where_the_token_lies(site: Site, place: Place) -> None:
    answer = site.client.post("/api/v1/halt", json={"reason": "x"}, headers={"X-Forwarded-For": "192.0.2.7"})
    assert answer.status_code == 401
    assert "This needs a token" in answer.json()["detail"]
    assert str(place.state.path) not in answer.text


def test_a_token_that_nobody_knows_is_refused_even_for_reading(site: Site) -> None:
    assert site.client.get("/api/v1/status", headers={"Authorization": "Bearer nonsense"}).status_code == 401


def test_a_token_may_only_do_what_its_scopes_say(site: Site) -> None:
    answer = site.client.post("/api/v1/halt", json={"reason": "x"}, headers=site.ingesting)
    assert answer.status_code == 403
    assert "scope act" in answer.json()["detail"]
    assert site.application.store.halt_reason() is None


OPEN = {
    "get session",
    "post session",
    "delete session",
    "post enrolment",
    "get healthz",
    "get activez",
    "get readyz",
    "get metrics",
}
"""Sessions and enrolment judge the secret that comes in; the others tell counts, the state of parts, and which
service is active."""
OTHERS = {
    "post readings": Scope.INGEST,
    "post latency": Scope.INGEST,
    "post disk-requests/exchange": Scope.INGEST,
    "get executor/steps": Scope.EXECUTE,
    "post executor/steps/{id}/result": Scope.EXECUTE,
    "get audit": Scope.ADMIN,
    "post drains/{id}/give_up_cancel": Scope.ADMIN,
    "post drains/{id}/insist": Scope.ADMIN,
}
"""Else what looks needs `read`, and what changes something `act`."""


@pytest.mark.slow
def test_every_route_refuses_every_token_without_its_scope(site: Site) -> None:
    book = CredentialBook(site.application.store, site.application.clock)
    tokens = {scope: book.issue_credential(CredentialKind.TOKEN, scope, [scope], "test") for scope in Scope}
    document = site.client.get("/api/v1/openapi.json").json()
    let_in, judged = [], set()
    for path, operations in document["paths"].items():
        for method in operations:
            route = f"{method} {path.removeprefix('/api/v1/').removeprefix('/')}"
            if route in OPEN:
                continue
            judged.add(route)
            needed = OTHERS.get(route, Scope.READ if method == "get" else Scope.ACT)
            for scope, token in [*tokens.items(), (None, "")]:
                if scope in (needed, Scope.ADMIN) or (scope is None and needed is Scope.READ):
                    continue
                headers = {"Authorization": f"Bearer {token}"} if scope else {}
                sent = None if method == "get" else {}
                status = site.client.request(
                    method, path.replace("{id}", "1"), headers=headers, json=sent
                ).status_code
                if status != (403 if scope else 401):
                    let_in.append((route, scope, status))
    assert let_in == []
    assert len(judged) >= 30
    assert OTHERS.keys() <= judged


def test_halt_stands_until_it_is_lifted_and_says_who_halted(site: Site) -> None:
    made = site.client.post("/api/v1/halt", json={"reason": "maintenance"}, headers=site.acting).json()
    assert made == {
        "halted": "maintenance",
        "by": "token-file",
        "since": "2026-03-10T12:00:00Z",
        "unreached": None,
        "stored_in": ["store"],
    }
    assert site.client.get("/api/v1/halt").json() == made
    assert site.client.get("/api/v1/status").json()["halted"] == "maintenance"
    lifted = {"halted": None, "by": None, "since": None, "unreached": None, "stored_in": []}
    assert site.client.post("/api/v1/halt", json={"reason": None}, headers=site.acting).json() == lifted
    assert site.client.get("/api/v1/halt").json() == lifted
    lines = [(line.decided, line.caller) for line in site.application.store.journal("halt")]
    assert lines == [("halt: maintenance", "token-file"), ("lift the halt", "token-file")]


def test_a_halt_that_came_past_the_service_names_nobody(site: Site) -> None:
    site.client.post("/api/v1/halt", json={"reason": "maintenance"}, headers=site.acting)
    site.application.store.set_halt("storm")
    assert site.client.get("/api/v1/halt").json() == {
        "halted": "storm",
        "by": None,
        "since": None,
        "unreached": None,
        "stored_in": ["store"],
    }


def test_a_foreign_host_header_is_refused(site: Site) -> None:
    answer = site.client.get("/api/v1/status", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "evil.example" in answer.json()["detail"]
    assert site.client.get("/api/v1/status", headers={"Host": "localhost:1234"}).status_code == 200


def test_a_body_over_the_limit_is_refused_with_and_without_a_length(place: Place, serve: Serve) -> None:
    application = with_service(place, body_limit_bytes=2000).application()
    site = serve(application)
    told = site.client.post("/api/v1/readings", content=b"[" + b" " * 3000, headers=site.ingesting)
    assert told.status_code == 413

    def chunks():  # type: ignore[no-untyped-def]
        yield b"["
        for _ in range(30):
            yield b" " * 100

    streamed = site.client.post("/api/v1/readings", content=chunks(), headers=site.ingesting)
    assert streamed.status_code == 413
    assert "2000 bytes" in streamed.json()["detail"]
    shut(application)


def test_a_length_of_thousands_of_digits_is_too_large(site: Site) -> None:
    with raw(site) as connection:
        connection.sendall(
            b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + b"0" * 5000 + b"1\r\n\r\n"
        )
        connection.settimeout(10)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_an_unknown_device_is_a_404_that_says_where_to_look(site: Site) -> None:
    answer = site.client.get("/api/v1/devices/NOBODY")
    assert answer.status_code == 404
    assert answer.json()["listed_at"] == "/api/v1/devices"


def test_a_persons_word_about_a_device_is_kept(site: Site) -> None:
    site.application.ingest([smart_reading("A")])
    work(site.application)
    told = site.client.post(
        "/api/v1/devices/ST4000DM000_A/outcome",
        json={"fate": "failed", "note": "clicked"},
        headers=site.acting,
    )
    assert told.status_code == 201
    (outcome,) = site.client.get("/api/v1/devices/ST4000DM000_A").json()["outcomes"]
    assert (outcome["fate"], outcome["note"], outcome["source"]) == ("failed", "clicked", "token-file")


def test_a_drain_without_a_cluster_is_refused_with_a_sentence(site: Site) -> None:
    answer = site.client.post("/api/v1/drains", json={"target": "osd.1"}, headers=site.acting)
    assert answer.status_code == 409
    assert "No cluster is configured" in answer.json()["detail"]


def test_an_unknown_field_in_a_request_is_named(site: Site) -> None:
    answer = site.client.post("/api/v1/drains", json={"target": "osd.1", "forze": True}, headers=site.acting)
    assert answer.status_code == 422
    assert "forze" in answer.json()["detail"]


def test_a_request_that_is_no_http_does_no_harm(site: Site) -> None:
    url = site.client.base_url
    with socket.create_connection((url.host, url.port), timeout=5) as raw:
        raw.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        raw.recv(1000)
    assert site.client.get("/healthz").status_code == 200

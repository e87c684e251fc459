"""Whose address counts: the connection's, or the one that a named proxy tells; and floods of strangers, counted."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from dataclasses import replace

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from predrain.service.access.audit import AUDIT, NOBODY
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.app.application import Application
from predrain.service.config.settings import ServiceTable
from predrain.service.http.server import Server, bind_listening_socket, url_of
from predrain.service.rest.forwarded_headers import ProxyForwarding, is_forwarded
from tests.attack.access import act_without_credential, read_as_this_machine
from tests.service.conftest import Place, Serve, Site, shut, with_service

STRANGERS = 400
HALT = "/api/v1/halt"


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The window of refused requests is short."""
    monkeypatch.setattr("predrain.service.rest.audit_middleware.WINDOW_SECONDS", 0.2)


def until(holds: Callable[[], bool]) -> None:
    """The test's own time limit ends it."""
    pause = threading.Event()
    while not holds():
        pause.wait(0.05)


def metric(site: Site, name: str) -> int:
    found = re.search(rf"^{name} (\S+)$", site.client.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


@pytest.mark.slow
def test_a_flood_with_made_up_addresses_is_a_handful_of_lines_that_tell_all_of_it(
    site: Site, soon: None
) -> None:
    tally = act_without_credential(site.client, STRANGERS)
    assert (tally.refused, tally.got_through) == (STRANGERS, 0)
    assert metric(site, "predrain_anonymous_requests_refused_total") == STRANGERS

    def counted() -> int:
        lines = site.application.store.journal(AUDIT)
        assert {(line.caller, line.answered) for line in lines} <= {(NOBODY, "refused")}
        return sum(int(line.decided.split(" ")[0]) for line in lines)

    until(lambda: counted() == STRANGERS)
    lines = site.application.store.journal(AUDIT)
    assert len(lines) < STRANGERS / 10
    assert all("198.18." not in line.seen for line in lines)
    assert lines[0].seen.startswith("from 127.0.0.1 (")
    assert '"POST /api/v1/halt 401":' in lines[0].decided


@pytest.mark.slow
def test_counted_requests_without_a_credential_are_on_record_when_the_service_ends(
    application: Application, place: Place
) -> None:
    listener = bind_listening_socket(application.settings.service)
    stop = Server(application, load_admin_tokens(place.state.token), listener).serve_aside()
    with httpx2.Client(base_url=url_of(listener, application.settings.service), timeout=20) as client:
        act_without_credential(client, 3)
    assert application.store.journal(AUDIT) == ()
    stop()
    listener.close()
    (line,) = application.store.journal(AUDIT)
    assert line.decided == '3 requests without a good credential {"POST /api/v1/halt 401":3}'


def test_paths_and_methods_that_strangers_make_up_are_not_on_record(site: Site, soon: None) -> None:
    for number in range(5):
        site.client.request("PROPFIND", f"/api/v1/anna-approved-{number}", json={})
        site.client.request("PROPFIND", HALT, json={})
    until(lambda: len(site.application.store.journal(AUDIT)) >= 1)
    told = " ".join(line.decided for line in site.application.store.journal(AUDIT))
    assert "PROPFIND" not in told
    assert "anna" not in told


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/halt/"),
        ("POST", "/api/v1/drains/"),
        ("DELETE", "/api/v1/session/"),
        ("POST", "/api/v1/readings/"),
        ("POST", "/api/v1//halt"),
        ("PUT", "/api/v1/halt"),
    ],
)
def test_no_spelling_of_a_route_lets_a_stranger_write_lines_of_the_audit(
    site: Site, method: str, path: str
) -> None:
    for number in range(5):
        answer = site.client.request(
            method, path, json={"reason": f"forged {number}"}, follow_redirects=False
        )
        assert answer.status_code in (401, 404, 405)
    assert site.application.store.journal(AUDIT) == ()


def test_the_bound_by_address_holds_whatever_address_is_made_up(place: Place, serve: Serve) -> None:
    access = place.settings.access.model_copy(update={"address_requests_per_second": 2.0})
    application = replace(place, settings=place.settings.model_copy(update={"access": access})).application()
    site = serve(application)
    answers = [
        site.client.get("/healthz", headers={"X-Forwarded-For": f"198.18.0.{number}"}).status_code
        for number in range(60)
    ]
    assert answers.count(429) >= 20
    shut(application)


@pytest.mark.slow
def test_a_named_proxy_tells_whose_request_it_is(place: Place, serve: Serve) -> None:
    access = place.settings.access.model_copy(update={"address_requests_per_second": 2.0})
    settings = place.settings.model_copy(update={"access": access})
    served = ServiceTable.model_validate({"trusted_proxies": ("127.0.0.1",)}).trusted_proxies
    application = with_service(replace(place, settings=settings), trusted_proxies=served).application()
    site = serve(application)

    def halt(forwarded: str) -> int:
        headers = {**site.acting, "X-Forwarded-For": forwarded}
        return site.client.post(HALT, json={"reason": "x"}, headers=headers).status_code

    assert halt("203.0.113.9, 198.18.0.7") == 200
    (line,) = application.store.journal(AUDIT)
    assert line.seen.startswith("from 198.18.0.7, "), "what stands before it may be made up by the sender"
    answers = [halt(f"203.0.113.{number}, 198.18.0.7") for number in range(40)]
    assert 429 in answers
    assert halt("198.18.0.8") == 200, "another sender has a bound of its own"
    shut(application)


def test_through_a_proxy_nobody_has_the_rights_of_this_machine(place: Place, serve: Serve) -> None:
    proxies = ServiceTable.model_validate({"trusted_proxies": ("127.0.0.0/8",)}).trusted_proxies
    for named in ((), proxies):
        application = with_service(place, trusted_proxies=named).application()
        site = serve(application)
        assert site.client.get("/api/v1/status").status_code == 200
        tally = read_as_this_machine(site.client)
        assert (tally.tried, tally.got_through) == (30, 0)
        shut(application)


def test_a_session_s_cookie_is_secure_by_the_word_of_a_named_proxy_alone(place: Place, serve: Serve) -> None:
    proxies = ServiceTable.model_validate({"trusted_proxies": ("127.0.0.1",)}).trusted_proxies
    for named, secure in (((), False), (proxies, True)):
        application = with_service(place, trusted_proxies=named).application()
        site = serve(application)
        headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "198.18.0.1"}
        answer = site.client.post("/api/v1/session", json={"token": site.token}, headers=headers)
        assert ("Secure" in answer.headers["set-cookie"]) is secure
        shut(application)


@pytest.mark.parametrize("wrong", ["everybody", "10.0.0.1/8", "0.0.0.0/0", "::/0"])
def test_a_proxy_is_an_address_or_a_network_and_not_everybody(wrong: str) -> None:
    with pytest.raises(ValidationError):
        ServiceTable.model_validate({"trusted_proxies": (wrong,)})


_ADDRESSES = st.ip_addresses().map(str)


@pytest.mark.slow
@given(st.lists(_ADDRESSES | st.text(max_size=8), max_size=5), _ADDRESSES)
def test_a_peer_that_is_no_proxy_keeps_its_own_address_for_any_forwarded_header(
    said: list[str], peer: str
) -> None:
    seen: list[object] = []

    async def app(scope: object, _receive: object, _send: object) -> None:
        seen.append(scope)

    value = ",".join(said).encode("latin-1", "replace")
    scope = {"type": "http", "scheme": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", value)]}
    asyncio.run(ProxyForwarding(app, ())(scope, None, None))  # type: ignore[arg-type]
    assert seen == [scope]
    assert is_forwarded(name for name, _ in scope["headers"])  # type: ignore[union-attr,str-unpack]

"""Attacks of a hostile client at the HTTP entrance: floods, compression bombs, slowness, paths, headers and SQL."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection
from typing import Any

import httpx2
import pytest

from predrain.service.config.access_table import AccessTable
from predrain.service.config.settings import ServiceTable
from predrain.service.http.connections import make_bounded_protocol
from predrain.service.http.server import Server, bind_listening_socket, url_of
from predrain.service.rest.admission import Admission
from tests.service.conftest import Place, Serve, Site, envelope, shut, smart_reading, with_service
from tests.service.test_worker import work

MIB = 1 << 20
SCRIPT = "<script>alert(1)</script>"


def raw(site: Site) -> socket.socket:
    url = site.client.base_url
    return socket.create_connection((url.host, url.port), timeout=60)


def answered(connection: socket.socket) -> bytes:
    """All that comes until the service closes."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            said += piece
    return said


def test_a_body_of_100_mb_is_refused_before_it_is_sent(site: Site) -> None:
    with raw(site) as connection:
        connection.sendall(
            b"POST /api/v1/readings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n"
            b"Authorization: Bearer " + site.token.encode() + b"\r\nConnection: close\r\n\r\n"
        )
        assert answered(connection).startswith(b"HTTP/1.1 413 ")
    assert site.client.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["readings", "halt"])
def test_a_body_of_100_mb_without_a_length_is_cut_off(site: Site, path: str) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += MIB
            yield b" " * MIB

    try:
        answer = site.client.post(f"/api/v1/{path}", content=pieces(), headers=site.acting)
        assert answer.status_code == 413
        assert "send it in parts" in answer.json()["detail"]
    except httpx2.WriteError:
        pass  # it closed while we were still sending
    assert sent <= 40 * MIB
    assert site.client.get("/healthz").status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("packing", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_packed_body_is_refused_however_small(site: Site, packing: str) -> None:
    bomb = gzip.compress(b"[" + b" " * (20 * MIB) + b"]")
    answer = site.client.post(
        "/api/v1/readings", content=bomb, headers={**site.acting, "Content-Encoding": packing}
    )
    assert answer.status_code == 415
    assert "send it as it is" in answer.json()["detail"]


@contextmanager
def impatient(application: Any, token: str, *, rest: float = 15, **bounds: Any) -> Iterator[httpx2.Client]:
    """A server whose patience ends while a test can wait for it."""
    from predrain.service.access.tokens import Caller, Scope, Tokens

    listener = bind_listening_socket(application.settings.service)
    known = Tokens(()).with_token(token, Caller("anna", frozenset({Scope.ADMIN})))
    server = Server(application, known, listener)
    server.config.http, server.config.timeout_keep_alive = make_bounded_protocol(**bounds), rest  # type: ignore[assignment]
    stop = server.serve_aside()
    try:
        with httpx2.Client(base_url=url_of(listener, application.settings.service), timeout=60) as client:
            yield client
    finally:
        stop()
        listener.close()


def connect(client: httpx2.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=60)


@pytest.mark.slow
def test_a_client_that_sends_its_head_byte_by_byte_is_left(application: Any) -> None:
    with (
        impatient(application, "t" * 40, head_seconds=0.5) as client,
        connect(client) as silent,
        connect(client) as slow,
    ):
        slow.sendall(b"GET /healthz HT")
        assert client.get("/healthz").status_code == 200, "others are served meanwhile"
        assert answered(slow) == b""
        assert answered(silent) == b""


@pytest.mark.slow
def test_a_client_that_sends_its_body_byte_by_byte_is_told_and_left(
    application: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Admission, "body_seconds", 0.5)
    with impatient(application, "t" * 40) as client:
        for path in (b"readings", b"halt"):
            with connect(client) as slow:
                slow.sendall(
                    b"POST /api/v1/" + path + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n"
                    b"Content-Type: application/json\r\nAuthorization: Bearer " + b"t" * 40 + b"\r\n\r\n{"
                )
                assert client.get("/healthz").status_code == 200
                said = answered(slow)
                assert said.startswith(b"HTTP/1.1 408 "), said
                assert b"did not arrive within 0.5 s" in said


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer_is_left(application: Any) -> None:
    application.ingest([smart_reading(f"S{n}") for n in range(300)])
    work(application)
    with impatient(application, "t" * 40, stuck_seconds=0.5) as client:
        stuck = socket.socket()
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.settimeout(60)
        stuck.connect((client.base_url.host, client.base_url.port))
        with stuck:
            ask = b"GET /api/v1/devices?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            # As many as it takes to fill what the kernel buffers; then it is ours to wait, and to stop waiting.
            left = False
            while not left:
                try:
                    stuck.sendall(ask * 20)
                    time.sleep(0.01)
                except ConnectionError:
                    left = True
        assert client.get("/healthz").status_code == 200


def test_a_head_without_end_is_refused(application: Any) -> None:
    with impatient(application, "t" * 40, head_bytes=10_000) as client, connect(client) as endless:
        endless.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        said = b""
        try:
            for number in range(10_000):
                endless.sendall(b"X-%d: y\r\n" % number * 100)
        except OSError:
            said = b"left"
        with suppress(OSError):
            said += answered(endless)
        assert said


def test_the_rest_of_a_body_that_was_refused_is_not_taken_for_the_head_of_another_request(
    application: Any,
) -> None:
    with impatient(application, "t" * 40, head_bytes=10_000, rest=1) as client, connect(client) as sender:
        sender.sendall(
            b"POST /api/v1/halt HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 90000000\r\nAuthorization: Bearer " + b"t" * 40 + b"\r\n\r\n{"
        )
        said = sender.recv(10_000)
        assert said.startswith(b"HTTP/1.1 413 "), said
        for _ in range(2):
            with suppress(OSError):
                sender.sendall(b" " * 50_000)
            time.sleep(0.2)
        with suppress(OSError):
            said += answered(sender)
        assert said.count(b"HTTP/1.1") == 1, said


@pytest.mark.slow
def test_so_many_connections_and_no_more(application: Any) -> None:
    with impatient(application, "t" * 40, most=20, head_seconds=300.0) as client:
        held = [connect(client) for _ in range(20)]
        with connect(client) as one_more:
            assert answered(one_more) == b""
        for connection in held:
            connection.close()
        for _ in range(300):
            try:
                assert client.get("/healthz").status_code == 200
                return
            except httpx2.TransportError:
                time.sleep(0.1)
        pytest.fail("what was let go did not make room")


def served(place: Place, serve: Serve, **limits: float) -> Site:
    place.settings = place.settings.model_copy(update={"access": AccessTable(**limits)})
    application = place.application()
    application.start()
    return serve(application)


@pytest.mark.slow
def test_10_000_requests_are_answered_or_told_to_wait_and_others_are_served(
    place: Place, serve: Serve
) -> None:
    site = served(place, serve, requests_per_second=20)
    lock, counted = threading.Lock(), Counter[int]()

    def ask(many: int) -> None:
        with closing(
            HTTPConnection(site.client.base_url.host, site.client.base_url.port or 0, timeout=60)
        ) as line:
            for _ in range(many):
                line.request("GET", "/api/v1/halt", headers=site.acting)
                answer = line.getresponse()
                answer.read()
                if answer.status == 429:
                    assert int(answer.headers["Retry-After"]) >= 1
                with lock:
                    counted[answer.status] += 1

    with ThreadPoolExecutor(8) as crowd:
        asked = [crowd.submit(ask, 1_250) for _ in range(8)]
        while not counted[429]:
            time.sleep(0.05)
        others = site.client.get("/api/v1/halt")  # from here without a token: another caller
        assert others.status_code == 200
        for one in asked:
            one.result()
    assert sum(counted.values()) == 10_000
    assert set(counted) == {200, 429}
    assert counted[200] >= 200
    shut(site.application)


@pytest.mark.slow
def test_strangers_of_one_address_are_bounded_together(place: Place, serve: Serve) -> None:
    site = served(place, serve, address_requests_per_second=5)
    statuses = [
        site.client.post("/api/v1/halt", json={}, headers={"Authorization": f"Bearer {n}"}).status_code
        for n in range(120)
    ]
    assert set(statuses) == {401, 429}
    assert statuses[:50] == [401] * 50
    shut(site.application)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../../../../etc/passwd",
        "/assets/..%2f..%2f..%2f..%2fetc/passwd",
        "/assets/%2e%2e/%2e%2e/%2e%2e/settings.py",
        "/assets/%252e%252e/settings.py",
        "/assets//etc/passwd",
        "/assets/..\\..\\settings.py",
        "/assets/%00/etc/passwd",
        "/..%2f..%2ftoken",
        "/devices/../../token",
        "/devices/..%2f..%2ftoken",
    ],
)
def test_no_path_leads_out_of_the_page_s_folder(site: Site, path: str) -> None:
    with raw(site) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        said = answered(connection)
    assert said.split(b" ")[1] in (b"200", b"400", b"404", b"503"), said[:200]
    assert b"root:" not in said
    assert b"class Settings" not in said
    assert site.token.encode() not in said


WORDS = (
    "' OR '1'='1",
    "'; DROP TABLE readings; --",
    '" UNION SELECT document FROM notes --',
    "1) OR (1=1",
    "%' ESCAPE '",
    "\\'; DELETE FROM drains; --",
    "\x00",
    "𝔘" * 50,
)


def filters(site: Site) -> list[tuple[str, str, str]]:
    """(path, name, where) of every parameter of every GET that the description knows."""
    paths: dict[str, Any] = site.client.get("/api/v1/openapi.json").json()["paths"]
    return [
        (path, one["name"], one["in"])
        for path, verbs in paths.items()
        if "get" in verbs and not path.endswith("/events")
        for one in verbs["get"].get("parameters", ())
        if one["in"] in ("query", "path")
    ]


@pytest.mark.slow
def test_sql_in_a_filter_is_a_word_like_any_other(site: Site) -> None:
    site.application.ingest([smart_reading("A"), smart_reading("B")])
    work(site.application)
    before = (
        site.application.store.latest_readings(),
        site.application.store.drains(),
        site.application.store.outcomes(),
    )
    known = filters(site)
    assert len(known) > 10
    for path, name, where in known:
        for word in WORDS:
            there = path.replace("{" + name + "}", "WORD") if where == "path" else path
            for other in ("{id}", "{device}", "{osd}", "{item}"):
                there = there.replace(other, "ST4000DM000_A")
            asked = (
                f"{there.replace('WORD', quoted(word))}?{name}={quoted(word)}" if where == "query" else there
            )
            answer = site.client.get(asked.replace("WORD", quoted(word)), headers=site.acting)
            assert answer.status_code < 500, (path, name, word, answer.text)
            if answer.status_code == 200 and where == "query" and isinstance(answer.json(), dict):
                assert len(answer.json().get("items", [])) <= 200
    assert before == (
        site.application.store.latest_readings(),
        site.application.store.drains(),
        site.application.store.outcomes(),
    )


def quoted(word: str) -> str:
    from urllib.parse import quote

    return quote(word, safe="")


def test_sql_and_script_in_what_is_delivered_come_back_as_words(site: Site) -> None:
    nasty = smart_reading(f"X{SCRIPT}'; DROP TABLE readings; --")
    body = [envelope(site.application, nasty)]
    body[0]["body"]["host"] = SCRIPT
    answer = site.client.post("/api/v1/readings", json=body, headers=site.acting).json()
    work(site.application)
    shown = site.client.get("/api/v1/devices")
    assert shown.headers["content-type"] == "application/json"
    assert shown.headers["x-content-type-options"] == "nosniff"
    assert "script-src 'self'" in shown.headers["content-security-policy"]
    assert answer["accepted"] + len(answer["refused"]) == 1
    if answer["accepted"]:
        assert shown.json()["items"][0]["host"] == SCRIPT
    assert site.application.store.latest_readings() is not None


def test_a_script_in_an_address_that_is_not_there_comes_back_as_json(site: Site) -> None:
    answer = site.client.get(f"/api/v1/devices/{quoted(SCRIPT)}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /api/v1/devices?cursor=%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: a%0d%0aSet-Cookie: a=b\r\n",
        b"GET /%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /assets/%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /api/v1/devices/%0d%0aSet-Cookie:%20a=b/ HTTP/1.1\r\nHost: localhost\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\nSet-Cookie: a=b\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
        b"POST /api/v1/halt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    ],
)
def test_line_breaks_in_what_is_asked_make_no_header_of_ours(site: Site, head: bytes) -> None:
    with raw(site) as connection:
        connection.sendall(head + b"Connection: close\r\n\r\n")
        said = answered(connection)
    headers = said.split(b"\r\n\r\n")[0]
    assert b"set-cookie: a=b" not in headers.lower()
    assert b"\nset-cookie" not in headers.lower()


def test_beyond_a_proxy_reading_needs_a_token_though_we_listen_on_loopback(
    place: Place, serve: Serve
) -> None:
    application = with_service(place, allowed_hosts=("predrain.example.org",)).application()
    site = serve(application)
    for headers in ({"Host": "predrain.example.org"}, {"X-Forwarded-For": "203.0.113.7"}):
        answer = site.client.get("/api/v1/status", headers=headers)
        assert answer.status_code == 401, headers
        assert site.client.get("/api/v1/session", headers=headers).json()["can_read"] is False
        assert site.client.get("/api/v1/status", headers={**headers, **site.acting}).status_code == 200
    shut(application)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "predrain.example.org"])
def test_beyond_loopback_without_tls_it_does_not_start_and_says_what_to_set(host: str) -> None:
    from predrain.service.http.server import UnencryptedListen

    with pytest.raises(UnencryptedListen, match="set tls_certificate and tls_key"):
        bind_listening_socket(ServiceTable(host=host, port=0))


def test_a_service_that_listens_beyond_loopback_shows_no_data_without_a_token(
    place: Place, serve: Serve
) -> None:
    application = with_service(place, host="0.0.0.0", insecure_without_tls=True).application()
    site = serve(application)
    for path in ("status", "osds", "devices", "events", "openapi.json"):
        answer = site.client.get(f"/api/v1/{path}")
        assert answer.status_code == (200 if path == "openapi.json" else 401)
    shut(application)

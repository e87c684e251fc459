"""A real nginx before a real `predrain up`, both set as docs/how-to/use-a-reverse-proxy.md says."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
import trustme

from predrain.data.wire import encode_envelope
from predrain.service.rest.authentication import CSRF_HEADER
from tests.attack.target import Target, read_all, running_service
from tests.deadlines import idle_seconds
from tests.docs.pages import DOCS
from tests.ports import hold_port
from tests.service.conftest import smart_reading

pytestmark = [pytest.mark.system, pytest.mark.slow]
PAGE = DOCS / "how-to" / "use-a-reverse-proxy.md"
NAME = "predrain.example.org"
OPENER = "127.0.0.2"
OTHER = "127.0.0.3"
PATIENCE = 60.0
OVER_LIMIT = 429


def nginx() -> str:
    """The program. Without it the test is skipped; under CI it fails."""
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("run: .ci/apt --asleep nginx")
    return found


def read_block(language: str) -> str:
    """The page's only block in that language."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(block)


def replace_once(text: str, *pairs: tuple[str, str]) -> str:
    for before, after in pairs:
        assert text.count(before) == 1, f"the page does not say `{before}` once"
        text = text.replace(before, after)
    return text


class _NamedTransport(httpx2.HTTPTransport):
    """Asks the proxy by its name, which no name server of the test knows."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.extensions = {**request.extensions, "sni_hostname": NAME}
        return super().handle_request(request)


@dataclass(frozen=True, slots=True)
class Proxy:
    """A running nginx."""

    port: int
    trust: ssl.SSLContext
    folder: Path

    @property
    def authority(self) -> str:
        """The name and port that clients ask for."""
        return f"{NAME}:{self.port}"

    def open_client(self, address: str = OPENER, token: str | None = None) -> httpx2.Client:
        """A client that connects from `address`."""
        headers = {"Host": self.authority} | ({"Authorization": f"Bearer {token}"} if token else {})
        return httpx2.Client(
            base_url=f"https://127.0.0.1:{self.port}",
            headers=headers,
            transport=_NamedTransport(verify=self.trust, local_address=address),
            timeout=60,
        )

    def connect(self, address: str = OPENER) -> ssl.SSLSocket:
        """A connection after its TLS handshake, on which nothing was sent yet."""
        plain = socket.create_connection(("127.0.0.1", self.port), 60, source_address=(address, 0))
        return self.trust.wrap_socket(plain, server_hostname=NAME)


@contextmanager
def running_nginx(folder: Path, upstream_port: int) -> Iterator[Proxy]:
    """The page's nginx on a free port, before `upstream_port`."""
    folder.mkdir()
    authority = trustme.CA()
    issued = authority.issue_cert(NAME)
    chain, key, port = folder / "fullchain.pem", folder / "key.pem", hold_port()
    chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    server = replace_once(
        read_block("nginx"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;"),
        ("/etc/predrain/tls/fullchain.pem", str(chain)),
        ("/etc/predrain/tls/key.pem", str(key)),
        ("http://127.0.0.1:8080", f"http://127.0.0.1:{upstream_port}"),
        ("    location / {", "    location = /metrics { deny all; }\n    location / {"),
    )
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    user = "user root;" if os.geteuid() == 0 else ""
    config = folder / "nginx.conf"
    config.write_text(
        f"{user}\ndaemon off;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}\n{server}}}\n"
    )
    process = subprocess.Popen([nginx(), "-p", folder, "-c", config, "-e", folder / "error.log"])
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    try:
        until(lambda: _is_listening(process, port, folder), "nginx")
        yield Proxy(port, trust, folder)
    finally:
        process.terminate()
        process.wait(30)


def _is_listening(process: subprocess.Popen[bytes], port: int, folder: Path) -> bool:
    assert process.poll() is None, (folder / "error.log").read_text()
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
        return True
    return False


def until(holds: Callable[[], object], awaited: str) -> None:
    end = idle_seconds() + PATIENCE
    while not holds():
        assert idle_seconds() < end, f"{awaited} did not come"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """`predrain up` with the page's settings."""
    nginx()
    settings = read_block("toml").removeprefix("[service]\n").replace("port = 8080\n", "")
    with running_service(tmp_path_factory.mktemp("service"), settings=settings) as target:
        yield target


@pytest.fixture
def proxy(service: Target, tmp_path: Path) -> Iterator[Proxy]:
    """A new nginx before the service, so that no test counts against the limits of another one."""
    with running_nginx(tmp_path / "nginx", service.port) as running:
        yield running


@pytest.fixture
def lone_proxy(tmp_path: Path) -> Iterator[Proxy]:
    """An nginx before a port on which nothing listens: it answers by itself, or says 502."""
    with running_nginx(tmp_path / "nginx", hold_port()) as running:
        yield running


def test_a_request_through_the_proxy_needs_a_token(proxy: Proxy, service: Target) -> None:
    with proxy.open_client() as client:
        assert client.get("/api/v1/status").status_code == 401
        assert client.get("/healthz").status_code == 200
    with proxy.open_client(token=service.token) as client:
        assert client.get("/api/v1/status").status_code == 200


def test_metrics_can_be_closed_to_strangers(proxy: Proxy) -> None:
    with proxy.open_client() as client:
        assert client.get("/metrics").status_code == 403


def test_the_audit_names_the_address_of_the_sender_and_no_address_that_the_sender_made_up(
    proxy: Proxy, service: Target
) -> None:
    with proxy.open_client(OTHER, service.token) as client:
        answer = client.post(
            "/api/v1/halt", json={"reason": "proxied"}, headers={"X-Forwarded-For": "198.51.100.7"}
        )
        assert answer.status_code < 300
        lines = json.dumps(client.get("/api/v1/audit").json())
    assert f"from {OTHER}" in lines
    assert "198.51.100.7" not in lines


def test_a_person_signs_in_and_acts_on_the_page_of_the_proxy(proxy: Proxy, service: Target) -> None:
    with proxy.open_client() as client:
        signed_in = client.post("/api/v1/session", json={"token": service.token})
        cookie = signed_in.headers["set-cookie"]
        assert cookie.startswith("__Host-predrain=")
        assert "Secure" in cookie
        headers = {"Cookie": cookie.partition(";")[0], "Origin": f"https://{proxy.authority}"}
        word = client.get("/api/v1/session", headers=headers).json()["csrf_token"]
        halted = client.post(
            "/api/v1/halt", json={"reason": "by hand"}, headers={**headers, CSRF_HEADER: word}
        )
        assert halted.status_code < 300


def test_a_delivery_larger_than_the_default_of_nginx_arrives(proxy: Proxy, service: Target) -> None:
    now = datetime.now(UTC)
    one = encode_envelope(smart_reading("PROXIED", now), producer="test", sequence=0, sent_at=now)
    body = b"[" + b",".join([one] * (2 * 1024 * 1024 // len(one))) + b"]"
    assert len(body) > 1024 * 1024
    with proxy.open_client(token=service.token) as client:
        answer = client.post("/api/v1/readings", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text[:500]


def test_nginx_passes_a_body_of_16_mib_on_and_refuses_a_larger_one_itself(lone_proxy: Proxy) -> None:
    largest = 16 * 1024 * 1024
    with lone_proxy.open_client() as client:
        assert client.post("/api/v1/readings", content=b" " * largest).status_code == 502
    with lone_proxy.connect() as connection:
        head = f"POST /api/v1/readings HTTP/1.1\r\nHost: {NAME}\r\nContent-Length: {largest + 1}\r\n\r\n"
        connection.sendall(head.encode())
        assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]


def test_an_event_comes_while_its_stream_is_open(proxy: Proxy, service: Target) -> None:
    with (
        proxy.open_client(token=service.token) as client,
        client.stream("GET", "/api/v1/events") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith(":")  # predrain's first comment, long before a buffer is full
        assert client.post("/api/v1/halt", json={"reason": "seen"}).status_code < 300
        assert "event: changed" in lines


def test_an_address_with_50_event_streams_gets_no_51st_and_another_address_does(
    proxy: Proxy, service: Target
) -> None:
    with ExitStack() as streams:

        def open_stream(address: str) -> int:
            connection = streams.enter_context(proxy.connect(address))
            request = (
                f"GET /api/v1/events HTTP/1.1\r\nHost: {proxy.authority}\r\n"
                f"Authorization: Bearer {service.token}\r\n\r\n"
            )
            connection.sendall(request.encode())
            return int(connection.recv(4096).split(b" ")[1])

        assert [open_stream(OPENER) for _ in range(51)] == [200] * 50 + [OVER_LIMIT]
        assert open_stream(OTHER) == 200


def test_connections_without_a_whole_head_do_not_count(lone_proxy: Proxy) -> None:
    with ExitStack() as silent:
        for _ in range(60):
            silent.enter_context(lone_proxy.connect()).sendall(b"GET /healthz HTTP/1.1\r\n")
        with lone_proxy.open_client() as client:
            assert client.get("/healthz").status_code == 502


def test_an_address_gets_200_requests_at_once_and_then_100_a_second(lone_proxy: Proxy) -> None:
    request = f"GET /healthz HTTP/1.1\r\nHost: {lone_proxy.authority}\r\n"
    with lone_proxy.connect() as connection:
        begun = time.monotonic()
        connection.sendall(f"{request}\r\n".encode() * 599 + f"{request}Connection: close\r\n\r\n".encode())
        answers = read_all(connection)
        seconds = time.monotonic() - begun
    passed, refused = answers.count(b"HTTP/1.1 502 "), answers.count(b"HTTP/1.1 429 ")
    assert passed + refused == 600
    assert 201 <= passed <= 202 + 100 * seconds
    assert refused > 0
    with lone_proxy.open_client(OTHER) as client:
        assert client.get("/healthz").status_code == 502


def test_a_head_that_never_ends_is_dropped_after_20_seconds(lone_proxy: Proxy) -> None:
    with lone_proxy.connect() as connection:
        connection.settimeout(1.0)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        begun = time.monotonic()  # nginx's timer knows nothing of a busy machine either
        with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLError):
            while time.monotonic() - begun < PATIENCE:
                connection.sendall(b"a")
                with suppress(TimeoutError):
                    if not connection.recv(4096):
                        break
        assert 15 < time.monotonic() - begun < 45

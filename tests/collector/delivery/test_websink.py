"""The sink that is a service, against real sockets: what it takes, what it never takes, and when it is away."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from predrain.collector.delivery import BadAddress, DeliveryResult, SinkUnavailable, WebSink
from predrain.data.log.log_port import Record, Topic

RECORDS = tuple(Record(f"disk-{n}", b'{"n":%d}' % n) for n in range(8))
Reply = tuple[int, dict[str, str], Any]


class Service:
    """Answers each request by `answer(path, items)`, and remembers what came."""

    def __init__(self) -> None:
        self.answer: Callable[[str, list[Any]], Reply] = lambda _, items: (
            200,
            {},
            {"accepted": len(items), "refused": []},
        )
        self.came: list[tuple[str, str, list[Any]]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                items = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.came.append((self.path, self.headers["Authorization"], items))
                status, headers, body = service.answer(self.path, items)
                raw = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(raw)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - their name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def sink(self, **options: Any) -> WebSink:
        return WebSink(self.url, lambda: "token-of-this-host", **options)


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_readings_and_latencies_are_posted_as_they_are_to_their_own_routes(service: Service) -> None:
    sink = service.sink()
    assert sink.deliver(Topic.READINGS, RECORDS[:2]) == DeliveryResult()
    assert sink.deliver(Topic.LATENCY, RECORDS[2:3]) == DeliveryResult()
    bearer = "Bearer token-of-this-host"
    assert service.came == [
        ("/api/v1/readings", bearer, [{"n": 0}, {"n": 1}]),
        ("/api/v1/latency", bearer, [{"n": 2}]),
    ]


def test_a_single_record_that_the_service_refuses_is_reported_with_its_key(service: Service) -> None:
    service.answer = lambda *_: (
        207,
        {},
        {"accepted": 1, "refused": [{"index": 1, "reason": "from the future"}]},
    )
    (told,) = service.sink().deliver(Topic.READINGS, RECORDS[:2]).refused
    assert "disk-1" in told
    assert "from the future" in told


def test_a_record_that_the_service_defers_keeps_its_place_in_a_halved_batch(service: Service) -> None:
    def answer(_: str, items: list[Any]) -> Reply:
        if len(items) > 2:
            return 413, {}, {"detail": "too much"}
        early = [
            {"index": place, "reason": "early", "retry_after": 7.5}
            for place, n in enumerate(items)
            if n["n"] > 5
        ]
        return 207, {}, {"accepted": len(items) - len(early), "refused": early}

    service.answer = answer
    later = service.sink().deliver(Topic.READINGS, RECORDS).later
    assert [(one.place, one.seconds) for one in later] == [(6, 7.5), (7, 7.5)]
    assert "disk-7: early" in later[1].why


@pytest.mark.parametrize("status", [413, 422])
def test_a_batch_refused_whole_is_halved_until_only_the_bad_record_is_left(
    service: Service, status: int
) -> None:
    def answer(_: str, items: list[Any]) -> Reply:
        if {"n": 5} in items:
            return status, {}, {"detail": "too much"}
        return 200, {}, {"accepted": len(items), "refused": []}

    service.answer = answer
    (told,) = service.sink().deliver(Topic.READINGS, RECORDS).refused
    assert "disk-5" in told
    taken = [item["n"] for _, _, items in service.came if {"n": 5} not in items for item in items]
    assert sorted(taken) == [0, 1, 2, 3, 4, 6, 7]


@pytest.mark.parametrize(
    ("status", "headers", "body", "why", "after"),
    [
        (503, {"Retry-After": "30"}, {"detail": "the log is full"}, "the log is full", 30.0),
        (429, {"Retry-After": "1e9"}, {"detail": "slowly"}, "slowly", 3600.0),
        (503, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"<html>", "Service Unavailable", 0.0),
        (401, {}, {"detail": "no such token"}, "token_file", 0.0),
        (404, {}, b"", "404", 0.0),
        (200, {}, b"<html>welcome</html>", "no predrain service", 0.0),
        (301, {"Location": "https://elsewhere.example/"}, b"", "301", 0.0),
    ],
)
def test_any_other_answer_keeps_all_and_says_why(
    service: Service, status: int, headers: dict[str, str], body: Any, why: str, after: float
) -> None:
    service.answer = lambda *_: (status, headers, body)
    with pytest.raises(SinkUnavailable, match=why) as told:
        service.sink().deliver(Topic.READINGS, RECORDS)
    assert told.value.after == after


def test_a_host_that_was_not_enrolled_yet_is_told_how(tmp_path: Path) -> None:
    with pytest.raises(
        SinkUnavailable,
        match=r"there is no token .*token is missing\): .*`predrain collect --enrol TOKEN` here",
    ):
        WebSink("http://127.0.0.1:1", (tmp_path / "token").read_text).deliver(Topic.READINGS, RECORDS)


def test_a_port_where_nobody_listens_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SinkUnavailable, match="no service answers at"):
            WebSink(url, lambda: "t").deliver(Topic.READINGS, RECORDS)


def test_a_certificate_that_is_not_trusted_is_told_as_that_with_the_setting_that_cures_it(
    service: Service,
) -> None:
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(ours)
    service.server.socket = ours.wrap_socket(service.server.socket, server_side=True)
    service.url = service.url.replace("http", "https")
    with pytest.raises(
        SinkUnavailable, match=r"certificate .* is not trusted \(.*name who signed it as `ca` in"
    ):
        service.sink().deliver(Topic.READINGS, RECORDS)


@pytest.mark.parametrize("drip", [b"", b"H"])
def test_a_service_that_says_nothing_or_drips_is_left_at_the_deadline(drip: bytes) -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip_on() -> None:
            peer, _ = server.accept()
            with peer:
                while not over.wait(0.02):
                    if drip:
                        try:
                            peer.send(b"HTTP/1.1 200 OK\r\nX: " if drip == b"H" else drip)
                        except OSError:
                            return

        thread = threading.Thread(target=drip_on)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(SinkUnavailable):
            WebSink(url, lambda: "t", deadline=0.3).deliver(Topic.READINGS, RECORDS)
        over.set()
        thread.join()


def test_a_token_that_cannot_be_read_keeps_all_and_names_the_file(tmp_path: Path) -> None:
    sink = WebSink("http://127.0.0.1:1", lambda: (tmp_path / "token").read_text())
    with pytest.raises(SinkUnavailable, match=str(tmp_path)):
        sink.deliver(Topic.READINGS, RECORDS)


@pytest.mark.parametrize("url", ["", "service:8080", "ftp://service", "https://", "https://service:port"])
def test_an_address_that_is_none_is_refused_at_the_start(url: str) -> None:
    with pytest.raises(BadAddress, match="https://HOST:PORT"):
        WebSink(url, lambda: "t")

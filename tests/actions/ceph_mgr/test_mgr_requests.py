"""One request of the mgr module ends by its deadline in an answer or in one sentence, for any behaviour of the peer."""

from __future__ import annotations

import threading

import pytest

from predrain.actions.ceph_mgr.predrain.service_requests import (
    Declined,
    Service,
    UnusableAnswer,
    sanitize_line,
    send_service_request,
)
from tests.actions.ceph_mgr.peer import http, saying
from tests.deadlines import idle_seconds

TOKEN = "a-token-of-some-length-0123456789"


def asked(url: str, seconds: float = 5.0, limit: int = 4096) -> object:
    return send_service_request(Service(url, TOKEN), "GET", "status", seconds=seconds, limit=limit).body


def test_a_good_answer_is_read_and_the_token_is_sent() -> None:
    seen: list[bytes] = []
    with saying(http(b'{"a": [1, 2.5, null]}', ETag='W/"x"'), seen=seen) as url:
        reply = send_service_request(Service(url + "/below/", TOKEN), "GET", "status")
    assert reply.body == {"a": [1, 2.5, None]}
    assert reply.etag == 'W/"x"'
    assert seen[0].startswith(b"GET /below/api/v1/status HTTP/1.1\r\n")
    assert f"Authorization: Bearer {TOKEN}".encode() in seen[0]


def test_an_answer_that_comes_in_many_pieces_is_read_whole() -> None:
    body = b"[" + b"1, " * 30_000 + b"1]"
    answer = http(body, Connection="close")
    pieces = [answer[at : at + 20_000] for at in range(0, len(answer), 20_000)]
    with saying(*pieces, every=0.01) as url:
        assert asked(url, limit=100_000) == [1] * 30_001


def test_an_unchanged_answer_is_not_read_again() -> None:
    with saying(http(b"", "304 Not Modified")) as url:
        assert send_service_request(Service(url, TOKEN), "GET", "osds").unchanged


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "no answer to use"),
        (b"garbage\r\n\r\n", "no answer to use"),
        (http(b'{"a": NaN}'), "NaN is no number"),
        (http(b'{"a": 1e999}'), "number without end"),
        (http(b'{"a": ' + b"9" * 3000 + b"}"), "number without end"),
        (http(b"[" * 4000), "no answer to use"),
        (http(b"\xff\xfe"), "no answer to use"),
        (http(b"x", Content_Length="100000"), "100000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 5000, "larger than the 4096"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 500 + b"\r\n", "no answer to use"),
        (http(b"", "302 Found", Location="http://evil.example/"), "redirects"),
        (
            http(b'{"detail": "The token is not known."}', "401 Unauthorized"),
            "refuses the token (401: The token",
        ),
        (http(b'{"detail": "no"}', "403 Forbidden"), "refuses the token"),
        (http(b"oops", "503 Service Unavailable"), "it answers 503"),
        (http(b'{"a": 1', Content_Length="4000"), "no answer to use"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_answer_that_cannot_be_used_is_one_sentence(answer: bytes, words: str) -> None:
    with saying(answer) as url, pytest.raises(UnusableAnswer) as told:
        asked(url)
    assert words in str(told.value)
    assert "\n" not in str(told.value)


def test_a_refusal_keeps_the_services_own_sentence() -> None:
    answer = http(b'{"detail": "Drain x is cancelled;\\u001b[31m ask again."}', "409 Conflict")
    with saying(answer) as url, pytest.raises(Declined) as told:
        asked(url)
    assert (told.value.status, str(told.value)) == (409, "Drain x is cancelled; [31m ask again.")


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True], ids=["headers", "body"])
def test_a_peer_that_drips_is_cut_off_at_the_deadline_of_the_whole(whole: bool) -> None:
    drip = [b"HTTP/1.1 200 OK\r\n", *([b"Content-Length: 1000\r\n\r\n"] if whole else []), *[b"x"] * 900]
    before = set(threading.enumerate())
    began = idle_seconds()
    with saying(*drip, every=0.05) as url:
        with pytest.raises(UnusableAnswer, match="no whole answer within 1 s"):
            asked(url, seconds=1.0)
        took = idle_seconds() - began
    assert took < 20
    assert not set(threading.enumerate()) - before


def test_nobody_there_is_one_sentence() -> None:
    with pytest.raises(UnusableAnswer, match="refused"):
        asked("http://127.0.0.1:1")


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://", "http://u:p@127.0.0.1", "http://127.0.0.1/?x", "http://[::"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UnusableAnswer):
        asked(url)


def test_the_token_never_crosses_a_network_in_the_clear() -> None:
    with pytest.raises(UnusableAnswer, match="in the clear"):
        asked("http://192.0.2.1:8080")


@pytest.mark.parametrize("token", ["x\r\nEvil: 1", "x y", "\N{SNOWMAN}", "x" * 600])
def test_a_token_cannot_smuggle_a_header_in(token: str) -> None:
    seen: list[bytes] = []
    with (
        saying(http(b"{}"), seen=seen) as url,
        pytest.raises(UnusableAnswer, match="the token is not one") as told,
    ):
        send_service_request(Service(url, token), "GET", "status")
    assert token not in str(told.value)
    assert all(asked == b"" for asked in seen)


def test_text_from_outside_steers_no_terminal() -> None:
    assert sanitize_line("a\x1b[2Jb\r\n\tc\u202ed") == "a [2Jb c d"
    assert len(sanitize_line("x" * 1000, 50)) == 50

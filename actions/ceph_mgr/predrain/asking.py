"""One request to the service, by a deadline for all of it: a peer that drips bytes is cut off as one that is silent.

Nothing that comes back is trusted: sizes are bounded, redirects refused, JSON is read without NaN and endless numbers.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import math
import socket
import ssl
import time
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

MIB = 1 << 20
TOKEN_MAX = 512


class UnusableAnswer(Exception):
    """No answer that can be used; the text is one sentence with the cure."""


class Declined(Exception):
    """The service understood and said no; the text is its own sentence."""

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


class Service(NamedTuple):
    """Where the service is and what it is shown. `ca_file` and `ca_text` (PEM) add to the system's authorities."""

    url: str
    token: str
    ca_file: str = ""
    ca_text: str = ""


class ServiceReply(NamedTuple):
    """A 2xx answer; `unchanged` when it was 304 and what is known still holds."""

    body: Any
    etag: str
    unchanged: bool = False


def ask(
    service: Service,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    seconds: float = 10.0,
    limit: int = MIB,
) -> ServiceReply:
    """Ask `path` (below /api/v1, quoted). Raises Unanswered, Declined; never anything else."""
    until = time.monotonic() + seconds
    try:
        where = _address(service.url)
        connection = _connection(where, service, seconds)
        sock = None
        try:
            connection.connect()
            sock = connection.sock
            connection.sock = _Deadlined(sock, until)
            sent = dict(headers or {}, Accept="application/json", Connection="close")
            if service.token:
                sent["Authorization"] = f"Bearer {_header_safe(service.token)}"
            content = None
            if body is not None:
                content, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
            connection.request(method, f"{where.path.rstrip('/')}/api/v1/{path}", content, sent)
            with connection.getresponse() as answer:
                return _reply(answer, limit)
        finally:
            connection.close()
            if sock is not None:
                sock.close()
    except (UnusableAnswer, Declined):
        raise
    except ssl.SSLCertVerificationError as error:
        raise UnusableAnswer(
            f"the certificate of {service.url} is not trusted ({error.verify_message}); name its authority by ca"
        ) from error
    except socket.timeout as error:
        raise UnusableAnswer(f"{service.url} gave no whole answer within {seconds:.0f} s") from error
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise UnusableAnswer(f"{service.url} gave no answer to use ({_short(error)})") from error


def clean(text: str, most: int = 300) -> str:
    """Text from outside for terminals and logs: one line, nothing that steers a terminal, at most so long."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * most])
    shown = " ".join(shown.split())
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def _address(url: str) -> SplitResult:
    where = urlsplit(url)
    if where.scheme not in ("http", "https") or not where.hostname or where.username or where.query:
        raise UnusableAnswer(f"url is {clean(url, 100)!r}; it must be like https://predrain.example:8080")
    if where.scheme == "http" and not _loopback(where.hostname):
        raise UnusableAnswer(f"{clean(url, 100)} would carry the token in the clear; use https")
    return where


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _connection(where: SplitResult, service: Service, seconds: float) -> http.client.HTTPConnection:
    host = str(where.hostname)
    if where.scheme == "http":
        return http.client.HTTPConnection(host, where.port, timeout=seconds)
    context = ssl.create_default_context()
    if service.ca_file or service.ca_text:
        context.load_verify_locations(service.ca_file or None, None, service.ca_text or None)
    return http.client.HTTPSConnection(host, where.port, timeout=seconds, context=context)


def _header_safe(token: str) -> str:
    """A token that cannot smuggle a second header in."""
    if len(token) > TOKEN_MAX or not token.isascii() or not token.isprintable() or " " in token:
        raise UnusableAnswer(
            "the token is not one; set it again: ceph config-key set mgr/predrain/token -i FILE"
        )
    return token


def _reply(answer: http.client.HTTPResponse, limit: int) -> ServiceReply:
    etag = clean(answer.getheader("ETag") or "", 200)
    if answer.status == 304:
        return ServiceReply(None, etag, unchanged=True)
    if 300 <= answer.status < 400:
        raise UnusableAnswer(
            f"it redirects ({answer.status}), which is not followed; set url to the service itself"
        )
    if (answer.length or 0) > limit:
        raise UnusableAnswer(f"its answer of {answer.length} bytes is larger than the {limit} that are read")
    content = answer.read(limit + 1)
    if len(content) > limit:
        raise UnusableAnswer(f"its answer is larger than the {limit} bytes that are read")
    if 200 <= answer.status < 300:
        return ServiceReply(_json(content), etag)
    detail = _detail(content) or answer.reason or "no reason given"
    if answer.status in (401, 403):
        raise UnusableAnswer(f"it refuses the token ({answer.status}: {clean(detail)})")
    if answer.status >= 500:
        raise UnusableAnswer(f"it answers {answer.status}: {clean(detail)}")
    raise Declined(answer.status, clean(detail, 600))


def _json(content: bytes) -> Any:
    return json.loads(content.decode("utf-8"), parse_int=_whole, parse_float=_finite, parse_constant=_never)


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("a number without end")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits[:40])
    if len(digits) > 40 or not math.isfinite(number):
        raise ValueError("a number without end")
    return number


def _never(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _detail(content: bytes) -> str:
    try:
        said = _json(content)
    except (ValueError, RecursionError):
        return ""
    detail = said.get("detail") if isinstance(said, dict) else None
    return detail if isinstance(detail, str) else ""


def _short(error: Exception) -> str:
    return clean(f"{type(error).__name__}: {error}", 160)


class _Deadlined:
    """A socket whose every wait ends by one deadline: what `http.client` needs of a socket, and no more.

    It is closed by who made it: `http.client` closes its socket before it has read the answer.
    """

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock, self._until = sock, until

    def sendall(self, data: bytes | memoryview) -> None:
        self._arm()
        self._sock.sendall(data)

    def receive(self, buffer: Any) -> int:
        self._arm()
        return self._sock.recv_into(buffer)

    def makefile(self, mode: str) -> io.BufferedReader:
        assert mode == "rb"
        return io.BufferedReader(_Incoming(self))

    def close(self) -> None:
        pass

    def _arm(self) -> None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise socket.timeout("deadline")
        self._sock.settimeout(left)


class _Incoming(io.RawIOBase):
    def __init__(self, sock: _Deadlined) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._sock.receive(buffer)

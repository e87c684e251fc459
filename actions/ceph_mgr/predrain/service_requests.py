"""One request to the service with one deadline for all of it, so that a slow sender of single bytes is cut off as
well.

Nothing in the answer is trusted: sizes are bounded, redirects are refused, and JSON is read without NaN and
without numbers of unbounded length.
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
    """There is no usable answer. The text is one sentence with the remedy."""


class Declined(Exception):
    """The service understood the request and refused it. The text is the service's own sentence."""

    def __init__(self, status: int, detail: str) -> None:
        self.status = status
        super().__init__(detail)


class Service(NamedTuple):
    """The address of the service and the token for it. `ca_file` and `ca_text` (PEM) add to the system's
    authorities.
    """

    url: str
    token: str
    ca_file: str = ""
    ca_text: str = ""


class ServiceReply(NamedTuple):
    """A 2xx answer. `unchanged`: the answer was 304, and the last known body still holds."""

    body: Any
    etag: str
    unchanged: bool = False


def send_service_request(
    service: Service,
    method: str,
    path: str,
    body: Mapping[str, Any] | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    seconds: float = 10.0,
    limit: int = MIB,
) -> ServiceReply:
    """Send a request to `path` (below /api/v1, quoted). Raises UnusableAnswer or Declined, and no other exception."""
    until = time.monotonic() + seconds
    try:
        where = _parse_service_url(service.url)
        connection = _create_connection(where, service, seconds)
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
                return _read_service_reply(answer, limit)
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
        raise UnusableAnswer(f"{service.url} gave no answer to use ({_describe_error(error)})") from error


def sanitize_line(text: str, most: int = 300) -> str:
    """Return text from outside fit for terminals and logs: one line, no control characters, at most `most` letters."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * most])
    shown = " ".join(shown.split())
    return shown if len(shown) <= most else shown[: most - 3] + "..."


def _parse_service_url(url: str) -> SplitResult:
    where = urlsplit(url)
    if where.scheme not in ("http", "https") or not where.hostname or where.username or where.query:
        raise UnusableAnswer(
            f"url is {sanitize_line(url, 100)!r}; it must be like https://predrain.example:8080"
        )
    if where.scheme == "http" and not _is_loopback_host(where.hostname):
        raise UnusableAnswer(f"{sanitize_line(url, 100)} would carry the token in the clear; use https")
    return where


def _is_loopback_host(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _create_connection(where: SplitResult, service: Service, seconds: float) -> http.client.HTTPConnection:
    host = str(where.hostname)
    if where.scheme == "http":
        return http.client.HTTPConnection(host, where.port, timeout=seconds)
    context = ssl.create_default_context()
    if service.ca_file or service.ca_text:
        context.load_verify_locations(service.ca_file or None, None, service.ca_text or None)
    return http.client.HTTPSConnection(host, where.port, timeout=seconds, context=context)


def _header_safe(token: str) -> str:
    """Return the token if it cannot add a second header to the request. Raises UnusableAnswer."""
    if len(token) > TOKEN_MAX or not token.isascii() or not token.isprintable() or " " in token:
        raise UnusableAnswer(
            "the token is not one; set it again: ceph config-key set mgr/predrain/token -i FILE"
        )
    return token


def _read_service_reply(answer: http.client.HTTPResponse, limit: int) -> ServiceReply:
    etag = sanitize_line(answer.getheader("ETag") or "", 200)
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
        return ServiceReply(_parse_json(content), etag)
    detail = _read_error_detail(content) or answer.reason or "no reason given"
    if answer.status in (401, 403):
        raise UnusableAnswer(f"it refuses the token ({answer.status}: {sanitize_line(detail)})")
    if answer.status >= 500:
        raise UnusableAnswer(f"it answers {answer.status}: {sanitize_line(detail)}")
    raise Declined(answer.status, sanitize_line(detail, 600))


def _parse_json(content: bytes) -> Any:
    return json.loads(
        content.decode("utf-8"),
        parse_int=_parse_bounded_int,
        parse_float=_parse_finite_float,
        parse_constant=_reject_json_constant,
    )


def _parse_bounded_int(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError("a number without end")
    return int(digits)


def _parse_finite_float(digits: str) -> float:
    number = float(digits[:40])
    if len(digits) > 40 or not math.isfinite(number):
        raise ValueError("a number without end")
    return number


def _reject_json_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _read_error_detail(content: bytes) -> str:
    try:
        said = _parse_json(content)
    except (ValueError, RecursionError):
        return ""
    detail = said.get("detail") if isinstance(said, dict) else None
    return detail if isinstance(detail, str) else ""


def _describe_error(error: Exception) -> str:
    return sanitize_line(f"{type(error).__name__}: {error}", 160)


class _Deadlined:
    """A socket whose every wait ends by one deadline. It has only the methods that `http.client` needs.

    The code that made the socket closes it, because `http.client` closes its socket before it has read the answer.
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

"""One HTTP exchange with the service: its bounds, its problems, and its repeats when no answer comes."""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BASE = "/api/v1/"
LONGEST_ANSWER_BYTES = 1 << 28
WAITS = (0.5, 2.0)
"""The seconds before each repeat of a failed request, if the service does not name a time."""
LONGEST_WAIT = 30.0


class ServiceProblem(Exception):
    """The service refused the request; the text is the service's sentence with the cure.

    `status` is HTTP's. `body` is the whole problem (RFC 9457) with members of its own, such as `drain` for an approval
    that came too late (412). `retry_after_seconds`: the time after which the request may be sent again, if the service
    says so.
    """

    def __init__(
        self, status: int, detail: str, body: Mapping[str, Any], retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.body, self.retry_after_seconds = status, body, retry_after_seconds


class Unreachable(Exception):
    """No service answers at that address, or the answer is late or not predrain's."""


class Untrusted(Unreachable):
    """The server's certificate is signed by no trusted CA, or is for another name."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer with a status of 2xx."""

    status: int
    content: bytes

    def json(self) -> Any:
        """Return the decoded content, or None if it is empty."""
        return json.loads(self.content) if self.content else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects, so that a token goes only to the address that it is meant for."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Wire:
    """The connection to one service. Thread-safe.

    `tls`: the CAs to trust; those of the system if not given. `headers`: sent with every request.
    `longest_answer_bytes`: a longer answer is refused as Unreachable.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        seconds: float = 30.0,
        waits: Sequence[float] = WAITS,
        sleep: Callable[[float], object] = time.sleep,
        headers: Mapping[str, str] | None = None,
        longest_answer_bytes: int = LONGEST_ANSWER_BYTES,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url} is no address of a service; it begins with http:// or https://")
        self.url, self._token, self._seconds = url.rstrip("/"), token, seconds
        self._waits, self._sleep, self._headers = waits, sleep, dict(headers or {})
        self._longest = longest_answer_bytes
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects(), urllib.request.ProxyHandler({})]
        if url.startswith("https://"):
            handlers.append(urllib.request.HTTPSHandler(context=tls or ssl.create_default_context()))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, **query: Any) -> HttpAnswer:
        """Send a GET below /api/v1, and repeat it without an answer or if the service is busy. Raises ServiceProblem,
        Unreachable.
        """
        said = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})
        return self._again("GET", f"{path}?{said}" if said else path, None, {})

    def send_action(
        self, method: str, path: str, body: Any = None, *, if_match: str | None = None, key: str | None = None
    ) -> HttpAnswer:
        """Send a request that changes something. It carries a key (`key`, else a random one), so that the service
        carries it out once, however often it is sent. Raises ServiceProblem, Unreachable.
        """
        headers = {"Idempotency-Key": key or secrets.token_hex(16)} | (
            {"If-Match": if_match} if if_match else {}
        )
        return self._again(method, path, body, headers)

    def deliver(self, path: str, body: Any) -> HttpAnswer:
        """POST values that have a key of their own (readings, latencies). Raises ServiceProblem, Unreachable."""
        return self._again("POST", path, body, {})

    def _again(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> HttpAnswer:
        for wait in self._waits:
            try:
                return self._once(method, path, body, headers)
            except Unreachable:
                self._sleep(wait)
            except _Later as later:
                seconds = later.problem.retry_after_seconds
                self._sleep(min(wait if seconds is None else seconds, LONGEST_WAIT))
        try:
            return self._once(method, path, body, headers)
        except _Later as later:
            raise later.problem from None

    def _once(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> HttpAnswer:
        content = None if method in ("GET", "DELETE") else json.dumps({} if body is None else body).encode()
        said = {"Accept": "application/json", "Content-Type": "application/json"}
        said |= {**self._headers, **headers}
        if self._token:
            said["Authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(f"{self.url}{BASE}{path}", content, said, method=method)  # noqa: S310
        try:
            with self._opener.open(request, timeout=self._seconds) as answer:
                return HttpAnswer(answer.status, _read_bounded(answer, self._longest))
        except urllib.error.HTTPError as error:
            with error:
                problem = _read_problem(error, self._longest)
            if error.code in (429, 503) or (error.code == 409 and "Retry-After" in error.headers):
                raise _Later(problem) from None
            raise problem from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)  # urllib wraps the error of the socket
            if isinstance(reason, ssl.SSLCertVerificationError):
                told = f"the certificate of {self.url} is not trusted ({reason.verify_message})"
                raise Untrusted(told) from error
            why = (reason.strerror if isinstance(reason, OSError) else None) or reason
            raise Unreachable(f"no service answers at {self.url} ({why})") from error


class _Later(Exception):
    """A refusal after which the request may be sent again."""

    def __init__(self, problem: ServiceProblem) -> None:
        super().__init__()
        self.problem = problem


def _read_problem(error: urllib.error.HTTPError, longest: int) -> ServiceProblem:
    seconds = _parse_retry_after(error.headers.get("Retry-After"))
    try:
        body = json.loads(_read_bounded(error, longest))
        return ServiceProblem(error.code, str(body["detail"]), body, seconds)
    except (OSError, http.client.HTTPException, Unreachable, ValueError, KeyError, TypeError):
        return ServiceProblem(error.code, f"the service answered {error.code} {error.reason}", {}, seconds)


def _read_bounded(answer: Any, longest: int) -> bytes:
    content: bytes = answer.read(longest + 1)
    if len(content) > longest:
        raise Unreachable(f"the answer is longer than {longest} bytes, which no answer of ours is")
    return content


def _parse_retry_after(header: str | None) -> float | None:
    return float(header) if header is not None and header.isascii() and header.isdigit() else None

"""One HTTP exchange with the service: its bounds, its problems, and what is sent again when nobody answers."""

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
"""Seconds before each repeat of what failed, where the service does not say how many."""
LONGEST_WAIT = 30.0


class ServiceProblem(Exception):
    """The service refused; the text is its sentence with the cure.

    `status` is HTTP's; `body` the whole problem (RFC 9457), with members of its own, such as `drain` where an approval
    came too late (412). `retry_after_seconds`: when the service says that the request may be sent again.
    """

    def __init__(
        self, status: int, detail: str, body: Mapping[str, Any], retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.body, self.retry_after_seconds = status, body, retry_after_seconds


class Unreachable(Exception):
    """Nobody answers at that address, or not in time, or not in our words."""


class Untrusted(Unreachable):
    """Somebody answers, whose certificate is signed by nobody whom we trust, or bears another name."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer of 2xx."""

    status: int
    content: bytes

    def json(self) -> Any:
        """The content; None where there is none."""
        return json.loads(self.content) if self.content else None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token goes where it was meant to go."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Wire:
    """To one service. Thread-safe. `tls`: whom to trust; who the system trusts when not given. `headers`: sent with
    every request."""

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
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url} is no address of a service; it begins with http:// or https://")
        self.url, self._token, self._seconds = url.rstrip("/"), token, seconds
        self._waits, self._sleep, self._headers = waits, sleep, dict(headers or {})
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects(), urllib.request.ProxyHandler({})]
        if url.startswith("https://"):
            handlers.append(urllib.request.HTTPSHandler(context=tls or ssl.create_default_context()))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str, **query: Any) -> HttpAnswer:
        """GET below /api/v1, again where nobody answered. Raises Problem, Unreachable."""
        said = urllib.parse.urlencode({name: value for name, value in query.items() if value is not None})
        return self._again("GET", f"{path}?{said}" if said else path, None, {})

    def act(
        self, method: str, path: str, body: Any = None, *, if_match: str | None = None, key: str | None = None
    ) -> HttpAnswer:
        """A request that changes something, carried out once however often it is sent: it carries a key (ours, where
        `key` does not name it). Raises Problem, Unreachable.
        """
        headers = {"Idempotency-Key": key or secrets.token_hex(16)} | (
            {"If-Match": if_match} if if_match else {}
        )
        return self._again(method, path, body, headers)

    def deliver(self, path: str, body: Any) -> HttpAnswer:
        """POST of values that have a key of their own (readings, latencies). Raises Problem, Unreachable."""
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
                return HttpAnswer(answer.status, _bounded(answer))
        except urllib.error.HTTPError as error:
            with error:
                problem = _problem(error)
            if error.code in (429, 503) or (error.code == 409 and "Retry-After" in error.headers):
                raise _Later(problem) from None
            raise problem from None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(reason := getattr(error, "reason", error), ssl.SSLCertVerificationError):
                told = f"the certificate of {self.url} is not trusted ({reason.verify_message})"
                raise Untrusted(told) from error
            raise Unreachable(f"no service answers at {self.url} ({error})") from error


class _Later(Exception):
    """A refusal that may be none in a while."""

    def __init__(self, problem: ServiceProblem) -> None:
        super().__init__()
        self.problem = problem


def _problem(error: urllib.error.HTTPError) -> ServiceProblem:
    seconds = _seconds(error.headers.get("Retry-After"))
    try:
        body = json.loads(_bounded(error))
        return ServiceProblem(error.code, str(body["detail"]), body, seconds)
    except (OSError, http.client.HTTPException, Unreachable, ValueError, KeyError, TypeError):
        return ServiceProblem(error.code, f"the service answered {error.code} {error.reason}", {}, seconds)


def _bounded(answer: Any) -> bytes:
    content: bytes = answer.read(LONGEST_ANSWER_BYTES + 1)
    if len(content) > LONGEST_ANSWER_BYTES:
        raise Unreachable("the answer is longer than any of ours")
    return content


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isascii() and header.isdigit() else None

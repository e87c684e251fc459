"""A command's side of REST: where the service runs, its token, and its problems as one sentence."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any, TypeAlias

from data.refusal import Refusal
from service import tokens
from service.settings import Settings
from service.state import StateDir

Json: TypeAlias = Any
"""What an answer holds; commands print it and read single fields of it."""
TIMEOUT_SECONDS = 30.0


class NotRunning(Refusal):
    """No service answers."""


class Answered(Refusal):
    """The service refused; the text is its own."""

    def __init__(self, status: int, detail: str, body: dict[str, Json]) -> None:
        self.status, self.body = status, body
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of 2xx."""

    status: int
    body: Json


@dataclass(frozen=True, slots=True)
class Client:
    """One running service. Raises NotRunning, Answered."""

    url: str
    token: str | None

    @classmethod
    def of(cls, settings: Settings) -> Client:
        """The service on this machine that keeps its state where `settings` say."""
        state = StateDir(settings.service.state)
        try:
            url = state.url.read_text().strip()
        except OSError:
            url = ""
        if not url.startswith(("http://", "https://")):
            raise NotRunning(f"no service runs on {state.path}; start it (predrain up), or say --state")
        try:
            return cls(url, tokens.read(state.token))
        except OSError as error:
            raise NotRunning(
                f"{state.token} cannot be read: {error.strerror}; run as the service's user"
            ) from error

    def get(self, path: str) -> Json:
        """GET below /api/v1."""
        return self._send("GET", path, None, {}).body

    def post(self, path: str, body: Json = None, *, if_match: str | None = None) -> Reply:
        """POST below /api/v1."""
        return self._send("POST", path, body, {"If-Match": if_match} if if_match else {})

    def _send(self, method: str, path: str, body: Json, headers: dict[str, str]) -> Reply:
        request = urllib.request.Request(  # noqa: S310  (the scheme was checked with the address)
            f"{self.url}/api/v1/{path}",
            None if body is None and method == "GET" else json.dumps(body or {}).encode(),
            {"Content-Type": "application/json", **headers},
            method=method,
        )
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
                return Reply(answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                raise _problem(error) from None
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            raise NotRunning(
                f"no service answers at {self.url} ({error}); start it (predrain up), or see whether it hangs"
            ) from error


def _problem(error: urllib.error.HTTPError) -> Answered:
    try:
        body = json.load(error)
        return Answered(error.code, str(body["detail"]), body)
    except (ValueError, KeyError, TypeError):
        return Answered(error.code, f"the service answered {error.code} {error.reason}", {})

"""A command's side of REST: where the service runs, its token, and its problems as one sentence."""

from __future__ import annotations

import secrets
import ssl
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from predrain.data.refusal import Refusal
from predrain.service.access import tokens
from predrain.service.access.certificate import create_own_tls_context
from predrain.service.access.requester import PERSON_HEADER
from predrain.service.client.http_exchange import HttpAnswer, ServiceProblem, Unreachable, Untrusted, Wire
from predrain.service.config.state_directory import StateDir
from predrain.service.terminal.person import name_typist
from predrain.service.terminal.remote_service import RemoteService
from predrain.service.terminal.waiting import ClusterUnanswered, wait_for_cluster

if TYPE_CHECKING:
    from predrain.service.config.settings import Settings

Json: TypeAlias = Any
"""The content of an answer; commands print it and read single fields of it."""


class NotRunning(Refusal):
    """No service answers."""


class ServiceRefused(Refusal):
    """The service refused; the text is its own."""

    def __init__(self, status: int, detail: str, body: Json) -> None:
        self.status, self.body = status, body
        super().__init__(detail)


UNAUTHORIZED = 401
LISTS = {"/api/v1/drains": "predrain drain list", "/api/v1/silences": "predrain silence list"}
"""The commands that list what a problem says is listed at an address."""


def _describe_problem(problem: ServiceProblem) -> str:
    """Return a problem as a sentence of the command line, with the command in place of REST's address."""
    listed = LISTS.get(str(problem.body.get("listed_at")))
    return f"{problem} List them: {listed}" if listed else str(problem)


@dataclass(frozen=True, slots=True)
class ConnectionCures:
    """The cures of a service that does not answer, of an unknown certificate, and of a refused token."""

    unreachable: str = "start it (predrain up), or see whether it hangs"
    untrusted: str = "give --config the service's settings, which name the certificate"
    token: str = ""


def _list_remote_cures(remote: RemoteService) -> ConnectionCures:
    made = "`predrain token create` makes one on the service's machine"
    return ConnectionCures(
        "check the address, and the network and its firewalls; on the service's machine: predrain doctor",
        "give --ca-file the PEM file of the CA that signed it (PREDRAIN_CA_FILE, or `ca_file` of the profile), or "
        "use a name that it was made for",
        f"the token is that of {remote.token_source}; {made}"
        if remote.token
        else f"give a token by --token-file, PREDRAIN_TOKEN_FILE or a profile; {made}",
    )


@dataclass(frozen=True, slots=True)
class RestReply:
    """An answer of 2xx."""

    status: int
    body: Json


@dataclass(frozen=True, slots=True)
class CliClient:
    """One running service; `tls` says whom to trust where it speaks it. Raises NotRunning, Answered."""

    url: str
    token: str | None
    tls: ssl.SSLContext | None = None
    own: bool = False
    """True if the service is this command's own and ends with it."""
    person: str = ""
    """The person whom the service shall name, where the token is its own file's."""
    waits: bool = False
    """True if a request that needs an answer of the cluster is sent again until the cluster has answered."""
    cures: ConnectionCures = ConnectionCures()
    _wire: Wire = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # No repeats: the person can repeat the command, and a halt must not wait for a service that is not
        # there.
        said = {PERSON_HEADER: urllib.parse.quote(self.person)} if self.person else {}
        object.__setattr__(self, "_wire", Wire(self.url, self.token, tls=self.tls, waits=(), headers=said))

    @classmethod
    def from_settings(cls, settings: Settings) -> CliClient:
        """The service on this machine that keeps its state where `settings` say. Raises CertificateUnusable, too."""
        state = StateDir(settings.service.state)
        url = state.find_service_url()
        if url is None or not url.startswith(("http://", "https://")):
            raise NotRunning(
                f"no service runs on {state.path}; start it (predrain up), or say --state, or --url of a remote one"
            )
        try:
            token = tokens.read_token_file(state.token)
        except OSError as error:
            raise NotRunning(
                f"{state.token} cannot be read: {error.strerror}; run as the service's user"
            ) from error
        chain = settings.service.tls_certificate if url.startswith("https://") else None
        return cls(url, token, None if chain is None else create_own_tls_context(chain), person=name_typist())

    @classmethod
    def from_remote(cls, remote: RemoteService) -> CliClient:
        """The service on another machine. Raises RemoteUnusable."""
        return cls(
            remote.url,
            remote.token,
            remote.create_tls_context(),
            person=name_typist(),
            cures=_list_remote_cures(remote),
        )

    def get(self, path: str) -> Json:
        """GET below /api/v1."""
        return self._said(lambda: self._wire.get(path)).body

    def post(self, path: str, body: Json = None, *, if_match: str | None = None) -> RestReply:
        """POST below /api/v1, carried out once."""
        key = secrets.token_hex(16)
        return self._said(lambda: self._wire.send_action("POST", path, body, if_match=if_match, key=key))

    def delete(self, path: str) -> None:
        """DELETE below /api/v1, carried out once."""
        self._said(lambda: self._wire.send_action("DELETE", path))

    def _said(self, ask: Callable[[], HttpAnswer]) -> RestReply:
        return wait_for_cluster(lambda: self._said_once(ask))

    def _said_once(self, ask: Callable[[], HttpAnswer]) -> RestReply:
        try:
            answer = ask()
            return RestReply(answer.status, answer.json())
        except ServiceProblem as problem:
            cure = f"; {self.cures.token}" if problem.status == UNAUTHORIZED and self.cures.token else ""
            refusal = ServiceRefused(problem.status, f"{_describe_problem(problem)}{cure}", problem.body)
            seconds = problem.retry_after_seconds
            if self.waits and seconds is not None and problem.body.get("waits_for") == "cluster":
                raise ClusterUnanswered(refusal, seconds) from problem
            raise refusal from problem
        except Untrusted as error:
            raise NotRunning(f"{error}; {self.cures.untrusted}") from error
        except (Unreachable, ValueError) as error:
            raise NotRunning(f"{error}; {self.cures.unreachable}") from error

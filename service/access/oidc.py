"""Sign-in at a provider: OpenID Connect's code flow with PKCE (RFC 7636), state and nonce, by Authlib.

The values that must survive the round trip (state, nonce, verifier, return path) are in a cookie of the browser that
began the sign-in. So any process can finish the sign-in, and no other browser can.
"""

from __future__ import annotations

import base64
import hmac
import ssl
import threading
import time
import urllib.parse
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx2
import msgspec
from authlib.integrations.base_client import BaseApp, OAuth2Mixin, OAuthError, OpenIDMixin
from authlib.integrations.httpx_client import OAuth2Client
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from predrain.data.outside_text import CALLER, clean_identifier
from predrain.data.refusal import Refusal
from predrain.service.access.tokens import Caller, Scope

DEADLINE_SECONDS = 10.0
LONGEST_ANSWER = 1 << 20
LEEWAY_SECONDS = 60
KEYS_SECONDS = 60.0
"""The shortest time between two fetches of the provider's keys, for a token whose key is not among the known ones."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signature algorithms whose private key only the provider has: neither `none` nor those of a shared secret."""


class ProviderAway(Refusal):
    """The provider does not answer, or its answer does not follow OpenID Connect."""


class NotSignedIn(Refusal):
    """The provider's answer gives no access."""


class MayNothing(NotSignedIn):
    """The provider vouches for `caller`, but the settings grant that person nothing."""

    def __init__(self, caller: Caller, told: str) -> None:
        self.caller = caller
        super().__init__(told)


class PendingSignIn(msgspec.Struct, frozen=True):
    """A sign-in in progress, as its browser's cookie holds it."""

    state: str
    nonce: str
    verifier: str
    back: str


@dataclass(frozen=True, slots=True)
class ClaimGrants:
    """The scopes that each value of a claim gives; `*` stands for every value."""

    claim: str
    by_scope: tuple[tuple[Scope, tuple[str, ...]], ...]

    def find_scopes(self, claims: dict[str, Any]) -> frozenset[Scope]:
        """Return the scopes of a person with these claims. A person with any scope may read."""
        said = claims.get(self.claim)
        several = said if isinstance(said, list) else [said]
        held = {one for one in several if isinstance(one, str)}
        found = {scope for scope, values in self.by_scope if "*" in values or held & set(values)}
        return frozenset(found | ({Scope.READ} if found else set()))


class _Discovered(msgspec.Struct, frozen=True):
    """The fields of the provider's discovery document that are used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class _ProviderClient(OAuth2Client):
    """An HTTP client whose base URL is the issuer. It reads a bounded answer and follows no redirect."""

    def request(self, method: str, url: httpx2.URL | str, *args: Any, **options: Any) -> httpx2.Response:
        """Return the answer with its whole body. Raises ProviderAway."""
        issuer = str(self.base_url).rstrip("/")
        end, content = time.monotonic() + DEADLINE_SECONDS, bytearray()
        try:
            with self.stream(method, url, *args, **options) as answer:
                for piece in answer.iter_raw():
                    content += piece
                    if len(content) > LONGEST_ANSWER or time.monotonic() > end:
                        raise ProviderAway(
                            f"{issuer} does not end its answer; sign in with a token meanwhile"
                        )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ProviderAway(
                f"{issuer} does not answer ({error}); sign in with a token meanwhile"
            ) from error
        if answer.status_code != HTTPStatus.OK:
            raise ProviderAway(
                f"{issuer} answered {answer.status_code}: {content[:300].decode(errors='replace')}"
            )
        return httpx2.Response(answer.status_code, content=bytes(content), request=answer.request)


class _RelyingParty(OAuth2Mixin, OpenIDMixin, BaseApp):
    """Authlib's client of one provider, without the session of a web framework."""

    client_cls = _ProviderClient

    def __init__(self, **options: Any) -> None:
        super().__init__(None, **options)
        self._lock = threading.Lock()
        self._keys: Any = None
        self._fetched = 0.0

    def fetch_jwk_set(self, force: bool = False) -> Any:
        """Return the provider's keys. Raises ProviderAway.

        Authlib forces a fetch for a token under an unknown key. Here the keys are fetched again at most every
        `KEYS_SECONDS`, so that forged tokens do not cause a fetch each.
        """
        with self._lock:
            if self._keys is None or (force and time.monotonic() - self._fetched > KEYS_SECONDS):
                try:
                    found = super().fetch_jwk_set(force=True)
                    KeySet.import_key_set(found)
                except (JoseError, ValueError, KeyError, TypeError) as error:
                    issuer = self.server_metadata["issuer"]
                    raise ProviderAway(f"the keys of {issuer} cannot be read: {error}") from error
                self._keys, self._fetched = found, time.monotonic()
            return self._keys


class OidcProvider:
    """One provider, which is contacted when the first person signs in. Every method is thread-safe."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str,
        scope: str,
        grants: ClaimGrants,
        returning: str,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """returning: the address to which the provider sends people back; it is registered there."""
        self._issuer, self._client_id, self._client_secret = issuer.rstrip("/"), client_id, client_secret
        self._grants, self._returning = grants, returning
        self._client_options = {
            "base_url": self._issuer,
            "scope": scope,
            "code_challenge_method": "S256",
            "verify": tls or ssl.create_default_context(),
            "timeout": DEADLINE_SECONDS,
            # A packed answer could be small on the way and large in memory.
            "headers": {"Accept": "application/json", "Accept-Encoding": "identity"},
        }
        self._lock = threading.Lock()
        self._party: _RelyingParty | None = None

    def run_preflight_check(self) -> str:
        """Read the provider's discovery document and its keys, without a sign-in. Return its issuer. Raises
        ProviderAway.
        """
        self._discover().fetch_jwk_set()
        return self._issuer

    def begin_sign_in(self, back: str) -> tuple[str, str]:
        """Return the address to send the browser to, and the cookie that it must keep meanwhile. Raises
        ProviderAway.
        """
        asked = self._discover().create_authorization_url(self._returning)
        begun = PendingSignIn(
            asked["state"], asked["nonce"], asked["code_verifier"], sanitize_return_path(back)
        )
        return asked["url"], base64.urlsafe_b64encode(msgspec.json.encode(begun)).decode()

    def finish_sign_in(self, kept: str, state: str, code: str) -> tuple[Caller, str]:
        """Return the caller who came back with `code`, and the return path.

        Raises ProviderAway, NotSignedIn, and MayNothing if the settings grant the caller nothing.
        """
        begun = _decode_pending_sign_in(kept)
        if not hmac.compare_digest(begun.state.encode(), state.encode()):
            raise NotSignedIn("this is not the sign-in that this browser began; sign in again")
        claims = self._redeem(code, begun)
        scopes = self._grants.find_scopes(claims)
        name = next(
            (str(claims[key]) for key in ("preferred_username", "email", "sub") if claims.get(key)), "?"
        )
        name = clean_identifier(name, CALLER.limit - len("oidc:")) or "?"
        caller = Caller(f"oidc:{name}", scopes)
        if not scopes:
            raise MayNothing(
                caller,
                f"{name} may do nothing here: no value of {self._grants.claim} is named by read, act or admin of "
                "[oidc]",
            )
        return caller, sanitize_return_path(begun.back)

    def _redeem(self, code: str, begun: PendingSignIn) -> dict[str, Any]:
        """Exchange the code for an ID token; return its validated claims. Raises ProviderAway, NotSignedIn."""
        party: Any = self._discover()  # the stubs leave what is called here untyped
        expected = {
            "iss": {"essential": True, "value": party.server_metadata["issuer"]},
            "aud": {"essential": True, "value": self._client_id},
        }
        try:
            token = party.fetch_access_token(self._returning, code=code, code_verifier=begun.verifier)
            found = party.parse_id_token(token, begun.nonce, expected, leeway=LEEWAY_SECONDS)
        except (JoseError, OAuthError, ValueError, TypeError) as error:
            raise NotSignedIn(f"{self._issuer} vouches for nobody that we can check: {error}") from error
        if found is None:
            raise ProviderAway(f"{self._issuer} gives no id_token; let scope of [oidc] have openid in it")
        return dict(found)

    def _discover(self) -> _RelyingParty:
        """Return the client, which reads the provider's discovery document at the first call. Raises
        ProviderAway.
        """
        with self._lock:
            if self._party is None:
                found = self._read_discovery_document()
                self._party = _RelyingParty(
                    client_id=self._client_id,
                    client_secret=self._client_secret,
                    authorize_url=found.authorization_endpoint,
                    access_token_url=found.token_endpoint,
                    client_kwargs=self._client_options,
                    client_auth_methods=[("client_secret_basic", _authenticate_by_quoted_pair)],
                    issuer=found.issuer,
                    jwks_uri=found.jwks_uri,
                    id_token_signing_alg_values_supported=ALGORITHMS,
                )
            return self._party

    def _read_discovery_document(self) -> _Discovered:
        # Authlib would pass every field of the document on to its HTTP client as an option, `verify` among them.
        with _ProviderClient(**self._client_options) as client:
            answer = client.request("GET", ".well-known/openid-configuration", withhold_token=True)
        try:
            found = msgspec.json.decode(answer.content, type=_Discovered)
        except msgspec.DecodeError as error:
            raise ProviderAway(f"{self._issuer} describes itself as no OpenID provider: {error}") from error
        if found.issuer.rstrip("/") != self._issuer:
            raise ProviderAway(
                f"{self._issuer} calls itself {found.issuer}; set issuer of [oidc] to its own word"
            )
        for address in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
            if urllib.parse.urlsplit(address).scheme != urllib.parse.urlsplit(self._issuer).scheme:
                raise ProviderAway(
                    f"{self._issuer} names {address}, which is reached in another way than itself"
                )
        return found


def _authenticate_by_quoted_pair(
    client: Any, _method: str, url: str, headers: Any, body: Any
) -> tuple[str, Any, Any]:
    """Add the client's id and secret to a request, each quoted as RFC 6749 demands; Authlib's own method does not
    quote them."""
    pair = f"{urllib.parse.quote(client.client_id)}:{urllib.parse.quote(client.client_secret)}"
    headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    return url, headers, body


def sanitize_return_path(back: str) -> str:
    """Return `back` if it is a path of our own page, else "/"."""
    plain = back.startswith("/") and not back.startswith("//") and back.isprintable() and "\\" not in back
    return back if plain and len(back) <= 2_000 else "/"


def _decode_pending_sign_in(kept: str) -> PendingSignIn:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(kept), type=PendingSignIn)
    except (ValueError, msgspec.MsgspecError):
        raise NotSignedIn("no sign-in was begun in this browser, or too long ago; sign in again") from None

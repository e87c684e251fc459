"""Sign-in at a provider: OpenID Connect's code flow with PKCE (RFC 7636), state and nonce.

What must survive the round trip (state, nonce, verifier, where to go on) is in a cookie of the very browser that began
it, so that any process can take it up, and nobody can end a sign-in that another browser began.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

import msgspec

from predrain.data.clock import Clock
from predrain.data.outside_text import CALLER, clean_identifier
from predrain.data.refusal import Refusal
from predrain.service.tokens import Caller, Scope

DEADLINE_SECONDS = 10.0
LONGEST_ANSWER = 1 << 20
LEEWAY_SECONDS = 60
KEYS_SECONDS = 60.0
"""At the soonest the provider's keys are fetched again, for a token under a key that is not among them."""
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a key that only the provider has: neither `none` nor those of a shared secret."""


class ProviderAway(Refusal):
    """The provider does not answer, or not as OpenID Connect has it."""


class NotSignedIn(Refusal):
    """What came back from the provider lets nobody in."""


class MayNothing(NotSignedIn):
    """The provider vouches for `caller`, and the settings grant them nothing."""

    def __init__(self, caller: Caller, told: str) -> None:
        self.caller = caller
        super().__init__(told)


class Begun(msgspec.Struct, frozen=True):
    """A sign-in under way, as its browser keeps it."""

    state: str
    nonce: str
    verifier: str
    back: str


@dataclass(frozen=True, slots=True)
class Grants:
    """Which values of a claim let do what; `*` stands for everybody."""

    claim: str
    by_scope: tuple[tuple[Scope, tuple[str, ...]], ...]

    def of(self, claims: dict[str, Any]) -> frozenset[Scope]:
        """What somebody with these claims may do. Who may act may read."""
        said = claims.get(self.claim)
        several = said if isinstance(said, list) else [said]
        held = {one for one in several if isinstance(one, str)}
        found = {scope for scope, values in self.by_scope if "*" in values or held & set(values)}
        return frozenset(found | ({Scope.READ} if found else set()))


class _Discovered(msgspec.Struct, frozen=True):
    """What is used of the provider's own description."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Provider:
    """One provider, asked when the first person signs in. Every method may be called from any thread."""

    def __init__(
        self,
        issuer: str,
        client_id: str,
        client_secret: str,
        scope: str,
        grants: Grants,
        returning: str,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """returning: the address that people are sent back to, as the provider knows it."""
        self._issuer, self._client_id, self._client_secret = issuer.rstrip("/"), client_id, client_secret
        self._scope, self._grants, self._returning, self._clock = scope, grants, returning, clock
        self._opener = urllib.request.build_opener(
            _NoRedirects, urllib.request.HTTPSHandler(context=tls or ssl.create_default_context())
        )
        self._lock = threading.Lock()
        self._found: _Discovered | None = None
        self._keys: Any = None
        self._fetched = 0.0

    def greet(self) -> str:
        """The provider's own description and its keys, without anybody signing in; its issuer. Raises ProviderAway."""
        with self._lock:
            self._describe()
            self._fetch()
        return self._issuer

    def begin(self, back: str) -> tuple[str, str]:
        """Where to send a browser, and what it must keep meanwhile. Raises ProviderAway."""
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        begun = Begun(state, nonce, verifier, local(back))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest()).rstrip(b"=")
        asked = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._returning,
            "scope": self._scope,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": challenge.decode(),
            "code_challenge_method": "S256",
        }
        where = self._description().authorization_endpoint
        mark = "&" if "?" in where else "?"
        kept = base64.urlsafe_b64encode(msgspec.json.encode(begun)).decode()
        return f"{where}{mark}{urllib.parse.urlencode(asked)}", kept

    def end(self, kept: str, state: str, code: str) -> tuple[Caller, str]:
        """Who came back with `code`, and where they wanted to go. Raises ProviderAway, NotSignedIn."""
        begun = _begun(kept)
        if not hmac.compare_digest(begun.state.encode(), state.encode()):
            raise NotSignedIn("this is not the sign-in that this browser began; sign in again")
        claims = self._claims(self._redeem(code, begun.verifier), begun.nonce)
        scopes = self._grants.of(claims)
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
        return caller, local(begun.back)

    def _redeem(self, code: str, verifier: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._returning,
            "client_id": self._client_id,
            "code_verifier": verifier,
        }
        request = urllib.request.Request(  # noqa: S310  (the settings name it, or who they name)
            self._description().token_endpoint, urllib.parse.urlencode(form).encode()
        )
        if self._client_secret:
            pair = f"{urllib.parse.quote(self._client_id)}:{urllib.parse.quote(self._client_secret)}"
            request.add_header("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}")
        token = self._ask(request).get("id_token")
        if not isinstance(token, str):
            raise ProviderAway(f"{self._issuer} gives no id_token; let scope of [oidc] have openid in it")
        return token

    def _claims(self, token: str, nonce: str) -> dict[str, Any]:
        from joserfc import jwt
        from joserfc.errors import JoseError

        try:
            found = jwt.decode(token, self._known_keys(token), algorithms=list(ALGORITHMS))
            expected = jwt.JWTClaimsRegistry(
                now=int(self._clock.now().timestamp()),
                leeway=LEEWAY_SECONDS,
                iss={"essential": True, "value": self._description().issuer},
                aud={"essential": True, "value": self._client_id},
                exp={"essential": True},
                sub={"essential": True},
                nonce={"essential": True, "value": nonce},
            )
            expected.validate(found.claims)
        except (JoseError, ValueError) as error:
            raise NotSignedIn(f"{self._issuer} vouches for nobody that we can check: {error}") from error
        also = found.claims.get("azp")
        if also is not None and also != self._client_id:
            raise NotSignedIn(f"{self._issuer} gave this token to {str(also)[:100]} and not to us")
        return dict(found.claims)

    def _known_keys(self, token: str) -> Any:
        """The provider's keys; fetched anew for a key that is not among them, but not for every forged one."""
        named = _key_of(token)
        with self._lock:
            known = self._keys is not None and any(key.kid == named for key in self._keys.keys)
            if self._keys is None or (not known and time.monotonic() - self._fetched > KEYS_SECONDS):
                self._fetch()
            return self._keys

    def _fetch(self) -> None:
        """The provider's keys. With the lock."""
        from joserfc.jwk import KeySet

        request = urllib.request.Request(self._describe().jwks_uri)  # noqa: S310
        found = self._ask(request)
        try:
            self._keys = KeySet.import_key_set(found)  # type: ignore[arg-type]
        except (ValueError, KeyError, TypeError) as error:
            raise ProviderAway(f"the keys of {self._issuer} cannot be read: {error}") from error
        self._fetched = time.monotonic()

    def _description(self) -> _Discovered:
        with self._lock:
            return self._describe()

    def _describe(self) -> _Discovered:
        """With the lock."""
        if self._found is None:
            request = urllib.request.Request(f"{self._issuer}/.well-known/openid-configuration")  # noqa: S310
            try:
                found = msgspec.convert(self._ask(request), _Discovered)
            except msgspec.ValidationError as error:
                raise ProviderAway(
                    f"{self._issuer} describes itself as no OpenID provider: {error}"
                ) from error
            if found.issuer.rstrip("/") != self._issuer:
                raise ProviderAway(
                    f"{self._issuer} calls itself {found.issuer}; set issuer of [oidc] to its own word"
                )
            for address in (found.authorization_endpoint, found.token_endpoint, found.jwks_uri):
                if urllib.parse.urlsplit(address).scheme != urllib.parse.urlsplit(self._issuer).scheme:
                    raise ProviderAway(
                        f"{self._issuer} names {address}, which is reached in another way than itself"
                    )
            self._found = found
        return self._found

    def _ask(self, request: urllib.request.Request) -> dict[str, Any]:
        request.add_header("Accept", "application/json")
        try:
            with self._opener.open(request, timeout=DEADLINE_SECONDS) as answer:
                found = json.loads(answer.read(LONGEST_ANSWER + 1))
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(300).decode(errors="replace")
            raise ProviderAway(f"{self._issuer} answered {error.code}: {said}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise ProviderAway(
                f"{self._issuer} does not answer ({error}); sign in with a token meanwhile"
            ) from error
        if not isinstance(found, dict):
            raise ProviderAway(f"{self._issuer} does not answer as OpenID Connect has it")
        return found


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A provider's own addresses do not move; what moves may be somebody else's."""

    def redirect_request(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: Any) -> None:
        """None: the redirect is the answer, and no good one."""


def local(back: str) -> str:
    """`back`, if it is an address of our own page; else the first one."""
    plain = back.startswith("/") and not back.startswith("//") and back.isprintable() and "\\" not in back
    return back if plain and len(back) <= 2_000 else "/"


def _begun(kept: str) -> Begun:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(kept), type=Begun)
    except (ValueError, msgspec.MsgspecError):
        raise NotSignedIn("no sign-in was begun in this browser, or too long ago; sign in again") from None


def _key_of(token: str) -> str | None:
    """The id of the key in a token's head, which nobody has checked yet."""
    try:
        head = token.split(".")[0]
        found = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
        return found.get("kid") if isinstance(found, dict) else None
    except ValueError:
        return None

"""An OpenID provider for tests. It signs tokens with a real key, checks PKCE, and can issue false tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "predrain", "a secret of the client's: 100 % ours"


class LocalProvider:
    """`person` is who signs in next; `lies` are put over the claims, the head or the key of the next token."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.person: dict[str, Any] = {"sub": "1", "preferred_username": "anna", "groups": ["storage-oncall"]}
        self.lies: dict[str, Any] = {}
        self.signs_with: Any = None
        self.head: dict[str, Any] = {"alg": "RS256", "kid": "one"}
        self.asked: list[str] = []
        self.codes: dict[str, dict[str, str]] = {}
        self.issuer = ""
        self.public = False  # a public client proves itself by PKCE alone and names itself in the form
        self.also: dict[str, Any] = {}  # further fields of its description

    def described(self) -> dict[str, Any]:
        """Its own description."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            **self.also,
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Answer a sign-in with a code, and return the address that the browser is sent back to."""
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """The exchange of a code, once."""
        asked = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        proved = asked and base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        pair = base64.b64encode(f"{quote(CLIENT)}:{quote(SECRET)}".encode()).decode()
        if not asked or not proved or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        known = form.get("client_id") == CLIENT if self.public else authorization == f"Basic {pair}"
        if not known:
            return 401, {"error": "invalid_client"}
        claims = {
            "iss": self.issuer,
            "aud": CLIENT,
            "exp": int(time.time()) + 300,
            "iat": int(time.time()),
            "nonce": asked["nonce"],
            **self.person,
            **self.lies,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        if self.head["alg"] not in ("none", "HS256"):
            signed = jwt.encode(self.head, claims, self.signs_with or self.key, algorithms=[self.head["alg"]])
            return 200, {"id_token": signed}
        # No library makes these any more: unsigned, or signed with the public key as if it were a shared secret.
        said = ".".join(_part(json.dumps(part).encode()) for part in (self.head, claims))
        mark = hmac.digest(self.key.as_pem(private=False), said.encode(), "sha256")
        return 200, {"id_token": f"{said}.{_part(mark) if self.head['alg'] == 'HS256' else ''}"}


def _part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@contextmanager
def local_provider() -> Iterator[LocalProvider]:
    """Run a provider on a free port of this machine, and yield it."""
    provider = LocalProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            where = urlsplit(self.path)
            provider.asked.append(where.path)
            if where.path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(where.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(asked))
                self.end_headers()
            elif where.path == "/.well-known/openid-configuration":
                self.answer(200, provider.described())
            elif where.path == "/keys":
                self.answer(200, {"keys": [provider.key.as_dict(private=False)]})
            else:
                self.answer(404, {})

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self.answer(*provider.token(form, self.headers.get("Authorization", "")))

        def answer(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.issuer = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()

"""Authorization: scopes, callers, and the tokens of this process, kept only as hashes.

Other tokens are in service.access.credentials.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from predrain.data.refusal import Refusal

TOKEN_FILE = "token-file"  # noqa: S105  (a name)
"""The name of the holder of the token in the state directory."""


class Scope(StrEnum):
    """READ reads, INGEST delivers readings, ACT requests and approves drains, EXECUTE takes steps for the mgr module;
    ADMIN may do everything.
    """

    READ = "read"
    INGEST = "ingest"
    ACT = "act"
    EXECUTE = "execute"
    ADMIN = "admin"

    @classmethod
    def _missing_(cls, value: object) -> Scope | None:
        """Read the scope of a stored token of 0.1.0, where EXECUTE was called `hand`."""
        return cls.EXECUTE if value == "hand" else None


class TokenFileOpen(Refusal):
    """The token file is readable by others."""


class ForeignHost(Refusal):
    """A host delivered readings of another host."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The rights of a holder: its name, its scopes, and its restrictions.

    A credential that is exchanged for another one passes on the whole grant, so every restriction must be a field
    here.
    """

    name: str
    scopes: frozenset[Scope]
    host: str | None = None
    """The only host whose readings may be delivered; None: any host."""

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the grant holds `scope`."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def speaks_for(self, host: str) -> None:
        """Raise ForeignHost if the grant is bound to another host."""
        if self.host is not None and host != self.host:
            raise ForeignHost(
                f"it names host {host}, and the token is host {self.host}'s: enrol this host under the name that it has"
                f" now (`predrain token enrol {host}` at the service, `predrain collect --enrol TOKEN` here), or set"
                " `host` of [collector] to the name that it had"
            )

    def collect_fields(self) -> dict[str, Any]:
        """Return every field of the grant by its name, so that a class that extends the grant takes over all of
        them.
        """
        return {one.name: getattr(self, one.name) for one in fields(TokenGrant)}


@dataclass(frozen=True, slots=True)
class Caller(TokenGrant):
    """The sender of a request, as journals name it, with the grant of the request's credential."""

    id: str = ""
    """SHA-256 of the credential's secret, in hex; empty without a credential."""

    @classmethod
    def from_grant(cls, grant: TokenGrant, id: str) -> Caller:  # noqa: A002
        """Make the caller that holds `grant` and came with the credential `id`."""
        return cls(**grant.collect_fields(), id=id)


@dataclass(frozen=True, slots=True)
class Tokens:
    """All tokens that this process accepts, as (SHA-256 digest, caller)."""

    known: tuple[tuple[bytes, Caller], ...]
    path: Path | None = None
    """The token file, named in the answer to a request without a token."""

    def find_caller(self, token: str) -> Caller | None:
        """Return the holder of `token`, or None. Every known hash is compared, so that the response time reveals
        nothing.
        """
        digest = hashlib.sha256(token.encode()).digest()
        found = [
            replace(one, id=digest.hex()) for known, one in self.known if hmac.compare_digest(known, digest)
        ]
        return found[0] if found else None

    def find_grant(self, id: str) -> TokenGrant | None:  # noqa: A002
        """Return the grant of the token with this hash in hex; None if the token is unknown here."""
        return next((one for known, one in self.known if known.hex() == id), None)

    def with_token(self, token: str, caller: Caller) -> Tokens:
        """Return a copy with one more token."""
        return Tokens((*self.known, (hashlib.sha256(token.encode()).digest(), caller)), self.path)


def new_token() -> str:
    """Return 256 random bits, URL-safe. A command line would read a token with a leading `-` as an option."""
    while (token := secrets.token_urlsafe(32)).startswith("-"):
        pass
    return token


def read_or_make(path: Path) -> str:
    """Return the token in `path`; the first start makes it, readable for the owner only. Raises TokenFileOpen."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read_token_file(path)
    token = new_token()
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    return token


LEAST_TOKEN_CHARACTERS = 32


def read_token_file(path: Path, cure: str = "remove it and start again to have a new one") -> str:
    """Return the token in `path`. cure: how to get a token there.

    Raises TokenFileOpen if others may read the file or if it is empty, and OSError.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise TokenFileOpen(f"{path} can be read by others; run chmod 600 {path}, or {cure}")
        token = file.read().decode("ascii", errors="replace").strip()
    if len(token) < LEAST_TOKEN_CHARACTERS:
        raise TokenFileOpen(f"{path} holds no token; {cure}")
    return token


def load_admin_tokens(path: Path) -> Tokens:
    """Return the file's token, which may do all. Raises TokenFileOpen."""
    return Tokens((), path).with_token(read_or_make(path), Caller(TOKEN_FILE, frozenset({Scope.ADMIN})))

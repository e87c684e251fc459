"""Who may do what: scopes, callers, and the tokens of this process, held only as hashes. Others are in the book."""

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
"""Name of the holder of the token in the state directory."""


class Scope(StrEnum):
    """READ looks, INGEST delivers readings, ACT asks and approves, HAND takes steps for the mgr; ADMIN may do all."""

    READ = "read"
    INGEST = "ingest"
    ACT = "act"
    HAND = "hand"
    ADMIN = "admin"


class TokenFileOpen(Refusal):
    """The token file can be read by others."""


class ForeignHost(Refusal):
    """A host delivered what another one has read."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What somebody may do, under which name, and what it is bound to.

    A credential that is exchanged for another one hands on the whole grant: whatever binds a grant is a field here.
    """

    name: str
    scopes: frozenset[Scope]
    host: str | None = None
    """The only host whose readings may be delivered; None: any."""

    def may(self, scope: Scope) -> bool:
        """Whether the grant holds `scope`."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def speaks_for(self, host: str) -> None:
        """Raises ForeignHost where the grant is bound to another host."""
        if self.host is not None and host != self.host:
            raise ForeignHost(
                f"it names host {host}, and the token is host {self.host}'s: enrol this host under the name that it has"
                f" now (`predrain token enrol {host}` at the service, `predrain collect --enrol TOKEN` here), or set"
                " `host` of [collector] to the name that it had"
            )

    def terms(self) -> dict[str, Any]:
        """Every field of the grant by its name, so that a class which extends the grant takes over all of them."""
        return {one.name: getattr(self, one.name) for one in fields(TokenGrant)}


@dataclass(frozen=True, slots=True)
class Caller(TokenGrant):
    """Who sent a request, as journals name it, with the grant of the credential that came with the request."""

    id: str = ""
    """SHA-256 of the credential's secret, in hex; empty where no credential came."""

    @classmethod
    def holding(cls, grant: TokenGrant, id: str) -> Caller:  # noqa: A002
        """The holder of `grant` who came with the credential `id`."""
        return cls(**grant.terms(), id=id)


@dataclass(frozen=True, slots=True)
class Tokens:
    """All tokens that this process accepts, as (SHA-256 digest, caller)."""

    known: tuple[tuple[bytes, Caller], ...]
    path: Path | None = None
    """The token file, to be named when a request comes without one."""

    def caller(self, token: str) -> Caller | None:
        """The holder of `token`, or None. Every known hash is compared, so that time tells nothing."""
        digest = hashlib.sha256(token.encode()).digest()
        found = [
            replace(one, id=digest.hex()) for known, one in self.known if hmac.compare_digest(known, digest)
        ]
        return found[0] if found else None

    def grant(self, id: str) -> TokenGrant | None:  # noqa: A002
        """The grant of the token of this hash, in hex; None where it is none of these."""
        return next((one for known, one in self.known if known.hex() == id), None)

    def adding(self, token: str, caller: Caller) -> Tokens:
        """The same with one more."""
        return Tokens((*self.known, (hashlib.sha256(token.encode()).digest(), caller)), self.path)


def new_token() -> str:
    """256 random bits, URL-safe."""
    return secrets.token_urlsafe(32)


def read_or_make(path: Path) -> str:
    """The token in `path`; the first start makes it, for the owner's eyes only. Raises TokenFileOpen."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read(path)
    token = new_token()
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())
    return token


def read(path: Path) -> str:
    """The token in `path`. Raises TokenFileOpen when others may read it or when it is empty."""
    if path.stat().st_mode & 0o077:
        raise TokenFileOpen(
            f"{path} can be read by others; run chmod 600 {path}, or remove it to have a new one"
        )
    token = path.read_text(encoding="ascii", errors="replace").strip()
    if len(token) < 32:
        raise TokenFileOpen(f"{path} holds no token; remove it and start again to have a new one")
    return token


def gather(path: Path) -> Tokens:
    """The file's token, which may do all. Raises TokenFileOpen."""
    return Tokens((), path).adding(read_or_make(path), Caller(TOKEN_FILE, frozenset({Scope.ADMIN})))

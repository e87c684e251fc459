"""Who may do what: scopes, callers, and the tokens of this process, held only as hashes. Others are in the book."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from data.refusal import Refusal


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
class Caller:
    """Who sent a request, as journals name it."""

    name: str
    scopes: frozenset[Scope]
    id: str = ""
    """SHA-256 of what they came with, in hex; empty where they came with nothing."""
    host: str | None = None
    """The only host whose readings they may deliver; None: any."""

    def may(self, scope: Scope) -> bool:
        """Whether this caller holds `scope`."""
        return scope in self.scopes or Scope.ADMIN in self.scopes

    def speaks_for(self, host: str) -> None:
        """Raises ForeignHost where this caller may deliver for another host only."""
        if self.host is not None and host != self.host:
            raise ForeignHost(
                f"it names host {host}, and the token is host {self.host}'s: enrol this host under the name that it has"
                f" now (`predrain token enrol {host}` at the service, `predrain collect --enrol TOKEN` here), or set"
                " `host` of [collector] to the name that it had"
            )


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

    def knows(self, id: str) -> bool:  # noqa: A002
        """Whether the token of this hash, in hex, is one of these."""
        return any(known.hex() == id for known, _ in self.known)

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
    return Tokens((), path).adding(read_or_make(path), Caller("token-file", frozenset({Scope.ADMIN})))

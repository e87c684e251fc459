"""The book of credentials: tokens, sessions and one-time tokens, each known only by its hash, kept in the store.

A change to the book and its line in the audit are one transaction, for every caller and every way to change the book.

All processes that share the store agree on the credentials. A process reads the book at most once a second. It refuses
within a second what another process revoked, and at once what it revoked itself.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from predrain.data.clock import Clock
from predrain.data.drain import JournalEntry
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store
from predrain.service.access.audit import AuditedCall, audit_line
from predrain.service.access.canonical_requests import describe_act
from predrain.service.access.tokens import Caller, Scope, TokenGrant, new_token

ROOM = "access"
"""The key of the book in the store's notes."""
LOOK_SECONDS = 1.0
REMEMBERED = timedelta(days=30)
"""The time for which an ended credential stays in the list, distinguished from one that never existed."""
MOST_SESSIONS = 1_000
MOST_SESSIONS_EACH = 20

_ENCODER = msgspec.json.Encoder(order="deterministic")


class CredentialKind(StrEnum):
    """The kinds of credential: a TOKEN is for a program, a SESSION for a browser, and an ENROLMENT for one exchange."""

    TOKEN = "token"  # noqa: S105  (a kind, no secret)
    SESSION = "session"
    ENROLMENT = "enrolment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential(TokenGrant):
    """The book's entry for one secret, with the grant that the secret gives. `id` is the SHA-256 of the secret
    in hex.
    """

    id: str
    kind: CredentialKind
    made_at: datetime
    made_by: str
    ends_at: datetime | None = None
    """None: the credential is valid until it is revoked."""
    parent: str | None = None
    """The credential that a session was opened with: the session has that credential's grant and ends with it."""
    revoked_at: datetime | None = None
    revoked_by: str = ""
    used_at: datetime | None = None
    """The time at which a one-time token was exchanged."""

    def to_caller(self) -> Caller:
        """Return the caller that this credential stands for."""
        return Caller.from_grant(self, self.id)


class CredentialEnded(Refusal):
    """A credential of ours is no longer valid; the text says since when and why."""


class NoSuchCredential(Refusal):
    """Nothing in the book has this name or id."""


class NameTaken(Refusal):
    """Another token has this name, and journals tell callers apart by name."""


class WrongHost(Refusal):
    """A credential of one host was used for another one."""


class CredentialBook:
    """All credentials of one store. Every method is thread-safe, and raises what the store raises."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        source: str = "the service",
    ) -> None:
        """source: the origin of changes, as the audit names it."""
        self._store, self._clock, self._monotonic, self._source = store, clock, monotonic, source
        self._lock = threading.Lock()
        self._kept: dict[str, Credential] = {}
        self._looked: float | None = None

    def find_credential(self, secret: str) -> Credential | None:
        """Return the credential of `secret` if it is valid, or None if it is unknown. Raises CredentialEnded.

        The search uses the hash of the secret. A person who guesses secrets cannot choose hashes, so the duration of
        the search reveals nothing.
        """
        found = self._look().get(hash_secret(secret))
        if found is None:
            return None
        self._check(found)
        return found

    def issue_credential(
        self,
        kind: CredentialKind,
        name: str,
        scopes: Iterable[Scope],
        by: str,
        *,
        lasting: timedelta | None = None,
        host: str | None = None,
    ) -> str:
        """Add a new credential and return its secret, which is stored nowhere. Raises NameTaken (for tokens)."""
        return self._keep(kind, TokenGrant(name, frozenset(scopes), host), by, lasting, None)

    def open_session(self, caller: Caller, lasting: timedelta) -> str:
        """Open a session for `caller` and return its secret, which is stored nowhere.

        A session that is opened with a token has no scope of its own: each request is judged by the token's grant at
        that time. For a caller without a token (the provider vouches for the person) the session holds the whole grant.
        """
        grant: TokenGrant = replace(caller, scopes=frozenset()) if caller.id else caller
        return self._keep(CredentialKind.SESSION, grant, caller.name, lasting, caller.id or None)

    def _keep(
        self, kind: CredentialKind, grant: TokenGrant, by: str, lasting: timedelta | None, parent: str | None
    ) -> str:
        secret, now = new_token(), self._clock.now()
        made = Credential(
            **grant.collect_fields(),
            id=hash_secret(secret),
            kind=kind,
            made_at=now,
            made_by=by,
            ends_at=now + lasting if lasting is not None else None,
            parent=parent,
        )
        name = grant.name
        with self._lock:
            kept = self._read()
            if kind is CredentialKind.TOKEN and any(
                _is_token(one, name) and (one.ends_at is None or one.ends_at > now) for one in kept.values()
            ):
                raise NameTaken(
                    f"a token named {name} is there already; revoke it first, or choose another name"
                )
            changes: dict[str, Credential | None] = {made.id: made}
            changes |= dict.fromkeys(_find_expired_credentials(kept, now))
            if kind is CredentialKind.SESSION:
                changes |= dict.fromkeys(_find_excess_sessions(kept, name))
            # The request that opens a session is in the audit itself.
            self._write(
                changes, () if kind is CredentialKind.SESSION else (self._line(by, f"make {kind}", made),)
            )
        return secret

    def exchange_enrolment(self, secret: str, host: str) -> str:
        """Exchange a one-time token for a token with the same grant and return its secret. `host` must be the token's
        host. Raises CredentialEnded, NoSuchCredential, WrongHost.
        """
        # The lock excludes this process's threads, `try_lock_task` other processes on the same store.
        with self._lock, self._store.try_lock_task("enrolment") as mine:
            if not mine:
                raise CredentialEnded("another host is being enrolled this very moment; try again")
            found = self._read().get(hash_secret(secret))
            if found is None or found.kind is not CredentialKind.ENROLMENT:
                raise NoSuchCredential(
                    "this is no one-time token of ours; make one with `predrain token enrol`"
                )
            self._check(found)
            if found.host != host:
                raise WrongHost(f"this one-time token is for host {found.host}, not for {host}")
            now, given = self._clock.now(), new_token()
            # A host that enrols again, for example after a new system disk, keeps only the new token.
            older = [one for one in self._kept.values() if _is_token(one, found.name)]
            token = Credential(
                **found.collect_fields(),
                id=hash_secret(given),
                kind=CredentialKind.TOKEN,
                made_at=now,
                made_by=found.made_by,
            )
            gone = {one.id: replace(one, revoked_at=now, revoked_by="a new enrolment") for one in older}
            self._write(
                {found.id: replace(found, used_at=now), token.id: token, **gone},
                [self._line(found.name, "enrol", token)],
            )
        return given

    def revoke(self, name_or_id: str, by: str) -> tuple[Credential, ...]:
        """Revoke every credential of that name, or the one whose id begins so. Raises NoSuchCredential."""
        now = self._clock.now()
        with self._lock:
            kept = self._read().values()
            meant = [one for one in kept if one.name == name_or_id] or [
                one for one in kept if len(name_or_id) >= 8 and one.id.startswith(name_or_id)
            ]
            standing = [one for one in meant if one.revoked_at is None]
            if not standing:
                raise NoSuchCredential(
                    f"nothing stands under {name_or_id}; `predrain token list` lists what does"
                )
            gone = tuple(replace(one, revoked_at=now, revoked_by=by) for one in standing)
            self._write({one.id: one for one in gone}, [self._line(by, "revoke", one) for one in gone])
        return gone

    def close_session(self, id: str) -> None:  # noqa: A002
        """Delete a session after its browser signed out."""
        with self._lock:
            self._write({id: None})

    def list_credentials(self) -> tuple[Credential, ...]:
        """Return all credentials of the book, the oldest first."""
        with self._lock:
            return tuple(sorted(self._read().values(), key=lambda one: (one.made_at, one.id)))

    def find_valid_credential(self, id: str) -> Credential | None:  # noqa: A002
        """Return the credential of that id, or None if it is unknown or no longer valid."""
        found = self._look().get(id)
        if found is None:
            return None
        try:
            self._check(found)
        except CredentialEnded:
            return None
        return found

    def _check(self, found: Credential) -> None:
        if found.revoked_at is not None:
            raise CredentialEnded(
                f"{found.name} was revoked at {found.revoked_at:%Y-%m-%d %H:%M}Z by {found.revoked_by}"
            )
        if found.used_at is not None:
            raise CredentialEnded(
                f"this one-time token was used at {found.used_at:%Y-%m-%d %H:%M}Z; if not by {found.host}, revoke "
                f"host:{found.host}, and make a new one with `predrain token enrol`"
            )
        if found.ends_at is not None and found.ends_at <= self._clock.now():
            raise CredentialEnded(f"{found.name} ended at {found.ends_at:%Y-%m-%d %H:%M}Z; get a new one")

    def _look(self) -> Mapping[str, Credential]:
        with self._lock:
            if self._looked is None or self._monotonic() - self._looked >= LOOK_SECONDS:
                self._read()
            return self._kept

    def _read(self) -> Mapping[str, Credential]:
        """Read the book from the store. The caller holds the lock."""
        kept = {}
        for name, raw in self._store.read_notes(ROOM).items():
            try:
                kept[name] = msgspec.json.decode(raw, type=Credential)
            except msgspec.MsgspecError:
                continue  # an unreadable entry gives no access
        self._kept, self._looked = kept, self._monotonic()
        return kept

    def _line(self, by: str, what: str, one: Credential) -> JournalEntry:
        """Return the audit's line about a change to the credential `one`. The line names the holder and never the
        secret.
        """
        said = {
            "kind": one.kind,
            "name": one.name,
            "scopes": sorted(one.scopes),
            "host": one.host,
            "ends_at": one.ends_at.isoformat() if one.ends_at else None,
            "id": one.id[:12],
        }
        return audit_line(AuditedCall(by, self._source, describe_act(what, said), "done"), self._clock.now())

    def _write(self, changes: Mapping[str, Credential | None], told: Sequence[JournalEntry] = ()) -> None:
        """Change the book and append to the audit in one transaction."""
        self._store.write_notes(
            ROOM,
            {key: None if one is None else _ENCODER.encode(one) for key, one in changes.items()},
            told,
        )
        after: dict[str, Credential | None] = {**self._kept, **changes}
        self._kept = {key: one for key, one in after.items() if one is not None}


def hash_secret(secret: str) -> str:
    """Return the id under which the book holds a secret: its SHA-256 in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_token(one: Credential, name: str) -> bool:
    return one.kind is CredentialKind.TOKEN and one.name == name and one.revoked_at is None


def _find_excess_sessions(kept: Mapping[str, Credential], name: str) -> list[str]:
    """Return the ids of the oldest sessions, so many that one more fits the limits per holder and in total."""
    sessions = sorted(
        (one for one in kept.values() if one.kind is CredentialKind.SESSION), key=lambda one: one.made_at
    )
    own = [one for one in sessions if one.name == name]
    too_many = (
        sessions[: max(0, len(sessions) + 1 - MOST_SESSIONS)]
        + own[: max(0, len(own) + 1 - MOST_SESSIONS_EACH)]
    )
    return [one.id for one in too_many]


def _find_expired_credentials(kept: Mapping[str, Credential], now: datetime) -> list[str]:
    """Return the ids of credentials that ended more than `REMEMBERED` ago, and of all sessions that ended."""
    return [
        key
        for key, one in kept.items()
        if (end := one.revoked_at or one.used_at or one.ends_at) is not None
        and end + (timedelta() if one.kind is CredentialKind.SESSION else REMEMBERED) <= now
    ]

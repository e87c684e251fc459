"""The book of credentials: tokens, sessions and one-time tokens, each known only by its hash, kept in the store.

Whoever shares the store agrees on who may enter. A process looks into the book once a second at most, so that what
another one revoked is refused here within a second, and what was revoked here at once.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from data.clock import Clock
from data.refusal import Refusal
from data.store.port import Store
from service.tokens import Caller, Scope, new_token

ROOM = "access"
"""Of the store's notes."""
LOOK_SECONDS = 1.0
REMEMBERED = timedelta(days=30)
"""How long a credential that ended is still listed, and told apart from one that never was."""
MOST_SESSIONS = 1_000
MOST_SESSIONS_EACH = 20


class Kind(StrEnum):
    """A TOKEN is a program's, a SESSION a browser's; an ENROLMENT is good for one exchange."""

    TOKEN = "token"  # noqa: S105  (a kind, no secret)
    SESSION = "session"
    ENROLMENT = "enrolment"


@dataclass(frozen=True, slots=True)
class Credential:
    """What the book holds of one secret. `id` is the SHA-256 of the secret in hex."""

    id: str
    kind: Kind
    name: str
    scopes: tuple[Scope, ...]
    made_at: datetime
    made_by: str
    ends_at: datetime | None = None
    """None: it stands until it is revoked."""
    host: str | None = None
    """The only host that it may speak for."""
    parent: str | None = None
    """The credential that it was given for, and ends with."""
    revoked_at: datetime | None = None
    revoked_by: str = ""
    used_at: datetime | None = None
    """When a one-time token was exchanged."""

    def caller(self) -> Caller:
        """Who comes with it."""
        return Caller(self.name, frozenset(self.scopes), self.id, self.host)


class Ended(Refusal):
    """A credential of ours that is good no longer; the text says since when and why."""


class NoSuchCredential(Refusal):
    """Nothing in the book has this name or id."""


class NameTaken(Refusal):
    """Another token has this name, and journals tell callers apart by name."""


class WrongHost(Refusal):
    """A credential of one host was used for another one."""


class Book:
    """All credentials of one store. Every method may be called from any thread; all raise what the store raises."""

    def __init__(self, store: Store, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store, self._clock, self._monotonic = store, clock, monotonic
        self._lock = threading.Lock()
        self._kept: dict[str, Credential] = {}
        self._looked: float | None = None

    def credential(self, secret: str) -> Credential | None:
        """What `secret` is, if it is in force; None when nobody knows it. Raises Ended.

        It is found by its hash, which who guesses cannot steer: how long the search takes tells nothing.
        """
        found = self._look().get(digest(secret))
        if found is None:
            return None
        self._check(found)
        return found

    def make(
        self,
        kind: Kind,
        name: str,
        scopes: Iterable[Scope],
        by: str,
        *,
        lasting: timedelta | None = None,
        host: str | None = None,
        parent: str | None = None,
    ) -> str:
        """A new credential; returns its secret, which is kept nowhere. Raises NameTaken (for tokens)."""
        secret, now = new_token(), self._clock.now()
        made = Credential(
            digest(secret),
            kind,
            name,
            tuple(sorted(set(scopes))),
            now,
            by,
            now + lasting if lasting is not None else None,
            host,
            parent,
        )
        with self._lock:
            kept = self._read()
            if kind is Kind.TOKEN and any(
                _is_token(one, name) and (one.ends_at is None or one.ends_at > now) for one in kept.values()
            ):
                raise NameTaken(
                    f"a token named {name} is there already; revoke it first, or choose another name"
                )
            changes: dict[str, Credential | None] = {made.id: made}
            changes |= dict.fromkeys(_faded(kept, now))
            if kind is Kind.SESSION:
                changes |= dict.fromkeys(_crowded(kept, name))
            self._write(changes)
        return secret

    def exchange(self, secret: str, host: str) -> str:
        """A token of scope `ingest` that speaks for `host` alone, in return for a one-time token. Raises Ended,
        NoSuchCredential, WrongHost."""
        # The lock is for this process's threads, `alone` for other processes on the same store.
        with self._lock, self._store.alone("enrolment") as mine:
            if not mine:
                raise Ended("another host is being enrolled this very moment; try again")
            found = self._read().get(digest(secret))
            if found is None or found.kind is not Kind.ENROLMENT:
                raise NoSuchCredential(
                    "this is no one-time token of ours; make one with `predrain token enrol`"
                )
            self._check(found)
            if found.host != host:
                raise WrongHost(f"this one-time token is for host {found.host}, not for {host}")
            now, given = self._clock.now(), new_token()
            name = f"host:{host}"
            # A host that enrols again, on a new disk perhaps, has one token: the new one.
            older = [one for one in self._kept.values() if _is_token(one, name)]
            token = Credential(
                digest(given), Kind.TOKEN, name, (Scope.INGEST,), now, found.made_by, host=host, parent=None
            )
            gone = {one.id: replace(one, revoked_at=now, revoked_by="a new enrolment") for one in older}
            self._write({found.id: replace(found, used_at=now), token.id: token, **gone})
        return given

    def revoke(self, name_or_id: str, by: str) -> tuple[Credential, ...]:
        """End every credential of that name, or the one whose id begins so. Raises NoSuchCredential."""
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
            self._write({one.id: one for one in gone})
        return gone

    def close(self, id: str) -> None:  # noqa: A002
        """Forget a session: it was signed out."""
        with self._lock:
            self._write({id: None})

    def all(self) -> tuple[Credential, ...]:
        """Everything in the book, the oldest first."""
        with self._lock:
            return tuple(sorted(self._read().values(), key=lambda one: (one.made_at, one.id)))

    def stands(self, id: str) -> bool:  # noqa: A002
        """Whether the credential of that id is in force."""
        found = self._look().get(id)
        if found is None:
            return False
        try:
            self._check(found)
        except Ended:
            return False
        return True

    def _check(self, found: Credential) -> None:
        if found.revoked_at is not None:
            raise Ended(
                f"{found.name} was revoked at {found.revoked_at:%Y-%m-%d %H:%M}Z by {found.revoked_by}"
            )
        if found.used_at is not None:
            raise Ended(
                f"this one-time token was used at {found.used_at:%Y-%m-%d %H:%M}Z; if not by {found.host}, revoke "
                f"host:{found.host}, and make a new one with `predrain token enrol`"
            )
        if found.ends_at is not None and found.ends_at <= self._clock.now():
            raise Ended(f"{found.name} ended at {found.ends_at:%Y-%m-%d %H:%M}Z; get a new one")

    def _look(self) -> Mapping[str, Credential]:
        with self._lock:
            if self._looked is None or self._monotonic() - self._looked >= LOOK_SECONDS:
                self._read()
            return self._kept

    def _read(self) -> Mapping[str, Credential]:
        """The book as the store has it. Call it with the lock."""
        kept = {}
        for name, raw in self._store.notes(ROOM).items():
            try:
                kept[name] = msgspec.json.decode(raw, type=Credential)
            except msgspec.MsgspecError:
                continue  # what cannot be read lets nobody in
        self._kept, self._looked = kept, self._monotonic()
        return kept

    def _write(self, changes: Mapping[str, Credential | None]) -> None:
        self._store.note(
            ROOM, {key: None if one is None else msgspec.json.encode(one) for key, one in changes.items()}
        )
        after: dict[str, Credential | None] = {**self._kept, **changes}
        self._kept = {key: one for key, one in after.items() if one is not None}


def digest(secret: str) -> str:
    """How a secret is known."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _is_token(one: Credential, name: str) -> bool:
    return one.kind is Kind.TOKEN and one.name == name and one.revoked_at is None


def _crowded(kept: Mapping[str, Credential], name: str) -> list[str]:
    """The oldest sessions, where one more would be too many of one holder or of all."""
    sessions = sorted((one for one in kept.values() if one.kind is Kind.SESSION), key=lambda one: one.made_at)
    own = [one for one in sessions if one.name == name]
    too_many = (
        sessions[: max(0, len(sessions) + 1 - MOST_SESSIONS)]
        + own[: max(0, len(own) + 1 - MOST_SESSIONS_EACH)]
    )
    return [one.id for one in too_many]


def _faded(kept: Mapping[str, Credential], now: datetime) -> list[str]:
    """Ended long ago; a session that ended is of no interest at once."""
    return [
        key
        for key, one in kept.items()
        if (end := one.revoked_at or one.used_at or one.ends_at) is not None
        and end + (timedelta() if one.kind is Kind.SESSION else REMEMBERED) <= now
    ]

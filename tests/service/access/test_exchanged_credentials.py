"""Credentials keep their bounds when they are exchanged: a cookie may do no more than the token that it came from."""

from __future__ import annotations

import tempfile
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencyBatch
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.credentials import (
    ROOM,
    Credential,
    CredentialBook,
    CredentialEnded,
    CredentialKind,
    hash_secret,
)
from predrain.service.access.sessions import Sessions
from predrain.service.access.tokens import Caller, ForeignHost, Scope, TokenGrant, Tokens
from tests.attack.access import deliver_for_other_hosts_by_cookie
from tests.service.conftest import NOON, Place, SetClock, Site, envelope, smart_reading

HOSTS = ("a", "b")
DAY = timedelta(days=1)


def test_a_cookie_of_a_host_s_token_delivers_for_that_host_alone(site: Site, place: Place) -> None:
    book = CredentialBook(site.application.store, place.clock)
    token = book.exchange_enrolment(
        book.issue_credential(CredentialKind.ENROLMENT, "host:b", [Scope.INGEST], "anna", host="b"), "b"
    )
    readings = [envelope(site.application, smart_reading(f"S{number}")) for number in range(5)]
    latencies = [
        msgspec.json.decode(site.application._sender.encode_envelope(LatencyBatch(HostName("a"), (), 0)))
    ]
    tally = deliver_for_other_hosts_by_cookie(site.client, token, readings, latencies)
    assert (tally.tried, tally.got_through) == (6, 0)
    own = readings[0]
    own["body"]["host"] = "b"
    word = site.client.get("/api/v1/session").json()["csrf_token"]
    answer = site.client.post("/api/v1/readings", json=[own], headers={"X-Predrain-CSRF-Token": word})
    assert answer.json() == {"accepted": 1, "refused": []}


def allowed(caller: Caller | None) -> set[tuple[Scope, str]]:
    """Everything that a caller may do, and for which host."""
    found = set()
    for scope in Scope if caller is not None else ():
        for host in HOSTS:
            try:
                caller.speaks_for(host)
            except ForeignHost:
                continue
            if caller.has_scope(scope):
                found.add((scope, host))
    return found


def of_token(book: CredentialBook, secret: str) -> Caller | None:
    try:
        found = book.find_credential(secret)
    except CredentialEnded:
        return None
    return found.to_caller() if found is not None else None


def of_cookie(sessions: Sessions, cookie: str) -> Caller | None:
    try:
        found = sessions.find_session(cookie)
    except CredentialEnded:
        return None
    return found.caller if found is not None else None


@pytest.mark.slow
@given(
    scopes=st.frozensets(st.sampled_from(Scope)),
    host=st.sampled_from((None, *HOSTS)),
    lasting=st.sampled_from((None, DAY, 3 * DAY)),
    session=st.sampled_from((DAY, 2 * DAY)),
    later=st.sampled_from((timedelta(), DAY / 2, DAY, 2 * DAY, 3 * DAY)),
    revoked=st.booleans(),
)
def test_for_every_grant_the_cookie_may_do_no_more_than_its_token(
    scopes: frozenset[Scope],
    host: str | None,
    lasting: timedelta | None,
    session: timedelta,
    later: timedelta,
    revoked: bool,
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, clock = SqliteStore(Path(folder) / "store.sqlite"), SetClock()
        try:
            book = CredentialBook(store, clock)
            sessions = Sessions(Tokens(()), book, session)
            secret = book.issue_credential(
                CredentialKind.TOKEN, "anna", scopes, "bert", lasting=lasting, host=host
            )
            holder = of_token(book, secret)
            assert holder is not None
            cookie = sessions.sign_in(holder)
            assert allowed(of_cookie(sessions, cookie)) == allowed(holder), "at first it may do the same"
            clock.sleep(later.total_seconds())
            if revoked:
                book.revoke("anna", "bert")
            assert allowed(of_cookie(sessions, cookie)) <= allowed(of_token(book, secret))
        finally:
            store.close()


def test_a_caller_and_a_credential_have_every_field_of_a_grant() -> None:
    grant = TokenGrant("anna", frozenset({Scope.INGEST}), "stor-01")
    assert Caller.from_grant(grant, "id").collect_fields() == grant.collect_fields()
    assert {one.name for one in fields(TokenGrant)} <= {one.name for one in fields(Credential)}


def test_a_cookie_that_version_0_1_0_gave_for_a_host_s_token_is_bound_to_that_host(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    book = CredentialBook(store, SetClock())
    token = book.issue_credential(CredentialKind.TOKEN, "host:b", [Scope.INGEST], "anna", host="b")
    old = {
        "id": hash_secret("cookie"),
        "kind": "session",
        "name": "host:b",
        "scopes": ["ingest"],
        "made_at": NOON,
        "made_by": "host:b",
        "ends_at": NOON + DAY,
        "host": None,
        "parent": hash_secret(token),
        "revoked_at": None,
        "revoked_by": "",
        "used_at": None,
    }
    store.write_notes(ROOM, {hash_secret("cookie"): msgspec.json.encode(old)})
    found = Sessions(Tokens(()), CredentialBook(store, SetClock()), DAY).find_session("cookie")
    assert found is not None
    assert allowed(found.caller) == {(Scope.INGEST, "b")}
    store.close()


def test_the_page_is_told_that_its_session_ends_with_its_token(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    book = CredentialBook(store, SetClock())
    sessions = Sessions(Tokens(()), book, 2 * DAY)
    holder = of_token(
        book, book.issue_credential(CredentialKind.TOKEN, "anna", [Scope.READ], "bert", lasting=DAY)
    )
    assert holder is not None
    found = sessions.find_session(sessions.sign_in(holder))
    assert found is not None
    assert found.ends_at == NOON + DAY
    store.close()


def test_an_enrolled_host_has_the_grant_of_its_one_time_token(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite")
    book = CredentialBook(store, SetClock())
    once = book.issue_credential(CredentialKind.ENROLMENT, "host:a", [Scope.INGEST], "anna", host="a")
    before = book.find_credential(once)
    assert before is not None
    after = of_token(book, book.exchange_enrolment(once, "a"))
    assert after is not None
    assert after.collect_fields() == before.collect_fields()
    store.close()

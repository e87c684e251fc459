"""The book of credentials: what ends, what is used up, and what another process sees of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.credentials import (
    LOOK_SECONDS,
    MOST_SESSIONS_EACH,
    REMEMBERED,
    ROOM,
    CredentialBook,
    CredentialEnded,
    CredentialKind,
    NameTaken,
    NoSuchCredential,
    WrongHost,
)
from predrain.service.access.rate_limits import TokenBuckets
from predrain.service.access.sessions import Sessions
from predrain.service.access.tokens import Caller, Scope, Tokens, new_token
from tests.service.conftest import SetClock

READ = (Scope.READ,)


class Watch:
    """A stopwatch that a test moves."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.sqlite")
    yield made
    made.close()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def book(store: SqliteStore, clock: SetClock) -> CredentialBook:
    return CredentialBook(store, clock)


def test_a_token_says_who_comes_with_it_and_is_kept_as_a_hash_only(
    book: CredentialBook, store: SqliteStore
) -> None:
    secret = book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    found = book.find_credential(secret)
    assert found is not None
    assert (found.name, found.to_caller().has_scope(Scope.READ), found.to_caller().has_scope(Scope.ACT)) == (
        "grafana",
        True,
        False,
    )
    assert secret.encode() not in b"".join(store.read_notes(ROOM).values())
    assert all(secret not in name for name in store.read_notes(ROOM))


def test_no_token_begins_like_an_option_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(("-9WwkgkRYBM", "--x", "a-token"))
    monkeypatch.setattr("predrain.service.access.tokens.secrets.token_urlsafe", lambda _: next(drawn))
    assert new_token() == "a-token"


def test_a_token_ends_at_its_time_and_says_when_that_was(book: CredentialBook, clock: SetClock) -> None:
    secret = book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna", lasting=timedelta(days=1))
    clock.sleep(86_399)
    assert book.find_credential(secret) is not None
    clock.sleep(1)
    with pytest.raises(CredentialEnded, match="grafana ended at 2026-03-11"):
        book.find_credential(secret)


def test_a_token_that_one_process_revoked_is_refused_by_another_at_its_next_look(
    store: SqliteStore, clock: SetClock
) -> None:
    watch = Watch()
    here, there = CredentialBook(store, clock, watch), CredentialBook(store, clock)
    secret = there.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    assert here.find_credential(secret) is not None
    there.revoke("grafana", "bert")
    watch.at += LOOK_SECONDS
    with pytest.raises(CredentialEnded, match=r"revoked at .* by bert"):
        here.find_credential(secret)


def test_a_revoked_token_is_refused_at_once_by_the_process_that_revoked_it(
    store: SqliteStore, clock: SetClock
) -> None:
    book = CredentialBook(store, clock, Watch())
    secret = book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    assert book.find_credential(secret) is not None
    book.revoke("grafana", "anna")
    with pytest.raises(CredentialEnded):
        book.find_credential(secret)


def test_two_tokens_of_one_name_could_not_be_told_apart(book: CredentialBook) -> None:
    book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    with pytest.raises(NameTaken, match="revoke it first"):
        book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    book.revoke("grafana", "anna")
    book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")


def test_nothing_can_be_revoked_by_a_word_that_names_nothing(book: CredentialBook) -> None:
    book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    for word in ("grafan", "", "a"):
        with pytest.raises(NoSuchCredential):
            book.revoke(word, "anna")


def test_a_one_time_token_is_good_for_one_exchange_however_many_try(book: CredentialBook) -> None:
    once = book.issue_credential(
        CredentialKind.ENROLMENT, "host:stor-01", [Scope.INGEST], "anna", host="stor-01"
    )
    given_: list[str] = []
    refused: list[str] = []
    ready = threading.Barrier(8)

    def exchange() -> None:
        ready.wait()
        try:
            given_.append(book.exchange_enrolment(once, "stor-01"))
        except CredentialEnded as ended:
            refused.append(str(ended))

    threads = [threading.Thread(target=exchange) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(given_), len(refused)) == (1, 7)
    assert "revoke host:stor-01" in refused[0]
    found = book.find_credential(given_[0])
    assert found is not None
    assert (found.host, found.scopes) == ("stor-01", {Scope.INGEST})


def test_a_one_time_token_is_no_use_for_another_host_or_after_its_time(
    book: CredentialBook, clock: SetClock
) -> None:
    once = book.issue_credential(
        CredentialKind.ENROLMENT, "host:a", [Scope.INGEST], "anna", lasting=timedelta(hours=1), host="a"
    )
    with pytest.raises(WrongHost):
        book.exchange_enrolment(once, "b")
    clock.sleep(3600)
    with pytest.raises(CredentialEnded):
        book.exchange_enrolment(once, "a")


def test_a_host_that_enrols_anew_has_one_token(book: CredentialBook) -> None:
    tokens = [
        book.exchange_enrolment(
            book.issue_credential(CredentialKind.ENROLMENT, "host:a", [Scope.INGEST], "anna", host="a"), "a"
        )
        for _ in range(2)
    ]
    with pytest.raises(CredentialEnded, match="a new enrolment"):
        book.find_credential(tokens[0])
    assert book.find_credential(tokens[1]) is not None


def test_a_program_s_token_enrols_nobody(book: CredentialBook) -> None:
    with pytest.raises(NoSuchCredential):
        book.exchange_enrolment(
            book.issue_credential(CredentialKind.TOKEN, "grafana", [Scope.ADMIN], "anna"), "a"
        )


def test_a_session_ends_with_the_token_that_opened_it(book: CredentialBook) -> None:
    sessions = Sessions(Tokens(()), book, timedelta(hours=12))
    token = book.find_credential(book.issue_credential(CredentialKind.TOKEN, "anna", [Scope.ACT], "bert"))
    assert token is not None
    cookie = sessions.sign_in(token.to_caller())
    assert sessions.find_session(cookie) is not None
    book.revoke(token.id[:12], "bert")
    with pytest.raises(CredentialEnded, match="sign in again"):
        sessions.find_session(cookie)


def test_a_session_of_a_token_that_died_with_its_process_opens_nothing(book: CredentialBook) -> None:
    before = Tokens(()).with_token("once", Caller("page", frozenset({Scope.ACT})))
    caller = before.find_caller("once")
    assert caller is not None
    cookie = Sessions(before, book, timedelta(hours=12)).sign_in(caller)
    assert Sessions(before, book, timedelta(hours=12)).find_session(cookie) is not None
    with pytest.raises(CredentialEnded):
        Sessions(Tokens(()), book, timedelta(hours=12)).find_session(cookie)


def test_sessions_are_bounded_and_the_oldest_one_goes(book: CredentialBook, clock: SetClock) -> None:
    sessions = Sessions(Tokens(()), book, timedelta(hours=12))
    cookies = []
    for _ in range(MOST_SESSIONS_EACH + 3):
        cookies.append(sessions.sign_in(Caller("anna", frozenset(READ))))
        clock.sleep(1)
    standing = [sessions.find_session(cookie) is not None for cookie in cookies]
    assert standing == [False] * 3 + [True] * MOST_SESSIONS_EACH


def test_a_token_that_ended_long_ago_leaves_the_book(
    book: CredentialBook, store: SqliteStore, clock: SetClock
) -> None:
    book.issue_credential(CredentialKind.TOKEN, "old", READ, "anna")
    book.revoke("old", "anna")
    clock.sleep(REMEMBERED.total_seconds())
    book.issue_credential(CredentialKind.TOKEN, "new", READ, "anna")
    assert [one.name for one in book.list_credentials()] == ["new"]
    assert len(store.read_notes(ROOM)) == 1


def test_an_entry_that_cannot_be_read_lets_nobody_in_and_keeps_nobody_out(
    book: CredentialBook, store: SqliteStore
) -> None:
    secret = book.issue_credential(CredentialKind.TOKEN, "grafana", READ, "anna")
    store.write_notes(ROOM, {"0" * 64: b"no credential"})
    assert [one.name for one in book.list_credentials()] == ["grafana"]
    assert book.find_credential(secret) is not None


@given(st.lists(st.floats(0, 3), min_size=1, max_size=200), st.integers(1, 50), st.integers(1, 50))
def test_no_more_is_let_through_than_the_rate_allows(pauses: list[float], rate: int, burst: int) -> None:
    watch = Watch()
    buckets, passed = TokenBuckets(rate, burst, watch), 0
    for pause in pauses:
        watch.at += pause
        wait = buckets.take_token("a")
        passed += wait == 0.0
        assert passed <= burst + watch.at * rate + 1e-6
        if wait:
            watch.at += wait + 1e-9
            assert buckets.take_token("a") == 0.0
            passed += 1


def test_one_caller_s_flood_leaves_another_s_room_alone() -> None:
    buckets = TokenBuckets(1, 5, Watch())
    assert [bool(buckets.take_token("a")) for _ in range(6)] == [False] * 5 + [True]
    assert buckets.take_token("b") == 0.0

"""The audit holds each act whole and in one form, for every notation of the request and every way into the service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from predrain.data.clock import SystemClock
from predrain.data.store import store_schema
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.store.store_port import AUDIT
from predrain.service.access.canonical_requests import (
    BLANK,
    canonical_body,
    canonical_json,
    canonical_request,
)
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.cli import main
from predrain.service.config.settings import ServiceTable, Settings
from predrain.service.doctor import local_checks
from tests.service.conftest import Place, Site

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def acts(store: SqliteStore) -> list[str]:
    return [line.decided for line in store.journal(AUDIT)]


def test_blanks_before_the_body_hide_nothing(site: Site) -> None:
    said = b" " * 600 + json.dumps({"reason": "x", "hours": 1, "host": "*"}, indent=9).encode() + b"\n" * 600
    headers = {**site.acting, "Content-Type": "application/json"}
    site.client.post("/api/v1/silences", content=said, headers=headers)
    site.client.post("/api/v1/halt", content=b" " * 600 + b'{"reason":\n"x"}', headers=headers)
    assert acts(site.application.store) == [  # type: ignore[arg-type]
        'POST /api/v1/silences {"host":"*","hours":1,"reason":"x"}',
        'POST /api/v1/halt {"reason":"x"}',
    ]


def test_the_plan_that_was_approved_and_the_query_are_part_of_the_act() -> None:
    asked = canonical_request("POST", "/api/v1/drains/d-1/approve", b"now=%31&token=abc", b"{}", '"seal-1"')
    assert asked == 'POST /api/v1/drains/d-1/approve?now=1&token=%2A%2A%2A if-match "seal-1"'


@pytest.mark.slow
@given(JSON, st.integers(0, 8), st.text(" \t\r\n", max_size=700))
def test_one_act_has_one_form_however_it_is_written(said: object, indent: int, blanks: str) -> None:
    plain = json.dumps(said).encode()
    other = (blanks + json.dumps(said, indent=indent, ensure_ascii=False) + blanks).encode(
        errors="surrogatepass"
    )
    found = canonical_body(plain)
    assert canonical_body(other) == found
    assert found.isprintable()


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=50) | st.integers(), max_size=5))
def test_a_short_body_without_a_secret_is_recorded_as_it_was_sent(said: dict[str, object]) -> None:
    assert json.loads(canonical_json(said)) == said


@given(st.sampled_from(["token", "Password", "client_secret", "passphrase"]), st.text(min_size=5))
def test_no_secret_is_ever_in_an_act(key: str, secret: str) -> None:
    found = json.loads(canonical_json({"deep": [{key: secret}], key: {"inner": secret}}))
    assert found == {"deep": [{key: BLANK}], key: BLANK}


@pytest.mark.parametrize(
    "said", [b"[" * 100_000, b"\xff\xfe", b"{", b"1" * 5_000, b'"' + b"x" * 5_000_000 + b'"']
)
def test_a_body_that_is_no_json_or_very_long_is_recorded_by_its_size_and_hash(said: bytes) -> None:
    found = canonical_body(said)
    assert len(found) < 5_000
    assert "sha256" in found.lower() or "SHA-256" in found


@pytest.mark.slow
def test_a_token_is_on_record_even_where_nobody_could_read_what_was_printed(site: Site, place: Place) -> None:
    command = [
        sys.executable,
        "-c",
        "from predrain.service.cli import main; raise SystemExit(main())",
        "token",
        "create",
    ]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, "--name", "thief", "--scope", "admin", "--state", str(place.state.path)],
            stdout=full,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            check=False,
        )
    assert done.returncode != 0
    made = [one.name for one in CredentialBook(site.application.store, SystemClock()).list_credentials()]
    told = [act for act in acts(site.application.store) if '"name":"thief"' in act]  # type: ignore[arg-type]
    assert (made, len(told)) == (["thief"], 1)


def test_a_halt_with_the_service_down_is_on_record(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    SqliteStore(place.state.store).close()
    assert main(["halt", "--reason", "storm", "--state", str(place.state.path)]) == 3
    assert main(["unhalt", "--state", str(place.state.path)]) == 3
    capsys.readouterr()
    store = SqliteStore(place.state.store)
    assert acts(store) == ['halt {"reason":"storm"}', 'unhalt {"reason":null}']
    assert all(line.caller.startswith("cli:") for line in store.journal(AUDIT))
    store.close()


def test_the_doctor_names_the_first_broken_line(place: Place) -> None:
    store = SqliteStore(place.state.store)
    book = CredentialBook(store, SystemClock())
    for name in ("anna", "bert", "carl"):
        book.issue_credential(CredentialKind.TOKEN, name, [Scope.READ], "test")
    settings = Settings(service=ServiceTable(state=place.state.path))
    (sound,) = local_checks._check_audit(settings, SystemClock())
    assert (sound.state, sound.told.startswith("3 lines, whole; the last has the hash ")) == ("ok", True)
    forged = update(store_schema.journal).where(store_schema.journal.c.number == 2).values(document=b"{}")
    store._database.write(lambda connection: connection.execute(forged))
    (broken,) = local_checks._check_audit(settings, SystemClock())
    assert (broken.state, broken.told.startswith("line 2 was changed")) == ("wrong", True)
    store.close()

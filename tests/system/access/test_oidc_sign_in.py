"""People sign in at a provider that runs beside the service: the whole round by HTTP, and every way to cheat in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from joserfc.jwk import RSAKey

from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access import oidc
from predrain.service.access.audit import NOBODY
from predrain.service.access.oidc import ProviderAway, sanitize_return_path
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.access_table import OidcTable
from predrain.service.config.settings import BadSettings, ServiceTable, Settings, load_settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor import remote_checks
from predrain.service.http.server import Server, bind_listening_socket
from predrain.service.rest import audit_middleware
from predrain.service.rest.authentication import CSRF_HEADER
from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.system.access.provider import CLIENT, SECRET, LocalProvider, local_provider

HALT = "/api/v1/halt"


@pytest.fixture
def provider() -> Iterator[LocalProvider]:
    with local_provider() as found:
        yield found


@dataclass
class Door:
    """A service that sends people to the provider, and a browser before it."""

    application: Application
    browser: httpx2.Client
    token: str
    url: str


@pytest.fixture
def readers() -> tuple[str, ...]:
    """Return the values of the claim that let a person read; `*` lets every person read."""
    return ("*",)


@pytest.fixture
def is_public() -> bool:
    """Return True if predrain has no client secret at the provider."""
    return False


@pytest.fixture
def door(
    provider: LocalProvider, tmp_path: Path, readers: tuple[str, ...], is_public: bool
) -> Iterator[Door]:
    secret = tmp_path / "oidc.secret"
    secret.write_text(SECRET + "\n")
    port = hold_port()
    url = f"http://127.0.0.1:{port}"
    settings = Settings(
        service=ServiceTable(port=port, state=tmp_path / "state", external_url=url),
        oidc=OidcTable(
            issuer=provider.issuer,
            client_id=CLIENT,
            client_secret_file=None if is_public else secret,
            read=readers,
            act=("storage-oncall",),
            admin=("storage-admins",),
        ),
    )
    state = StateDir(tmp_path / "state").ensure_exists()

    def unused() -> Any:
        raise AssertionError("nothing is scored here")

    application = Application(
        ApplicationPorts(SqliteLog(state.log), SqliteStore(state.store), SystemClock(), unused),
        Policy(),
        settings,
    )
    listener = bind_listening_socket(settings.service)
    stop = Server(application, load_admin_tokens(state.token), listener).serve_aside()
    with httpx2.Client(base_url=url, timeout=60) as browser:
        yield Door(application, browser, state.token.read_text().strip(), url)
    stop()
    listener.close()
    application.stop()
    application.log.close()
    application.store.close()


def follow(door: Door, back: str = "/drains?open=1") -> httpx2.Response:
    """As a browser goes: to the service, to the provider, and back; the last answer."""
    first = door.browser.get("/sign-in", params={"back": back})
    assert first.status_code == 303, first.text
    second = httpx2.get(first.headers["location"])
    return door.browser.get(second.headers["location"])


def who(door: Door) -> dict[str, Any]:
    found: dict[str, Any] = door.browser.get("/api/v1/session").json()
    return found


def test_somebody_signs_in_acts_under_their_own_name_and_signs_out(door: Door) -> None:
    assert who(door)["sign_in_url"] == "/sign-in"
    answer = follow(door)
    assert (answer.status_code, answer.headers["location"]) == (303, "/drains?open=1")
    me = who(door)
    assert (me["name"], me["scopes"]) == ("oidc:anna", ["act", "read"])
    said = {CSRF_HEADER: me["csrf_token"]}
    assert door.browser.post(HALT, json={"reason": "x"}, headers=said).json()["by"] == "oidc:anna"
    assert door.browser.request("DELETE", "/api/v1/session", headers=said).status_code == 204
    assert who(door)["name"] is None
    assert door.browser.post(HALT, json={"reason": None}, headers=said).status_code == 401


def test_the_session_s_cookie_stays_strict_and_the_other_one_is_gone(door: Door) -> None:
    cookies = follow(door).headers.get_list("set-cookie")
    session, begun = sorted(cookies, key=lambda one: "begun" in one)
    assert "samesite=strict" in session.lower()
    assert "max-age=0" in begun.lower()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("groups", "scopes"),
    [
        (["storage-admins"], ["admin", "read"]),
        (["elsewhere"], ["read"]),
        ("storage-oncall", ["act", "read"]),
        (None, ["read"]),
        ([{"storage-admins": 1}, 7], ["read"]),
        ({"storage-admins": False}, ["read"]),
        (True, ["read"]),
        (7, ["read"]),
    ],
)
def test_a_claim_says_who_may_do_what(
    door: Door, provider: LocalProvider, groups: Any, scopes: list[str]
) -> None:
    provider.person["groups"] = groups
    assert follow(door).status_code == 303
    assert who(door)["scopes"] == scopes


def test_a_halt_by_a_person_with_scope_read_alone_is_refused(door: Door, provider: LocalProvider) -> None:
    provider.person["groups"] = []
    follow(door)
    answer = door.browser.post(HALT, json={"reason": "x"}, headers={CSRF_HEADER: who(door)["csrf_token"]})
    assert answer.status_code == 403
    assert door.application.store.halt_reason() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "lies",
    [
        {"aud": "another"},
        {"aud": None},
        {"iss": "https://evil.example"},
        {"nonce": "of another sign-in"},
        {"nonce": None},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"sub": None},
        {"azp": "another"},
    ],
)
def test_a_token_that_is_not_for_us_now_and_here_lets_nobody_in(
    door: Door, provider: LocalProvider, lies: dict[str, Any]
) -> None:
    provider.lies = lies
    answer = follow(door)
    assert answer.status_code == 403
    assert "Nobody was signed in" in answer.json()["detail"]
    assert who(door)["name"] is None


def record(door: Door) -> list[tuple[str, str, str]]:
    answer = httpx2.get(f"{door.url}/api/v1/audit", headers={"Authorization": f"Bearer {door.token}"})
    return [(call["caller"], call["request"], call["result"]) for call in answer.json()["items"]]


@pytest.mark.slow
def test_the_audit_names_the_person_who_signs_in_but_not_the_authorization_code(door: Door) -> None:
    follow(door)
    assert record(door) == [("oidc:anna", "GET /sign-in/return", "303")]


@pytest.mark.slow
def test_sign_ins_that_are_refused_are_counted_on_record(
    door: Door, provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_middleware, "WINDOW_SECONDS", 0.5)
    provider.lies = {"aud": "another"}
    follow(door)
    door.browser.get("/sign-in/return", params={"error": "access_denied"})
    end = idle_seconds() + 30
    while not (lines := record(door)) and idle_seconds() < end:
        time.sleep(0.1)
    told = [(caller, answered) for caller, _, answered in lines]
    assert set(told) == {(NOBODY, "refused")}
    assert all("GET /sign-in/return 403" in asked for _, asked, _ in lines)


@pytest.mark.parametrize("readers", [("storage",)])
def test_a_person_known_to_the_provider_but_granted_no_scope_is_named_in_the_audit(
    door: Door, provider: LocalProvider
) -> None:
    provider.person["groups"] = ["sales"]
    answer = follow(door)
    assert "anna may do nothing here" in answer.json()["detail"]
    assert record(door) == [("oidc:anna", "GET /sign-in/return", "403")]
    assert who(door)["name"] is None


@pytest.mark.slow
@pytest.mark.parametrize("how", ["unsigned", "another's key", "public key as a secret"])
def test_a_token_that_the_provider_did_not_sign_lets_nobody_in(
    door: Door, provider: LocalProvider, how: str
) -> None:
    if how == "unsigned":
        provider.head = {"alg": "none"}
    elif how == "another's key":
        provider.signs_with = RSAKey.generate_key(2048, {"kid": "one"})
    else:
        provider.head = {"alg": "HS256", "kid": "one"}
    assert follow(door).status_code == 403
    assert who(door)["name"] is None


def test_a_code_is_no_use_in_another_browser(door: Door) -> None:
    first = door.browser.get("/sign-in")
    returning = httpx2.get(first.headers["location"]).headers["location"]
    with httpx2.Client(timeout=60) as other:
        assert other.get(returning).status_code == 403
        other.get(f"{door.url}/sign-in")
        answer = other.get(returning)
        assert answer.status_code == 403
        assert "not the sign-in that this browser began" in answer.json()["detail"]


def test_a_code_is_good_once(door: Door) -> None:
    first = door.browser.get("/sign-in")
    kept = dict(door.browser.cookies)
    returning = httpx2.get(first.headers["location"]).headers["location"]
    assert door.browser.get(returning).status_code == 303
    for name, value in kept.items():
        door.browser.cookies.set(name, value)
    assert door.browser.get(returning).status_code == 403


def test_the_code_is_proved_to_be_ours(door: Door) -> None:
    asked = parse_qs(urlsplit(door.browser.get("/sign-in").headers["location"]).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert len(asked["code_challenge"][0]) == 43
    again = parse_qs(urlsplit(door.browser.get("/sign-in").headers["location"]).query)
    for once in ("state", "nonce", "code_challenge"):
        assert asked[once] != again[once]


@pytest.mark.slow
@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "/\r\nSet-Cookie: a=b",
        "javascript:1",
        "",
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(door: Door, back: str) -> None:
    answer = follow(door, back)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert sanitize_return_path(back) == "/"


def test_a_provider_that_is_away_is_said_and_tokens_still_let_in(door: Door, provider: LocalProvider) -> None:
    provider.issuer = "http://127.0.0.1:9"  # what it says of itself is not where it is
    answer = door.browser.get("/sign-in")
    assert answer.status_code == 503
    assert "set issuer of [oidc]" in answer.json()["detail"]
    assert door.browser.post("/api/v1/session", json={"token": door.token}).status_code == 204


def test_the_doctor_says_whether_people_can_sign_in(provider: LocalProvider) -> None:
    table = OidcTable(issuer=provider.issuer, client_id=CLIENT, read=("*",))
    settings = Settings(service=ServiceTable(external_url="http://127.0.0.1:8080"), oidc=table)
    (found,) = remote_checks.check_oidc_provider(settings, SystemClock())
    assert (found.state, found.told) == ("ok", f"{provider.issuer} answers, and its keys can be read")
    elsewhere = table.model_copy(update={"issuer": f"{provider.issuer}/nowhere"})
    with pytest.raises(ProviderAway, match="nowhere answered 404"):
        list(
            remote_checks.check_oidc_provider(settings.model_copy(update={"oidc": elsewhere}), SystemClock())
        )


@pytest.mark.slow
def test_keys_that_the_provider_changed_are_fetched_and_forged_ones_fetch_nothing(
    door: Door, provider: LocalProvider
) -> None:
    assert follow(door).status_code == 303
    provider.head = {"alg": "RS256", "kid": "forged"}
    provider.signs_with = RSAKey.generate_key(2048, {"kid": "forged"})
    for _ in range(3):
        assert follow(door).status_code == 403
    assert provider.asked.count("/keys") == 1


@pytest.mark.slow
def test_a_token_under_a_new_key_of_the_provider_lets_in(
    door: Door, provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oidc, "KEYS_SECONDS", 0.0)
    assert follow(door).status_code == 303
    provider.key = RSAKey.generate_key(2048, {"kid": "two", "use": "sig", "alg": "RS256"})
    provider.head = {"alg": "RS256", "kid": "two"}
    assert follow(door).status_code == 303
    assert provider.asked.count("/keys") == 2


@pytest.mark.slow
@pytest.mark.parametrize("is_public", [True])
def test_a_public_client_signs_people_in_without_a_secret(door: Door, provider: LocalProvider) -> None:
    provider.public = True
    assert follow(door).status_code == 303


@pytest.mark.slow
def test_no_field_of_the_provider_s_description_is_an_option_of_our_client(
    door: Door, provider: LocalProvider
) -> None:
    provider.also = {"proxy": "http://127.0.0.1:9", "timeout": 1e-9, "scope": "everything", "client_id": "x"}
    answer = door.browser.get("/sign-in")
    assert parse_qs(urlsplit(answer.headers["location"]).query)["scope"] == ["openid profile email"]
    assert follow(door).status_code == 303


def test_an_answer_of_the_provider_that_is_too_long_is_refused(door: Door, provider: LocalProvider) -> None:
    provider.also = {"padding": "x" * oidc.LONGEST_ANSWER}
    answer = door.browser.get("/sign-in")
    assert answer.status_code == 503
    assert "does not end its answer" in answer.json()["detail"]


def test_a_refusal_by_the_provider_is_reported_with_its_error(door: Door) -> None:
    answer = door.browser.get("/sign-in/return", params={"error": "access_denied", "state": "x"})
    assert answer.status_code == 403
    assert "access_denied" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            '[oidc]\nissuer = "https://a.example"\nclient_id = "p"\nread = ["*"]',
            "needs external_url of [service]",
        ),
        ('[oidc]\nissuer = "https://a.example"\nread = ["*"]', "issuer needs client_id"),
        ('[oidc]\nissuer = "https://a.example"\nclient_id = "p"', "nobody could do anything"),
        ('[oidc]\nissuer = "https://a.example"\nclient_id = "p"\nact = ["*"]', "name who may act"),
        ('[oidc]\nissuer = "http://a.example"\nclient_id = "p"\nread = ["*"]', "oidc.issuer"),
    ],
)
def test_settings_that_would_let_in_nobody_or_anybody_are_refused(
    tmp_path: Path, written: str, told: str
) -> None:
    file = tmp_path / "predrain.toml"
    file.write_text(written)
    with pytest.raises(BadSettings) as refused:
        load_settings(file, {})
    assert told in str(refused.value)

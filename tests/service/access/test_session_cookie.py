"""Signed in on the page: the cookie, the word against forgery, and the end of both, over a real server."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import Any

import httpx2
import pytest

from predrain.service.rest.authentication import CSRF_HEADER
from tests.service.conftest import Place, Serve, Site, shut, with_service

HALT = "/api/v1/halt"


def sign_in(site: Site, token: str | None = None, **headers: str) -> httpx2.Response:
    return site.client.post("/api/v1/session", json={"token": token or site.token}, headers=headers)


def word(site: Site) -> str:
    found: str = site.client.get("/api/v1/session").json()["csrf_token"]
    return found


def halted(site: Site) -> Any:
    return site.application.store.halt_reason()


def test_a_browser_that_signed_in_acts_under_the_name_of_its_token(site: Site) -> None:
    assert sign_in(site).status_code == 204
    who = site.client.get("/api/v1/session").json()
    assert (who["name"], who["scopes"], who["can_read"]) == ("token-file", ["admin"], True)
    done = site.client.post(HALT, json={"reason": "x"}, headers={CSRF_HEADER: who["csrf_token"]})
    assert done.json()["by"] == "token-file"


def test_no_script_and_no_other_site_gets_at_the_cookie(site: Site) -> None:
    cookie = SimpleCookie(sign_in(site).headers["set-cookie"])
    ((name, morsel),) = cookie.items()
    assert name == f"predrain-{site.client.base_url.port}"
    assert (morsel["httponly"], morsel["samesite"].lower(), morsel["path"]) == (True, "strict", "/")
    assert not morsel["domain"]
    assert int(morsel["max-age"]) == 12 * 3600


def test_behind_a_proxy_that_speaks_tls_the_cookie_is_bound_to_it(place: Place, serve: Serve) -> None:
    application = with_service(
        place, external_url="https://predrain.example.org", allowed_hosts=("predrain.example.org",)
    ).application()
    site = serve(application)
    answer = sign_in(site, Host="predrain.example.org")
    assert answer.headers["set-cookie"].startswith("__Host-predrain=")
    assert "Secure" in answer.headers["set-cookie"]
    shut(application)


def test_signed_out_the_cookie_opens_nothing_even_where_it_was_copied(site: Site) -> None:
    sign_in(site)
    copied = dict(site.client.cookies)
    (name,) = copied
    answer = site.client.request("DELETE", "/api/v1/session", headers={CSRF_HEADER: word(site)})
    assert answer.status_code == 204
    assert site.client.get("/api/v1/session").json()["name"] is None
    site.client.cookies.set(name, copied[name])
    assert site.client.get("/api/v1/session").json()["name"] is None
    assert site.client.post(HALT, json={"reason": "x"}).status_code == 401
    assert halted(site) is None


@pytest.mark.slow
def test_a_stream_of_events_ends_with_the_session_that_it_began_with(
    place: Place, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.rest.change_stream_routes.HEARTBEAT_SECONDS", 0.5)
    application = with_service(place, host="0.0.0.0", insecure_without_tls=True).application()
    site = serve(application)
    sign_in(site)
    said = {CSRF_HEADER: word(site)}
    with site.client.stream("GET", "/api/v1/events") as stream:
        lines = stream.iter_lines()
        assert next(lines)
        assert site.client.request("DELETE", "/api/v1/session", headers=said).status_code == 204
        assert [line for line in lines if line.startswith("event:")] == [], "it ends by itself"
    assert site.client.get("/api/v1/events").status_code == 401
    shut(application)


def test_to_sign_in_anew_closes_the_session_before(site: Site) -> None:
    sign_in(site)
    before = dict(site.client.cookies)
    sign_in(site)
    site.client.cookies.clear()
    for name, secret in before.items():
        site.client.cookies.set(name, secret)
    assert site.client.get("/api/v1/session").json()["name"] is None


@pytest.mark.slow
@pytest.mark.parametrize("forged", ["forged", "0" * 43, "", "token"])
def test_a_forged_cookie_is_nobody_s(site: Site, forged: str) -> None:
    # The token itself is no session: a cookie of it would let a thief of one stay under the name of the other.
    site.client.cookies.set(
        f"predrain-{site.client.base_url.port}", site.token if forged == "token" else forged
    )
    assert site.client.get("/api/v1/session").json()["name"] is None
    answer = site.client.post(HALT, json={"reason": "x"})
    assert answer.status_code == 401
    assert halted(site) is None


def test_a_session_s_secret_is_no_token(site: Site) -> None:
    sign_in(site)
    (secret,) = dict(site.client.cookies).values()
    site.client.cookies.clear()
    answer = site.client.post(HALT, json={"reason": "x"}, headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 401
    assert halted(site) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, CSRF_HEADER),
        ({CSRF_HEADER: "guessed"}, CSRF_HEADER),
        ({"Origin": "https://evil.example", CSRF_HEADER: "right"}, "https://evil.example"),
        ({"Origin": "null", CSRF_HEADER: "right"}, "page of null"),
        ({"Sec-Fetch-Site": "cross-site", CSRF_HEADER: "right"}, "another site"),
        ({"Sec-Fetch-Site": "same-site", CSRF_HEADER: "right"}, "another site"),
    ],
)
def test_a_request_from_another_sites_page_with_our_cookie_is_refused(
    site: Site, headers: dict[str, str], told: str
) -> None:
    sign_in(site)
    right = word(site)
    answer = site.client.post(
        HALT,
        json={"reason": "x"},
        headers={key: right if value == "right" else value for key, value in headers.items()},
    )
    assert answer.status_code == 403
    assert told in answer.json()["detail"]
    assert halted(site) is None


def test_the_word_of_one_session_is_no_good_in_another(site: Site) -> None:
    sign_in(site)
    other = word(site)
    sign_in(site)
    assert site.client.post(HALT, json={"reason": "x"}, headers={CSRF_HEADER: other}).status_code == 403


def test_another_site_can_sign_nobody_in(site: Site) -> None:
    answer = sign_in(site, Origin="https://evil.example")
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


@pytest.mark.slow
@pytest.mark.parametrize("origin", ["http://[evil", "http://[::1", "//", "://", "http://a]b"])
def test_an_origin_that_is_no_address_is_another_site(site: Site, origin: str) -> None:
    answer = sign_in(site, Origin=origin)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_form_of_another_site_is_no_json(site: Site) -> None:
    answer = site.client.post(
        "/api/v1/session", content=f'{{"token": "{site.token}"}}', headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 422
    assert "set-cookie" not in answer.headers


def test_a_wrong_token_opens_no_session(site: Site) -> None:
    answer = sign_in(site, "wrong")
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


def test_a_session_ends_by_itself(site: Site, place: Place) -> None:
    sign_in(site)
    said = {CSRF_HEADER: word(site)}
    place.clock.sleep(12 * 3600)
    answer = site.client.post(HALT, json={"reason": "x"}, headers=said)
    assert answer.status_code == 401
    assert "ended at" in answer.json()["detail"]
    assert halted(site) is None


def test_a_session_may_only_do_what_its_token_may(site: Site) -> None:
    from tests.service.conftest import INGEST_TOKEN

    sign_in(site, INGEST_TOKEN)
    answer = site.client.post(HALT, json={"reason": "x"}, headers={CSRF_HEADER: word(site)})
    assert answer.status_code == 403
    assert "scope act" in answer.json()["detail"]


def test_a_cookie_is_not_used_where_a_token_is_sent(site: Site) -> None:
    sign_in(site)
    answer = site.client.post(HALT, json={"reason": "x"}, headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401

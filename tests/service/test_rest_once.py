"""A request that acts and has a name is carried out once, however often it is sent."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.rest import cause_routes, idempotency
from predrain.service.rest.idempotency import ROOM
from tests.service.conftest import Place, Serve, Site, shut

WISH = {"hours": 8, "reason": "firmware", "host": "stor-01"}


def asked(site: Site, key: str, body: object = WISH, **headers: str) -> Any:
    return site.client.post(
        "/api/v1/silences", json=body, headers={**site.acting, "Idempotency-Key": key, **headers}
    )


def silences(site: Site) -> list[str]:
    return [one["id"] for one in site.client.get("/api/v1/silences").json()["items"]]


def test_the_same_request_with_the_same_key_is_carried_out_once_and_answered_alike(site: Site) -> None:
    first, again = asked(site, "a"), asked(site, "a")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.content == again.content
    assert silences(site) == [first.json()["id"]]


def test_without_a_key_each_request_is_one_of_its_own(site: Site) -> None:
    for _ in range(2):
        site.client.post("/api/v1/silences", json=WISH, headers=site.acting)
    assert len(silences(site)) == 2


def test_another_request_with_the_same_key_is_refused_and_not_carried_out(site: Site) -> None:
    asked(site, "a")
    other = asked(site, "a", {**WISH, "host": "stor-02"})
    assert other.status_code == 422
    assert "take a new one" in other.json()["detail"]
    elsewhere = site.client.post(
        "/api/v1/halt", json={"reason": None}, headers={**site.acting, "Idempotency-Key": "a"}
    )
    assert elsewhere.status_code == 422
    assert len(silences(site)) == 1


def test_the_answer_outlives_a_restart(place: Place, serve: Serve) -> None:
    application = place.application()
    first = asked(serve(application), "a")
    shut(application)
    application = place.application()
    site = serve(application)
    assert asked(site, "a").content == first.content
    assert len(silences(site)) == 1
    shut(application)


def test_a_key_is_free_again_after_a_day(site: Site, place: Place) -> None:
    first = asked(site, "a", {**WISH, "hours": 100})
    place.clock.sleep(24 * 3600)
    again = asked(site, "a", {**WISH, "hours": 50})
    assert again.status_code == 201
    assert sorted(silences(site)) == sorted([first.json()["id"], again.json()["id"]])


def test_a_refusal_is_not_kept_since_nothing_was_done(site: Site) -> None:
    headers = {**site.acting, "Idempotency-Key": "a"}
    assert site.client.delete("/api/v1/silences/none", headers=headers).status_code == 404
    assert site.application.store.read_notes(ROOM) == {}


def test_an_empty_answer_is_given_again_too(site: Site) -> None:
    id_ = asked(site, "a").json()["id"]
    headers = {**site.acting, "Idempotency-Key": "b"}
    answers = [site.client.delete(f"/api/v1/silences/{id_}", headers=headers) for _ in range(2)]
    assert [(one.status_code, one.content) for one in answers] == [(204, b"")] * 2


def test_a_key_belongs_to_who_sent_it(site: Site) -> None:
    asked(site, "a")
    book = CredentialBook(site.application.store, site.application.clock)
    token = book.issue_credential(CredentialKind.TOKEN, "someone", {Scope.READ, Scope.ACT}, "a test")
    other = asked(site, "a", {**WISH, "host": "stor-02"}, Authorization=f"Bearer {token}")
    assert other.status_code == 201
    assert len(silences(site)) == 2


@pytest.mark.parametrize("key", ["x" * 256, ""])
def test_a_key_that_is_no_name_is_refused(site: Site, key: str) -> None:
    assert asked(site, key).status_code == 422
    assert silences(site) == []


def test_a_second_one_while_the_first_is_under_way_is_told_to_wait(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, answers = threading.Event(), threading.Event(), []
    silencing = cause_routes.save_silence

    def slowly(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return silencing(*given)

    monkeypatch.setattr(cause_routes, "save_silence", slowly)
    first = threading.Thread(target=lambda: answers.append(asked(site, "a")))
    first.start()
    assert begun.wait(60)
    second = asked(site, "a")
    go_on.set()
    first.join(60)
    assert (second.status_code, second.headers["retry-after"]) == (409, "1")
    assert answers[0].status_code == 201
    assert asked(site, "a").content == answers[0].content
    assert len(silences(site)) == 1


def test_no_more_answers_are_kept_than_there_is_room_for(
    site: Site, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "MOST", 3)
    for number in range(5):
        place.clock.sleep(1)
        asked(site, str(number))
    assert len(site.application.store.read_notes(ROOM)) == 3
    assert asked(site, "4").json()["id"] in silences(site)
    assert len(silences(site)) == 5
    asked(site, "0")
    assert len(silences(site)) == 6


def test_every_route_that_acts_takes_a_key(site: Site) -> None:
    document = site.client.get("/api/v1/openapi.json").json()
    without = []
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method in ("get", "head") or path.rsplit("/", 1)[-1] in (
                "readings",  # keyed by device and time
                "latency",
                "result",  # of the mgr executor: nobody waits for a second one
                "exchange",  # keyed by the ids of requests: a second report changes nothing
                "session",
                "enrolment",
            ):
                continue
            if "Idempotency-Key" not in {one["name"] for one in operation.get("parameters", ())}:
                without.append(f"{method} {path}")
    assert without == []

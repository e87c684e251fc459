"""The record of calls that act, and hosts that come with a one-time token, over a real server."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencyBatch
from predrain.data.store.store_port import AUDIT
from predrain.service.access.audit import NOBODY
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope, read_token_file
from predrain.service.cli import main
from predrain.service.config.collector_table import CollectorKafkaTable, CollectorSettings, CollectorTable
from predrain.service.processes import collector_process
from predrain.service.rest.authentication import CSRF_HEADER
from tests.service.conftest import Place, Serve, SetClock, Site, envelope, shut, smart_reading

HALT = "/api/v1/halt"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten to 0.2 s the time after which the audit has the requests of unknown callers."""
    monkeypatch.setattr("predrain.service.rest.audit_middleware.WINDOW_SECONDS", 0.2)


def record(site: Site) -> list[tuple[str, str, str]]:
    answer = site.client.get("/api/v1/audit", headers=site.acting)
    assert answer.status_code == 200, answer.text
    return [(call["caller"], call["request"], call["result"]) for call in answer.json()["items"]]


def test_every_call_that_acts_is_on_record_with_what_was_asked_and_answered(site: Site) -> None:
    site.client.post(HALT, json={"reason": "maintenance"}, headers=site.acting)
    site.client.post("/api/v1/drains", json={"target": "osd.1"}, headers=site.acting)
    assert record(site) == [
        ("token-file", 'POST /api/v1/halt {"reason":"maintenance"}', "200"),
        ("token-file", 'POST /api/v1/drains {"target":"osd.1"}', "409"),
    ]
    (call, _) = site.client.get("/api/v1/audit", headers=site.acting).json()["items"]
    assert call["source"].startswith("from 127.0.0.1, call ")


def test_a_refused_request_is_on_record_and_the_body_of_a_stranger_is_not(site: Site) -> None:
    site.client.post(HALT, json={"reason": "secret?"})
    site.client.post(HALT, json={"reason": "x"}, headers={"Authorization": "Bearer stolen"})
    site.client.post(HALT, json={"reason": "y"}, headers=site.ingesting)
    until(lambda: any(caller == NOBODY for caller, _, _ in record(site)))
    named = [one for one in record(site) if one[0] != NOBODY]
    assert named == [("collectors", 'POST /api/v1/halt {"reason":"y"}', "403")]
    assert "secret" not in str(record(site))


def test_a_sign_in_and_a_sign_out_are_on_record_and_the_token_is_not(site: Site) -> None:
    site.client.post("/api/v1/session", json={"token": site.token})
    word = site.client.get("/api/v1/session").json()["csrf_token"]
    site.client.request("DELETE", "/api/v1/session", headers={CSRF_HEADER: word})
    assert record(site) == [
        ("token-file", 'POST /api/v1/session {"token":"***"}', "204"),
        ("token-file", "DELETE /api/v1/session", "204"),
    ]


def test_deliveries_are_not_on_record_unless_they_are_refused(site: Site) -> None:
    body = [envelope(site.application, smart_reading())]
    assert site.client.post("/api/v1/readings", json=body, headers=site.ingesting).status_code == 200
    assert record(site) == []
    assert site.client.post("/api/v1/readings", json=body).status_code == 401
    until(lambda: len(record(site)) == 1)
    assert record(site)[0][1] == '1 request without a good credential {"POST /api/v1/readings 401":1}'


def test_acts_of_a_known_caller_that_are_refused_for_their_size_or_number_stand_in_one_line_of_theirs(
    place: Place, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("predrain.service.rest.audit_middleware.WINDOW_SECONDS", 2.0)
    access = place.settings.access.model_copy(update={"requests_per_second": 1.0})
    application = replace(place, settings=place.settings.model_copy(update={"access": access})).application()
    application.start()
    site = serve(application)
    statuses = [site.client.post(HALT, json={"reason": "x" * 100_000}, headers=site.acting).status_code]
    statuses += [
        site.client.post(HALT, json={"reason": None}, headers=site.acting).status_code for _ in range(15)
    ]
    assert (statuses[0], statuses[1], statuses[-1]) == (413, 200, 429)
    until(lambda: any(line.answered == "refused" for line in application.store.journal(AUDIT)))
    lines = application.store.journal(AUDIT)
    (counted,) = (line for line in lines if line.answered == "refused")
    refused = len([status for status in statuses if status != 200])
    assert counted.caller == "token-file"
    assert counted.decided == (
        f'{refused} requests refused before anything was done {{"POST /api/v1/halt 413":1,'
        f'"POST /api/v1/halt 429":{refused - 1}}}'
    )
    assert len(lines) == 1 + statuses.count(200)
    assert application.counts["anonymous"] == 0
    shut(application)


def test_the_record_is_for_admins(site: Site) -> None:
    assert site.client.get("/api/v1/audit", headers=site.ingesting).status_code == 403
    assert site.client.get("/api/v1/audit").status_code == 401


def test_a_request_of_a_stranger_forges_no_line_and_steers_no_terminal(
    site: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.url.write_text(str(site.client.base_url))
    where = ["--state", str(place.state.path)]
    site.client.post("/api/v1/%1b[2J%0a2026-03-10T12:00:00Z%20%20anna%20%20POST%20/api/v1/unhalt")
    said = {"hours": 1, "reason": "\x1b[2J\nnothing is silenced", "host": "stor-01"}
    assert site.client.post("/api/v1/silences", json=said, headers=site.acting).status_code == 201
    until(lambda: any(caller == NOBODY for caller, _, _ in record(site)))
    capsys.readouterr()
    assert main(["audit", *where]) == 0
    silence, strangers = sorted(capsys.readouterr().out.splitlines(), key=lambda line: NOBODY in line)
    assert (
        'POST /api/v1/silences {"host":"stor-01","hours":1,"reason":"\\u001b[2J\\nnothing is silenced"}'
        in silence
    )
    assert "POST at no route 404" in strangers
    assert "anna" not in strangers
    assert main(["silence", "list", *where]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("by token-file: nothing is silenced")


@pytest.mark.slow
def test_a_token_is_made_used_and_revoked_beside_the_running_service(
    site: Site, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--state", str(place.state.path)]
    assert main(["token", "create", "--name", "anna", "--scope", "act", *where]) == 0
    secret = {"Authorization": f"Bearer {capsys.readouterr().out.strip()}"}

    def halt() -> int:
        return site.client.post(HALT, json={"reason": "x"}, headers=secret).status_code

    until(lambda: halt() == 200)
    assert main(["token", "list", *where]) == 0
    assert "anna  [act]  stands" in capsys.readouterr().out
    assert main(["token", "revoke", "anna", *where]) == 0
    until(lambda: halt() == 401)
    calls = [asked for caller, asked, _ in record(site) if caller.startswith("cli:")]
    assert [call.split(" {")[0] for call in calls] == ["make token", "revoke"]
    assert all('"name":"anna","scopes":["act"]}' in call for call in calls)
    assert site.application.store.verify_audit().broken is None


@pytest.mark.parametrize(
    "words",
    [
        "make --scope read --name a --days -1",
        "make --scope read --name a --days 0",
        "make --scope read --name a --days nan",
        "make --scope read --name a --days 1e9",
        "make --scope read --name= ",
        "make --scope read --name=a\nb",
        "enrol",
        "enrol stor-01 --hours 1e12",
        "enrol stor-01 --hours -3",
    ],
)
def test_a_token_that_could_not_be_used_or_told_apart_is_not_made(
    site: Site, place: Place, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert main(["token", *words.split(" "), "--state", str(place.state.path)]) == 2
    assert "unexpected" not in capsys.readouterr().err
    assert CredentialBook(site.application.store, SetClock()).list_credentials() == ()


def test_a_token_cannot_be_made_where_no_service_ever_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["token", "create", "--name", "a", "--scope", "read", "--state", str(tmp_path / "none")]) == 1
    assert "start the service once" in capsys.readouterr().err


def settings_of(site: Site, folder: Path, host: str = "stor-01") -> CollectorSettings:
    table = CollectorTable(host=host, url=str(site.client.base_url), token_file=folder / "token")
    return CollectorSettings(table, CollectorKafkaTable(), folder)


def one_time(place: Place, capsys: pytest.CaptureFixture[str], host: str = "stor-01") -> str:
    assert main(["token", "enrol", host, "--state", str(place.state.path)]) == 0
    name, secret = capsys.readouterr().out.split()
    assert name == host
    return secret


def test_a_collector_exchanges_its_one_time_token_and_delivers(
    site: Site, place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = collector_process.enrol_this_host(settings_of(site, tmp_path / "agent"), one_time(place, capsys))
    assert file.stat().st_mode & 0o777 == 0o600
    token = {"Authorization": f"Bearer {read_token_file(file)}"}
    body = [envelope(site.application, smart_reading())]
    answer = site.client.post("/api/v1/readings", json=body, headers=token)
    assert answer.json() == {"accepted": 1, "refused": []}
    assert site.client.post(HALT, json={"reason": "x"}, headers=token).status_code == 403


def test_a_one_time_token_that_is_replayed_is_refused_and_leaves_no_file(
    site: Site, place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    once = one_time(place, capsys)
    collector_process.enrol_this_host(settings_of(site, tmp_path / "first"), once)
    with pytest.raises(Exception, match="was used at"):
        collector_process.enrol_this_host(settings_of(site, tmp_path / "second"), once)
    assert not (tmp_path / "second" / "token").exists()
    until(lambda: any("/api/v1/enrolment 401" in asked for _, asked, _ in record(site)))
    assert ("host:stor-01", 'POST /api/v1/enrolment {"host":"stor-01","token":"***"}', "201") in record(site)
    acts = [asked.split(" {")[0] for _, asked, _ in record(site) if '{"ends_at"' in asked]
    assert acts == ["make enrolment", "enrol"]


def test_a_host_that_has_a_token_does_not_spend_another(
    site: Site, place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collector_process.enrol_this_host(settings_of(site, tmp_path), one_time(place, capsys))
    again = one_time(place, capsys)
    with pytest.raises(collector_process.AlreadyEnrolled, match="remove it"):
        collector_process.enrol_this_host(settings_of(site, tmp_path), again)
    book = CredentialBook(site.application.store, place.clock)
    assert book.find_credential(again) is not None, "it is still good"


def test_a_host_delivers_what_it_has_read_itself_and_nothing_else(site: Site, place: Place) -> None:
    book = CredentialBook(site.application.store, place.clock)
    token = book.exchange_enrolment(
        book.issue_credential(CredentialKind.ENROLMENT, "host:b", [Scope.INGEST], "anna", host="b"), "b"
    )
    headers = {"Authorization": f"Bearer {token}"}
    readings: list[dict[str, Any]] = [
        envelope(site.application, smart_reading("A")),
        envelope(site.application, smart_reading("B")),
    ]
    readings[1]["body"]["host"] = "b"
    until(lambda: site.client.post("/api/v1/readings", json=[], headers=headers).status_code == 200)
    answer = site.client.post("/api/v1/readings", json=readings, headers=headers).json()
    assert answer["accepted"] == 1
    assert answer["refused"][0]["index"] == 0
    assert "the token is host b's" in answer["refused"][0]["reason"]
    foreign = site.application._sender.encode_envelope(LatencyBatch(HostName("a"), (), 0))
    told = site.client.post("/api/v1/latency", content=b"[" + foreign + b"]", headers=headers).json()
    assert told["accepted"] == 0
    assert "host b's" in told["refused"][0]["reason"]


def until(holds: Any) -> None:
    """Wait until `holds()` is true, since a change by another process takes effect at the next poll.

    The test's own time limit ends a wait that is in vain.
    """
    pause = threading.Event()
    while not holds():
        pause.wait(0.1)

"""Requests about disks from REST to smartctl and back: a real service, and a host's collector with fake drives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from predrain.data.disk_request import (
    DiskPermission,
    DiskRequest,
    DiskVerb,
    RequestOutcome,
    RequestReport,
    SignedDiskRequest,
    WorkQuestion,
    sign_disk_request,
)
from predrain.data.ids import DeviceId, HostName
from predrain.service.disk_requests.request_book import RequestBook
from tests.service.asking_host import SDA, Host, later, plant_slot
from tests.service.conftest import SetClock, Site
from tests.service.test_worker import work

MINUTE = timedelta(minutes=1)
NEEDED = "install the sudoers file predrain-collector-requests"


@pytest.fixture
def open_host(site: Site, tmp_path: Path) -> Callable[..., Host]:
    """A host whose disks are known to the service and that has asked for work once."""

    def opened(**changed: Any) -> Host:
        name = changed.get("name", HostName("stor-01"))
        key = changed.pop("key", site.application.disk_requests.derive_key(name))
        url = changed.pop("url", str(site.client.base_url))
        host = Host(tmp_path / name, site.application.clock, key, url, **changed)
        site.application.ingest(host.readings)
        work(site.application)
        host.ask_until_idle()
        return host

    return opened


def ask_test(site: Site, device: DeviceId, kind: str = "short") -> Any:
    return site.client.post(f"{path_of(device)}/self-tests", json={"kind": kind}, headers=site.acting)


def ask_light(site: Site, device: DeviceId, *, on: bool = True) -> Any:
    return site.client.post(f"{path_of(device)}/locate", json={"on": on}, headers=site.acting)


def path_of(device: DeviceId) -> str:
    return f"/api/v1/devices/{quote(device, safe='')}"


def look(site: Site, device: DeviceId) -> Any:
    return site.client.get(f"{path_of(device)}/requests").json()


def last(site: Site, device: DeviceId) -> Any:
    return look(site, device)["ended"][0]


def test_a_requested_test_runs_on_the_disk_and_its_progress_is_shown(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    asked = ask_test(site, device)
    assert (asked.status_code, asked.json()["outcome"]) == (202, None)
    assert "waits for stor-01" in look(site, device)["open"][0]["sentence"]
    host.ask_until_idle()
    assert host.asked_tests() == ["-t short --json=c -d sat /dev/sda"]
    assert last(site, device)["outcome"] == "started"
    later(host.clock, 301)  # the disk is read again while its test runs
    host.ask_until_idle()
    shown = look(site, device)["self_tests"]
    assert shown["running"]["done_percent"] == 10
    host.fake.end_test("/dev/sda")
    later(host.clock, 301)
    host.ask_until_idle()
    ended = look(site, device)["self_tests"]
    assert ended["running"] is None
    assert host.runner.list_running_tests() == ()


def test_every_request_stands_in_the_audit_with_the_one_who_asked(site: Site, open_host: Any) -> None:
    host = open_host()
    ask_test(site, host.device("/dev/sda"))
    host.ask_until_idle()
    lines = site.client.get("/api/v1/audit", headers=site.acting).json()["items"]
    acts = [(one["caller"], one["request"].partition(" {")[0], one["result"]) for one in lines]
    assert ("token-file", "disk request", "waits for the host") in acts
    assert ("host stor-01", "disk request ended", "started") in acts
    assert '"by":"token-file"' in next(one["request"] for one in lines if "request ended" in one["request"])


def test_looking_asks_nothing_of_a_host_and_changes_nothing(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    before = site.application.store.read_notes("disk requests")
    for path in (path_of(device), f"{path_of(device)}/requests", f"{path_of(device)}/self-tests"):
        assert site.client.get(path).status_code in (200, 404)
    host.ask_until_idle()
    assert site.application.store.read_notes("disk requests") == before == {}
    assert host.asked_tests() == []


def test_asking_needs_a_token_that_may_act(site: Site, open_host: Any) -> None:
    device = open_host().device("/dev/sda")
    for headers, status in (({}, 401), (site.ingesting, 403)):
        for path, body in (("self-tests", {"kind": "short"}), ("locate", {"on": True})):
            said = site.client.post(f"{path_of(device)}/{path}", json=body, headers=headers)
            assert said.status_code == status


def test_a_host_without_allow_is_named_with_the_words_to_add(site: Site, open_host: Any) -> None:
    host = open_host(allow=[DiskPermission.LOCATE])
    refused = ask_test(site, host.device("/dev/sda"))
    assert refused.status_code == 409
    assert [one["kind"] for one in refused.json()["refusals"]] == ["not-allowed"]
    assert (
        'stor-01 does not allow self-tests: add "selftest" to `allow` of [collector]'
        in refused.json()["detail"]
    )
    assert NEEDED in refused.json()["detail"]


def test_a_host_that_no_longer_allows_tests_refuses_and_says_so(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    host.allow = [DiskPermission.LOCATE]
    host.start()
    host.ask_until_idle()
    assert host.asked_tests() == []
    assert (last(site, device)["outcome"], 'add "selftest"' in last(site, device)["sentence"]) == (
        "not-allowed",
        True,
    )


def test_a_host_that_never_asked_for_work_is_named(site: Site, open_host: Any) -> None:
    site.application.ingest(
        [replace(open_host().readings[0], host=HostName("stor-09"), device=DeviceId("A_B_C"))]
    )
    work(site.application)
    refused = ask_test(site, DeviceId("A_B_C"))
    assert [one["kind"] for one in refused.json()["refusals"]] == ["host-silent"]
    assert "stor-09 has never asked for work" in refused.json()["detail"]


def test_a_host_without_a_key_is_told_to_enrol(site: Site, open_host: Any) -> None:
    host = open_host(key=None)
    refused = ask_test(site, host.device("/dev/sda"))
    assert [one["kind"] for one in refused.json()["refusals"]] == ["no-key"]
    assert "enrol it again" in refused.json()["detail"]


def test_a_request_that_is_signed_with_another_hosts_key_is_refused(site: Site, open_host: Any) -> None:
    host = open_host(key=site.application.disk_requests.derive_key(HostName("stor-02")))
    device = host.device("/dev/sda")
    ask_test(site, device)
    host.ask_until_idle()
    assert host.asked_tests() == []
    assert last(site, device)["outcome"] == "forged"


def test_a_token_of_another_host_fetches_no_request(site: Site, open_host: Any) -> None:
    from predrain.service.access.credentials import CredentialBook, CredentialKind
    from predrain.service.access.tokens import Scope

    host = open_host()
    book = CredentialBook(site.application.store, host.clock)
    token = book.issue_credential(
        CredentialKind.TOKEN, "host:stor-02", [Scope.INGEST], "test", host="stor-02"
    )
    ask_test(site, host.device("/dev/sda"))
    body = b'{"host":"stor-01","allow":["selftest"],"has_key":true}'
    said = site.client.post(
        "/api/v1/disk-requests/exchange", content=body, headers={"Authorization": f"Bearer {token}"}
    )
    assert said.status_code == 403
    assert "the token is host stor-02's" in said.json()["detail"]


def test_a_replayed_request_is_carried_out_once(site: Site, open_host: Any) -> None:
    host = open_host()
    ask_test(site, host.device("/dev/sda"))
    host.ask_until_idle()
    (sent,) = [one for answer in host.answers for one in answer.requests]
    host.fake.end_test("/dev/sda")
    host.runner.carry_out(sent)
    host.start()  # a restart forgets no id
    host.runner.carry_out(sent)
    assert len(host.asked_tests()) == 1
    assert host.memory.reports == ()


def test_an_expired_request_is_refused_by_the_host(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    (entry,) = RequestBook(site.application.store).list_open()
    sent = sign_disk_request(str(host.key), entry.request)
    later(host.clock, 601)
    host.runner.carry_out(sent)
    assert host.asked_tests() == []
    assert [one.outcome for one in host.memory.reports] == [RequestOutcome.EXPIRED]


def test_a_request_that_nobody_fetches_ends_with_a_sentence(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    later(host.clock, 601)
    site.application.step_disk_requests()
    assert look(site, device)["open"] == []
    assert last(site, device)["outcome"] == "not-fetched"


def test_an_answer_that_is_lost_on_its_way_is_sent_again_and_carried_out_once(
    site: Site, open_host: Any
) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    question = WorkQuestion(host.name, tuple(host.allow), has_key=True)
    site.application.disk_requests.exchange(site.application.get_snapshot(), question)  # its answer is lost
    host.ask_until_idle()
    assert host.asked_tests() == ["-t short --json=c -d sat /dev/sda"]
    assert last(site, device)["outcome"] == "started"


def test_a_service_that_is_away_gets_the_report_when_it_is_back(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    url, real = host.url, host.work
    assert real.step() == 0.0  # fetched and carried out; the report is under way
    host.url = "http://127.0.0.1:1"
    host.start()
    assert host.work.step() > 0.0
    assert [one.outcome for one in host.memory.reports] == [RequestOutcome.STARTED]
    assert look(site, device)["open"][0]["sentence"] == "stor-01 has fetched it."
    host.url = url
    host.start()
    host.ask_until_idle()
    assert last(site, device)["outcome"] == "started"
    assert len(host.asked_tests()) == 1


def test_a_collector_that_ends_in_the_middle_reports_that_it_was_cut_off(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    (entry,) = RequestBook(site.application.store).list_open()
    host.memory.begin(entry.request, host.clock.now())
    host.start()
    host.ask_until_idle()
    assert host.asked_tests() == []
    assert last(site, device)["outcome"] == "cut-off"


def test_smartctls_own_words_are_shown_when_it_refuses(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    host.fake.refuse_tests("/dev/sda", "Self-test functions not supported")
    ask_test(site, device)
    host.ask_until_idle()
    assert last(site, device)["outcome"] == "tool-failed"
    assert "It said: Self-test functions not supported" in last(site, device)["sentence"]


def test_a_disk_that_was_swapped_meanwhile_is_not_tested(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    host.fake.plug(replace(SDA, serial="OTHER001", wwn=77))
    host.ask_until_idle()
    assert host.asked_tests() == []
    assert last(site, device)["outcome"] == "unknown-disk"


def test_two_long_tests_on_a_host_are_refused_by_the_service_and_by_the_host(
    site: Site, open_host: Any
) -> None:
    host = open_host()
    one, other = host.device("/dev/sda"), host.device("/dev/sdb")
    assert ask_test(site, one, "long").status_code == 202
    refused = ask_test(site, other, "long")
    assert [each["kind"] for each in refused.json()["refusals"]] == ["long-test-on-host"]
    host.ask_until_idle()
    assert [each["kind"] for each in ask_test(site, other, "long").json()["refusals"]] == [
        "long-test-on-host"
    ]
    now = host.clock.now()
    twin = DiskRequest("f" * 16, host.name, other, DiskVerb.LONG_TEST, "race", now, now + MINUTE)
    host.runner.carry_out(sign_disk_request(str(host.key), twin))
    assert [each.outcome for each in host.memory.reports] == [RequestOutcome.TEST_RUNNING]
    assert host.asked_tests() == ["-t long --json=c -d sat /dev/sda"]


def test_a_halt_stops_the_tests_that_the_collector_started_and_refuses_new_ones(
    site: Site, open_host: Any
) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    host.ask_until_idle()
    assert host.fake.is_tested("/dev/sda")
    site.client.post("/api/v1/halt", json={"reason": "storm"}, headers=site.acting)
    host.ask_until_idle()
    assert host.asked_tests()[-1] == "-X --json=c -d sat /dev/sda"
    assert not host.fake.is_tested("/dev/sda")
    assert host.runner.list_running_tests() == ()
    assert "halted" in [one["kind"] for one in ask_test(site, device).json()["refusals"]]
    assert ask_light(site, device).status_code == 202  # a light moves no head


def test_a_halt_after_the_request_holds_it_back(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_test(site, device)
    site.client.post("/api/v1/halt", json={"reason": "storm"}, headers=site.acting)
    host.ask_until_idle()
    assert host.asked_tests() == []
    assert (last(site, device)["outcome"], "halted" in last(site, device)["sentence"]) == ("held", True)


def test_a_test_that_another_program_started_is_not_stopped(site: Site, open_host: Any) -> None:
    host = open_host()
    (host.folder / "fake/disks/_dev_sda_sat/answer.text").write_text(
        (host.folder / "fake/disks/_dev_sda_sat/running.text").read_text()
    )
    host.watch.find_disk(host.device("/dev/sda"))
    site.client.post("/api/v1/halt", json={"reason": "storm"}, headers=site.acting)
    host.ask_until_idle()
    assert host.asked_tests() == []
    assert len(host.runner.list_running_tests()) == 1


def test_the_light_of_an_enclosure_is_switched_and_its_slot_named(
    site: Site, open_host: Any, tmp_path: Path
) -> None:
    light = plant_slot(tmp_path / "stor-01" / "root", "sda", "Slot 05")
    host = open_host()
    device = host.device("/dev/sda")
    ask_light(site, device)
    host.ask_until_idle()
    assert light.read_text() == "1\n"
    assert (look(site, device)["light"], look(site, device)["slot"]) == ("on", "Slot 05")
    later(host.clock, 1)
    ask_light(site, device, on=False)
    host.ask_until_idle()
    assert light.read_text() == "0\n"
    assert look(site, device)["light"] == "off"


def test_ledctl_switches_the_light_of_one_disk_and_touches_no_other(
    site: Site, open_host: Any, tmp_path: Path
) -> None:
    ledctl = tmp_path / "ledctl"
    ledctl.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/lit\n')
    ledctl.chmod(0o755)
    host = open_host(ledctl=str(ledctl))
    ask_light(site, host.device("/dev/sda"))
    host.ask_until_idle()
    assert (tmp_path / "lit").read_text() == "--listed-only locate=/dev/sda\n"


def test_a_missing_ledctl_is_told_with_its_cure(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    ask_light(site, device)
    host.ask_until_idle()
    assert last(site, device)["outcome"] == "tool-missing"
    assert "ledmon for lights" in last(site, device)["sentence"]


def test_reports_about_other_hosts_requests_change_nothing(site: Site, open_host: Any) -> None:
    host = open_host()
    device = host.device("/dev/sda")
    name = ask_test(site, device).json()["id"]
    report = RequestReport(name, RequestOutcome.STARTED, host.clock.now())
    question = WorkQuestion(HostName("stor-02"), (), has_key=True, reports=(report,))
    site.application.disk_requests.exchange(site.application.get_snapshot(), question)
    assert [one["id"] for one in look(site, device)["open"]] == [name]


def test_a_body_that_is_no_question_is_refused(site: Site) -> None:
    for body in (
        b"",
        b"[]",
        b'{"host":"","allow":[],"has_key":true}',
        b'{"host":"a","allow":["format"],"has_key":true}',
    ):
        said = site.client.post("/api/v1/disk-requests/exchange", content=body, headers=site.ingesting)
        assert said.status_code == 422, body


def test_nonsense_from_a_service_is_no_request(tmp_path: Path) -> None:
    host = Host(tmp_path, SetClock(), "k" * 64)
    for text in ("", "null", "[]", '{"id": 7}', '{"id": "x"}'):
        host.runner.carry_out(SignedDiskRequest(text, "0" * 64))
    assert host.asked_tests() == []

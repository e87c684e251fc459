"""Requests about disks by way of the enrolled collector, the commands, a cluster that drains, and the real smartctl."""

from __future__ import annotations

import getpass
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from predrain.collector.disk_requests.request_runner import read_messages
from predrain.collector.disk_requests.slot_light import judge_run
from predrain.collector.disks import DiskPath, Smartctl
from predrain.collector.disks.process import ProgramCall, Programs
from predrain.data.disk_request import (
    DiskPermission,
    DiskVerb,
    HostSelfTest,
    RequestNotValid,
    RequestOutcome,
    WorkQuestion,
    verify_disk_request,
)
from predrain.data.ids import DeviceId, HostName
from predrain.data.self_test import SelfTestKind
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.cli import main
from predrain.service.disk_requests.request_desk import RequestHeld
from predrain.service.disk_requests.request_guards import RequestRefusalKind
from predrain.service.fleet.fleet import FleetSnapshot
from tests.service.asking_host import BOTH, Host
from tests.service.conftest import Place, SetClock, Site
from tests.service.person_requests import approve_drain, propose_drain
from tests.service.test_collect import Rig, begin, once_true, rig
from tests.service.test_disk_requests import look, open_host, path_of
from tests.service.test_drains import World, world
from tests.service.test_worker import work

__all__ = ["begin", "open_host", "rig", "world"]
DRAINED = DeviceId("ST4000DM000_A")
HOST = HostName("stor-01")


@pytest.mark.slow
def test_an_enrolled_collector_tests_a_disk_and_refuses_without_allow(
    rig: Rig, begin: Callable[[], Site]
) -> None:
    """A process of its own, over HTTP, with the key that the enrolment gave it."""
    site = begin()
    book = CredentialBook(site.application.store, site.application.clock)
    own = rig.folder / "own-token"
    once = book.issue_credential(CredentialKind.ENROLMENT, f"host:{HOST}", [Scope.INGEST], "test", host=HOST)
    settings = {"url": str(site.client.base_url), "token_file": str(own)}
    rig.configure(**settings)
    assert rig.run("--enrol", once).returncode == 0
    key = rig.state / "request_key"
    assert key.stat().st_mode & 0o077 == 0
    assert key.read_text().strip() == site.application.disk_requests.derive_key(HOST)
    device = DeviceId("WDC_WD1003FBYZ-010FB0_FAKE0000")

    def refusals() -> list[str]:
        option = next(one for one in look(site, device)["options"] if one["verb"] == "selftest-short")
        return [one["kind"] for one in option["refusals"]]

    with rig.collecting():
        once_true(lambda: site.application.counts["accepted"] >= 22)
        work(site.application)
        once_true(lambda: refusals() == ["not-allowed"])
    rig.configure(**settings, allow=["selftest"])
    with rig.collecting():
        once_true(lambda: refusals() == [])
        asked = site.client.post(f"{path_of(device)}/self-tests", json={"kind": "short"}, headers=site.acting)
        assert asked.status_code == 202
        once_true(lambda: look(site, device)["ended"])
    assert look(site, device)["ended"][0]["outcome"] == "started"
    assert rig.fake.is_tested("/dev/sda")


def test_each_host_gets_a_key_of_its_own_at_its_enrolment(site: Site) -> None:
    book, keys = CredentialBook(site.application.store, site.application.clock), {}
    for host in ("stor-01", "stor-02"):
        once = book.issue_credential(
            CredentialKind.ENROLMENT, f"host:{host}", [Scope.INGEST], "test", host=host
        )
        told = site.client.post("/api/v1/enrolment", json={"token": once, "host": host}).json()
        keys[host] = told["request_key"]
        assert told["request_key"] == site.application.disk_requests.derive_key(HostName(host))
    assert len(set(keys.values())) == 2
    notes = [site.application.store.read_notes(room) for room in ("access", "disk requests", "collectors")]
    assert not any(key.encode() in raw for room in notes for raw in room.values() for key in keys.values())


@contextmanager
def asking(host: Host) -> Iterator[None]:
    """The host asks for work all the time."""
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.05):
            host.ask_until_idle()

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_the_commands_start_a_test_and_show_it(
    site: Site, place: Place, open_host: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    host = open_host()
    at = ["--url", str(site.client.base_url), "--token-file", str(place.state.token)]
    with asking(host):
        assert main(["disk", "selftest", "FAKE0000", "short", *at]) == 0
        assert main(["disk", "locate", "FAKE0000", "on", *at]) == 1
    capsys.readouterr()
    assert main(["disk", "selftest", "FAKE0000", *at]) == 0
    told = capsys.readouterr().out
    assert "short self-test, by root on" in told.replace(getpass.getuser(), "root")
    assert "The test has started." in told
    assert "ledmon for lights" in told
    assert main(["disk", "FAKE0000", *at]) == 0
    assert "Self-tests and light" in capsys.readouterr().out


def test_a_command_says_that_its_host_has_not_answered_yet(
    site: Site, place: Place, open_host: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    open_host()
    at = ["--url", str(site.client.base_url), "--token-file", str(place.state.token)]
    assert main(["disk", "selftest", "FAKE0000", "short", "--wait-seconds", "0", *at]) == 3
    assert "It waits for stor-01" in capsys.readouterr().out
    assert main(["disk", "selftest", "FAKE0001", "long", "--wait-seconds", "0", *at]) == 3
    assert main(["disk", "selftest", "FAKE0001", "long", "--wait-seconds", "0", *at]) == 1
    assert "Another request for this disk has not ended yet" in capsys.readouterr().err


@pytest.fixture
def asked_world(world: World) -> World:
    """A cluster whose osd.0 lies on a known disk, and a host that asks for work."""
    world.application.ingest(week(world))
    work(world.application)
    world.tick(2)
    ask(world)
    return world


def week(world: World) -> Any:
    from tests.service.conftest import week_of

    return week_of("A", world.application.clock.now(), passed=False, pending=12)


def ask(world: World, *running: HostSelfTest) -> Any:
    question = WorkQuestion(HOST, BOTH, has_key=True, running=running)
    return world.application.disk_requests.exchange(world.application.get_snapshot(), question)


def kinds(world: World, verb: DiskVerb, snapshot: FleetSnapshot | None = None) -> list[RequestRefusalKind]:
    try:
        world.application.disk_requests.request(
            snapshot or world.application.get_snapshot(), DRAINED, verb, "anna"
        )
    except RequestHeld as held:
        return [one.kind for one in held.refusals]
    return []


def test_a_drain_refuses_and_stops_a_test_of_its_disk(asked_world: World) -> None:
    world = asked_world
    running = HostSelfTest(DRAINED, SelfTestKind.LONG)
    assert ask(world, running).stop == ()
    drain = propose_drain(world.application, "osd.0", "anna")
    assert RequestRefusalKind.DISK_DRAINS not in kinds(world, DiskVerb.LONG_TEST)
    approve_drain(world.application, drain, "anna")
    world.tick(3)
    assert ask(world, running).stop == (DRAINED,)
    assert RequestRefusalKind.DISK_DRAINS in kinds(world, DiskVerb.SHORT_TEST)
    assert RequestRefusalKind.DISK_DRAINS not in kinds(world, DiskVerb.LOCATE_ON)


def test_a_view_that_is_too_old_holds_a_test_back(asked_world: World) -> None:
    world = asked_world
    world.reach.reachable = False
    world.cluster.advance(400)
    world.application.step_controller()
    ask(world)
    assert RequestRefusalKind.CLUSTER_UNKNOWN in kinds(world, DiskVerb.SHORT_TEST)


def test_a_snapshot_that_is_old_because_nothing_changed_holds_no_test_back(asked_world: World) -> None:
    """Check that an old snapshot of a calm cluster holds no test back.

    The polls of a calm cluster notify nobody, so the snapshot keeps the view of the last change.
    """
    world = asked_world
    ask(world)
    old = world.application.get_snapshot()
    world.tick(seconds=400)
    assert RequestRefusalKind.CLUSTER_UNKNOWN not in kinds(world, DiskVerb.SHORT_TEST, old)


def test_a_request_for_one_host_is_of_no_use_on_another(asked_world: World) -> None:
    world = asked_world
    assert kinds(world, DiskVerb.LOCATE_ON) == []
    (signed,) = ask(world).requests
    desk, now = world.application.disk_requests, world.application.clock.now()
    assert verify_disk_request(desk.derive_key(HOST), signed, HOST, now, ()).device == DRAINED
    for host, key, outcome in (
        (HOST, desk.derive_key(HostName("stor-02")), RequestOutcome.FORGED),
        (HostName("stor-02"), desk.derive_key(HOST), RequestOutcome.OTHER_HOST),
    ):
        with pytest.raises(RequestNotValid, match=outcome.value):
            verify_disk_request(key, signed, host, now, ())
    changed = msgspec.structs.replace(signed, request=signed.request.replace("locate-on", "locate-off"))
    with pytest.raises(RequestNotValid, match="forged"):
        verify_disk_request(desk.derive_key(HOST), changed, HOST, now, ())


@pytest.mark.system
@pytest.mark.skipif(shutil.which("smartctl") is None, reason="needs smartmontools")
@pytest.mark.parametrize("kind", [SelfTestKind.SHORT, SelfTestKind.LONG, None])
def test_the_real_smartctl_knows_the_commands_and_its_words_are_reported(kind: SelfTestKind | None) -> None:
    smartctl = Smartctl(str(shutil.which("smartctl")))
    spot = DiskPath("/dev/predrain-has-no-such-disk", "sat")
    command = smartctl.build_abort_command(spot) if kind is None else smartctl.build_test_command(spot, kind)
    (ended,) = [one for _, one in Programs(1).run([ProgramCall("x", command)], 20.0)]
    assert judge_run(ended)[0] is RequestOutcome.TOOL_FAILED
    assert "No such device" in read_messages(ended.out)


def test_the_words_of_sudo_tell_a_missing_right_from_a_missing_program(tmp_path: Path) -> None:
    for words, outcome in (
        ("sudo: a password is required", RequestOutcome.NO_RIGHT),
        ("sudo: /usr/sbin/ledctl: command not found", RequestOutcome.TOOL_MISSING),
    ):
        sudo = tmp_path / "sudo"
        sudo.write_text(f"#!/bin/sh\necho '{words}' >&2\nexit 1\n")
        sudo.chmod(0o755)
        (ended,) = [one for _, one in Programs(1).run([ProgramCall("x", [str(sudo)])], 20.0)]
        assert judge_run(ended)[0] is outcome


def test_an_unreadable_memory_carries_nothing_out(tmp_path: Path) -> None:
    from predrain.collector.disk_requests.request_memory import MemoryUnusable, RequestMemory

    (tmp_path / "requests.json").write_text("{")
    with pytest.raises(MemoryUnusable, match="cannot be read"):
        RequestMemory(tmp_path / "requests.json", SetClock().now())


def test_settings_of_the_service_and_of_the_collector_both_know_allow(tmp_path: Path) -> None:
    from predrain.service.config.collector_table import BadCollectorSettings, load_collector_settings
    from predrain.service.config.settings import load_settings

    file = tmp_path / "predrain.toml"
    file.write_text('[collector]\nallow = ["selftest", "locate"]\n[self_tests]\nshort_days = 7\n')
    assert load_collector_settings(file, {}).collector.allow == (
        DiskPermission.SELF_TEST,
        DiskPermission.LOCATE,
    )
    assert load_settings(file, {}).self_tests.short_days == 7
    said = {"PREDRAIN_COLLECTOR__ALLOW": '["locate"]'}
    assert load_collector_settings(None, said).collector.allow == (DiskPermission.LOCATE,)
    file.write_text('[collector]\nallow = ["format"]\n')
    with pytest.raises(BadCollectorSettings, match="allow"):
        load_collector_settings(file, {})

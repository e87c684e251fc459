"""The module inside the real ceph-mgr: every command, every health check, and a service that is up, down, slow, lying
or refusing. In each of these cases, commands answer at once and the mgr's log stays clean.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.simulator import SimulatedCluster
from predrain.data.drain import DrainState
from predrain.data.outlook import Status
from tests.actions.ceph_mgr.peer import http, saying
from tests.actions.made import a_drain, device, tiny_spec
from tests.deadlines import idle_seconds
from tests.system.ceph.mgr_application import MgrApplication
from tests.system.ceph.mgr_driver import FIRST_REPORT_SECONDS, INTERVAL, Mgr, calm, the_mgr  # noqa: F401

COMMANDS = (
    ("status", {}), ("ls", {}), ("ls", {"bad": True}), ("show", {"what": "osd.0"}), ("plan", {"osd": "0"}),
    ("approve", {"id": "x"}), ("pause", {"id": "x"}), ("resume", {"id": "x"}), ("cancel", {"id": "x"}),
    ("journal", {"id": "x"}), ("halt", {"reason": "test"}), ("unhalt", {}),
)  # fmt: skip


@pytest.fixture
def application(tmp_path: Path) -> Iterator[MgrApplication]:
    made = MgrApplication(tmp_path / "state", SimulatedCluster(tiny_spec(), 1, datetime.now(UTC))).up()
    made.step()
    yield made
    made.close()


@pytest.fixture
def shown(mgr: Mgr, application: MgrApplication) -> MgrApplication:
    """A service that has one bad and one doubtful disk, and the module looking at it."""
    application.forecast(device(0), Status.BAD)
    application.forecast(device(1), Status.WARNING)
    mgr.point(application.url, application.token)
    mgr.wait(
        lambda: mgr.json("status")["url"] == application.url and mgr.json("status")["osds"], "a first answer"
    )
    mgr.until(DEVICE_BAD=True, DEVICE_WARNING=True)
    return application


@pytest.mark.release
@pytest.mark.parametrize(("command", "args"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_every_command_answers_in_words_with_no_service_set(
    mgr: Mgr, command: str, args: dict[str, Any]
) -> None:
    for how in ({}, {"format": "json"}):
        rc, out, err = mgr.ask(command, **args, **how)
        assert (rc == 0 and out) or (rc < 0 and err)
        assert "Traceback" not in out + err


@pytest.mark.release
def test_the_ceph_program_itself_takes_the_commands(mgr: Mgr, shown: MgrApplication) -> None:
    """The arguments that the program adds of its own (`target`, `format`) must not meet ours."""
    conf = ("-c", str(mgr.cluster.inside / "ceph.conf"))
    listed = json.loads(mgr.cluster.run("ceph", *conf, "predrain", "ls", "--bad", "--format", "json"))
    assert [osd["osd"] for osd in listed["osds"]] == [0, 1]
    assert b"Pending sectors rose" in mgr.cluster.run("ceph", *conf, "predrain", "show", "osd.0")
    assert b"status" in mgr.cluster.run("ceph", *conf, "predrain", "--help")


@pytest.mark.release
def test_bad_disks_and_held_drains_become_health_checks_that_can_be_muted_and_clear(
    mgr: Mgr, shown: MgrApplication
) -> None:
    why = "osd.3 would be 86 % full, limit 85 %."
    shown.store.save_drain(a_drain(0, DrainState.HOLDING, held_by=(why,)))
    shown.step()
    found = mgr.until(DRAIN_HELD=True)
    assert found["PREDRAIN_DEVICE_BAD"]["summary"]["message"] == "1 OSD on a device expected to fail soon"
    assert "osd.0 on stor-01" in found["PREDRAIN_DEVICE_BAD"]["detail"][0]["message"]
    assert "60.0 % within 30 days" in found["PREDRAIN_DEVICE_BAD"]["detail"][0]["message"]
    assert any(why in line["message"] for line in found["PREDRAIN_DRAIN_HELD"]["detail"])
    mgr.cluster.command("health mute", code="PREDRAIN_DEVICE_BAD")
    mgr.wait(lambda: mgr.checks()["PREDRAIN_DEVICE_BAD"]["muted"], "muted")
    shown.forecast(device(0), Status.GOOD)
    shown.forecast(device(1), Status.GOOD)
    mgr.until(DEVICE_BAD=False, DEVICE_WARNING=False)
    mgr.cluster.try_command("health unmute", code="PREDRAIN_DEVICE_BAD")


def test_lists_show_what_the_service_says_and_osds_of_other_clusters_are_counted(
    mgr: Mgr, shown: MgrApplication
) -> None:
    status = mgr.json("status")
    assert status["error"] == ""
    assert status["age_seconds"] < 3 * INTERVAL
    assert status["osds"] == {"bad": 1, "warning": 1, "good": 0, "unknown": 2}
    assert status["unknown_osds"] == 8, "the service speaks of twelve OSDs, the cluster has four"
    assert "osd.0" in mgr.text("ls").splitlines()[2]
    assert [osd["osd"] for osd in mgr.json("ls", bad=True)["osds"]] == [0, 1]
    (osd,) = mgr.json("show", what=device(1))["osds"]
    assert (osd["osd"], osd["status"]) == (1, "warning")
    assert mgr.ask("show", what="osd.99")[0] < 0


@pytest.mark.release
def test_requests_reach_the_service_and_come_back_in_its_words(mgr: Mgr, shown: MgrApplication) -> None:
    plan = mgr.json("plan", osd="2")
    assert plan["moves"]
    assert "moves" in mgr.text("plan", osd="osd.2")
    id_ = shown.call("POST", "drains", {"target": "osd.2", "reason": "noisy"})["id"]
    mgr.wait(lambda: mgr.ask("approve", id=id_)[0] == 0, "the drain is known, and approved")
    state = lambda: shown.call("GET", f"drains/{id_}")["state"]  # noqa: E731
    assert state() == "approved"
    assert mgr.text("pause", id=id_).strip() == f"{id_}: paused"
    assert mgr.text("resume", id=id_).strip() == f"{id_}: approved"
    assert mgr.json("cancel", id=id_)["state"] in ("cancelling", "cancelled")
    assert "approve" in mgr.text("journal", id=id_)
    rc, _, err = mgr.ask("pause", id="nobody")
    assert rc < 0
    assert "There is no drain nobody" in err


@pytest.mark.release
def test_halt_needs_no_service_and_a_bare_key_halts_too(mgr: Mgr) -> None:
    assert mgr.text("halt", why="switch maintenance").startswith("halted: switch maintenance")
    assert mgr.cluster.command("config-key get", key="predrain/halt") == b"switch maintenance"
    found = mgr.until(HALTED=True)
    assert found["PREDRAIN_HALTED"]["detail"][0]["message"] == "why: switch maintenance"
    assert mgr.json("status")["halted"] == "switch maintenance"
    mgr.text("unhalt")
    assert mgr.cluster.try_command("config-key get", key="predrain/halt")[0] < 0
    mgr.until(HALTED=False)
    mgr.cluster.command("config-key set", key="predrain/halt", val="by hand")
    mgr.until(HALTED=True)
    mgr.cluster.command("config-key rm", key="predrain/halt")
    mgr.until(HALTED=False)


def test_unhalt_lifts_the_services_halt_as_well(mgr: Mgr, shown: MgrApplication) -> None:
    shown.call("POST", "halt", {"reason": "by the page"})
    mgr.until(HALTED=True)
    assert mgr.text("unhalt").strip() == "not halted"
    assert shown.call("GET", "halt") == {
        "halted": None,
        "by": None,
        "since": None,
        "unreached": None,
        "stored_in": [],
    }
    mgr.until(HALTED=False)


@pytest.mark.release
def test_a_service_that_goes_down_is_said_after_several_rounds_and_what_it_told_stays(
    mgr: Mgr, shown: MgrApplication
) -> None:
    shown.down()
    found = mgr.until(SERVICE_UNREACHABLE=True, DEVICE_BAD=True)
    assert "refused" in found["PREDRAIN_SERVICE_UNREACHABLE"]["detail"][0]["message"]
    assert "the service does not answer" in found["PREDRAIN_DEVICE_BAD"]["detail"][-1]["message"]
    assert [osd["osd"] for osd in mgr.json("ls", bad=True)["osds"]] == [0, 1]
    assert mgr.json("status")["age_seconds"] > 2 * INTERVAL
    assert mgr.ask("plan", osd="0")[0] < 0
    shown.up()
    mgr.until(SERVICE_UNREACHABLE=False, DEVICE_BAD=True)
    assert mgr.json("status")["error"] == ""


def test_a_token_that_is_refused_is_said_and_shown_nowhere(mgr: Mgr, shown: MgrApplication) -> None:
    wrong = "wrong-token-0123456789abcdef-0123456789"
    mgr.cluster.command("config-key set", key="mgr/predrain/token", val=wrong)
    assert "refuses the token (401" in mgr.trouble("refuses the token")
    rc, _, err = mgr.ask("plan", osd="0")
    assert rc < 0
    assert "refuses the token" in err
    mgr.until(SERVICE_UNREACHABLE=True, DEVICE_BAD=True)
    assert wrong not in mgr.text("status") + mgr.text("status", format="json") + err
    assert shown.token not in mgr.log()


GOOD_STATUS = json.dumps({"cluster": "c", "mode": "act", "controller": "running", "halted": None}).encode()


@pytest.mark.parametrize(
    ("pieces", "every", "words"),
    [
        ((b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", *[b"x"] * 400), 0.2, "no whole answer within 10 s"),
        ((b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 90), 0.2, "no whole answer within 10 s"),
        ((http(b"{" * 900_000),), 0.0, "no answer to use"),
        ((http(b'{"cluster": 1}'),), 0.0, "cluster of the status is no text"),
        ((http(GOOD_STATUS[:-1] + b', "view_age_seconds": 1e999}'),), 0.0, "number without end"),
        ((http(GOOD_STATUS),), 0.0, "items of the OSDs is no list"),
        ((b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 3_000_000,), 0.0, "larger than the"),
        ((http(b"", "307 Temporary Redirect", Location="http://192.0.2.1/"),), 0.0, "redirects"),
        ((b"\x00\x16\x03" * 100,), 0.0, "no answer to use"),
    ],
    ids=["drips a body", "drips headers", "nonsense", "wrong types", "infinite", "not osds", "huge", "redirect", "tls"],
)  # fmt: skip
def test_a_service_that_lies_or_drips_costs_a_sentence_and_nothing_else(
    mgr: Mgr, pieces: tuple[bytes, ...], every: float, words: str
) -> None:
    with saying(*pieces, every=every) as url:
        mgr.point(url, "t" * 40)
        slowest = 0.0
        until = idle_seconds() + 90  # patience alone: `slowest` limits each answer
        while words not in mgr.json("status")["error"]:
            assert idle_seconds() < until, mgr.json("status")["error"]
            began = idle_seconds()
            mgr.text("status")
            slowest = max(slowest, idle_seconds() - began)
            time.sleep(0.1)
        assert slowest < 5
        assert mgr.json("status")["service"] is None


def test_rounds_that_fail_leave_no_thread_behind(mgr: Mgr) -> None:
    with saying(http(b"{")) as url:
        mgr.point(url, "t" * 40)
        mgr.trouble("no answer to use")

        def adds_no_thread_in_five_rounds() -> bool:
            before = mgr.threads()
            time.sleep(5 * INTERVAL)
            return mgr.threads() <= before + 1

        # A mgr that has just begun starts threads of its own for a while; a thread for each round would never end.
        mgr.wait(adds_no_thread_in_five_rounds, "five rounds that add no thread", seconds=90)


def test_a_request_to_a_slow_service_is_answered_asked_while_it_still_drips(
    mgr: Mgr, shown: MgrApplication
) -> None:
    with saying(b"HTTP/1.1 200 OK\r\n", *[b"X: y\r\n"] * 90, every=0.2) as url:
        mgr.point(url)
        began = idle_seconds()
        said = mgr.text("pause", id="some-drain")
        assert idle_seconds() - began < 9
    assert "asked; see ceph predrain journal some-drain" in said


def test_a_certificate_must_be_trusted_and_the_authority_can_be_given(mgr: Mgr, tmp_path: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem",
         "-days", "2", "-subj", "/CN=predrain", "-addext", "subjectAltName=IP:127.0.0.1"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    certificate = tmp_path / "cert.pem"
    cluster = SimulatedCluster(tiny_spec(), 1, datetime.now(UTC))
    application = MgrApplication(
        tmp_path / "state", cluster, tls_certificate=certificate, tls_key=tmp_path / "key.pem"
    ).up()
    try:
        application.step()
        mgr.point(application.url, application.token)
        mgr.trouble("is not trusted")
        mgr.cluster.command("config-key set", key="mgr/predrain/ca", val=certificate.read_text())
        mgr.wait(lambda: mgr.json("status")["error"] == "" and mgr.json("status")["osds"], "trusted")
    finally:
        application.close()


@pytest.mark.release
@pytest.mark.parametrize("how", ["mgr fail", "kill -9"])
def test_another_mgr_begins_with_what_the_last_one_knew(mgr: Mgr, shown: MgrApplication, how: str) -> None:
    shown.down()
    if how == "mgr fail":
        mgr.restarted(lambda: mgr.cluster.command("mgr fail", who="x"))
    else:
        mgr.restarted(lambda: mgr.cluster.restart("mgr.x", signal.SIGKILL))
    assert [osd["osd"] for osd in mgr.json("ls", bad=True)["osds"]] == [0, 1]
    assert mgr.json("status")["age_seconds"] > 0
    mgr.until(FIRST_REPORT_SECONDS, DEVICE_BAD=True, DEVICE_WARNING=True, SERVICE_UNREACHABLE=True)
    shown.up()
    mgr.until(SERVICE_UNREACHABLE=False)

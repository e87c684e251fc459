"""The doctor: one line for each thing that predrain stands on, with its cure; what hangs holds no other line up."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiosmtpd.smtp import AuthResult

from predrain.actions.cluster.channel import Argument, DaemonReply
from predrain.actions.cluster.dumps.view_questions import QUESTIONS
from predrain.actions.controller.ceph_caps import build_cephx_caps
from predrain.data.log.log_port import Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.tokens import load_admin_tokens
from predrain.service.cli import main
from predrain.service.config.settings import Settings, load_settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor import ceph_checks, examination, finding, running_checks
from predrain.service.doctor.examination import run_doctor_checks
from predrain.service.doctor.finding import Finding
from tests.actions.recordings import CLEAN
from tests.service.conftest import NOON, SetClock, smart_reading
from tests.service.notifications.test_channels import Hook, Post, post_office, receiver

Told = Callable[..., dict[str, Finding]]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    """Return a function that gives the doctor's findings about settings, by their subject."""

    def told(text: str = "", *, send: bool = False) -> dict[str, Finding]:
        file = tmp_path / "predrain.toml"
        file.write_text(text)
        return {
            one.what: one
            for one in run_doctor_checks(load_settings(file, {}), tmp_path / "state", SetClock(), send=send)
        }

    return told


@pytest.fixture(autouse=True)
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bundle, whose packages take seconds to import; test_lifecycle has it."""
    monkeypatch.setattr(examination, "LOOKS", tuple(one for one in examination.LOOKS if one[0] != "bundle"))


@pytest.mark.slow
def test_a_look_that_hangs_or_breaks_is_told_and_holds_no_other_up(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = threading.Event()

    def hangs(_settings: object, _clock: object) -> Iterator[Finding]:
        yield Finding("so far", "ok", "was seen")
        ending.wait()
        yield Finding("never", "ok", "")

    def breaks(_settings: object, _clock: object) -> Iterator[Finding]:
        yield Finding("first", "ok", "was seen")
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(examination, "LOOKS", (("hangs", hangs), ("breaks", breaks), *examination.LOOKS[:1]))
    monkeypatch.setattr(examination, "SECONDS", 1.0)
    found = told()
    ending.set()
    assert [*found] == ["settings", "so far", "hangs", "first", "breaks", "state"]
    assert found["hangs"].state == "wrong"
    assert "did not answer within 1 s" in found["hangs"].told
    assert "ZeroDivisionError: by zero" in found["breaks"].told


def test_the_doctor_checks_no_part_that_is_not_configured(told: Told) -> None:
    assert not {"certificate", "kafka topics", "postgresql", "mail", "webhook", "sign-in"} & told().keys()


def test_wrong_ends_with_1_and_every_line_is_there_for_programs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    StateDir(tmp_path / "state").ensure_exists().path.chmod(0o755)
    assert main(["doctor", "--json", "--state", str(tmp_path / "state")]) == 1
    lines = json.loads(capsys.readouterr().out)
    assert {"what": "settings", "state": "ok", "told": "read without complaint"} in lines
    (state,) = (one for one in lines if one["what"] == "state")
    assert (state["state"], "run chmod 700" in state["told"]) == ("wrong", True)


# certificate


def certified(folder: Path, **validity: Any) -> str:
    """Settings with a certificate."""
    issued = trustme.CA().issue_cert("predrain.example.org", **validity)
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    return f"[service]\ntls_certificate = '{folder / 'cert.pem'}'\ntls_key = '{folder / 'key.pem'}'\n"


@pytest.mark.parametrize(
    ("left", "state", "says"),
    [
        (timedelta(days=200), "ok", "is good until 2026-09-26"),
        (timedelta(days=3), "note", "put a new one into its place before"),
        (timedelta(hours=-1), "wrong", "every client refuses it; put a new one into its place"),
    ],
)
def test_the_end_of_the_certificate_is_told(
    told: Told, tmp_path: Path, left: timedelta, state: str, says: str
) -> None:
    found = told(certified(tmp_path, not_before=NOON - timedelta(days=90), not_after=NOON + left))[
        "certificate"
    ]
    assert found.state == state
    assert says in found.told


def test_an_address_without_a_certificate_that_no_service_would_start_on_is_wrong(told: Told) -> None:
    found = told("[service]\nhost = '0.0.0.0'\n")["certificate"]
    assert (found.state, "set tls_certificate and tls_key" in found.told) == ("wrong", True)
    assert "certificate" not in told("[service]\nhost = '0.0.0.0'\ninsecure_without_tls = true\n")


def test_a_certificate_with_the_key_of_another_is_wrong(told: Told, tmp_path: Path) -> None:
    text = certified(tmp_path)
    trustme.CA().issue_cert("other.example.org").private_key_pem.write_to_path(tmp_path / "key.pem")
    assert "cannot be used" in told(text)["certificate"].told


# mail and webhook


def mailed(port: int, more: str = "security = 'none'") -> str:
    return f"[mail]\nhost = '127.0.0.1'\nport = {port}\nsender = 'p@example.org'\nto = ['o@example.org']\n{more}\n"


def test_a_mail_server_that_answers_is_well_and_is_sent_nothing(told: Told) -> None:
    post = Post()
    with post_office(post) as port:
        found = told(mailed(port))["mail"]
    assert found.state == "ok"
    assert post.kept == []


def test_a_mail_server_that_refuses_our_password_is_wrong(told: Told, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    (tmp_path / "password").write_text("wrong")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)

    def never(*_: object) -> AuthResult:
        return AuthResult(success=False, handled=False)

    user = f"user = 'p'\npassword_file = '{tmp_path / 'password'}'\nca = '{tmp_path / 'ca.pem'}'"
    with post_office(Post(), tls, authenticator=never, auth_required=True) as port:
        found = told(mailed(port, user))["mail"]
    assert found.state == "wrong"
    assert "535" in found.told
    assert "[mail] in the settings" in found.told


def test_a_mail_server_that_is_away_is_wrong(told: Told) -> None:
    found = told(mailed(1))["mail"]
    assert found.state == "wrong"
    assert "127.0.0.1:1" in found.told


def hooked(folder: Path, url: str, more: str = "allow_private_address = true") -> str:
    (folder / "secret").write_text("a secret of some length")
    return f"[webhook]\nurl = '{url}'\nsecret_file = '{folder / 'secret'}'\n{more}\n"


def test_a_webhook_is_reached_over_tls_and_asked_nothing(told: Told, tmp_path: Path) -> None:
    authority, hook = trustme.CA(), Hook()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    with receiver(hook, tls) as port:
        url = f"https://127.0.0.1:{port}/hook"
        assert (
            told(hooked(tmp_path, url, f"allow_private_address = true\nca = '{tmp_path / 'ca.pem'}'"))[
                "webhook"
            ].state
            == "ok"
        )
        untrusted = told(hooked(tmp_path, url))["webhook"]
    assert untrusted.state == "wrong"
    assert "certificate verify failed" in untrusted.told
    assert hook.got == []


def test_a_webhook_that_leads_inside_is_wrong_unless_that_is_meant(told: Told, tmp_path: Path) -> None:
    found = told(hooked(tmp_path, "http://127.0.0.1:1/", ""))["webhook"]
    assert found.state == "wrong"
    assert "if that is meant, set allow_private_address of [webhook]" in found.told


def test_a_test_message_goes_out_when_it_is_asked_for(told: Told, tmp_path: Path) -> None:
    post, hook = Post(), Hook()
    with post_office(post) as port, receiver(hook) as hooks:
        found = told(mailed(port) + hooked(tmp_path, f"http://127.0.0.1:{hooks}/"), send=True)
    assert (found["mail, sent"].state, found["webhook, sent"].state) == ("ok", "ok")
    assert [mail["Subject"] for mail in post.kept] == ["[ceph] notice: A test of predrain's messages"]
    assert len(hook.got) == 1


def test_each_receiver_is_looked_at_by_its_name_also_beside_one_that_is_away(
    told: Told, tmp_path: Path
) -> None:
    hook = Hook()
    with receiver(hook) as port:
        found = told(
            '[alertmanager.away]\nurl = "http://127.0.0.1:1"\n'
            f'[alertmanager.near]\nurl = "http://127.0.0.1:{port}"\n',
            send=True,
        )
    names = ("alertmanager.away", "alertmanager.near", "alertmanager.away, sent", "alertmanager.near, sent")
    assert [found[name].state for name in names] == ["wrong", "ok", "wrong", "ok"]
    assert "see [alertmanager.away] in the settings" in found["alertmanager.away"].told
    assert len(hook.got) == 2, "the test's alert and its end"


# clocks and collectors


@pytest.mark.parametrize(
    ("off", "says"),
    [
        (timedelta(seconds=3), "agrees"),
        (timedelta(seconds=-3), "agrees"),
        (timedelta(seconds=90), "90 s ahead of this machine"),
        (timedelta(minutes=-61), "61 min behind this machine"),
        (timedelta(hours=30), "30 h ahead of this machine"),
    ],
)
def test_a_clock_that_is_off_is_told_with_how_far_and_which_way(off: timedelta, says: str) -> None:
    found = finding.compare_clocks("PostgreSQL", NOON + off, NOON, NOON)
    assert says in found.told
    assert found.state == ("ok" if says == "agrees" else "wrong")


def test_a_slow_answer_is_no_wrong_clock() -> None:
    assert (
        finding.compare_clocks(
            "PostgreSQL", NOON, NOON - timedelta(minutes=1), NOON + timedelta(minutes=1)
        ).state
        == "ok"
    )


def test_a_file_where_the_state_should_be_is_not_told_to_be_opened_to_its_owner(
    told: Told, tmp_path: Path
) -> None:
    (tmp_path / "state").write_text("")
    assert told()["state"] == Finding(
        "state", "wrong", f"{tmp_path / 'state'} is no directory; give --state or [service] one"
    )


def test_a_service_that_holds_its_state_and_does_not_answer_is_wrong(told: Told, tmp_path: Path) -> None:
    with socket.socket() as mute, StateDir(tmp_path / "state") as state:
        load_admin_tokens(state.token)
        mute.bind(("127.0.0.1", 0))
        state.say_url(f"http://127.0.0.1:{mute.getsockname()[1]}")
        assert told()["service"].state == "wrong"
    assert told()["service"].state == "note"


def test_hosts_that_are_silent_late_or_ahead_are_named(told: Told, tmp_path: Path) -> None:
    store = SqliteStore(StateDir(tmp_path / "state").ensure_exists().store)

    def read(serial: str, host: str, taken: timedelta, received: timedelta) -> None:
        at = NOON - taken
        store.add_readings([replace(smart_reading(serial, at), host=host, received_at=NOON - received)])  # type: ignore[arg-type]

    minute = timedelta(minutes=1)
    read("A", "stor-01", minute, minute)
    assert told()["collectors"] == Finding("collectors", "ok", "1 hosts deliver in time")
    read("B", "stor-02", timedelta(hours=9), timedelta(hours=9))
    read("C", "stor-03", timedelta(hours=5), minute)
    read("D", "stor-04", -2 * minute, minute)
    store.close()
    found = list(running_checks.check_collectors(_settings(tmp_path), SetClock()))
    assert [(one.what, one.state) for one in found] == [
        ("collectors", "wrong"), ("collectors", "note"), ("clock, hosts", "wrong"),
    ]  # fmt: skip
    assert (
        "1 of 4 hosts (stor-02) delivered nothing for 2:00:00: look at predrain-collector there"
        in found[0].told
    )
    assert "stor-03" in found[1].told
    assert "stor-04" in found[2].told


def _settings(folder: Path) -> Settings:
    settings = Settings()
    return settings.model_copy(
        update={"service": settings.service.model_copy(update={"state": folder / "state"})}
    )


def test_dead_letters_and_a_halt_are_told(told: Told, tmp_path: Path) -> None:
    from predrain.data.clock import SystemClock
    from predrain.data.log.log_port import Delivered
    from predrain.data.wire import DeadLetter
    from predrain.service.storage.record_sender import RecordSender

    state = StateDir(tmp_path / "state").ensure_exists()
    log, store = SqliteLog(state.log), SqliteStore(state.store)
    letter = DeadLetter.from_delivered(Topic.READINGS, Delivered(4, "disk", b"broken"), "no JSON", NOON)
    log.append(
        Topic.DEAD_LETTERS, [Record("disk", RecordSender("test", SystemClock()).encode_envelope(letter))]
    )
    store.set_halt("storm")
    log.close()
    store.close()
    found = told()
    assert "1 dead letters; see predrain deadletter list" in found["log"].told
    assert "halted: storm (predrain unhalt lifts it)" in found["store"].told


# Ceph


@dataclass
class PlayedCluster:
    """A channel that gives recorded answers, and refuses some commands as a mon refuses who lacks their caps."""

    refused: frozenset[str] = frozenset()
    wide: bool = False

    def ask(
        self,
        to: str,
        prefix: str,
        arguments: Mapping[str, Argument] | None = None,
        *,
        given: bytes = b"",
        seconds: float | None = None,
    ) -> DaemonReply:
        del given, seconds
        for question in QUESTIONS:
            if (question.to, question.prefix, question.arguments) == (to, prefix, arguments):
                raw = CLEAN.raw.get(question.name)
                return (
                    DaemonReply(0, raw, "") if raw is not None else DaemonReply(-22, b"", "no orchestrator")
                )
        if prefix == "auth get":
            return DaemonReply(0 if self.wide else -13, b"{}", "")
        if prefix == "mgr module ls":
            return DaemonReply(0, b'{"enabled_modules": ["predrain"]}', "")
        if prefix == "config-key dump" and prefix not in self.refused:
            return DaemonReply(0, b"{}", "")
        assert "2147483646" in str(arguments) or prefix.startswith(("config", "device", "orch")), (
            prefix,
            arguments,
        )
        return DaemonReply(-13 if prefix in self.refused else -2, b"", "")

    def unlock(self, pool: str, name: str, cookie: str) -> DaemonReply:
        assert (pool, name, cookie) == ("predrain", "doctor", "doctor")
        return DaemonReply(-1 if "unlock" in self.refused else -2, b"", "")


def of_cluster(**played: Any) -> dict[str, Finding]:
    clock = SetClock(CLEAN.at)
    return {
        one.what: one
        for one in ceph_checks.check_cluster_over_channel(PlayedCluster(**played), Settings(), clock)
    }  # type: ignore[arg-type]


def test_a_right_that_the_key_lacks_is_named_with_what_it_is_for() -> None:
    found = of_cluster(refused=frozenset({"osd reweight", "unlock"}))["caps"]
    assert found.state == "wrong"
    assert 'lacks mon allow command "osd reweight" (take a disk\'s share in steps' in found.told
    assert "osd allow rwx pool=predrain" in found.told
    assert "run ceph auth caps with the words of `predrain ceph auth`" in found.told


def test_a_key_with_all_rights_is_well_and_one_with_more_is_told() -> None:
    assert of_cluster()["caps"].state == "ok"
    wide = of_cluster(wide=True)["caps"]
    assert (wide.state, "may read other users' keys" in wide.told) == ("note", True)


def test_every_right_that_is_sent_is_one_of_those_that_are_printed() -> None:
    from predrain.actions.controller.held_caps import _FORMS

    assert [prefix for prefix in _FORMS if f'"{prefix}"' not in str(build_cephx_caps())] == []


def test_throttles_that_no_collector_verifies_and_the_module_are_told() -> None:
    found = of_cluster()
    assert found["ceph release"].state == "ok"
    assert found["throttles"].state == "note"
    assert "one PG moves at a time" in found["throttles"].told
    assert found["mgr module"] == Finding("mgr module", "ok", "enabled")

"""`predrain up` as a process: what is in its way, how it begins, how it ends, and the commands beside it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx2
import pytest

from predrain.data.log.log_port import Record, Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.models.forecast.bundle import DEFAULT
from predrain.service.access.tokens import TokenFileOpen, load_admin_tokens
from predrain.service.cli import main
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir, StateInUse
from predrain.service.terminal.service_connection import CliClient, ServiceRefused
from tests.deadlines import idle_seconds
from tests.service.conftest import INGEST_TOKEN, smart_reading

PREDRAIN = (sys.executable, "-c", "from predrain.service.cli import run; run()")


@contextlib.contextmanager
def running(state: Path, *options: str, **popen: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`predrain up` on a free port; gives the process and its address."""
    process = subprocess.Popen(
        [*PREDRAIN, "up", "--port", "0", "--state", str(state), *options],
        stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, **popen,  # type: ignore[call-overload]
    )  # fmt: skip
    try:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("predrain answers at "), first + process.stderr.read()
        yield process, first.removeprefix("predrain answers at ").strip()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def until(seconds: float, true: object) -> bool:
    """Return whether `true()` came true within so many seconds."""
    end = idle_seconds() + seconds
    while idle_seconds() < end:
        if true():  # type: ignore[operator]
            return True
        time.sleep(0.05)
    return False


def acting(state: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {(state / 'token').read_text().strip()}"}


@pytest.mark.slow
def test_it_answers_scores_what_comes_in_and_ends_though_somebody_listens(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(state) as (process, url):
        assert httpx2.get(f"{url}/api/v1/status").status_code == 200
        assert process.stderr is not None
        assert "#token=" not in process.stderr.readline(), "a journal must not keep an address that may act"
        now = datetime.now(UTC)
        house_file = json.loads(_envelope(now))
        sent = httpx2.post(f"{url}/api/v1/readings", json=[house_file], headers=acting(state))
        assert sent.json() == {"accepted": 1, "refused": []}
        assert until(60, lambda: httpx2.get(f"{url}/api/v1/outlooks").json()["items"])
        with httpx2.stream("GET", f"{url}/api/v1/events", timeout=30) as events:
            next(events.iter_lines())
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
    assert not (state / "url").exists()


def _envelope(now: datetime) -> bytes:
    from predrain.data.wire import encode_envelope

    return encode_envelope(smart_reading("UP", now), producer="test", sequence=0, sent_at=now)


@pytest.mark.slow
def test_a_reading_accepted_before_a_kill_is_scored_after_the_next_start(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with running(state) as (process, url):
        sent = httpx2.post(
            f"{url}/api/v1/readings", json=[json.loads(_envelope(datetime.now(UTC)))], headers=acting(state)
        )
        assert sent.json()["accepted"] == 1
        process.kill()
    with running(state) as (_, url):
        assert until(60, lambda: httpx2.get(f"{url}/api/v1/outlooks").json()["items"])


@pytest.mark.slow
def test_a_disk_that_is_really_full_refuses_readings_and_serves_what_it_has(tmp_path: Path) -> None:
    state = tmp_path / "state"
    limit = 400_000

    def small_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with running(state, preexec_fn=small_files) as (_, url):
        accepted, answer = 0, None
        for _ in range(200):
            now = datetime.now(UTC)
            body = [json.loads(_envelope(now)) for _ in range(50)]
            answer = httpx2.post(f"{url}/api/v1/readings", json=body, headers=acting(state), timeout=30)
            if answer.status_code != 200:
                break
            accepted += 50
        assert answer is not None
        assert answer.status_code == 503, answer.text
        assert "Nothing of this request was accepted" in answer.json()["detail"]
        assert httpx2.get(f"{url}/api/v1/status").status_code == 200
        assert accepted > 0
    log = SqliteLog(state / "log.sqlite")
    kept = log.read(Topic.READINGS, "count", 100_000)
    log.close()
    assert len(kept) == accepted


def test_an_address_of_the_network_needs_tls_or_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--host", "0.0.0.0", "--port", "0", "--state", str(tmp_path / "s")]) == 1
    told = capsys.readouterr().err
    assert "tls_certificate" in told
    assert "--insecure-without-tls" in told


def test_two_services_on_one_state_directory_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StateDir(tmp_path / "s"):
        assert main(["up", "--port", "0", "--state", str(tmp_path / "s")]) == 1
    assert f"in use by process {os.getpid()}" in capsys.readouterr().err


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    with StateDir(tmp_path / "s"), pytest.raises(StateInUse):
        StateDir(tmp_path / "s").__enter__()
    with StateDir(tmp_path / "s"):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "damage", "word"),
    [
        ("model.txt", "tampered\n", "model.txt is not what SHA256SUMS says"),
        ("bundle.json", "{", "bundle.json is not what SHA256SUMS says"),
        ("SHA256SUMS", None, "SHA256SUMS"),
    ],
)
def test_a_corrupt_bundle_is_told_and_readings_are_still_accepted(
    tmp_path: Path, file: str, damage: str | None, word: str
) -> None:
    bundle, state = tmp_path / "bundle", tmp_path / "state"
    shutil.copytree(DEFAULT, bundle)
    if damage is None:
        (bundle / file).unlink()
    else:
        with (bundle / file).open("a") as opened:
            opened.write(damage)
    config = tmp_path / "predrain.toml"
    config.write_text(f'[forecast]\nbundle = "{bundle}"\n')
    with running(state, "--config", str(config)) as (_, url):
        assert until(60, lambda: word in httpx2.get(f"{url}/readyz").text)
        body = [json.loads(_envelope(datetime.now(UTC)))]
        assert httpx2.post(f"{url}/api/v1/readings", json=body, headers=acting(state)).json()["accepted"] == 1


def test_the_token_file_is_for_its_owner_only(tmp_path: Path) -> None:
    token = tmp_path / "token"
    load_admin_tokens(token)
    assert token.stat().st_mode & 0o777 == 0o600
    token.chmod(0o644)
    with pytest.raises(TokenFileOpen, match="chmod 600"):
        load_admin_tokens(token)


def test_tokens_are_held_as_hashes_only(tmp_path: Path) -> None:
    tokens = load_admin_tokens(tmp_path / "token")
    secret = (tmp_path / "token").read_text().strip()
    assert secret not in repr(tokens)
    assert tokens.find_caller(secret) is not None
    assert tokens.find_caller(INGEST_TOKEN) is None


@pytest.mark.slow
def test_halt_works_with_the_service_down_and_with_it_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    store = SqliteStore(StateDir(state).ensure_exists().store)
    assert main(["halt", "--reason", "storm", "--state", str(state)]) == 3
    assert store.halt_reason() == "storm"
    assert "ceph config-key set predrain/halt" in (told := capsys.readouterr().err)
    assert told.startswith("only here: No service could be asked")
    assert main(["unhalt", "--state", str(state)]) == 3
    assert store.halt_reason() is None
    assert "ceph config-key rm predrain/halt" in capsys.readouterr().err
    store.close()
    with running(state) as (_, url):
        assert main(["halt", "--reason", "storm", "--state", str(state), "--json"]) == 0
        assert httpx2.get(f"{url}/api/v1/halt").json()["halted"] == "storm"
    assert json.loads(capsys.readouterr().out) == {
        "halted": "storm",
        "unreached": None,
        "stored_in": ["store"],
    }


def test_a_halt_that_the_service_may_not_lift_is_not_lifted_behind_its_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refusing:
        def post(self, *_: object) -> None:
            raise ServiceRefused(409, "The halt in the cluster stands, since it does not answer.", None)

    store = SqliteStore(StateDir(tmp_path).ensure_exists().store)
    store.set_halt("storm")
    monkeypatch.setattr(CliClient, "from_settings", lambda _: Refusing())
    assert main(["unhalt", "--state", str(tmp_path)]) == 1
    assert "The halt in the cluster stands" in capsys.readouterr().err
    assert store.halt_reason() == "storm"
    store.close()


def test_a_reader_of_the_url_file_gets_the_whole_old_address_while_a_new_one_is_written(
    tmp_path: Path,
) -> None:
    state = StateDir(tmp_path).ensure_exists()
    state.say_url("https://stor-01:8443")
    with state.url.open() as reading:
        state.say_url("https://stor-01:9443")
        assert reading.read() == "https://stor-01:8443\n"
    assert state.url.read_text() == "https://stor-01:9443\n"


@pytest.mark.slow
def test_a_stranger_on_the_port_of_a_killed_service_receives_neither_a_request_nor_the_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, heard = tmp_path / "state", list[str]()

    class Stranger(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.headers["Authorization"])
            self.send_error(404)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    with running(state) as (process, url):
        process.kill()
        process.wait()
    assert (state / "url").read_text().strip() == url
    with HTTPServer(("127.0.0.1", int(url.rpartition(":")[2])), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        try:
            assert main(["causes", "--state", str(state)]) == 1
            assert f"no service runs on {state}; start it (predrain up)" in capsys.readouterr().err
            assert main(["halt", "--reason", "storm", "--state", str(state)]) == 3
        finally:
            stranger.shutdown()
    assert heard == []
    with StateDir(state) as again:
        assert not again.url.exists(), "nobody answers yet"


def test_an_account_without_a_name_can_halt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless(_: int) -> None:
        raise KeyError("getpwuid(): uid not found")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", nameless)
    store = SqliteStore(StateDir(tmp_path).ensure_exists().store)
    assert main(["halt", "--state", str(tmp_path)]) == 3
    assert store.halt_reason() == f"halted by uid {os.getuid()}"
    store.close()


def test_halt_without_a_store_says_where_it_looked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["halt", "--state", str(tmp_path / "nowhere")]) == 1
    assert "nowhere" in capsys.readouterr().err


def test_drain_commands_say_that_no_service_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drain", "list", "--state", str(tmp_path)]) == 1
    assert "start it (predrain up)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_drain_without_a_cluster_is_done_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path / "state"):
        assert main(["drain", "apply", "osd.1", "--state", str(tmp_path / "state")]) == 3
    assert "No cluster is configured" in capsys.readouterr().err


def test_dead_letters_are_listed_and_sent_again_with_the_service_down(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from predrain.data.clock import SystemClock
    from predrain.data.log.log_port import Delivered
    from predrain.data.wire import DeadLetter
    from predrain.service.storage.record_sender import RecordSender

    state = StateDir(tmp_path / "state").ensure_exists()
    log = SqliteLog(state.log)
    letter = DeadLetter.from_delivered(
        Topic.READINGS, Delivered(4, "disk", b"broken"), "no JSON", datetime.now(UTC)
    )
    log.append(
        Topic.DEAD_LETTERS, [Record("disk", RecordSender("test", SystemClock()).encode_envelope(letter))]
    )
    assert main(["deadletter", "list", "--state", str(state.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["reason"] == "no JSON"
    assert main(["deadletter", "replay", "--state", str(state.path)]) == 0
    assert [one.value for one in log.read(Topic.READINGS, "test", 10)] == [b"broken"]
    assert main(["deadletter", "list", "--state", str(state.path)]) == 0
    assert "no dead letters" in capsys.readouterr().out
    log.close()


def test_the_doctor_names_what_is_wrong_and_the_cure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = StateDir(tmp_path / "state").ensure_exists()
    load_admin_tokens(state.token)
    assert main(["doctor", "--state", str(state.path), "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["bundle"]["state"] == "ok"
    assert found["service"]["state"] == "note"
    state.token.chmod(0o644)
    assert main(["doctor", "--state", str(state.path), "--json"]) == 1
    found = {one["what"]: one for one in json.loads(capsys.readouterr().out)}
    assert "chmod 600" in found["token"]["told"]


@pytest.mark.slow
def test_heavy_packages_are_not_imported_before_the_first_answer() -> None:
    heavy = "{'numpy', 'lightgbm', 'duckdb', 'pandas', 'sklearn', 'scipy', 'pyarrow'}"
    service = "predrain.service.processes.up, predrain.service.cli.up_commands"
    code = f"import sys, {service}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.strip() == "[]"


def test_settings_of_the_command_line_win(tmp_path: Path) -> None:
    from predrain.service.cli.up_commands import with_options

    settings = with_options(Settings(), host=None, port=9, state=tmp_path)
    assert (settings.service.host, settings.service.port, settings.service.state) == (
        "127.0.0.1",
        9,
        tmp_path,
    )

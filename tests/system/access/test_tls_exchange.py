"""`predrain up` over TLS: refused without it beyond loopback, its certificate exchanged while it runs."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
import trustme

from predrain.service.access.certificate import Certificate, CertificateUnusable, describe_certificate_expiry

PREDRAIN = Path(sys.executable).with_name("predrain")
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def put(issued: trustme.LeafCert, folder: Path) -> tuple[Path, Path]:
    """As certbot does it: written beside and moved into place, one file after the other."""
    chain, key = folder / "chain.pem", folder / "key.pem"
    for file, content in (
        (chain, b"".join(blob.bytes() for blob in issued.cert_chain_pems)),
        (key, issued.private_key_pem.bytes()),
    ):
        beside = file.with_suffix(".new")
        beside.write_bytes(content)
        beside.replace(file)
    return chain, key


@contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """A service of its own process; its address."""
    state = folder / "state"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
    environment |= {
        "PREDRAIN_SERVICE__TLS_CERTIFICATE": str(folder / "chain.pem"),
        "PREDRAIN_SERVICE__TLS_KEY": str(folder / "key.pem"),
    }
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [PREDRAIN, "up", "--port", "0", "--state", str(state), *options],
            stderr=said,
            stdout=said,
            env=environment,
        )
    try:
        until(
            lambda: (
                ((state / "url").exists() and (state / "url").read_text().endswith("\n")) or _over(process)
            )
        )
        yield (state / "url").read_text().strip()
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def _over(process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "the service ended"
    return False


def until(holds: Callable[[], object]) -> None:
    while not holds():
        time.sleep(0.1)


def ends_of(url: str, authority: trustme.CA) -> str:
    """Until when the certificate that is shown now is good."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    where = urlsplit(url)
    assert where.hostname
    assert where.port
    with (
        socket.create_connection((where.hostname, where.port), timeout=30) as plain,
        context.wrap_socket(plain, server_hostname=where.hostname) as guarded,
    ):
        shown = guarded.getpeercert()
        assert shown is not None
        return str(shown["notAfter"])


def test_a_new_certificate_is_taken_up_while_it_runs_and_a_bad_one_is_not(
    authority: trustme.CA, tmp_path: Path
) -> None:
    put(authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) + timedelta(days=20)), tmp_path)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with running(tmp_path) as url, httpx2.Client(base_url=url, verify=context, timeout=60) as client:
        assert url.startswith("https://")
        before = ends_of(url, authority)
        answer = client.get("/healthz")
        assert answer.headers["strict-transport-security"]
        token = (tmp_path / "state" / "token").read_text().strip()
        signed_in = client.post("/api/v1/session", json={"token": token})
        assert signed_in.headers["set-cookie"].startswith("__Host-predrain=")
        assert "Secure" in signed_in.headers["set-cookie"]

        (tmp_path / "key.pem").write_text("no key at all")
        until(lambda: "stays in force" in (tmp_path / "said.txt").read_text())
        assert ends_of(url, authority) == before

        put(authority.issue_cert("127.0.0.1", not_after=datetime.now(UTC) + timedelta(days=40)), tmp_path)
        until(lambda: ends_of(url, authority) != before)
        assert client.get("/healthz").status_code == 200, "who was connected stays so"


def record(folder: Path, chain: Path) -> subprocess.CompletedProcess[str]:
    """Run `predrain audit` on the service's machine with `chain` as the service's certificate."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
    tls = {"PREDRAIN_SERVICE__TLS_CERTIFICATE": str(chain), "PREDRAIN_SERVICE__TLS_KEY": str(chain)}
    return subprocess.run(
        [PREDRAIN, "audit", "--state", str(folder / "state")],
        env=variables | tls,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_commands_on_the_same_machine_trust_the_service_s_own_certificate_and_no_other(
    authority: trustme.CA, tmp_path: Path
) -> None:
    put(authority.issue_cert("predrain.example.org"), tmp_path)
    with running(tmp_path):
        right = record(tmp_path, tmp_path / "chain.pem")
        assert (right.returncode, right.stdout) == (0, "nothing is on record\n"), right.stderr
        other = tmp_path / "other"
        other.mkdir()
        wrong = record(tmp_path, put(authority.issue_cert("predrain.example.org"), other)[0])
        assert wrong.returncode == 1
        assert "is not trusted" in wrong.stderr


def test_an_expired_certificate_says_so_stops_no_command_of_this_machine_and_a_new_one_cures_it(
    authority: trustme.CA, tmp_path: Path
) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    put(authority.issue_cert("127.0.0.1", not_before=past - timedelta(days=9), not_after=past), tmp_path)
    with running(tmp_path) as url:
        until(lambda: "every client refuses it" in (tmp_path / "said.txt").read_text())
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            ends_of(url, authority)
        typed = record(tmp_path, tmp_path / "chain.pem")
        assert (typed.returncode, typed.stdout) == (0, "nothing is on record\n"), typed.stderr
        put(authority.issue_cert("127.0.0.1"), tmp_path)

        def good() -> bool:
            try:
                return bool(ends_of(url, authority))
            except ssl.SSLError:
                return False

        until(good)


def refusal(*options: str, **variables: str) -> str:
    """Run `predrain up`, check that it does not start, and return the one line that it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREDRAIN_")}
    ended = subprocess.run(
        [PREDRAIN, "up", "--port", "0", *options],
        env=environment | variables,
        capture_output=True,
        timeout=120,
    )
    assert ended.returncode == 1
    told = ended.stderr.decode()
    assert told.startswith("predrain: ")
    assert told.count("\n") == 1, told
    return told


def test_beyond_loopback_without_tls_nothing_starts(tmp_path: Path) -> None:
    told = refusal("--host", "0.0.0.0", "--state", str(tmp_path / "state"))
    assert "set tls_certificate and tls_key" in told
    assert not (tmp_path / "state").exists()


def test_a_certificate_with_another_s_key_does_not_start(authority: trustme.CA, tmp_path: Path) -> None:
    chain, key = put(authority.issue_cert("127.0.0.1"), tmp_path)
    key.write_bytes(authority.issue_cert("127.0.0.1").private_key_pem.bytes())
    told = refusal(
        "--state",
        str(tmp_path / "state"),
        PREDRAIN_SERVICE__TLS_CERTIFICATE=str(chain),
        PREDRAIN_SERVICE__TLS_KEY=str(key),
    )
    assert "cannot be used" in told
    assert "PEM chain and its unencrypted key" in told


def test_half_of_a_new_pair_is_not_taken_and_the_other_half_completes_it(
    authority: trustme.CA, tmp_path: Path
) -> None:
    chain, key = put(
        authority.issue_cert("a.example", not_after=datetime.now(UTC) + timedelta(days=9)), tmp_path
    )
    held = Certificate(chain, key)
    before = held.ends_at
    assert not held.reload_if_changed()
    new = authority.issue_cert("a.example", not_after=datetime.now(UTC) + timedelta(days=90))
    chain.write_bytes(b"".join(blob.bytes() for blob in new.cert_chain_pems))
    with pytest.raises(CertificateUnusable):
        held.reload_if_changed()
    assert held.ends_at == before
    key.write_bytes(new.private_key_pem.bytes())
    assert held.reload_if_changed()
    assert held.ends_at > before


def test_the_end_of_a_certificate_is_said_two_weeks_before(tmp_path: Path) -> None:
    now = datetime(2026, 3, 10, tzinfo=UTC)
    assert describe_certificate_expiry(tmp_path, now + timedelta(days=15), now) is None
    assert "ends at 2026-03-24" in str(describe_certificate_expiry(tmp_path, now + timedelta(days=14), now))
    assert "without a restart" in str(describe_certificate_expiry(tmp_path, now, now))

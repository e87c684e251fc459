"""Commands that ask a service on another machine: where it is, with which token, and what stands in their way."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from predrain.service.access.tokens import TokenFileOpen
from predrain.service.cli import main
from predrain.service.config.state_directory import StateDir
from predrain.service.terminal.remote_service import (
    RemoteNaming,
    RemoteService,
    RemoteUnusable,
    find_remote_service,
)
from tests.service.conftest import Place, Serve, Site, shut, with_service
from tests.service.without_extras import run_without_extras

TOKEN = "remote-token-0123456789abcdefghijklmnop"
HTTPS = "https://predrain.example:9470"


def token_file(folder: Path, token: str = TOKEN, mode: int = 0o600) -> Path:
    file = folder / "token-of-the-service"
    file.write_text(f"{token}\n")
    file.chmod(mode)
    return file


def profile(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    """Write a profile where a user has one; the variables that lead there."""
    file = folder / "predrain" / "profile.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return {"XDG_CONFIG_HOME": str(folder)}


def find(variables: Mapping[str, str], typed: str = "", **options: object) -> RemoteService | None:
    naming = RemoteNaming("the command line", **options)  # type: ignore[arg-type]
    return find_remote_service(naming, variables, lambda: typed)


def test_without_options_variables_and_profile_the_service_of_this_machine_is_meant(tmp_path: Path) -> None:
    assert find({"HOME": str(tmp_path)}) is None
    assert find({}) is None


def test_options_come_before_variables_and_these_before_the_profile(tmp_path: Path) -> None:
    variables = profile(tmp_path, f'url = "https://profile.example"\ntoken = "{TOKEN}"\n')
    found = find(variables)
    assert found == RemoteService(
        "https://profile.example", TOKEN, f"the profile {tmp_path}/predrain/profile.toml", None
    )
    variables |= {"PREDRAIN_URL": "https://variable.example/"}
    found = find(variables)
    assert found is not None
    assert found.url == "https://variable.example"
    found = find(variables, url=HTTPS)
    assert found is not None
    assert found.url == HTTPS


def test_a_token_goes_only_to_the_address_that_it_was_written_beside(tmp_path: Path) -> None:
    variables = {"PREDRAIN_URL": HTTPS, "PREDRAIN_TOKEN_FILE": str(token_file(tmp_path))}
    variables |= profile(tmp_path, f'url = "https://profile.example"\ntoken = "{TOKEN}"\n')
    for url, token in ((None, TOKEN), (f"{HTTPS}/", TOKEN), ("https://else.example", None)):
        found = find(variables, url=url)
        assert found is not None
        assert found.token == token, url


def test_a_token_file_of_the_profile_is_found_beside_it(tmp_path: Path) -> None:
    variables = profile(tmp_path, f'url = "{HTTPS}"\ntoken_file = "mine"\nca_file = "ca.pem"\n')
    token_file(tmp_path).rename(tmp_path / "predrain" / "mine")
    found = find(variables)
    assert found is not None
    assert (found.token, found.ca_file) == (TOKEN, tmp_path / "predrain" / "ca.pem")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_profile_that_others_can_read_or_write_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    variables = profile(tmp_path, f'url = "{HTTPS}"\n', mode)
    with pytest.raises(RemoteUnusable, match=r"can be read by others; run chmod 600 .*profile\.toml"):
        find(variables)


def test_a_token_file_that_others_can_read_is_refused_with_the_cure(tmp_path: Path) -> None:
    with pytest.raises(TokenFileOpen, match=r"chmod 600 .*predrain token create"):
        find({}, url=HTTPS, token_file=token_file(tmp_path, mode=0o644))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("url = 3", "its keys are url, token"),
        (f'url = "{HTTPS}"\ntokn = "x"', "tokn.*its keys are url, token"),
        (f'url = "{HTTPS}"\ntoken = "short"', "is no token"),
        ("url = ", "is not TOML"),
        ('url = "predrain.example"', "is no address; give one like https://"),
        ('url = "https://ada:secret@predrain.example"', "holds a name or a secret"),
        ('url = "https://predrain.example:port"', "is no address"),
    ],
)
def test_a_profile_that_cannot_be_used_says_why(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(RemoteUnusable, match=sentence):
        find(profile(tmp_path, text))


def test_a_token_is_not_sent_in_the_clear_over_the_network_unless_that_is_said(tmp_path: Path) -> None:
    file = token_file(tmp_path)
    with pytest.raises(RemoteUnusable, match=r"in the clear.*--insecure-without-tls"):
        find({}, url="http://predrain.example", token_file=file)
    for url, insecure in (
        ("http://predrain.example", True),
        ("http://127.0.0.1:1", False),
        ("http://[::1]:1", False),
    ):
        assert find({}, url=url, token_file=file, insecure_without_tls=insecure) is not None


def test_a_token_without_an_address_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(RemoteUnusable, match="name the service by --url"):
        find({}, token_file=token_file(tmp_path))
    with pytest.raises(RemoteUnusable, match="name the service by --url"):
        find({"PREDRAIN_TOKEN_FILE": str(token_file(tmp_path))})


def test_the_token_of_standard_input_is_its_first_line() -> None:
    found = find({}, f"{TOKEN}\n", url=HTTPS, token="-")
    assert found is not None
    assert (found.token, found.token_source) == (TOKEN, "standard input")
    with pytest.raises(RemoteUnusable, match="standard input held no token"):
        find({}, "\n", url=HTTPS, token="-")


def test_a_secret_on_the_command_line_is_refused_and_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes", "--url", HTTPS, "--token", TOKEN]) == 1
    told = capsys.readouterr().err
    assert "give --token-file a file" in told
    assert TOKEN not in told


def test_a_service_here_and_one_elsewhere_are_not_named_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for here in (["--state", str(tmp_path)], ["--config", str(tmp_path / "predrain.toml")]):
        assert main(["causes", "--url", HTTPS, *here]) == 1
        assert "give those of one service" in capsys.readouterr().err
    assert main(["drain", "list", "--url", HTTPS, "--conf", "ceph.conf"]) == 1
    assert "give those of one service" in capsys.readouterr().err


def test_an_option_of_this_machine_comes_before_variables(
    site: Site, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place.state.url.write_text(str(site.client.base_url))
    monkeypatch.setenv("PREDRAIN_URL", "http://127.0.0.1:1")
    assert main(["causes", "--state", str(place.state.path)]) == 0
    assert main(["causes"]) == 1
    assert "no service answers at http://127.0.0.1:1" in capsys.readouterr().err


def test_a_service_that_is_not_reached_names_what_to_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["causes", "--url", "http://127.0.0.1:1"]) == 1
    assert "check the address, and the network" in capsys.readouterr().err


def test_a_refused_token_is_named_by_its_place(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = ["--url", str(site.client.base_url)]
    assert main(["causes", *there, "--token-file", str(token_file(tmp_path))]) == 1
    told = capsys.readouterr().err
    assert str(tmp_path / "token-of-the-service") in told
    assert "predrain token create" in told
    assert main(["halt", *there]) == 1
    assert "give a token by --token-file" in capsys.readouterr().err


def test_a_remote_halt_that_fails_leaves_the_store_of_this_machine_alone(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PREDRAIN_SERVICE__STATE", str(place.state.path))
    shut(place.application())
    assert main(["halt", "--url", "http://127.0.0.1:1"]) == 1
    told = capsys.readouterr().err
    assert "nothing was halted" in told
    assert "ceph config-key set predrain/halt" in told
    assert main(["unhalt", "--url", "http://127.0.0.1:1"]) == 1
    assert "nothing was changed" in capsys.readouterr().err
    application = place.application()
    assert application.store.halt_reason() is None
    shut(application)


@pytest.fixture
def authority() -> trustme.CA:
    """A private CA."""
    return trustme.CA()


@pytest.fixture
def secured(place: Place, serve: Serve, authority: trustme.CA, tmp_path: Path) -> Iterator[Site]:
    """A real service behind a certificate of the private CA."""
    issued = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    for part in issued.cert_chain_pems:
        part.write_to_path(chain, append=True)
    issued.private_key_pem.write_to_path(key)
    application = with_service(place, tls_certificate=chain, tls_key=key).application()
    application.start()
    yield serve(application)
    shut(application)


def run_command(*words: str, typed: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the real command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", "from predrain.service.cli import run; run()", *words],
        input=typed,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
def test_a_command_halts_a_service_of_a_private_ca_with_a_token_of_a_profile(
    secured: Site, authority: trustme.CA, tmp_path: Path
) -> None:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    url = str(secured.client.base_url)
    lines = f'url = "{url}"\ntoken_file = "../token-of-the-service"\nca_file = "../ca.pem"\n'
    token_file(tmp_path, secured.token)
    ran = run_command("halt", "--reason", "switch work", "--json", **profile(tmp_path, lines))
    assert ran.returncode == 0, ran.stderr
    assert "switch work" in json.loads(ran.stdout)["halted"]
    assert secured.application.store.halt_reason() is not None


@pytest.mark.slow
def test_a_certificate_of_an_unknown_ca_names_the_option_for_it(secured: Site, tmp_path: Path) -> None:
    url = str(secured.client.base_url)
    ran = run_command("causes", "--url", url, "--token-file", str(token_file(tmp_path, secured.token)))
    assert ran.returncode == 1
    assert "is not trusted" in ran.stderr
    assert "give --ca-file the PEM file" in ran.stderr
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    ran = run_command("causes", "--url", url, "--ca-file", str(tmp_path / "other.pem"))
    assert "is not trusted" in ran.stderr


@contextmanager
def asked_by(*words: str, typed: str = "") -> Iterator[tuple[int, bytes]]:
    """Run the real command against a server that reads its request and holds its answer back; the process's id, and the
    request.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        program = [sys.executable, "-c", "from predrain.service.cli import run; run()", *words, "--url", url]
        process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            assert process.stdin is not None
            process.stdin.write(typed.encode())
            process.stdin.close()
            connection, _ = server.accept()
            with connection:
                yield process.pid, connection.recv(65536)
        finally:
            process.kill()
            process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["file", "standard input"])
def test_the_token_reaches_the_service_and_stands_in_no_command_line(tmp_path: Path, way: str) -> None:
    option = ["--token-file", str(token_file(tmp_path))] if way == "file" else ["--token", "-"]
    with asked_by("causes", *option, typed=f"{TOKEN}\n") as (pid, request):
        assert f"Authorization: Bearer {TOKEN}".encode() in request
        assert b"causes" in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert TOKEN.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert TOKEN.encode() not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.slow
def test_a_terminal_needs_no_package_of_any_extra_to_ask_a_service(site: Site) -> None:
    program = (
        "from predrain.service.cli import main\n"
        f"there = ['--url', {str(site.client.base_url)!r}]\n"
        "for words in (['disks'], ['osds'], ['events'], ['causes'], ['silence', 'list'], ['drain', 'list']):\n"
        "    assert main([*words, *there]) == 0, words\n"
    )
    ran = run_without_extras(program)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_a_remote_drain_command_starts_no_service_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREDRAIN_SERVICE__STATE", str(tmp_path / "state"))
    assert main(["drain", "list", "--url", "http://127.0.0.1:1"]) == 1
    assert "no service answers at http://127.0.0.1:1" in capsys.readouterr().err
    assert not StateDir(tmp_path / "state").is_one()

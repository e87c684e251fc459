"""The wheel without any extra, as a person installs it: each command works or names the extra in one sentence."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from predrain.service.cli.command_catalogue import list_commands
from tests.service.conftest import Site, forecaster, place, serve  # noqa: F401  (a service over HTTP)
from tests.service.test_drains import World, site, world  # noqa: F401  (a service over a cluster)
from tests.system.install.conftest import ROOT
from tests.system.install.wheel import UV, build_wheel, run_uv

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900)]
SAMPLE = ROOT / "tests" / "data" / "smart" / "samples" / "ata-001.json"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not UV.exists():
        pytest.fail(f"{UV} is missing: run make setup")
    return build_wheel(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of `pip install WHEEL` in an environment of Debian's Python."""
    venv = tmp_path_factory.mktemp("bare") / "venv"
    run_uv("venv", "--quiet", "--python", "/usr/bin/python3", venv)
    run_uv("pip", "install", "--quiet", "--python", venv, wheel)
    return venv / "bin" / "predrain"


def run(command: Path, *words: str | Path, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a person without settings."""
    return subprocess.run(
        [command, *words], capture_output=True, text=True, check=False, timeout=120, cwd=home,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "COLUMNS": "100"},
    )  # fmt: skip


def test_site_packages_have_one_name_of_ours(command: Path) -> None:
    (packages,) = command.parent.parent.glob("lib/python*/site-packages")
    (record,) = packages.glob("predrain-*.dist-info/RECORD")
    firsts = {line.split("/")[0] for line in record.read_text().splitlines()}
    assert {name for name in firsts if not name.endswith(".dist-info")} == {"predrain", ".."}


def test_every_command_has_its_help(command: Path, tmp_path: Path) -> None:
    listed = run(command, "--help", home=tmp_path)
    assert listed.returncode == 0, listed.stderr
    words = [page.words for page in list_commands()]
    assert [each[0] for each in words if not re.search(rf"(?m)^. {each[0]} ", listed.stdout)] == []
    program = (
        "import json, sys; from predrain.service.cli import main\n"
        "sys.exit(any(main([*words, '--help']) for words in json.loads(sys.argv[1])))"
    )
    helped = run(command.with_name("python"), "-c", program, json.dumps(words), home=tmp_path)
    assert helped.returncode == 0, helped.stderr


@pytest.mark.parametrize(
    "words", [["disks"], ["osds"], ["events"], ["causes"], ["drain", "list"], ["halt", "--reason", "a test"]]
)
def test_commands_that_watch_and_act_ask_a_service_elsewhere(
    command: Path, words: list[str], site: Site, tmp_path: Path  # noqa: F811
) -> None:  # fmt: skip
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(site.token)
    there = ("--url", str(site.client.base_url), "--token-file", token)
    asked = run(command, *words, *there, home=tmp_path)
    assert (asked.returncode, asked.stderr) == (0, ""), asked.stderr


def test_forecasting_reads_smartctls_output(command: Path, tmp_path: Path) -> None:
    read = run(command, "smart", "parse", SAMPLE, home=tmp_path)
    assert read.returncode == 0, read.stderr
    assert json.loads(read.stdout)["ok"] is True


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["up"], "service"),
        (["demo"], "service"),
        (["work"], "service"),
        (["control"], "service"),
        (["serve"], "service"),
        (["doctor"], "service"),
        (["config", "check"], "service"),
        (["token", "list"], "service"),
        (["store", "status"], "service"),
        (["topics", "list"], "service"),
        (["cluster", "status"], "service"),
        (["backup", "--out", "backup.tar.gz"], "service"),
        (["models", "list"], "service"),
        (["train", "none.parquet", "--out", "bundle"], "ml"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_command_that_cannot_run_names_its_extra(
    command: Path, words: list[str], extra: str, tmp_path: Path
) -> None:
    asked = run(command, *words, home=tmp_path)
    assert asked.returncode == 1
    (line,) = asked.stderr.splitlines()
    assert line.endswith(f"which is not installed: pip install 'predrain[{extra}]'"), line


def test_the_client_is_there_for_programs(command: Path, site: Site, tmp_path: Path) -> None:  # noqa: F811
    program = "import sys; from predrain import Client; print(len(list(Client(*sys.argv[1:]).devices())))"
    asked = run(
        command.with_name("python"), "-c", program, str(site.client.base_url), site.token, home=tmp_path
    )
    assert (asked.returncode, asked.stderr) == (0, "")


@pytest.mark.parametrize(
    ("installer", "line"),
    [("pip", "pip install"), ("uv tool", "uv tool install"), ("pipx", "pipx install --force")],
)
def test_each_installer_gives_a_command_that_names_the_same_installer(
    installer: str, line: str, wheel: Path, tmp_path: Path
) -> None:
    where = {
        "UV_TOOL_DIR": str(tmp_path / "tools"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "UV_PYTHON": "/usr/bin/python3",
    }
    if installer == "pip":
        subprocess.run(["/usr/bin/python3", "-m", "venv", tmp_path], check=True, timeout=300)
        subprocess.run([tmp_path / "bin" / "pip", "install", "--quiet", wheel], check=True, timeout=600)
    elif installer == "pipx":
        run_uv("tool", "run", "--quiet", "pipx@1.8.0", "install", "--quiet", wheel, variables=where)
    else:
        run_uv("tool", "install", "--quiet", wheel, variables=where)
    predrain = tmp_path / "bin" / "predrain"
    assert run(predrain, "--version", home=tmp_path).returncode == 0
    asked = run(predrain, "up", home=tmp_path)
    assert asked.stderr.endswith(f"{line} 'predrain[service]'\n"), asked.stderr

"""The wheel in a fresh environment of each Python that it allows: the command, a score of real drives, unit tests."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.system.install.conftest import ROOT
from tests.system.install.interpreters import VERSIONS, Interpreter, find_interpreter
from tests.system.install.wheel import UV, build_wheel, export_requirements

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.machine,
    pytest.mark.timeout(1500),
    pytest.mark.xdist_group("python-versions"),
]
CACHE = Path(os.environ.get("UV_CACHE_DIR") or "~/.cache/uv").expanduser()
UNIT_TESTS = ("tests/features", "tests/collector", "tests/data", "tests/service/test_client.py")
"""Tests of what touches the interpreter most: SQLite, processes, HTTP, bytes, dates."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with the wheel, the packages of uv.lock and those of the tests."""

    interpreter: Interpreter
    folder: Path

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment."""
        first, *rest = words
        program = self.interpreter.see(self.folder / "venv" / "bin" / str(first))
        root = {"PYTHONPATH": str(self.interpreter.see(ROOT))} if program.name == "python" else {}
        return self.interpreter.run(program, *rest, seen=(ROOT, self.folder), variables=root)


@pytest.fixture(scope="module", params=VERSIONS)
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    found = find_interpreter(request.param)
    if isinstance(found, str):
        pytest.fail(found) if os.environ.get("CI") == "true" else pytest.skip(found)
    folder = tmp_path_factory.mktemp(f"python-{request.param}").resolve()
    wheel = build_wheel(folder)
    needed = export_requirements(
        folder / "needed.txt",
        "--extra",
        "service",
        "--extra",
        "collector",
        "--extra",
        "remote",
        "--group",
        "dev",
    )
    venv, program = found.see(folder / "venv"), found.see(UV.resolve())
    cache = {"UV_CACHE_DIR": str(found.see(CACHE)), "UV_LINK_MODE": "copy", "UV_PYTHON_DOWNLOADS": "never"}
    seen = (UV.resolve().parent, CACHE, folder)
    for words in (
        ("venv", "--quiet", "--python", found.program, venv),
        (
            "pip",
            "install",
            "--quiet",
            "--python",
            venv,
            "--no-deps",
            "--require-hashes",
            "-r",
            found.see(needed),
        ),
        ("pip", "install", "--quiet", "--python", venv, "--no-deps", found.see(wheel)),
    ):
        done = found.run(program, *words, seen=seen, variables=cache)
        assert done.returncode == 0, done.stderr
    return Environment(found, folder)


def test_the_command_runs_on_the_version_that_was_meant(installed: Environment) -> None:
    said = installed.run("python", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    assert said.stdout.strip() == installed.interpreter.version
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert installed.run("predrain", "--version").stdout.strip() == version
    listed = installed.run("predrain", "--help")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "predrain's processes" in listed.stdout


def test_the_bundle_that_ships_scores_the_drives_that_ship(installed: Environment) -> None:
    history = installed.interpreter.see(ROOT / "data" / "fleets" / "demo.parquet")
    out = installed.folder / "scores.csv"
    seen = installed.interpreter.see(out)
    scored = installed.run(
        "predrain", "score", history, "--from", "2018-05-01", "--to", "2018-05-08", "--out", seen
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    assert "Warning" not in scored.stderr
    assert out.read_text().count("\n") > 400


def test_unit_tests_pass_without_a_warning(installed: Environment) -> None:
    root = installed.interpreter.see(ROOT)
    tests = [str(root / each) for each in UNIT_TESTS]
    ran = installed.run(
        "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={root}", "-c", root / "pyproject.toml",
        "-m", "not slow and not system", *tests,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    assert re.search(r"\d{3,} passed|100%", ran.stdout), ran.stdout[-300:]

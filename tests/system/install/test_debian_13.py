"""The packages for Debian 13: built there with its Python 3.13, installed by its dpkg, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.install import machine
from tests.system.install.conftest import ROOT, Packages, find_packages
from tests.system.install.interpreters import Interpreter, find_interpreter
from tests.system.install.wheel import UV

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.machine,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("debian-13"),
]
CACHE = Path(os.environ.get("UV_CACHE_DIR") or "~/.cache/uv").expanduser()
BUILDS_WITH = (
    "python3",
    "libgomp1",
    "ca-certificates",
    "binutils",
    "init-system-helpers",
    "sudo",
    "smartmontools",
)


@pytest.fixture(scope="module")
def trixie(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    """A copy of a Debian 13 into which packages may be installed."""
    found = find_interpreter("3.13")
    if isinstance(found, str):
        pytest.fail(found) if os.environ.get("CI") == "true" else pytest.skip(found)
    root = tmp_path_factory.mktemp("trixie") / "root"
    subprocess.run(["cp", "-a", machine.tree("packages-trixie", BUILDS_WITH, "trixie"), root], check=True)
    return Interpreter("3.13", "/usr/bin/python3", root)


@pytest.fixture(scope="module")
def packages_of_trixie(trixie: Interpreter, tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """The packages as the build script makes them on Debian 13."""
    ready = os.environ.get("TRIXIE_PACKAGES_UNDER_TEST")
    if ready:
        return find_packages(Path(ready))
    into = tmp_path_factory.mktemp("debs").resolve()
    uv = UV.resolve()
    epoch = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    made = trixie.run(
        trixie.see(ROOT / "deploy/deb/build"),
        trixie.see(into),
        seen=(ROOT, uv.parent, CACHE, into),
        variables={
            "UV": str(trixie.see(uv)),
            "UV_CACHE_DIR": str(trixie.see(CACHE)),
            "UV_LINK_MODE": "copy",
            "SOURCE_DATE_EPOCH": epoch,
        },
    )
    assert made.returncode == 0, made.stderr
    return find_packages(into)


def test_debian_13_installs_and_runs_the_packages_that_were_built_there(
    trixie: Interpreter, packages_of_trixie: Packages, tmp_path: Path
) -> None:
    for package in (packages_of_trixie.service, packages_of_trixie.collector):
        assert "+deb13_" in package.name
        shutil.copy(package, tmp_path)
        installed = trixie.run("dpkg", "--install", trixie.see(tmp_path / package.name), seen=(tmp_path,))
        assert installed.returncode == 0, installed.stderr
    asked = trixie.run(
        "/usr/lib/predrain/bin/python3", "-c", "import sys; print(sys.version_info[:2])", seen=()
    )
    assert asked.stdout == "(3, 13)\n"
    shown = trixie.run("predrain", "demo", "--once", "--days", "2", seen=())
    assert shown.returncode == 0, shown.stderr
    assert "TiB moved" in shown.stdout
    told = trixie.run("/usr/lib/predrain-collector/bin/predrain", "collect", "--help", seen=())
    assert (told.returncode, told.stderr) == (0, "")


def test_debian_13_refuses_the_package_for_the_python_of_debian_12(
    trixie: Interpreter, tmp_path: Path
) -> None:
    control = tmp_path / "tree" / "DEBIAN" / "control"
    control.parent.mkdir(parents=True)
    text = (ROOT / "deploy/deb/predrain-collector/control").read_text()
    for name, value in {"VERSION": "1+deb12", "SIZE": "1", "ARCHITECTURE": "all",
                        "PYTHON": "python3 (>= 3.11.2), python3 (<< 3.12)"}.items():  # fmt: skip
        text = text.replace(f"@{name}@", value)
    control.write_text(text.replace("Package: predrain-collector", "Package: predrain-for-debian-12"))
    subprocess.run(
        ["dpkg-deb", "--build", tmp_path / "tree", tmp_path / "one.deb"], check=True, capture_output=True
    )
    refused = trixie.run("dpkg", "--install", trixie.see(tmp_path / "one.deb"), seen=(tmp_path,))
    assert refused.returncode != 0
    assert "python3 (<< 3.12)" in refused.stderr

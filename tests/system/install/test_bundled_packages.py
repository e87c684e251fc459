"""The Debian packages with a Python of their own, for Ubuntu. No Ubuntu is at hand: they are unpacked into a Debian 12
that has no Python packages, and run there.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.install import machine
from tests.system.install.conftest import ROOT, Packages, find_packages
from tests.system.install.interpreters import Interpreter
from tests.system.install.test_rpm_packages import list_binaries, read_elf

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.machine, pytest.mark.timeout(1800)]
MB = 1_000_000
JAMMY_C_LIBRARY = (2, 35)
"""The C library of Ubuntu 22.04; that of 24.04 is 2.39."""


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """The packages, as `make deb-bundled` builds them."""
    if missing := [name for name in ("dpkg-deb", "readelf", "gcc") if not shutil.which(name)]:
        why = f"missing: {', '.join(missing)}"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    if ready := os.environ.get("BUNDLED_UNDER_TEST"):
        return find_packages(Path(ready))
    python, folder = ROOT / ".tools/python-el9", tmp_path_factory.mktemp("bundled")
    for command in (["deploy/rpm/interpreter", python], ["deploy/deb/build", folder]):
        done = subprocess.run(
            command, cwd=ROOT, env={**os.environ, "BUNDLED_PYTHON": str(python)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return find_packages(folder)


@pytest.fixture(scope="module")
def unpacked(bundled: Packages, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small Debian 12 into which the service and the collector are unpacked, without their scripts."""
    if why := machine.missing():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    root = tmp_path_factory.mktemp("ubuntu") / "root"
    subprocess.run(["cp", "-a", machine.tree(), root], check=True)
    shutil.rmtree(root / "usr/lib/python3")
    for package in (bundled.service, bundled.collector):
        subprocess.run(["dpkg-deb", "--extract", package, root], check=True)
    yield root
    shutil.rmtree(root)


def read_field(package: Path, field: str) -> str:
    """Return a field of a package's control file."""
    asked = ["dpkg-deb", "--field", package, field]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def test_the_packages_need_no_python_of_the_host(bundled: Packages) -> None:
    for package in (bundled.service, bundled.collector):
        assert "python" not in read_field(package, "Depends")
        assert read_field(package, "Version").endswith("+bundled")


def test_the_packages_are_as_small_as_the_limits(bundled: Packages) -> None:
    assert bundled.service.stat().st_size < 120 * MB
    assert bundled.collector.stat().st_size < 22 * MB


def test_no_binary_needs_a_newer_c_library_than_that_of_ubuntu_2204(unpacked: Path) -> None:
    binaries = list_binaries(unpacked)
    assert len(binaries) > 100
    versions = re.findall(r"GLIBC_([\d.]+)", read_elf("-V", binaries))
    assert max(tuple(map(int, one.split("."))) for one in versions) <= JAMMY_C_LIBRARY


def test_the_commands_run_on_the_python_that_the_packages_bring(unpacked: Path) -> None:
    host = Interpreter("3.13", "/usr/lib/predrain/bin/python3", unpacked)
    shown = host.run("/usr/lib/predrain/bin/predrain", "demo", "--once", "--days", "2", seen=())
    assert shown.returncode == 0, shown.stderr
    assert "TiB moved" in shown.stdout
    told = host.run("/usr/lib/predrain-collector/bin/predrain", "collect", "--help", seen=())
    assert (told.returncode, told.stderr) == (0, "")

"""The packages for EL9, installed by rpm into a root. No EL9 is at hand: they run on the C library of Debian 12."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.install import machine
from tests.system.install.conftest import ROOT
from tests.system.install.interpreters import Interpreter, find_interpreter

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.machine,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("rpm"),
]
MB = 1_000_000
OF_THE_HOST = {
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2",
    "ld-linux-x86-64.so.2",
    "libgcc_s.so.1", "libstdc++.so.6", "libgomp.so.1",
    "libcrypto.so.3", "libssl.so.3", "libffi.so.8", "libz.so.1", "liblzma.so.5", "libuuid.so.1",
}  # fmt: skip
"""The libraries that the packages require of EL9, by the names that EL9 has."""


@pytest.fixture(scope="module")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The packages by their names."""
    if missing := [name for name in ("rpm", "rpmbuild", "readelf", "gcc") if not shutil.which(name)]:
        why = f"missing: {', '.join(missing)}"
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    ready = os.environ.get("RPMS_UNDER_TEST")
    folder = Path(ready) if ready else tmp_path_factory.mktemp("rpms")
    if not ready:
        done = subprocess.run(
            [ROOT / "deploy/rpm/build", folder], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    return {re.split(r"-\d", one.name)[0]: one for one in folder.glob("*.rpm")}


@pytest.fixture(scope="module")
def installed(rpms: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small Debian 12 into which rpm has put the service and the collector, without their scripts."""
    if why := machine.missing():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    root = tmp_path_factory.mktemp("el9") / "root"
    subprocess.run(["cp", "-a", machine.tree(), root], check=True)
    shutil.rmtree(root / "usr/lib/python3")  # the packages have a Python of their own
    for package in (rpms["predrain"], rpms["predrain-collector"]):
        done = subprocess.run(
            ["rpm", "--root", root, "--install", "--nodeps", "--noscripts", package],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    yield root
    shutil.rmtree(root)


def is_binary(path: Path) -> bool:
    """Return whether a file is a program or a library."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def list_binaries(root: Path) -> list[Path]:
    """Return the programs and libraries of the installed packages."""
    return [
        path
        for home in ("predrain", "predrain-collector")
        for path in (root / "usr/lib" / home).rglob("*")
        if path.is_file() and not path.is_symlink() and is_binary(path)
    ]


def read_elf(option: str, paths: list[Path]) -> str:
    """Return what readelf says of files."""
    return subprocess.run(
        ["readelf", "-W", option, *paths], capture_output=True, text=True, check=True
    ).stdout


def test_the_packages_are_as_small_as_the_limits(rpms: dict[str, Path]) -> None:
    assert set(rpms) == {"predrain", "predrain-collector", "predrain-training"}
    assert rpms["predrain"].stat().st_size < 120 * MB
    assert rpms["predrain-collector"].stat().st_size < 20 * MB


def test_no_binary_needs_a_newer_c_library_than_that_of_el9(installed: Path) -> None:
    binaries = list_binaries(installed)
    assert len(binaries) > 100
    versions = {
        tuple(map(int, one.split("."))) for one in re.findall(r"GLIBC_([\d.]+)", read_elf("-V", binaries))
    }
    assert max(versions) <= (2, 34)


def test_every_library_that_a_binary_needs_is_in_the_package_or_required_of_the_host(installed: Path) -> None:
    binaries = list_binaries(installed)
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", read_elf("-d", binaries)))
    assert needed - {path.name for path in binaries} - OF_THE_HOST == set()


def test_the_packages_own_their_folders_and_put_nothing_where_another_python_finds_it(
    rpms: dict[str, Path],
) -> None:
    for name in ("predrain", "predrain-collector"):
        listed = subprocess.run(
            ["rpm", "-qlp", rpms[name]], capture_output=True, text=True, check=True
        ).stdout.split("\n")
        code = [path for path in listed if path.endswith((".py", ".pyc", ".pth", ".so"))]
        assert len(code) > 100
        assert [path for path in code if not path.startswith(f"/usr/lib/{name}/")] == []


def test_the_installed_commands_run_on_the_python_that_the_packages_bring(installed: Path) -> None:
    host = Interpreter("3.13", "/usr/lib/predrain/bin/python3", installed)
    asked = host.run(host.program, "-c", "import sys; print(sys.version_info[:2], sys.prefix)", seen=())
    assert asked.stdout == "(3, 13) /usr/lib/predrain\n", asked.stderr
    shown = host.run("/usr/lib/predrain/bin/predrain", "demo", "--once", "--days", "2", seen=())
    assert shown.returncode == 0, shown.stderr
    assert "TiB moved" in shown.stdout
    told = host.run("/usr/lib/predrain-collector/bin/predrain", "collect", "--help", seen=())
    assert (told.returncode, told.stderr) == (0, "")


def test_the_collector_of_el9_needs_no_sudo(rpms: dict[str, Path], installed: Path) -> None:
    listed = subprocess.run(
        ["rpm", "-qlp", rpms["predrain-collector"]], capture_output=True, text=True, check=True
    ).stdout
    assert "sudoers" not in listed
    unit = installed / "usr/lib/systemd/system/predrain-collector.service.d/as-root.conf"
    assert "User=root" in unit.read_text()


SPEAK = """
import sys
from predrain.actions.cluster.rados_connection import Connection, Rados
channel = Rados(Connection(interpreter=tuple(sys.argv[1:])))
try:
    reply = channel.ask("mon", "osd reweight", {"id": 3, "weight": 0.5}, given=b"bytes")
    print(sys.version_info[:2], reply.rc, reply.err, reply.out.decode())
finally:
    channel.close()
"""


def test_the_python_of_the_package_speaks_to_a_cluster_by_the_python_39_of_the_host(installed: Path) -> None:
    """The child process runs on a real Python 3.9, as EL9 has it; its librados is played."""
    found = find_interpreter("3.9")
    if isinstance(found, str):
        pytest.skip(found)
    home = Path(found.program).resolve().parents[1]
    played = ROOT / "tests" / "actions" / "librados_played.py"
    host = Interpreter("3.13", "/usr/lib/predrain/bin/python3", installed)
    child = ("/usr/bin/env", f"LD_LIBRARY_PATH={host.see(home)}/lib", host.see(home) / "bin/python3.9")
    version = host.run(*child, "--version", seen=(home,))
    assert version.stdout.startswith("Python 3.9."), version.stderr
    spoken = host.run(host.program, "-c", SPEAK, *child, host.see(played), seen=(home, played.parent))
    expected = '(3, 13) 0 done osd reweight [{"id": 3, "weight": 0.5, "prefix": "osd reweight"}, "bytes"]\n'
    assert (spoken.stdout, spoken.stderr) == (expected, "")

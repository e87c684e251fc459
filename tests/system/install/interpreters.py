"""The Python versions that predrain is installed on, and where each is had.

3.11, 3.13 and 3.14 are those of Debian 12 (this machine), 13 and sid (roots that debootstrap makes). No release of
Debian has 3.12: it is taken where the machine has one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.system.install import machine

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
_SUITE_OF: Final = {"3.13": "trixie", "3.14": "sid"}
_PACKAGES: Final = ("python3", "python3-venv", "libgomp1", "ca-certificates")
_ENTER: Final = """set -e
root=$1; shift
mount -t tmpfs tmpfs "$root/tmp"; mount -t tmpfs tmpfs "$root/mnt"
while [ "$1" != -- ]; do mkdir -p "$root/mnt$1"; mount --rbind "$1" "$root/mnt$1"; shift; done; shift
for each in proc sys dev; do mount --rbind "/$each" "$root/$each"; done
mount --bind /etc/resolv.conf "$root/etc/resolv.conf"; mount --rbind /etc/ssl/certs "$root/etc/ssl/certs"
exec chroot "$root" "$@"
"""
"""$1: the root; then the folders that are seen below /mnt there, --, the command. Nothing is written into the root."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """One Python. `root`: the Debian that it belongs to, or None for this machine's."""

    version: str
    program: str
    root: Path | None

    def see(self, path: Path) -> Path:
        """Return where an absolute path of this machine is in the world of the interpreter."""
        return path if self.root is None else Path(f"/mnt{path}")

    def run(
        self, *argv: str | Path, seen: Sequence[Path], variables: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command beside the interpreter; `seen` are the folders that it reads and writes."""
        command = [str(word) for word in argv]
        if self.root is not None:
            folders = [str(folder) for folder in seen]
            front = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _ENTER, "sh"]
            command = [*front, str(self.root), *folders, "--", *command]
        passed = {
            name: value
            for name, value in os.environ.items()
            if name.endswith(("_CERT_FILE", "_CERT_DIR")) or name.lower().endswith("_proxy")
        }
        clean = {**machine.CLEAN, "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            command, env={**clean, **passed, **(variables or {})}, capture_output=True, text=True,
            check=False, timeout=1200, stdin=subprocess.DEVNULL,
        )  # fmt: skip


def find_interpreter(version: str) -> Interpreter | str:
    """Return the interpreter of a version, or the reason why there is none."""
    if suite := _SUITE_OF.get(version):
        if why := _explain_missing_root():
            return why
        return Interpreter(version, "/usr/bin/python3", machine.tree(f"python-{suite}", _PACKAGES, suite))
    for program in (f"/usr/bin/python{version}", *_list_other_programs(version)):
        if _runs(program):
            return Interpreter(version, program, None)
    return f"no python{version} runs on this machine"


def _explain_missing_root() -> str | None:
    if os.geteuid():
        return "a Debian of another release is entered as root only: run the tests as root"
    return None if shutil.which("debootstrap") else "debootstrap is missing: apt-get install debootstrap"


def _list_other_programs(version: str) -> list[str]:
    name = f"python{version}"
    built = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser() / "versions"
    found = shutil.which(name)
    return [*([found] if found else []), *map(str, sorted(built.glob(f"{version}.*/bin/{name}")))]


def _runs(program: str) -> bool:
    asked = [program, "-c", "import venv, ensurepip"]
    try:
        return subprocess.run(asked, capture_output=True, check=False, timeout=60).returncode == 0
    except OSError:
        return False

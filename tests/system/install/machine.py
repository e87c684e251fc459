"""A clean Debian 12 that boots: systemd as process 1 in namespaces of its own, with a loopback network and no other.

The tree is made once by debootstrap, with what the packages depend on; every machine is a copy of it.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tests.deadlines import idle_seconds

T = TypeVar("T")

SUITE = "bookworm"
PACKAGES = (
    "systemd", "systemd-sysv", "init-system-helpers", "python3", "libgomp1", "sudo", "smartmontools", "ca-certificates",
)  # fmt: skip
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


def missing() -> str | None:
    """Why no machine can be booted here, as one sentence; None when it can."""
    if os.geteuid():
        return "a clean Debian is booted as root only: run the tests as root"
    for program, package in (("systemd-nspawn", "systemd-container"), ("debootstrap", "debootstrap")):
        if not shutil.which(program):
            return f"{program} is missing: apt-get install {package}"
    return None


def tree(name: str = SUITE, packages: tuple[str, ...] = PACKAGES, suite: str = SUITE) -> Path:
    """The least Debian of a suite with `packages`, in a cache; made if it is not there.

    One process makes it, and others wait.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "predrain/install-roots").expanduser()
    cache.mkdir(parents=True, exist_ok=True)
    root = cache / name
    with (cache / f"{name}.lock").open("w") as lock, (cache / f"{name}.log").open("ab") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (cache / f"{name}.ready").exists():
            print(f"making {root} (debootstrap, some minutes; {log.name})", file=sys.stderr)
            shutil.rmtree(root, ignore_errors=True)
            command = [
                "debootstrap",
                "--variant=minbase",
                *([f"--include={','.join(packages)}"] if packages else []),
                suite,
                str(root),
            ]
            passed = {key: value for key, value in os.environ.items() if key.lower().endswith("_proxy")}
            subprocess.run(command, check=True, env=CLEAN | passed, stdout=log, stderr=log)
            (cache / f"{name}.ready").touch()
    return root


class Machine:
    """One boot of a copy of a tree in `folder`: of that with the packages' needs, or of `made_from`.

    `options`: more options of systemd-nspawn.
    """

    def __init__(self, folder: Path, made_from: Path | None = None, options: Sequence[str] = ()) -> None:
        self.root = folder / "root"
        subprocess.run(["cp", "-a", str(made_from or tree()), str(self.root)], check=True)
        for name, text in (("hostname", "stor-01\n"), ("hosts", "127.0.0.1 localhost stor-01\n")):
            (self.root / "etc" / name).write_text(text)
        self._options = options
        self._console = (folder / "console").open("wb")
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._init = 0

    def __enter__(self) -> Machine:
        """Boot, and wait until everything is up."""
        self._nspawn = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network", "--link-journal=no",
             "--console=read-only", *self._options, "--boot", f"--directory={self.root}"],
            stdin=subprocess.DEVNULL, stdout=self._console, stderr=self._console, start_new_session=True,
        )  # fmt: skip
        self._init = until(self._find_first_process, "systemd of the machine")
        until(lambda: self.run("systemctl", "is-system-running", check=False) == "running", "the machine")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Pull the plug: with process 1 all end. The tree is removed."""
        if self._nspawn is not None:
            if self._init:
                os.kill(self._init, signal.SIGKILL)
            else:
                self._nspawn.kill()
            self._nspawn.wait(60)
        self._console.close()
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def first_process(self) -> int:
        """The number by which this machine knows process 1 of the booted one."""
        return self._init

    def run(self, *argv: str, user: str | None = None, check: bool = True) -> str:
        """Run a command in the machine; return its output, stripped. With `check`, a failure raises AssertionError."""
        as_user = ["runuser", "-u", user, "--"] if user else []
        command = ["nsenter", f"--target={self._init}", "--all", "--", *as_user, *argv]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=CLEAN)
        if check and done.returncode:
            raise AssertionError(f"{argv} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def ask(self, path: str, *, body: bytes | None = None, token: str = "") -> Any:
        """An answer of the service's REST interface, asked for on the machine itself; None while there is none."""
        asking = (
            "import sys, urllib.request as web\n"
            "path, token, body = sys.argv[1:4]\n"
            "head = {'Authorization': 'Bearer ' + token, 'Content-Type': 'application/json'}\n"
            "request = web.Request('http://127.0.0.1:8080' + path, body.encode() or None, head)\n"
            "print(web.urlopen(request, timeout=60).read().decode())\n"
        )
        said = self.run("python3", "-c", asking, path, token, (body or b"").decode(), check=False)
        return json.loads(said) if said else None

    def files(self) -> set[str]:
        """Every path of the tree's that an installation may change: not the logs, dpkg's own records, /run and /tmp."""
        aside = (
            "var/log",
            "var/lib/dpkg",
            "var/cache",
            "var/lib/systemd",
            "run",
            "tmp",
            "var/tmp",
            "proc",
            "sys",
            "dev",
            "root",
        )
        pruned = [word for one in aside for word in ("-path", f"./{one}", "-o")]
        found = ["find", ".", "(", *pruned[:-1], ")", "-prune", "-o", "-print"]
        return set(
            subprocess.run(found, cwd=self.root, check=True, capture_output=True, text=True).stdout.split(
                "\n"
            )
        )

    def _find_first_process(self) -> int:
        assert self._nspawn is not None
        assert self._nspawn.poll() is None, "systemd-nspawn ended: see the console's file"
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
        return int(children[0]) if children else 0


def until(holds: Callable[[], T], what: str, seconds: float = 200.0) -> T:
    """Ask again and again; what `holds` says once it is truthy."""
    end = idle_seconds() + seconds
    while not (found := holds()):
        assert idle_seconds() < end, f"{what} did not come in {seconds:.0f} s"
        time.sleep(0.3)
    return found

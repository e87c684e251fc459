"""podman with a store, a network and settings of its own, apart from the containers of the machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from tests.system.install.images import Buildah

PROGRAMS: Final = ("podman", "buildah", "runc", "curl", "openssl")
NETWORK_PROGRAMS: Final = (Path("/usr/lib/podman/netavark"), Path("/usr/lib/podman/aardvark-dns"))
CONTAINERS_CONF: Final = """[containers]
cgroups = "enabled"
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
lock_type = "file"
num_locks = 256
tmp_dir = "{folder}/tmp"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
"""Settings under which podman works without systemd, and with limits that a container may not raise."""
STORAGE_CONF: Final = """[storage]
driver = "{driver}"
graphroot = "{root}"
runroot = "{run}"
"""
HOLD: Final = """set -e
ip link set lo up
mkdir -p /run/containers /run/netns
for each in /run/containers /run/netns; do mount -t tmpfs tmpfs "$each"; done
echo up
while :; do sleep 1; done
"""
"""The first process of the namespaces: podman's folders in /run are the machine's own otherwise."""
HEALTH_SECONDS: Final = 3.0


class Podman:
    """podman over the images of a builder, in namespaces of its own: network, mounts and processes.

    Bridges and published ports are in them, and every container ends with them. Without systemd podman runs no health
    checks by itself, so a thread asks for them.
    """

    def __init__(self, images: Buildah) -> None:
        # podman's database remembers its folders, so they stay beside the images where these are kept.
        folder = images.root.parent / "podman"
        folder.mkdir(exist_ok=True)
        conf, storage = folder / "containers.conf", folder / "storage.conf"
        conf.write_text(CONTAINERS_CONF.format(folder=folder))
        storage.write_text(
            STORAGE_CONF.format(driver=images.read_driver(), root=images.root, run=images.run_root)
        )
        self._environment = {
            **os.environ,
            "CONTAINERS_CONF": str(conf),
            "CONTAINERS_STORAGE_CONF": str(storage),
            "DISABLE_HC_SYSTEMD": "true",
        }
        self._ended = threading.Event()
        self._checker = threading.Thread(target=self._check_health, daemon=True)
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--propagation", "private", "--pid",
             "--fork", "--mount-proc", "--kill-child", "sh", "-c", HOLD],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        self._first = 0

    def __enter__(self) -> Podman:
        """Wait for the namespaces, and begin to check health."""
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"up\n"
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text().split()
        self._first = int(children[0])
        self._checker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove every container, volume and network, and end the namespace."""
        self._ended.set()
        self._checker.join()
        self.run("rm", "--all", "--force", "--time=1", check=False)
        self.run("volume", "prune", "--force", check=False)
        self.run("network", "prune", "--force", check=False)
        self._holder.kill()
        self._holder.wait()
        assert self._holder.stdout is not None
        self._holder.stdout.close()

    def run(self, *argv: str, check: bool = True, stdin: str | None = None) -> str:
        """Return what a command of podman printed, stripped. A failure shows all that it printed."""
        return self.enter(["podman", *argv], check=check, stdin=stdin)

    def compose(self, folder: Path, files: Sequence[Path], *argv: str) -> str:
        """Run a command of podman-compose on a project in a folder."""
        chosen = [word for file in files for word in ("--file", str(file))]
        command = [sys.executable, "-m", "podman_compose", "--in-pod=false", *chosen, *argv]
        return self.enter(command, cwd=folder)

    def enter(
        self, command: Sequence[str], *, check: bool = True, stdin: str | None = None, cwd: Path | None = None
    ) -> str:
        """Run a command in the namespaces, and return what it printed on standard output."""
        done = subprocess.run(
            ["nsenter", f"--target={self._first}", "--net", "--mount", "--pid", f"--wd={cwd or '/'}", "--", *command],
            env=self._environment, input=stdin or "", capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(
                f"{list(command)[:12]} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
            )
        return done.stdout.strip()

    def _check_health(self) -> None:
        while not self._ended.wait(HEALTH_SECONDS):
            for name in self.run("ps", "--quiet", "--filter=health=starting", check=False).split():
                self.run("healthcheck", "run", name, check=False)

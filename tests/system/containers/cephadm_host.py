"""One host that cephadm manages: a Debian 12 that boots, its podman, a registry, and loop devices as disks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from tests.system.install.images import Buildah
from tests.system.install.machine import PACKAGES, Machine, tree

HOST_PACKAGES: Final = (
    *PACKAGES, "dbus", "kmod", "udev", "procps", "iproute2", "lvm2", "openssh-server", "podman", "runc", "netavark",
    "catatonit", "docker-registry", "cephadm",
)  # fmt: skip
"""catatonit is the program that `podman run --init` starts, as cephadm does; podman of Debian 12 only recommends it."""
ADDRESS: Final = "10.9.9.1"
REGISTRY: Final = "127.0.0.1:5000"
SERVICE_NAME: Final = "predrain.example.org"
"""The name in deploy/cephadm."""
REGISTRY_YML: Final = f"""version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/docker-registry
http:
  addr: {REGISTRY}
"""
REGISTRIES_CONF: Final = f"""[[registry]]
location = "{REGISTRY}"
insecure = true
"""
CONTAINERS_CONF: Final = """[engine]
runtime = "runc"
"""
"""crun, which podman of Debian 12 takes by default, kills containers on a host with groups of version 1."""
NTP_SERVICE: Final = """[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
[Install]
WantedBy=multi-user.target
"""
"""cephadm takes no host whose clock is not kept. The host has the clock of the machine, so nothing is left to do."""
ALLOW_CGROUPS: Final = (
    "for each in /sys/fs/cgroup/*/; do if mountpoint -q $each; then mount -o remount,rw,bind $each; fi; done"
)
"""systemd-nspawn mounts the controllers of cgroup v1 for reading only, and runc makes groups in them."""
NSPAWN: Final = ("--capability=all", "--system-call-filter=add_key keyctl bpf")
"""runc makes a session keyring for each container."""
DISK_BYTES: Final = 5 << 30
BOOTSTRAP: Final = (
    "--skip-monitoring-stack", "--skip-dashboard", "--skip-prepare-host", "--skip-mon-network", "--skip-firewalld",
    "--single-host-defaults", "--allow-overwrite",
)  # fmt: skip


class CephadmHost:
    """The host, booted. `disks` is the number of its disks."""

    def __init__(self, folder: Path, disks: int) -> None:
        self.folder = folder
        self.disks = [self._attach_disk(number) for number in range(disks)]
        binds = [f"--bind={disk}" for disk in self.disks]
        self.machine = Machine(folder, tree("cephadm", HOST_PACKAGES), [*NSPAWN, *binds])
        etc = self.machine.root / "etc"
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} stor-01 {SERVICE_NAME}\n")
        (etc / "docker/registry/config.yml").write_text(REGISTRY_YML)
        (etc / "containers/registries.conf").write_text(REGISTRIES_CONF)
        (etc / "containers/containers.conf").write_text(CONTAINERS_CONF)
        (etc / "systemd/system/ntp.service").write_text(NTP_SERVICE)
        # cephadm raises limits of the kernel, which belong to the machine.
        sysctl = self.machine.root / "usr/sbin/sysctl"
        sysctl.unlink()
        sysctl.symlink_to("/bin/true")
        self.fsid = ""

    def __enter__(self) -> CephadmHost:
        """Boot, and give the host its address."""
        self.machine.__enter__()
        self.run("sh", "-c", ALLOW_CGROUPS)
        self.run("systemctl", "enable", "--now", "ntp")
        self.run("mkdir", "-p", "/run/udev/data")
        self.run("ip", "address", "add", f"{ADDRESS}/24", "dev", "lo")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every process of the host, and free its disks."""
        self.machine.__exit__(kind, error, trace)
        self._remove_groups()
        for disk in self.disks:
            subprocess.run(["losetup", "--detach", disk], check=False)

    def _remove_groups(self) -> None:
        """Remove the groups of the cluster's units, which are empty now, from the controllers of the machine."""
        escaped = self.fsid.replace("-", r"\x2d")
        for slice_ in Path("/sys/fs/cgroup").glob(rf"*/system.slice/system-ceph\x2d{escaped}.slice"):
            for folder, _, _ in os.walk(slice_, topdown=False):
                Path(folder).rmdir()

    def _attach_disk(self, number: int) -> str:
        backing = self.folder / f"{number}.disk"
        with backing.open("wb") as file:
            file.truncate(DISK_BYTES)
        found = subprocess.run(
            ["losetup", "--find", "--show", backing], check=True, capture_output=True, text=True
        )
        return found.stdout.strip()

    def run(self, *argv: str, check: bool = True) -> str:
        """Return what a command on the host printed."""
        return self.machine.run(*argv, check=check)

    def push(self, images: Buildah, name: str) -> str:
        """Push a local image to the host's registry, and return its name there."""
        images.push(f"localhost/{name}", f"docker://{REGISTRY}/{name}", self.machine.first_process)
        return f"{REGISTRY}/{name}"

    def describe_disk(self, number: int, model: str, serial: str) -> None:
        """Say what udev says of a disk, from which Ceph makes the disk's name."""
        known = {"ID_MODEL": model, "ID_SERIAL_SHORT": serial, "ID_SERIAL": f"{model}_{serial}"}
        block = Path("/sys/block", Path(self.disks[number]).name, "dev").read_text().strip()
        lines = "".join(f"E:{name}={value}\n" for name, value in known.items())
        self.run("sh", "-c", f"printf %s '{lines}' > /run/udev/data/b{block}")

    def bootstrap(self, image: str) -> None:
        """Make a cluster of one mon and one mgr."""
        self.run("cephadm", "--image", image, "bootstrap", "--mon-ip", ADDRESS, *BOOTSTRAP)
        self.fsid = self.ceph("fsid")

    def shell(self, script: str, *, check: bool = True) -> str:
        """Return what a script printed in cephadm's shell, in which operators type commands of Ceph."""
        (self.machine.root / "root/script").write_text(script)
        return self.run(
            "cephadm", "shell", "--mount", "/root:/mnt", "--", "sh", "-e", "/mnt/script", check=check
        )

    def ceph(self, command: str) -> str:
        """Return what a command of `ceph` printed."""
        return self.shell(f"ceph {command}")

    def json(self, command: str) -> Any:
        """Return the answer of a command of `ceph`."""
        return json.loads(self.ceph(f"{command} --format=json"))

    def apply(self, name: str, specification: str) -> None:
        """Apply a specification of cephadm."""
        (self.machine.root / "root" / name).write_text(specification)
        self.ceph(f"orch apply -i /mnt/{name}")

    def find_container(self, daemon: str) -> str:
        """Return the name of the running container of a daemon, or an empty string."""
        named = f"--filter=name=^ceph-{self.fsid}-{daemon}$"
        return self.run("podman", "ps", named, "--format={{.Names}}", check=False)

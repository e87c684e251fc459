"""The place of each release of Ceph: Pacific on this machine, Reef and Tentacle in Debian roots made by debootstrap.

No function writes into a root after the root is made. The files that a cluster needs are mounted over the root, in a
private namespace.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SUITES = {"pacific": "bookworm", "reef": "trixie", "tentacle": "sid"}
PACKAGES = (
    "ceph-mon", "ceph-mgr", "ceph-osd", "ceph-common", "ceph-mgr-modules-core",
    "libsqlite3-mod-ceph", "python3-rados", "python3-ceph-argparse",
)  # fmt: skip
PYTHON = "/usr/bin/python3"
CLEAN = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}

# $1 root, or empty for this machine; $2 host name; $3 the cluster's folder; then source=target pairs, --, the command.
ENTER = """set -e
root=$1; echo "$2" >/proc/sys/kernel/hostname; folder=$3; shift 3
mount -t tmpfs tmpfs "$root/run"; mkdir "$root/run/udev"; mount --bind "$folder/udev" "$root/run/udev"
while [ "$1" != -- ]; do mount --bind "${1%%=*}" "${1#*=}"; shift; done; shift
[ -n "$root" ] || exec "$@"
for each in proc sys dev; do mount --rbind "/$each" "$root/$each"; done
mount --rbind "$folder" "$root/mnt"; exec chroot "$root" "$@"
"""


def cache() -> Path:
    """The folder that keeps one root per release."""
    named = os.environ.get("CEPH_ROOTS")
    return Path(
        named or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "predrain/ceph-roots")
    ).expanduser()


def root_of(release: str) -> Path | None:
    """The release's root; None for the machine's own."""
    return None if release == "pacific" else cache() / release


def inside(release: str, folder: Path) -> Path:
    """Return the path at which the release's programs see the cluster's folder."""
    return folder if root_of(release) is None else Path("/mnt")


def missing(release: str) -> str | None:
    """Why no cluster of this release can be started here, as one sentence; None when it can."""
    if release not in SUITES:
        return f"{release!r} is no release that is known here: CEPH_UNDER_TEST is one of {', '.join(SUITES)}"
    if os.geteuid():
        return "test clusters need root (unshare, chroot, losetup): run the tests as root"
    if root_of(release) is None and not shutil.which("ceph-osd"):
        return f"Ceph is not installed on this machine: apt-get install {' '.join(PACKAGES)}"
    root = root_of(release)
    if root is not None and not (root / ".ready").exists() and not shutil.which("debootstrap"):
        return (
            f"the root of {release} is not made yet and debootstrap is missing: apt-get install debootstrap"
        )
    return None


def enter(
    release: str, folder: Path, argv: list[str], host: str = "minihost", binds: dict[Path, Path] | None = None
) -> list[str]:
    """The command wrapped so that it runs beside the cluster in `folder`, under a host name of its own.

    The process id stays the same: everything in between ends in exec. `binds`: what shows where, as seen from here.
    """
    root = root_of(release)
    shown = [f"{source}={target}" for source, target in (binds or {}).items()]
    front = ["unshare", "--mount", "--uts", "--propagation", "private", "sh", "-c", ENTER, "sh"]
    return [*front, str(root or ""), host, str(folder), *shown, "--", *argv]


def make(release: str) -> None:
    """Make the release's root if it is not there (about a minute); one process does it, others wait."""
    root = root_of(release)
    if root is None or (root / ".ready").exists():
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    with Path(f"{root}.lock").open("w") as lock, Path(f"{root}.log").open("ab") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (root / ".ready").exists():
            return
        print(f"making {root} (debootstrap, about a minute; {root}.log)", file=sys.stderr)
        shutil.rmtree(root, ignore_errors=True)

        def run(*argv: str) -> None:
            environment = {**CLEAN, "DEBIAN_FRONTEND": "noninteractive"}
            passed = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
            subprocess.run(argv, check=True, env=environment | passed, stdout=log, stderr=log)

        run("debootstrap", "--variant=minbase", SUITES[release], str(root), _mirror())
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", root / "etc" / name)
        policy = root / "usr/sbin/policy-rc.d"  # keeps the packages from starting daemons
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        for source in Path("/etc/apt/apt.conf.d").glob("*proxy*"):
            shutil.copy(source, root / "etc/apt/apt.conf.d" / source.name)
        script = 'for each in proc sys dev; do mount --rbind "/$each" "$1/$each"; done; exec chroot "$@"'
        install = ("apt-get", "install", "-y", "--no-install-recommends", *PACKAGES)
        run("unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh", str(root), *install)
        (root / ".ready").touch()


def _mirror() -> str:
    """The Debian mirror that this machine's apt uses."""
    for file in (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))):
        for line in file.read_text().splitlines() if file.is_file() else ():
            found = re.match(
                r"(?:URIs:|deb(?:\s+\[[^]]*\])?)\s+(https?://\S+/debian)/?(?:\s|$)", line.strip()
            )
            if found:
                return found[1]
    return "https://deb.debian.org/debian"


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        if why := missing(wanted):
            sys.exit(why)
        make(wanted)

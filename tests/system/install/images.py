"""Images that buildah builds on a Debian 12 that debootstrap makes, so that no registry of images is asked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.system.install import machine

ROOT = Path(__file__).parents[3]
NAME = "docker.io/library/debian"
BASE = f"{NAME}:12-slim"
CERTIFICATES = Path("/usr/local/share/ca-certificates")
PASSED = {
    name: word
    for name, word in os.environ.items()
    if name.endswith(("_CERT", "_CERTS", "_CERT_FILE", "_proxy"))
}
"""The variables by which a build finds this machine's proxy and authorities."""


def name_missing_programs(*programs: str) -> str | None:
    """Return the reason why no image can be built here, None if one can. A program has the name of its package."""
    absent = (f"{name} is missing: apt-get install {name}" for name in programs if not shutil.which(name))
    return machine.missing() or next(absent, None)


class Buildah:
    """A builder with a store of images of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.root, self.run_root = folder / "store", folder / "run"
        self._store = ["buildah", "--root", str(self.root), "--runroot", str(self.run_root)]

    def __call__(self, *argv: str | Path) -> str:
        """Run a command of buildah in the checkout, and return what it printed."""
        done = subprocess.run(
            [*self._store, *map(str, argv)],
            capture_output=True,
            text=True,
            timeout=2400,
            check=False,
            cwd=ROOT,
        )
        if done.returncode:
            # An assertion would cut the words of apt or make, which are what one needs.
            pytest.fail(
                f"buildah {argv[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            )
        return done.stdout.strip()

    def import_base(self) -> None:
        """Import the image that every Dockerfile begins with, with this machine's own authorities."""
        made = self("from", "scratch")
        self("add", "--quiet", made, machine.tree("slim", ()), "/")
        if CERTIFICATES.is_dir():
            self("add", "--quiet", made, CERTIFICATES, CERTIFICATES)
            # debootstrap brings ca-certificates where its mirror is reached over TLS, and then the build does not.
            known = "if command -v update-ca-certificates; then update-ca-certificates; fi"
            self("run", "--isolation=chroot", made, "--", "sh", "-c", known)
        self("config", *(f"--env={name}={word}" for name, word in PASSED.items()), made)
        self("commit", "--quiet", "--rm", made, BASE)

    def build(self, context: Path, *options: str) -> None:
        """Build the Dockerfile of a folder on the base."""
        digest = self("inspect", "--type=image", "--format={{.FromImageDigest}}", BASE)
        self("bud", "--quiet", "--format=docker", "--pull-never", "--isolation=chroot", "--network=host", "--layers",
             f"--build-arg=BASE={NAME}@{digest}", *options, context)  # fmt: skip

    def push(self, image: str, to: str, process: int) -> None:
        """Push an image to a registry without TLS in the network of a process."""
        command = [*self._store, "push", "--quiet", "--tls-verify=false", image, to]
        subprocess.run(["nsenter", f"--target={process}", "--net", "--", *command], check=True, timeout=600)

    def read_driver(self) -> str:
        """Return the name of the storage driver that buildah chose: overlay, or vfs where that is not to be had."""
        return json.loads(self("info"))["store"]["GraphDriverName"]

    def remove_all(self) -> None:
        """Unmount and remove every container and image."""
        self("rm", "--all")
        self("rmi", "--all", "--force")

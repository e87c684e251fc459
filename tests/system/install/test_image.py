"""The images, built from the Dockerfile and started as containers on a root that is read only.

buildah and runc stand in for Docker, whose daemon a test cannot have. debian:12-slim is made by debootstrap, so that no
registry is asked.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.install import machine
from tests.system.install.conftest import ROOT
from tests.system.install.machine import until

NAME = "docker.io/library/debian"
BASE = f"{NAME}:12-slim"
CERTIFICATES = Path("/usr/local/share/ca-certificates")
SPELL = {
    name: word
    for name, word in os.environ.items()
    if name.endswith(("_CERT", "_CERTS", "_CERT_FILE", "_proxy"))
}


@dataclass(frozen=True, slots=True)
class Image:
    """One image that is mounted: its files, and what it says of how it is started."""

    root: Path
    config: dict[str, Any]

    @property
    def argv(self) -> list[str]:
        """What runs when nothing else is said."""
        return [*self.config["Entrypoint"], *self.config["Cmd"]]


class Buildah:
    """An own store of images, gone with its folder."""

    def __init__(self, folder: Path) -> None:
        self._store = ["buildah", "--root", str(folder / "store"), "--runroot", str(folder / "run")]

    def __call__(self, *argv: str | Path) -> str:
        done = subprocess.run(
            [*self._store, *map(str, argv)],
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
            cwd=ROOT,
        )
        if done.returncode:
            # An assertion would cut the words of apt or make, which are what one needs.
            pytest.fail(
                f"buildah {argv[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            )
        return done.stdout.strip()

    def base(self) -> None:
        """What the Dockerfile begins with; this machine's own authorities come along, as builds pass through them."""
        made = self("from", "scratch")
        self("add", "--quiet", made, machine.tree("slim", ()), "/")
        if CERTIFICATES.is_dir():
            self("add", "--quiet", made, CERTIFICATES, CERTIFICATES)
            # debootstrap brings ca-certificates where its mirror is reached over TLS, and then the build does not.
            known = "if command -v update-ca-certificates; then update-ca-certificates; fi"
            self("run", "--isolation=chroot", made, "--", "sh", "-c", known)
        self("config", *(f"--env={name}={word}" for name, word in SPELL.items()), made)
        self("commit", "--quiet", "--rm", made, BASE)

    def image(self, target: str) -> Image:
        """The Dockerfile's target, built and mounted."""
        digest = self("inspect", "--type=image", "--format={{.FromImageDigest}}", BASE)
        self("bud", "--quiet", "--format=docker", "--pull-never", "--isolation=chroot", "--network=host", "--layers",
             f"--build-arg=BASE={NAME}@{digest}",
             f"--target={target}", f"--tag={target}", ".")  # fmt: skip
        made = self("from", "--pull-never", target)
        told = json.loads(self("inspect", "--type=image", target))
        return Image(Path(self("mount", made)), told["Docker"]["config"])

    def close(self) -> None:
        """Unmount and forget all of it."""
        self("rm", "--all")
        self("rmi", "--all", "--force")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """A builder that knows the base."""
    missing = machine.missing() or next(
        (
            f"{name} is missing: apt-get install {name}"
            for name in ("buildah", "runc")
            if not shutil.which(name)
        ),
        None,
    )
    if missing:
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    buildah = Buildah(tmp_path_factory.mktemp("images"))
    buildah.base()
    yield buildah
    buildah.close()


class Container:
    """A container of runc's: the image's user, no capabilities, a read-only root, the host's network."""

    def __init__(self, image: Image, folder: Path, argv: list[str]) -> None:
        self._name, self._root = f"predrain-test-{os.getpid()}", folder / "runc"
        state = folder / "state"
        state.mkdir()
        number = int(image.config["User"].split(":")[0])
        os.chown(state, number, number)
        bundle = folder / "bundle"
        bundle.mkdir()
        subprocess.run(["runc", "spec"], cwd=bundle, check=True)
        spec = json.loads((bundle / "config.json").read_text())
        spec["root"] = {"path": str(image.root), "readonly": True}
        spec["process"] |= {
            "terminal": False, "args": argv, "env": image.config["Env"], "cwd": "/", "noNewPrivileges": True,
            "user": {"uid": number, "gid": number}, "capabilities": {},
        }  # fmt: skip
        spec["mounts"] += [
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]},
            {
                "destination": "/var/lib/predrain",
                "type": "bind",
                "source": str(state),
                "options": ["bind", "rw"],
            },
        ]
        spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] != "network"]
        spec["linux"].pop("resources", None)
        (bundle / "config.json").write_text(json.dumps(spec))
        self._said = (folder / "said").open("wb+")
        self._runc = ["runc", "--root", str(self._root)]
        self._process = subprocess.Popen(
            [*self._runc, "run", "--bundle", str(bundle), self._name], stdout=self._said, stderr=self._said
        )

    def inside(self, argv: list[str]) -> bool:
        """Whether a command in the container ends well."""
        assert self._process.poll() is None, self.said()
        done = subprocess.run(
            [*self._runc, "exec", self._name, *argv], capture_output=True, timeout=100, check=False
        )
        return done.returncode == 0

    def said(self) -> str:
        """What it printed so far."""
        return Path(self._said.name).read_text(errors="replace")

    def close(self) -> None:
        """End it as `docker kill` does."""
        subprocess.run([*self._runc, "delete", "--force", self._name], capture_output=True, check=False)
        self._process.wait(60)
        self._said.close()


def test_the_service_is_healthy_on_a_read_only_root_without_rights(image: Buildah, tmp_path: Path) -> None:
    service = image.image("service")
    assert service.config["User"] == "10001:10001"
    kind, *health = service.config["Healthcheck"]["Test"]
    assert kind == "CMD"
    container = Container(service, tmp_path, [*service.argv, "--port", "0"])
    try:
        until(lambda: container.inside(health), "health")
        assert not container.inside(["touch", "/usr/share/predrain"])
        assert not container.inside(["touch", "/etc/predrain/predrain.toml"])
    finally:
        container.close()


def test_the_collectors_image_has_its_command_and_smartctl(image: Buildah) -> None:
    collector = image.image("collector")
    assert collector.argv[1:] == ["collect", "--config", "/etc/predrain/collector.toml"]
    for needed in (collector.argv[0], "/usr/sbin/smartctl", "/etc/predrain/collector.toml"):
        assert (collector.root / needed.lstrip("/")).exists(), needed
    said = subprocess.run(
        ["chroot", collector.root, collector.argv[0], "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip()

"""The images, built from the Dockerfile and started as containers on a root that is read only.

buildah and runc stand in for Docker, whose daemon a test cannot have. debian:12-slim is made by debootstrap, so that no
registry is asked.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.system.install.images import BASE, ROOT, Buildah, name_missing_programs
from tests.system.install.machine import until


@dataclass(frozen=True, slots=True)
class Image:
    """One image that is mounted: its files, and what it says of how it is started."""

    root: Path
    config: dict[str, Any]

    @property
    def argv(self) -> list[str]:
        """Return the command line that runs when no other is given."""
        return [*self.config["Entrypoint"], *self.config["Cmd"]]


def build_and_mount(builder: Buildah, target: str) -> Image:
    """Build a target of the Dockerfile and mount it."""
    builder.build(ROOT, f"--target={target}", f"--tag={target}")
    made = builder("from", "--pull-never", target)
    told = json.loads(builder("inspect", "--type=image", target))
    return Image(Path(builder("mount", made)), told["Docker"]["config"])


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """A builder that knows the base."""
    if missing := name_missing_programs("buildah", "runc"):
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    buildah = Buildah(tmp_path_factory.mktemp("images"))
    buildah.import_base()
    yield buildah
    buildah.remove_all()


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
        """Return True if a command in the container succeeds."""
        assert self._process.poll() is None, self.said()
        done = subprocess.run(
            [*self._runc, "exec", self._name, *argv], capture_output=True, timeout=100, check=False
        )
        return done.returncode == 0

    def said(self) -> str:
        """Return what the container printed so far."""
        return Path(self._said.name).read_text(errors="replace")

    def close(self) -> None:
        """End it as `docker kill` does."""
        subprocess.run([*self._runc, "delete", "--force", self._name], capture_output=True, check=False)
        self._process.wait(60)
        self._said.close()


def test_the_service_is_healthy_on_a_read_only_root_without_rights(image: Buildah, tmp_path: Path) -> None:
    service = build_and_mount(image, "service")
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
    collector = build_and_mount(image, "collector")
    assert collector.argv[1:] == ["collect", "--config", "/etc/predrain/collector.toml"]
    for needed in (collector.argv[0], "/usr/sbin/smartctl", "/etc/predrain/collector.toml"):
        assert (collector.root / needed.lstrip("/")).exists(), needed
    said = subprocess.run(
        ["chroot", collector.root, collector.argv[0], "--version"], capture_output=True, text=True, check=True
    )
    assert said.stdout.strip()


def test_an_image_derived_from_cephs_has_the_whole_mgr_module_where_ceph_mgr_looks(image: Buildah) -> None:
    image.build(ROOT, "--file=deploy/ceph-mgr/Dockerfile", f"--build-arg=CEPH={BASE}", "--tag=ceph-predrain")
    root = Path(image("mount", image("from", "--pull-never", "ceph-predrain")))
    placed = {file.name: file.read_bytes() for file in (root / "usr/share/ceph/mgr/predrain").iterdir()}
    written = {file.name: file.read_bytes() for file in (ROOT / "actions/ceph_mgr/predrain").glob("*.py")}
    assert placed == written
    assert "module.py" in placed

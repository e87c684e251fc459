"""The images, built once, and the stack that runs over them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collector.fake_smartctl import Disk, every_kind
from tests.system.containers.podman import NETWORK_PROGRAMS, PROGRAMS, Podman
from tests.system.containers.stack import HERE, Stack
from tests.system.install.images import ROOT, Buildah, name_missing_programs
from tests.system.kafka import jars

FAILING = Disk("/dev/sdm", "sat", "ata-052")
"""A disk whose own verdict is FAILED."""
SECOND = "localhost/predrain:second"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of this folder builds images and starts a whole stack."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for marker in ("system", "slow", "machine"):
                item.add_marker(marker)
            item.add_marker(pytest.mark.timeout(4800))


def name_missing_part() -> str | None:
    """Return the reason why no stack can run here, None if one can."""
    if missing := name_missing_programs(*PROGRAMS):
        return missing
    if importlib.util.find_spec("podman_compose") is None:
        return "podman-compose is missing: run make test-containers"
    absent = (
        f"{path} is missing: apt-get install {path.name}" for path in NETWORK_PROGRAMS if not path.exists()
    )
    return next(absent, None)


@pytest.fixture(scope="session")
def own_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """predrain's two images; IMAGES_UNDER_TEST names the folder in which they are kept."""
    if why := name_missing_part():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    kept = os.environ.get("IMAGES_UNDER_TEST")
    builder = Buildah(Path(kept) if kept else tmp_path_factory.mktemp("images"))
    build_own_images(builder)
    yield builder
    if not kept:
        builder.remove_all()


@pytest.fixture(scope="session")
def images(own_images: Buildah, tmp_path_factory: pytest.TempPathFactory) -> Buildah:
    """The images of the stack."""
    build_stack_images(own_images, tmp_path_factory.mktemp("kafka"))
    return own_images


def list_images(builder: Buildah) -> set[str]:
    """List the names of the images that are there, with their tags."""
    return set(builder("images", "--format={{.Name}}:{{.Tag}}").splitlines())


def build_own_images(builder: Buildah) -> None:
    """Build the base and predrain's images if they are missing."""
    there = list_images(builder)
    if "docker.io/library/debian:12-slim" not in there:
        builder.import_base()
    for name, target in (("predrain", "service"), ("predrain-collector", "collector")):
        if f"localhost/{name}:first" not in there:
            builder.build(ROOT, f"--target={target}", f"--tag=localhost/{name}:first")
        builder("tag", f"localhost/{name}:first", f"localhost/{name}:latest")


def build_stack_images(builder: Buildah, folder: Path) -> None:
    """Build the other images of the stack that are missing."""
    there = list_images(builder)
    if SECOND not in there:
        made = builder("from", "--pull-never", "localhost/predrain:first")
        builder("config", "--label=predrain.build=second", made)
        builder("commit", "--quiet", "--rm", "--format=docker", made, SECOND)
    if "localhost/kafka:latest" not in there:
        context = folder / "context"
        shutil.copytree(HERE / "kafka", context)
        (context / "jars").mkdir()
        for jar in jars.classpath().split(":"):
            shutil.copy(jar, context / "jars")
        builder.build(context, "--tag=localhost/kafka:latest")
    if "localhost/postgres:latest" not in there:
        builder.build(HERE / "postgres", "--tag=localhost/postgres:latest")


@pytest.fixture(scope="session")
def podman(images: Buildah) -> Iterator[Podman]:
    """A podman that knows the images and nothing else."""
    with Podman(images) as podman:
        yield podman


@pytest.fixture(scope="session")
def stack(podman: Podman, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack, started as it ships, with the collector of one storage host enrolled."""
    drives = {host: list_drives(host) for host in ("stor-01", "stor-02")}
    stack = Stack(podman, tmp_path_factory.mktemp("stack"), drives)
    try:
        stack.start()
        stack.enrol("stor-01")
        yield stack
    finally:
        print(stack.list_logs())  # pytest shows it beside a failure
        stack.compose("down", "--volumes")


def list_drives(host: str) -> list[Disk]:
    """List a host's drives: one of each kind, by serial numbers of the host's own."""
    number = int(host[-2:])
    return [
        Disk(
            one.path, one.type, one.sample, f"H{number}N{place:04d}", number * 1000 + place, listed=one.listed
        )
        for place, one in enumerate([*every_kind(), FAILING])
        if one.type in ("sat", "scsi", "nvme")
    ]

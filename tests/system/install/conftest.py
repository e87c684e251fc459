"""The packages, built once, and machines to install them on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.system.install import machine
from tests.system.install.machine import Machine

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Packages:
    """The files."""

    service: Path
    collector: Path
    training: Path


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that boots a machine or builds takes minutes."""
    for item in items:
        if Path(__file__).parent in item.path.parents and {"packages", "image"} & set(
            getattr(item, "fixturenames", ())
        ):
            for marker in ("system", "slow", "machine"):
                item.add_marker(marker)
            item.add_marker(pytest.mark.timeout(1500))


def build(into: Path) -> Packages:
    """Both packages, by the script that releases are built with."""
    for needed, command in ((".tools/bin/uv", "make setup"), ("service/page/dist/index.html", "make setup")):
        if not (ROOT / needed).exists():
            pytest.fail(f"{needed} is missing: run {command}")
    done = subprocess.run(
        [ROOT / "deploy/deb/build", into], capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, done.stderr
    return find_packages(into)


def find_packages(folder: Path) -> Packages:
    """Return the packages in a folder that holds one of each."""
    (service,) = folder.glob("predrain_*.deb")
    (collector,) = folder.glob("predrain-collector_*.deb")
    (training,) = folder.glob("predrain-training_*.deb")
    return Packages(service, collector, training)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    """Both packages as they are built from this checkout, or those that PACKAGES_UNDER_TEST names the folder of."""
    if why := machine.missing():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    ready = os.environ.get("PACKAGES_UNDER_TEST")
    return find_packages(Path(ready)) if ready else build(tmp_path_factory.mktemp("packages"))


@pytest.fixture
def clean(tmp_path: Path, packages: Packages) -> Iterator[Machine]:
    """A machine that has just booted, with the packages in its /root and nothing of them installed."""
    booted = Machine(tmp_path)
    for package in (packages.service, packages.collector):
        (booted.root / "root" / package.name).write_bytes(package.read_bytes())
    with booted:
        yield booted

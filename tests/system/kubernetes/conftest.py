"""One control plane for the tests of this folder, and a fresh namespace for each test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.go_programs import KUBERNETES
from tests.system.install.images import ROOT
from tests.system.kubernetes.control_plane import ControlPlane

NAMESPACE = "predrain"
"""The namespace that deploy/kustomize names."""
KUSTOMIZE = ROOT / "deploy/kustomize"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of this folder builds Kubernetes, if nobody has built it before."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for marker in ("system", "slow", "machine"):
                item.add_marker(marker)
            item.add_marker(pytest.mark.timeout(4800))


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with a default admission, one node and no kubelet."""
    if why := KUBERNETES.name_missing_part():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    with ControlPlane(KUBERNETES.build_programs(), tmp_path_factory.mktemp("kubernetes")) as control_plane:
        yield control_plane


@pytest.fixture
def restricted(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with an empty namespace that accepts pods of the level `restricted` alone."""
    control_plane.make_namespace(NAMESPACE, "restricted")
    yield control_plane
    control_plane.remove_namespace(NAMESPACE)


@pytest.fixture
def deployed(restricted: ControlPlane) -> ControlPlane:
    """The control plane after `kubectl apply --kustomize deploy/kustomize`, as docs/how-to/install.md has it."""
    restricted.kubectl("apply", "--kustomize", KUSTOMIZE)
    return restricted

"""`.ci/apt` on a machine whose own upgrades hold apt's locks: the script waits, says so, and goes on by itself."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import ROOT

LISTS = Path("/var/lib/apt/lists/lock")
ABSENT = "predrain-has-no-such-package"

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        "CI" not in os.environ and (os.geteuid() != 0 or shutil.which("apt-get") is None),
        reason="needs root and apt",
    ),
]


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold a lock as another apt would."""
    with lock.open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield


def start(**environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [ROOT / ".ci" / "apt", ABSENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_held_package_lock_is_waited_for_and_told_with_its_holder() -> None:
    with held(LISTS):
        process = start()
        assert process.stdout is not None
        assert "installing" in process.stdout.readline()
        told = process.stdout.readline()
        assert told.startswith("waiting for the package lock")
        assert f"process {os.getpid()}" in told
        assert process.poll() is None
    _, complaint = process.communicate(timeout=300)
    assert f"Type: sudo apt-get install -y --no-install-recommends {ABSENT}" in complaint


def test_a_lock_that_is_never_released_is_given_up_with_its_holder() -> None:
    with held(LISTS):
        process = start(PREDRAIN_APT_WAIT="2")
        _, complaint = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "the package lock was not released within 2 s" in complaint
    assert f"process {os.getpid()}" in complaint

"""Commands of root on the service's host leave nothing in the state directory that the service cannot read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from predrain.service.cli import main

NOBODY = 65534
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory of another user, as the package makes one."""
    made = tmp_path / "state"
    made.mkdir(mode=0o700)
    os.chown(made, NOBODY, NOBODY)
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("models", "promote", str(ROOT / "models/bundles/default")),
        ("models", "challenge", str(ROOT / "models/bundles/default")),
        ("models", "rollback"),
        ("restore", "backup.tar.gz"),
    ],
)
def test_root_is_told_to_run_it_as_the_owner_and_makes_nothing(
    state: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--state", str(state)]) == 1
    assert "runuser -u nobody -- predrain" in capsys.readouterr().err
    assert list(state.iterdir()) == []


@pytest.mark.slow
def test_in_a_directory_of_its_own_root_promotes(tmp_path: Path) -> None:
    bundle = str(ROOT / "models/bundles/default")
    assert main(["models", "promote", bundle, "--state", str(tmp_path / "own")]) == 0

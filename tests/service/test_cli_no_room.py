"""Commands that find no room for their output or their state report that with the cure, and never report success."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from predrain.service.cli import run; run()"]


@pytest.mark.slow
@pytest.mark.parametrize("words", [["config", "check"], ["config", "show"]], ids=["a line", "many lines"])
def test_output_that_finds_no_room_is_told_in_one_sentence(tmp_path: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*COMMAND, *words], env={**os.environ, "HOME": str(tmp_path)}, stdout=full, stderr=subprocess.PIPE
        )
    told = done.stderr.decode()
    assert done.returncode == 1
    assert told.count("\n") == 1
    assert "no room is left" in told

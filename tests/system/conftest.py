"""One running demo for the browser's tests: a real service on a simulated cluster, some weeks into its life."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

PREDRAIN = Path(sys.executable).parent / "predrain"
DAYS = 40
"""By then disks have been called bad, drained, swapped, and have died."""


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The one-time address that the demo prints, once its last day is over."""
    said = tmp_path_factory.mktemp("demo") / "said"
    with said.open("wb") as out:
        command = [PREDRAIN, "demo", "--port", "0", "--speed", "0", "--days", str(DAYS)]
        demo = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield _over(demo, said)
        finally:
            demo.terminate()
            demo.wait(20)


@pytest.fixture(scope="session")
def base_url(address: str) -> str:
    """Where the demo answers."""
    return address.split("#")[0].rstrip("/")


@pytest.fixture(scope="session")
def token(address: str) -> str:
    """A token that may act."""
    return address.split("#token=")[1]


def _over(demo: subprocess.Popen[bytes], said: Path) -> str:
    until = time.monotonic() + 240
    while time.monotonic() < until:
        found = re.search(r"http://\S+#token=\S+", said.read_text(errors="replace"))
        if found:
            with urllib.request.urlopen(found[0].split("/#")[0] + "/api/v1/status", timeout=60) as answer:
                if (json.load(answer)["demo"] or {}).get("table"):
                    return found[0]
        if demo.poll() is not None:
            break
        time.sleep(0.5)
    pytest.fail(f"the demo did not get to its table: {said.read_text(errors='replace')[-2000:]}")

"""Running demos for the browser's tests: a real service on a simulated cluster, found by the address it prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.deadlines import idle_seconds
from tests.system.browsing import DESK, PHONE, Opened, chromium

PREDRAIN = Path(sys.executable).parent / "predrain"


class Demo:
    """One demo in a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self._process, self._said = process, said
        self.address = ""

    @property
    def url(self) -> str:
        """Return the address at which the demo answers."""
        return self.address.split("#")[0].rstrip("/")

    @property
    def token(self) -> str:
        """A token that may act."""
        return self.address.split("#token=")[1]

    def get(self, path: str) -> Any:
        """An answer of the REST interface."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=60) as answer:
            return json.load(answer)

    def until(self, holds: Callable[[], Any], seconds: float, what: str) -> Any:
        """Ask again and again; what `holds` says once it is truthy. Fails with the demo's own words."""
        end = idle_seconds() + seconds
        while idle_seconds() < end and self._process.poll() is None:
            if found := holds():
                return found
            time.sleep(0.2)
        pytest.fail(f"{what} did not come: {self._said.read_text(errors='replace')[-2000:]}")

    def _printed(self) -> str:
        found = re.search(r"http://\S+#token=\S+", self._said.read_text(errors="replace"))
        return found[0] if found else ""

    def start(self) -> None:
        """Wait for the address."""
        self.address = self.until(self._printed, 300, "the address")


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[Demo]:
    """`predrain demo --port 0` with more options, ended with the context."""
    said = folder / "said"
    with said.open("wb") as out:
        command = [PREDRAIN, "demo", "--port", "0", *options]
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            running = Demo(process, said)
            running.start()
            yield running
        finally:
            process.terminate()
            process.wait(20)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo of 30 days that is over: disks were called bad, drained, swapped, and have died."""
    with demo(tmp_path_factory.mktemp("finished"), "--speed", "0", "--days", "30") as running:
        running.until(lambda: (running.get("status")["demo"] or {}).get("table"), 600, "the table")
        yield running


@pytest.fixture(scope="session")
def base_url(finished: Demo) -> str:
    """Return the address at which the finished demo answers."""
    return finished.url


@pytest.fixture(scope="session")
def token(finished: Demo) -> str:
    """A token that may act there."""
    return finished.token


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for the tests of a module."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def desk(browser: Browser, base_url: str) -> Iterator[Opened]:
    """The finished demo on a desk."""
    context = browser.new_context(viewport=DESK)
    yield Opened(context, base_url)
    context.close()


@pytest.fixture
def phone(browser: Browser, base_url: str) -> Iterator[Opened]:
    """The finished demo on a phone."""
    context = browser.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    yield Opened(context, base_url)
    context.close()

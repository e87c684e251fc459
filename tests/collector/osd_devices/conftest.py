"""A host of one's own under a temporary folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from predrain.collector.osd_devices import KernelErrors
from tests.collector.osd_devices.fake_host import FakeHost
from tests.collector.osd_devices.fake_log import Log


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.fixture
def log(host: FakeHost) -> Log:
    return Log(host.root / "dev/kmsg")


@pytest.fixture
def errors(host: FakeHost, log: Log) -> Iterator[KernelErrors]:
    watched = KernelErrors(host.root)
    yield watched
    watched.close()

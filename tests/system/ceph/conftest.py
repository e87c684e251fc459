"""Real clusters for tests: `release` is the one asked for, `cluster` has four hosts of one OSD, `start` any other.

CEPH_UNDER_TEST names the release (pacific, reef, tentacle). Unset, these tests are skipped; under CI it is Pacific, and
a cluster that cannot be started is a failure there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.actions.recorded_facts import read_fact, write_fact
from tests.system.ceph import roots
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.surviving import World

Start = Callable[..., MiniCluster]
Fact = dict[str, Any]
CheckFact = Callable[[str, Fact, Callable[[Fact], object]], None]
"""A function of a recording's name, of what the cluster did now, and of the part that is the same in each run."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test that uses a cluster with `ceph`, and give it 600 s by default, since a cluster starts slowly."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "release" in getattr(item, "fixturenames", ()):
            item.add_marker("ceph")
            item.add_marker("system")
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def release() -> str:
    """The release under test, which can be started here."""
    in_ci = os.environ.get("CI") == "true"
    asked = os.environ.get("CEPH_UNDER_TEST") or ("pacific" if in_ci else "")
    if not asked:
        pytest.skip(
            "tests on a real cluster run by `make test-ceph RELEASE=pacific|reef|tentacle` (root needed)"
        )
    if why := roots.missing(asked):
        pytest.fail(why) if in_ci else pytest.skip(why)
    roots.make(asked)
    return asked


@pytest.fixture(scope="module")
def start(release: str) -> Iterator[Start]:
    """Starts clusters of the release with MiniCluster's options; all are taken down after the file's last test."""
    running: list[MiniCluster] = []

    def begin(**options: object) -> MiniCluster:
        cluster = MiniCluster(release, **options)  # type: ignore[arg-type]
        running.append(cluster)
        cluster.start()
        # On, and content: a balancer that is given back looks at once, and what it moves would count as the drain's.
        cluster.command("config set", who="mgr", name="mgr/balancer/upmap_max_deviation", value="1000")
        return cluster

    yield begin
    for cluster in running:
        cluster.stop()


@pytest.fixture
def check_fact(release: str) -> CheckFact:
    """Compare what a real cluster did with the recording. With RECORD_FACTS=1, write the recording instead."""

    def check(name: str, found: Fact, stable: Callable[[Fact], object]) -> None:
        if os.environ.get("RECORD_FACTS") == "1":
            write_fact(name, {"recorded_on": release, **found})
        assert stable(found) == stable(read_fact(name))

    return check


@pytest.fixture(scope="module")
def cluster(start: Start) -> MiniCluster:
    """Four hosts with one OSD each, one a file: what a test changes there it puts back."""
    return start()


@pytest.fixture
def world(kept: MiniCluster, tmp_path: Path) -> Iterator[World]:
    """For a file with a fixture `kept`: a store of its own, and the cluster left as it was found."""
    made = World(kept, tmp_path)
    yield made
    made.close()

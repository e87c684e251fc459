"""A state directory that an earlier predrain wrote is opened by this one: all of it is there, and its drain goes on.

`tests/samples/make_state.py` made the copies, run at the last commit of each version of the store.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.outcome import DriveFate
from predrain.data.outlook import Status
from predrain.data.store import store_schema
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.config.state_directory import StateDir
from predrain.service.forecasting.worker import GROUP
from predrain.service.notifications.notifier import silences_of
from tests.conftest import ROOT
from tests.service.conftest import NOON, Place, shut
from tests.service.test_drains import ClusterClock, Seated, World, seated
from tests.service.test_worker import work

SAMPLES = ROOT / "tests" / "samples"
COPIES = {
    **{version: SAMPLES / f"state-v{version}.tar.gz" for version in (2, 3, 4, 6, 7, 8, 9, 10, 11)},
    5: ROOT / "tests" / "service" / "v0_1_0" / "state.tar.gz",
}
"""The archive of each version of the store."""
VERSIONS = tuple(COPIES)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def old(version: int, tmp_path: Path) -> StateDir:
    """A state directory as the predrain of then left it."""
    state = StateDir(tmp_path / "old").ensure_exists()
    shutil.unpack_archive(COPIES[version], state.path, filter="data")
    return state


@pytest.fixture
def store(old: StateDir) -> Iterator[SqliteStore]:
    opened = SqliteStore(old.store)
    yield opened
    opened.close()


def test_there_is_a_copy_of_every_version_that_an_upgrade_may_find() -> None:
    missing = set(range(VERSIONS[0], store_schema.VERSION)) - set(VERSIONS)
    assert not missing, "run tests/samples/make_state.py at the last commit of the version"


def test_all_of_an_earlier_state_is_there(store: SqliteStore, old: StateDir, version: int) -> None:
    now = NOON + timedelta(days=1)
    outlooks = store.latest_outlooks()
    assert set(outlooks) == {f"ST4000DM000_{drive}" for drive in "ABC"}
    assert outlooks[DeviceId("ST4000DM000_A")].status is Status.BAD
    assert outlooks[DeviceId("ST4000DM000_A")].reasons
    assert [len(store.readings(device)) for device in sorted(outlooks)] == [8, 8, 8]
    assert [one.fate for one in store.outcomes()] == [DriveFate.FAILED]
    assert [len(store.read_latency_summaries(osd, NOON - timedelta(days=1))) for osd in range(3)] == [
        20,
        20,
        20,
    ]
    (summary, *_) = store.read_latency_summaries(0, NOON - timedelta(days=1))
    assert (summary.host, summary.operations, summary.read_ms_p50, summary.write_ms_p50) == (
        "stor-01",
        600,
        4.0,
        None,
    )
    (drain,) = store.drains()
    assert drain.state is DrainState.DRAINING
    assert drain.plan is not None
    assert drain.plan.moves
    assert {line.caller for line in store.journal(drain.id)} >= {"operator"}
    assert [line.decided for line in store.journal("halt")] == ["halt: storm", "lift the halt"]
    assert store.halt_reason() is None
    assert [one.id for one in silences_of(store, now)] == (["s1"] if version >= 4 else [])
    log = SqliteLog(old.log)
    assert [one.key for one in log.read(Topic.READINGS, GROUP, 10)] == ["ST4000DM000_D"]
    log.close()


@pytest.mark.slow
def test_a_drain_that_an_earlier_predrain_began_is_brought_to_its_end(old: StateDir, place: Place) -> None:
    cluster = seated()
    clock = ClusterClock(cluster)
    reach = Seated(cluster)
    application = replace(place, state=old, clock=clock).application(cluster=reach)  # type: ignore[arg-type]
    cluster.advance((application.store.drains()[0].updated_at - cluster.now).total_seconds() + 60)
    application.start()
    world = World(application, cluster, reach)
    try:
        for _ in range(3000):
            world.tick()
            if application.store.drains()[0].state is DrainState.VERIFIED:
                break
        drain = application.store.drains()[0]
        assert drain.state is DrainState.VERIFIED, (drain.state, application.store.journal(drain.id)[-1])
        assert work(application) == 1
    finally:
        shut(application)


def test_the_copy_that_an_upgrade_keeps_is_what_the_earlier_predrain_left(
    store: SqliteStore, old: StateDir, version: int
) -> None:
    assert store.drains()
    kept = old.store.with_name(f"store.sqlite.v{version}")
    assert kept.exists() == (version < store_schema.VERSION)

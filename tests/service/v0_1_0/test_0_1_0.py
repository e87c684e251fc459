"""This version reads the files that 0.1.0 left on disk and its keys in a cluster. `make_fixtures.py` describes them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.signed_keys import SignedKeys, compute_digest
from predrain.collector.delivery import Spool
from predrain.data.drain import DrainState
from predrain.data.ids import HostName
from predrain.data.latency_windows import LatencyBatch
from predrain.data.log.log_port import Topic
from predrain.data.log.sqlite_log import SqliteLog
from predrain.data.reading import Reading
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.wire import decode_envelope
from predrain.models.deploy.bundle_store import BundleStore
from predrain.models.forecast.bundle import Bundle
from predrain.service.access.credentials import CredentialBook, CredentialKind
from predrain.service.access.tokens import Scope
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.state_directory import StateDir
from predrain.service.drains.live_cluster import LiveClusterParts
from tests.actions.made_channel import MonInMemory
from tests.actions.made_config_keys import SIGNING_KEY, LeaseInHand
from tests.service.conftest import Place, SetClock, shut
from tests.service.test_drains import ClusterClock, Seated, World, seated

HERE = Path(__file__).resolve().parent
MORNING = datetime(2026, 3, 2, 6, tzinfo=UTC)
"""After everything that the spool holds."""


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    """The state directory of the service."""
    unpacked = StateDir(tmp_path / "0.1.0").ensure_exists()
    shutil.unpack_archive(HERE / "state.tar.gz", unpacked.path, filter="data")
    return unpacked


@pytest.fixture
def mon() -> MonInMemory:
    """The keys that the cluster holds below `predrain/`."""
    kept = json.loads((HERE / "cluster_keys.json").read_text())
    return MonInMemory({name: text.encode() for name, text in kept.items()})


@pytest.fixture
def restart(place: Place, mon: MonInMemory) -> Callable[[StateDir], World]:
    """Starts a service of this version on a state directory, a minute after its drain was written down last."""

    def restarted(state: StateDir) -> World:
        cluster = seated()
        reach = Seated(cluster)
        ports = ApplicationPorts(
            SqliteLog(state.log),
            SqliteStore(state.store),
            ClusterClock(cluster),  # type: ignore[arg-type]
            lambda: place.forecaster,
            LiveClusterParts(reach, signed(mon), LeaseInHand(), "stor-mon-1"),
            installed=state.bundles,
        )
        application = Application(ports, place.policy, place.settings)
        if drains := application.store.drains():
            cluster.advance((drains[0].updated_at - cluster.now).total_seconds() + 60)
        application.start()
        return World(application, cluster, reach)

    return restarted


def signed(mon: MonInMemory) -> SignedKeys:
    return SignedKeys(ConfigKeys(mon), SIGNING_KEY)


@pytest.mark.slow
def test_unsigned_keys_in_the_cluster_move_no_data_before_a_person_confirmed_the_list(
    restart: Callable[[StateDir], World], state: StateDir, mon: MonInMemory
) -> None:
    world, kept = restart(state), dict(mon.keys)
    try:
        epoch = world.cluster.view().epoch
        for _ in range(20):
            world.tick()
        assert "`predrain ceph adopt`" in world.application.describe_controller()
        assert world.cluster.view().epoch == epoch
        assert mon.keys == kept
    finally:
        shut(world.application)


@pytest.mark.slow
def test_the_drain_that_was_under_way_is_brought_to_its_end_after_a_person_confirmed_the_list(
    restart: Callable[[StateDir], World], state: StateDir, mon: MonInMemory
) -> None:
    listed = signed(mon).find_unverified()
    assert "drain/osd.0" in {one.name for one in listed}
    signed(mon).adopt(compute_digest(listed))
    world = restart(state)
    try:
        for _ in range(3000):
            world.tick()
            if world.application.store.drains()[0].state is DrainState.VERIFIED:
                break
        (drain,) = world.application.store.drains()
        assert drain.state is DrainState.VERIFIED, (
            drain.state,
            world.application.store.journal(drain.id)[-1],
        )
        assert '"state":"verified"' in mon.keys["predrain/drain/osd.0"].decode(), (
            "the cluster keeps the newest copy"
        )
    finally:
        shut(world.application)


@pytest.mark.slow
def test_the_promoted_bundle_still_scores(state: StateDir) -> None:
    shelf = BundleStore(state.bundles)
    champion = shelf.roles().champion
    assert champion is not None
    assert Bundle.load(shelf.verify_folder(champion)).facts.name == "default"


def test_the_token_of_a_host_is_still_that_hosts(state: StateDir) -> None:
    store = SqliteStore(state.store)
    clock = SetClock()
    (kept,) = [
        one for one in CredentialBook(store, clock).list_credentials() if one.kind is CredentialKind.TOKEN
    ]
    assert (kept.name, kept.scopes, kept.host) == ("collector of stor-01", {Scope.INGEST}, "stor-01")
    store.close()


def test_a_spool_hands_out_all_that_was_not_delivered(tmp_path: Path) -> None:
    shutil.unpack_archive(HERE / "spool.tar.gz", tmp_path, filter="data")
    spool = Spool(tmp_path / "spool.db", HostName("stor-01"), Random(1))
    readings: list[Reading] = []
    windows = 0
    while (batch := spool.take_batch()) is not None:
        for record in batch.records:
            if batch.topic is Topic.READINGS:
                readings.append(decode_envelope(record.value, Reading).body)
            else:
                windows += len(decode_envelope(record.value, LatencyBatch).body.summaries)
        spool.settle_batch(batch, MORNING)
    spool.close()
    assert len(readings) == 6
    assert len({reading.device for reading in readings}) == 3
    assert windows == 6

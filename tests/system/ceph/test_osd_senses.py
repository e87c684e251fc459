"""The reports of OSDs on a real cluster: probes reach the OSD that they are meant for, and reservations are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.latency_observer import LatencyObserver
from predrain.actions.cluster.latency_probe import Probes
from predrain.actions.cluster.live_ceph import LiveCluster
from predrain.actions.cluster.rados_connection import Connection, Rados
from predrain.actions.crush.object_hash import name_hash, names_of
from predrain.data.ids import OsdId
from tests.system.ceph.minicluster import MiniCluster

POOL = "predrain"
OSDS = tuple(OsdId(osd) for osd in range(4))


def channel_of(cluster: MiniCluster, name: str) -> Rados:
    where = cluster.where(name)
    return Rados(Connection(where.conf, where.name, where.keyring, interpreter=cluster.interpreter()))


@pytest.fixture(scope="module")
def pooled(cluster: MiniCluster) -> MiniCluster:
    """With the pool of the probe, over all OSDs."""
    cluster.pool(POOL, pg_num=16, size=3)
    cluster.wait_clean()
    return cluster


@pytest.fixture(scope="module")
def channel(pooled: MiniCluster) -> Iterator[CommandChannel]:
    opened = channel_of(pooled, "client.admin")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def view(channel: CommandChannel) -> ClusterView:
    return LiveCluster(channel, lambda: datetime.now(UTC)).view()


def test_a_probes_name_belongs_to_the_pg_that_it_was_chosen_for(pooled: MiniCluster) -> None:
    for pg_num in (1, 16, 12):
        pool = POOL if pg_num == 16 else f"pool{pg_num}"
        if pool != POOL:
            pooled.pool(pool, pg_num=pg_num, size=3)
        for seed, name in names_of(pg_num, "probe.").items():
            told = pooled.json("osd map", pool=pool, object=name)
            assert told["pgid"].partition(".")[2] == f"{seed:x}"
    for length in range(1, 40):
        name = "".join(chr(0x61 + (7 * at) % 26) for at in range(length))
        told = pooled.json("osd map", pool=POOL, object=name)
        assert told["raw_pgid"].partition(".")[2] == f"{name_hash(name):x}"


@pytest.mark.release
def test_a_probe_is_led_by_the_osd_that_it_is_meant_for(
    pooled: MiniCluster, channel: CommandChannel, view: ClusterView
) -> None:
    asked: list[str] = []

    class Listening:
        def probe(self, pool: str, name: str, size: int) -> float:
            asked.append(name)
            return channel.probe(pool, name, size)

    probes = Probes(Listening(), POOL)  # type: ignore[arg-type]
    samples = [sample for _ in range(3) for sample in probes.probe_osds(view, (), OSDS, datetime.now(UTC))]
    assert {sample.osd for sample in samples} == set(OSDS)
    assert all(0 < sample.ms < 5000 for sample in samples)
    for name, sample in zip(asked, samples, strict=True):
        assert pooled.json("osd map", pool=POOL, object=name)["acting_primary"] == sample.osd


@pytest.mark.release
def test_reservations_are_read_with_a_key_that_may(channel: CommandChannel, view: ClusterView) -> None:
    senses = LatencyObserver(channel, POOL, lambda: OSDS)
    seen = senses.add_to_view(replace(view, backfills_in_force={}), datetime.now(UTC))
    assert dict(seen.backfills_in_force) == dict.fromkeys(OSDS, 1)
    assert seen.slowest_ms


def test_a_key_that_may_not_leaves_reservations_unknown_and_is_not_asked_again(
    pooled: MiniCluster, view: ClusterView
) -> None:
    pooled.client("client.probe", {"mon": "allow r", "mgr": "allow r", "osd": f"allow rwx pool={POOL}"})
    with_less = channel_of(pooled, "client.probe")
    asked: list[str] = []
    ask = with_less.ask

    def listening(to: str, prefix: str, *given: object, **more: object) -> object:
        asked.append(prefix)
        return ask(to, prefix, *given, **more)  # type: ignore[arg-type]

    with_less.ask = listening  # type: ignore[method-assign, assignment]
    try:
        senses, now = LatencyObserver(with_less, POOL, lambda: OSDS), datetime.now(UTC)
        looks = [senses.add_to_view(view, now + timedelta(seconds=10 * look)) for look in range(3)]
        assert [dict(seen.backfills_in_force) for seen in looks] == [{}, {}, {}]
        assert asked.count("dump_recovery_reservations") == 1
        assert looks[-1].slowest_ms
    finally:
        with_less.close()


def test_a_ratio_comes_from_probes_once_there_is_a_usual(channel: CommandChannel, view: ClusterView) -> None:
    """Ten minutes of looks, dated ten seconds apart, are played in seconds."""
    senses, now = LatencyObserver(channel, POOL, lambda: OSDS), datetime.now(UTC)
    looks = [senses.add_to_view(view, now + timedelta(seconds=10 * look)) for look in range(60)]
    seen = looks[-1]
    assert set(seen.latency_ratio) == set(OSDS)
    assert all(0.05 < ratio < 20 for ratio in seen.latency_ratio.values())

"""The rados channel on a real cluster: right answers, deadlines that hold, sentences for what cannot connect."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.rados_connection import Connection, NotConnected, Rados
from tests.deadlines import idle_seconds
from tests.system.ceph.conf import keyring, new_key
from tests.system.ceph.minicluster import MiniCluster

Open = Callable[..., Rados]


@pytest.fixture(scope="module")
def pool(cluster: MiniCluster) -> str:
    """A pool for locks and probes."""
    cluster.pool("predrain", pg_num=1, size=3)
    return "predrain"


@pytest.fixture
def opened(cluster: MiniCluster) -> Iterator[Open]:
    """Channels as client.admin, unless the connection is changed."""
    every: list[Rados] = []

    def begin(seconds: float = 15, **changed: Any) -> Rados:
        connection = replace(cluster.connection(), **changed)
        every.append(Rados(connection, seconds=seconds, restart_seconds=0.5))
        return every[-1]

    yield begin
    for channel in every:
        channel.close()


def _child(channel: Rados) -> int:
    assert channel._child is not None
    return channel._child._process.pid


@pytest.mark.release
def test_mon_mgr_and_osd_give_the_answers_that_the_releases_own_client_gets(
    cluster: MiniCluster, opened: Open
) -> None:
    channel = opened()
    assert json.loads(channel.ask("mon", "osd dump", {"format": "json"}).out) == cluster.json("osd dump")
    listed = json.loads(channel.ask("mgr", "mgr module ls", {"format": "json"}).out or "{}")
    assert isinstance(listed, dict)
    assert json.loads(channel.ask("mgr", "balancer status", {"format": "json"}).out)["mode"]
    reservations = channel.ask("osd.1", "dump_recovery_reservations", {"format": "json"})
    assert json.loads(reservations.out)["local_reservations"]["max_allowed"] >= 1


@pytest.mark.release
def test_a_refused_command_is_an_answer_with_its_reason(opened: Open) -> None:
    reply = opened().ask("mon", "osd pool get", {"pool": "nowhere", "var": "size"})
    assert reply.rc == -2
    assert "nowhere" in reply.err


def test_bytes_given_are_kept_as_they_are(opened: Open) -> None:
    channel, value = opened(), bytes(range(256)) * 200
    assert channel.ask("mon", "config-key set", {"key": "predrain/x"}, given=value).ok
    assert channel.ask("mon", "config-key get", {"key": "predrain/x"}).out == value


@pytest.mark.release
def test_commands_that_are_sent_together_come_into_fewer_maps_than_one_by_one(
    cluster: MiniCluster, opened: Open
) -> None:
    channel, before = opened(), cluster.json("osd dump")["epoch"]
    asked = tuple(
        ("mon", "osd primary-affinity", {"id": n % 4, "weight": 0.5 + n / 100}) for n in range(1, 13)
    )
    assert [reply.rc for reply in channel.ask_all(asked)] == [0] * 12
    assert 1 <= cluster.json("osd dump")["epoch"] - before <= 6
    affinities = [osd["primary_affinity"] for osd in cluster.json("osd dump")["osds"]]
    assert all(0.5 < affinity < 0.7 for affinity in affinities)
    channel.ask_all(tuple(("mon", "osd primary-affinity", {"id": n, "weight": 1.0}) for n in range(4)))


@pytest.mark.release
def test_one_holder_has_the_lock_until_it_lets_go(opened: Open, pool: str) -> None:
    one, two = opened(), opened()
    assert one.lock(pool, "lease", "one", 60).rc == 0
    assert one.lock(pool, "lease", "one", 60).rc == -17
    assert one.lock(pool, "lease", "one", 60, renew=True).rc == 0
    assert two.lock(pool, "lease", "two", 60).rc == -16
    assert two.lock(pool, "lease", "two", 60, renew=True).rc == -2
    assert two.unlock(pool, "lease", "two").rc == -2
    assert one.unlock(pool, "lease", "one").rc == 0
    assert two.lock(pool, "lease", "two", 60).rc == 0
    assert two.unlock(pool, "lease", "two").rc == 0


def test_a_lock_runs_out_for_the_next_one_and_cannot_be_renewed_then(opened: Open, pool: str) -> None:
    one, two = opened(), opened()
    assert one.lock(pool, "short", "one", 1).rc == 0
    until = idle_seconds() + 20
    while two.lock(pool, "short", "two", 60).rc == -16 and idle_seconds() < until:
        time.sleep(0.2)
    assert one.lock(pool, "short", "one", 1, renew=True).rc == -2
    assert two.unlock(pool, "short", "two").rc == 0


@pytest.mark.release
def test_the_probe_tells_the_seconds_of_a_write_and_a_read(opened: Open, pool: str) -> None:
    assert 0 < opened().probe(pool, "probe", 4096) < 15
    with pytest.raises(ClusterUnreachable, match="the probe of pool nowhere failed"):
        opened().probe("nowhere", "probe", 4096)


def test_a_pool_that_does_not_answer_costs_the_probe_only(
    cluster: MiniCluster, opened: Open, pool: str
) -> None:
    channel = opened(seconds=4)
    channel.ask("mon", "osd stat")
    child = _child(channel)
    for osd in range(4):
        cluster.freeze(f"osd.{osd}")
    try:
        with pytest.raises(ClusterUnreachable, match="no answer from the cluster in time"):
            channel.probe(pool, "probe", 4096)
        assert channel.ask("mon", "osd stat").ok
        assert _child(channel) == child
    finally:
        for osd in range(4):
            cluster.thaw(f"osd.{osd}")
    cluster.wait(lambda: channel.probe(pool, "probe", 4096) > 0, 60, "the probe")


@pytest.mark.release
def test_a_mon_that_hangs_costs_the_deadline_and_no_more(cluster: MiniCluster, opened: Open) -> None:
    channel = opened()
    assert channel.ask("mon", "osd stat").ok
    cluster.freeze("mon.a")
    try:
        begun = idle_seconds()
        with pytest.raises(ClusterUnreachable, match="did not answer in time"):
            channel.ask("mon", "osd stat", seconds=1)
        with pytest.raises(ClusterUnreachable):
            channel.ask("mon", "osd stat", seconds=1)
        assert idle_seconds() - begun < 6
    finally:
        cluster.thaw("mon.a")
    time.sleep(0.6)
    assert channel.ask("mon", "osd stat").ok


def test_a_mon_that_restarts_under_way_is_waited_for(cluster: MiniCluster, opened: Open) -> None:
    channel = opened(seconds=60)
    assert channel.ask("mon", "osd stat").ok
    cluster.kill("mon.a")
    late = threading.Timer(1.0, cluster.spawn, ("mon.a",))
    late.start()
    assert channel.ask("mon", "osd stat").ok
    late.join()


def test_a_child_that_is_killed_is_replaced(opened: Open) -> None:
    channel = opened()
    assert channel.ask("mon", "osd stat").ok
    first = _child(channel)
    os.kill(first, signal.SIGKILL)
    time.sleep(0.6)
    assert channel.ask("mon", "osd stat").ok
    assert _child(channel) != first


@pytest.mark.release
def test_a_wrong_key_is_one_sentence_with_the_cure(cluster: MiniCluster, opened: Open) -> None:
    cluster.client("client.known", {"mon": "allow r"})
    (cluster.folder / "keyring.client.known").write_text(keyring("client.known", new_key(cluster.release)))
    where = cluster.where("client.known")
    with pytest.raises(NotConnected, match=r"does not accept the key of client\.known.*predrain ceph auth"):
        opened(name="client.known", keyring=where.keyring).ask("mon", "osd stat")


@pytest.mark.release
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"keyring": "/no/keyring"}, "the keyring of client.admin cannot be read"),
        ({"conf": "/no/ceph.conf"}, "/no/ceph.conf cannot be read"),
        ({"conf": "/dev/null"}, "/dev/null names no monitor"),
    ],
)
def test_a_missing_keyring_conf_file_or_monitor_address_is_named_in_the_error(
    opened: Open, changed: dict[str, Any], says: str
) -> None:
    with pytest.raises(NotConnected, match=says):
        opened(**changed).ask("mon", "osd stat")


def test_rados_that_is_too_old_for_the_clusters_keys_is_told_so(cluster: MiniCluster) -> None:
    if cluster.release != "tentacle":
        pytest.skip("only 20.x makes keys that older releases cannot read")
    if not list(Path("/usr/lib/python3/dist-packages").glob("rados.*.so")):
        pytest.skip("the machine has no older rados (python3-rados)")
    conf, kept = cluster.folder / "outside.conf", str(cluster.folder / "keyring.client.admin")
    conf.write_text((cluster.folder / "ceph.conf").read_text())
    channel = Rados(Connection(conf=str(conf), name="client.admin", keyring=kept))
    with pytest.raises(NotConnected, match=r"older ones cannot read a key of 20\.x"):
        channel.ask("mon", "osd stat")

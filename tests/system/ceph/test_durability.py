"""On a real cluster, no data is lost and each drain ends in the same state when a part dies: the controller, the store,
the cluster's copy, a mon, a mgr or an OSD.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.actions.cluster.config_key_store import ConfigKeys
from predrain.actions.cluster.lease import RadosLease
from predrain.actions.cluster.rados_connection import Rados
from predrain.service.runtime.process_identity import has_ended, name_this_process
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.runner import as_given
from tests.system.ceph.surviving import World, done, held, sent, small


@pytest.fixture(scope="module")
def kept(release: str) -> Iterator[MiniCluster]:
    yield from small(release, pgs=8)


# -- keep and lease ------------------------------------------------------------------------------------------


@pytest.mark.release
def test_texts_of_any_length_lie_in_the_mon_and_an_operators_bare_halt_is_read(world: World) -> None:
    keep = ConfigKeys(world.channel)
    long = "".join(f"{number:07d}é" for number in range(20_000))
    for text in ("", "short", long, long[::-1], "short again"):
        keep.write("drain/osd.7", text)
        assert keep.read("drain/osd.7") == text
        assert keep.names() == ("drain/osd.7",)
    keep.remove("drain/osd.7")
    world.cluster.command("config-key set", key="predrain/halt", val="smoke")
    world.cluster.command("config-key set", key="other/thing", val="1")
    assert keep.read("halt") == "smoke"
    assert keep.names() == ("halt",)
    keep.remove("halt")
    assert keep.read("halt") is None


@pytest.mark.release
def test_the_lease_is_one_clients_until_it_expires_or_is_given_back(world: World) -> None:
    other = Rados(world.cluster.connection())
    one = RadosLease(world.channel, "one", time.monotonic, seconds=3.0)
    two = RadosLease(other, "two", time.monotonic, seconds=3.0)
    assert one.hold()
    assert not two.hold()
    assert "Another controller" in two.why
    one.release()
    assert two.hold()
    time.sleep(2.1)
    assert not two.is_held()
    world.cluster.wait(one.hold, 6, "the lock expires")
    assert not two.hold()
    one.release()
    missing = RadosLease(other, "two", time.monotonic, pool="nowhere")
    assert not missing.hold()
    assert "ceph osd pool create nowhere" in missing.why
    other.close()


@pytest.mark.release
def test_the_holder_is_told_and_the_lock_of_a_killed_process_is_broken_at_once(world: World) -> None:
    """The holder is a process of its own, so that the cluster knows it as another client that never says good-bye."""
    said = (
        "import json, sys, time; from predrain.actions.cluster.lease import RadosLease\n"
        "from predrain.actions.cluster.rados_connection import Connection, Rados\n"
        "from predrain.service.runtime.process_identity import name_this_process\n"
        "given = json.loads(sys.argv[1]); given['interpreter'] = tuple(given['interpreter'])\n"
        "lease = RadosLease(Rados(Connection(**given)), name_this_process(), time.monotonic, seconds=600)\n"
        "assert lease.hold(), lease.why\n"
        "print(lease.cookie, flush=True); time.sleep(600)\n"
    )
    given = json.dumps(as_given(world.cluster.connection()))
    holder = subprocess.Popen([sys.executable, "-c", said, given], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout is not None
        cookie = holder.stdout.readline().strip()
        ours = RadosLease(world.channel, name_this_process(), time.monotonic, has_ended=has_ended)
        assert not ours.hold()
        found = ours.find_holder()
        assert found is not None
        assert (found.owner.name, found.owner.pid) == (cookie, holder.pid)
        assert found.until is not None
        assert timedelta(minutes=9) < found.until - datetime.now(UTC) < timedelta(minutes=11)
        (locker,) = world.channel.list_lockers("predrain", "lease")
        another = replace(locker, cookie="another")
        assert not world.channel.break_lock("predrain", "lease", another).ok
        assert not ours.hold()
        holder.kill()
    assert ours.find_holder() is None
    assert ours.hold(), ours.why
    ours.release()
    assert world.channel.list_lockers("predrain", "lease") == ()


@pytest.mark.release
def test_the_lease_is_renewed_though_the_host_of_its_osd_went_without_a_word(world: World) -> None:
    """An OSD that is stopped stands for a host without power: nothing tells librados that its map is an old one."""
    lease = RadosLease(world.channel, "one", time.monotonic, seconds=8.0)
    assert lease.hold()
    primary = world.cluster.json("osd map", pool="predrain", object="lease")["acting_primary"]
    world.cluster.freeze(f"osd.{primary}")
    world.cluster.wait(lambda: primary not in world.cluster.osds(), 90, "the mon notices")
    world.cluster.wait(lease.hold, 40, "the lease is renewed")
    lease.release()
    world.cluster.restart(f"osd.{primary}", signal.SIGKILL)
    world.cluster.wait(lambda: primary in world.cluster.osds(), 60, "it is up again")
    world.cluster.wait_clean()


# -- the controller dies -------------------------------------------------------------------------------------


@pytest.mark.release
def test_of_two_controllers_one_acts_and_who_was_stopped_sends_at_most_the_command_at_hand(
    world: World,
) -> None:
    drain = world.propose(1)
    first = world.life(stop_at=4, lease_seconds=8.0, owner="first")
    first.until(lambda line: line["what"] == "stopping", "the first stops before its fourth command")
    second_store = world.folder / "second.db"
    second = world.life(store=second_store, lease_seconds=8.0, owner="second")
    second.until(sent, "the second takes over from the cluster's copy")
    second.until(sent, "and goes on")
    said = len(first.said)
    first.process.send_signal(signal.SIGCONT)
    first.until(
        lambda line: "Another controller" in line.get("trouble", ""), "the first sees that it no longer leads"
    )
    late = [line for line in first.said[said:] if line["what"] == "sent"]
    first.end()  # or it would rightly lead again, should the second lose its lease
    assert len(late) == 1
    second.until(done, "the second ends the drain")
    assert world.known(drain, second_store).state.value == "verified"
    world.check_drained(drain)
    world.store = second_store
    world.put_back(drain)


# -- what else may be lost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", ["store", "cluster's copy"])
def test_the_store_or_the_clusters_copy_deleted_under_way_the_other_suffices(world: World, lost: str) -> None:
    drain = world.propose(2)
    life = world.life(lease_seconds=3.0)
    life.until(sent, "the first upmap")
    life.end()
    if lost == "store":
        for path in world.store.parent.glob("store.db*"):
            path.unlink()
    else:
        for name in ConfigKeys(world.channel).names():
            ConfigKeys(world.channel).remove(name)
    world.life(lease_seconds=3.0).until(done, "the drain ends")
    assert world.known(drain).state.value == "verified"
    assert ("recovered from the cluster" if lost == "store" else "written again") in world.journal(drain)
    world.check_drained(drain)
    world.put_back(drain)


@pytest.mark.parametrize("daemon", ["mon.a", "mgr.x"])
def test_a_mon_or_mgr_killed_under_way_is_waited_for(world: World, daemon: str) -> None:
    drain = world.propose(3)
    life = world.life()
    life.until(sent, "the first upmap")
    world.cluster.restart(daemon, signal.SIGKILL)
    life.until(done, "the drain ends")
    assert world.known(drain).state.value == "verified"
    world.check_drained(drain)
    world.put_back(drain)


def test_another_osd_killed_under_way_freezes_the_drain_until_it_is_back_and_clean(world: World) -> None:
    drain = world.propose(0)
    life = world.life()
    life.until(sent, "the first upmap")
    world.cluster.kill("osd.2")
    life.until(held("osd.2"), "it holds for the OSD that is down")
    world.cluster.spawn("osd.2")
    assert not [line for line in life.said[-1:] if line["what"] == "sent"]
    life.until(done, "the drain ends")
    assert world.known(drain).state.value == "verified"
    world.check_drained(drain)
    world.put_back(drain)


def test_an_operators_weight_is_a_conflict_that_holds_until_it_is_set_back(world: World) -> None:
    drain = world.propose(1)
    life = world.life()
    life.until(sent, "the first upmap")
    world.cluster.command("osd reweight", id=1, weight=0.9)
    life.until(held("another party changed it"), "it holds for the conflict")
    world.cluster.command("osd reweight", id=1, weight=1.0)
    life.until(done, "the drain ends")
    world.check_drained(drain)
    world.put_back(drain)


def test_the_drained_disk_dying_under_way_loses_nothing_and_ends_in_the_same_state(world: World) -> None:
    drain = world.propose(2)
    life = world.life()
    life.until(sent, "the first upmap")
    world.cluster.kill("osd.2")
    life.until(held("osd.2"), "it holds for the disk that died")
    world.cluster.command("osd out", ids=["2"])
    life.until(done, "the drain ends")
    assert world.known(drain).state.value == "verified"
    world.check_drained(drain)
    world.cluster.spawn("osd.2")
    world.cluster.wait(lambda: 2 in world.cluster.osds(), 60, "osd.2 is up again")


@pytest.mark.core
def test_a_bare_halt_in_the_mon_stops_every_command_until_it_is_removed(world: World) -> None:
    drain = world.propose(3)
    life = world.life()
    life.until(sent, "the first upmap")
    world.cluster.command("config-key set", key="predrain/halt", val="smoke")
    life.until(held("Halted: smoke"), "it says so")
    before = sum(line["what"] == "sent" for line in life.said)
    time.sleep(5)
    world.cluster.command("config-key rm", key="predrain/halt")
    life.until(lambda line: line["what"] == "state" and line["state"] == "draining", "it goes on")
    assert sum(line["what"] == "sent" for line in life.said) == before
    life.until(done, "the drain ends")
    world.check_drained(drain)
    world.put_back(drain)

"""Rows of several clusters in one store: an OSD's number alone is no key."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from predrain.data.cluster_event import ClusterEventKind
from predrain.data.drain import JournalEntry, OfOtherCluster
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary, LatencyWindows
from predrain.data.life_cycle import LifeState
from predrain.data.store import store_schema
from predrain.data.store.sql_store import SqlStore
from predrain.data.store.store_port import AUDIT, Store
from tests.data.store.written import DRAIN, HALT, LIFE_CHANGE, NOON, OSD_DOWN

OURS = ClusterId("00000000-0000-4000-8000-000000000000")
THEIRS = ClusterId("11111111-1111-4111-8111-111111111111")
MINUTE = timedelta(minutes=1)
HOST = HostName("ceph-1")


def window(minute: int = 0, cluster: ClusterId | None = None, operations: int = 900) -> LatencySummary:
    """A window of osd.3."""
    return LatencySummary(OsdId(3), HOST, NOON + minute * MINUTE, 60.0, operations, cluster=cluster)


def add(store: Store, *summaries: LatencySummary) -> None:
    store.add_latency(LatencyWindows.from_summaries(summaries))


def of_their_cluster(store: Store) -> SqlStore:
    """The rows of another cluster in the same database."""
    return SqlStore(cast("SqlStore", store)._database, THEIRS)


def test_osd_3_of_two_clusters_has_two_histories_of_latency(store: Store) -> None:
    store.bind_cluster(OURS)
    ours, theirs = window(cluster=OURS), window(cluster=THEIRS, operations=1)
    add(store, theirs, ours)
    assert store.read_latency_summaries(3, NOON) == (ours,)
    assert store.read_latency_summaries(3, NOON, THEIRS) == (theirs,)
    assert store.host_latency(HOST, NOON) == LatencyWindows.from_summaries([ours])


def test_a_host_of_another_cluster_is_no_host_of_the_own_one(store: Store) -> None:
    store.bind_cluster(OURS)
    add(store, window(cluster=OURS), replace(window(cluster=THEIRS), host=HostName("elsewhere")))
    assert store.latency_hosts() == (HOST,)


def test_merged_latencies_of_two_clusters_stay_apart(store: Store) -> None:
    store.bind_cluster(OURS)
    add(store, *(window(n, OURS) for n in range(10)), *(window(n, THEIRS, 1) for n in range(10)))
    assert store.merge_old_latencies(NOON + 10 * MINUTE) == 18
    (ours,), (theirs,) = store.read_latency_summaries(3, NOON), store.read_latency_summaries(3, NOON, THEIRS)
    assert (ours.cluster, ours.operations) == (OURS, 9000)
    assert (theirs.cluster, theirs.operations) == (THEIRS, 10)


def test_a_report_without_a_cluster_is_of_the_cluster_to_which_the_store_is_bound(store: Store) -> None:
    store.bind_cluster(OURS)
    add(store, window())
    assert store.read_latency_summaries(3, NOON) == (window(cluster=OURS),)


def test_rows_from_before_the_store_was_bound_are_of_its_cluster_from_then_on(
    opened: Callable[[], Store],
) -> None:
    store, other_process = opened(), opened()
    add(store, window())
    store.save_drain(DRAIN)
    store.add_life_changes([LIFE_CHANGE])
    store.add_cluster_events([OSD_DOWN])
    assert store.get_cluster() is None
    assert store.read_latency_summaries(3, NOON) == (window(),)
    assert store.bind_cluster(OURS) == OURS
    for each in (store, other_process):
        assert each.get_cluster() == OURS
        assert each.read_latency_summaries(3, NOON) == (window(cluster=OURS),)
        assert each.drains() == (DRAIN,)
        assert each.read_life_changes(osd=OsdId(5)) == (LIFE_CHANGE,)
        assert OSD_DOWN in each.read_cluster_events()


def test_a_store_is_bound_once(opened: Callable[[], Store]) -> None:
    assert opened().bind_cluster(OURS) == OURS
    assert opened().bind_cluster(THEIRS) == OURS
    assert opened().get_cluster() == OURS


def test_a_window_that_came_with_and_without_its_cluster_is_there_once_after_binding(store: Store) -> None:
    add(store, window())
    add(store, window(cluster=OURS, operations=7))
    store.bind_cluster(OURS)
    assert store.read_latency_summaries(3, NOON) == (window(cluster=OURS, operations=7),)


def test_no_window_that_is_written_while_the_store_is_bound_stays_without_a_cluster(
    opened: Callable[[], Store],
) -> None:
    writers, binder = [opened() for _ in range(3)], opened()

    def write(number: int) -> None:
        for n in range(10):
            add(writers[number], replace(window(n), host=HostName(f"ceph-{number}")))

    with ThreadPoolExecutor(4) as pool:
        written = [pool.submit(write, number) for number in range(3)]
        pool.submit(binder.bind_cluster, OURS).result()
        for one in written:
            one.result()
    for number in range(3):
        windows = opened().host_latency(HostName(f"ceph-{number}"), NOON)
        assert [one.cluster for one in windows] == [OURS] * 10


def test_the_slot_of_an_osd_has_only_disks_of_its_own_cluster(store: Store) -> None:
    store.bind_cluster(OURS)
    theirs = replace(LIFE_CHANGE, device=DeviceId("b"), state=LifeState.IN_SERVICE)
    of_their_cluster(store).add_life_changes([theirs])
    store.add_life_changes([LIFE_CHANGE])
    assert store.read_life_changes(osd=OsdId(5)) == (LIFE_CHANGE,)
    assert of_their_cluster(store).read_life_changes(osd=OsdId(5)) == (theirs,)
    assert store.last_life_changes()[1] == {LIFE_CHANGE.device: LIFE_CHANGE}


def test_retention_keeps_the_newest_change_of_a_slot_in_each_cluster(store: Store) -> None:
    store.bind_cluster(OURS)
    beside = of_their_cluster(store)
    beside.add_life_changes([replace(LIFE_CHANGE, device=DeviceId("b"))])
    store.add_life_changes([LIFE_CHANGE, replace(LIFE_CHANGE, osds=(OsdId(6),), at=LIFE_CHANGE.at + MINUTE)])
    beside.add_life_changes([replace(LIFE_CHANGE, device=DeviceId("b"), osds=(), at=LIFE_CHANGE.at + MINUTE)])
    store.prune(history=NOON + timedelta(days=9))
    assert len(store.read_life_changes(osd=OsdId(5))) == 1
    assert len(beside.read_life_changes(osd=OsdId(5))) == 1


def test_an_osd_that_is_down_in_two_clusters_is_two_events(store: Store) -> None:
    store.bind_cluster(OURS)
    beside = of_their_cluster(store)
    theirs = replace(OSD_DOWN, epoch=7, host=HostName("elsewhere"))
    store.add_cluster_events([OSD_DOWN])
    beside.add_cluster_events([theirs])
    assert store.last_cluster_events(ClusterEventKind.OSD_DOWN) == {"osd.5": OSD_DOWN}
    assert beside.last_cluster_events(ClusterEventKind.OSD_DOWN) == {"osd.5": theirs}


def test_a_drain_of_another_cluster_is_not_among_the_drains(store: Store) -> None:
    """A drain's id is made of its OSD and of the second of its request, so two clusters may have one id."""
    store.bind_cluster(OURS)
    beside = of_their_cluster(store)
    theirs = replace(DRAIN, revision=1, reason="of their osd.3")
    store.save_drain(DRAIN)
    beside.save_drain(theirs)
    assert (store.drains(), beside.drains()) == ((DRAIN,), (theirs,))
    assert (store.drain(DRAIN.id), beside.drain(DRAIN.id)) == (DRAIN, theirs)
    assert store.read_changes().drains == (DRAIN,)


def test_the_journal_of_a_drain_has_only_lines_of_its_own_cluster(store: Store) -> None:
    """The newest lines are asked for, and those of the other cluster take no place among them."""
    store.bind_cluster(OURS)
    beside = of_their_cluster(store)
    older = JournalEntry(DRAIN.id, NOON, "", "propose")
    ours = JournalEntry(DRAIN.id, NOON + MINUTE, 'said "cluster":"elsewhere"', "step", cluster=OURS)
    theirs = JournalEntry(DRAIN.id, NOON + MINUTE, "", "step", cluster=THEIRS)
    store.add_journal([older, ours])
    beside.add_journal([theirs, replace(theirs, decided="another step")])
    assert store.journal(DRAIN.id) == store.journal(DRAIN.id, 2) == (older, ours)
    assert beside.journal(DRAIN.id, 2) == (theirs, replace(theirs, decided="another step"))


def test_one_line_of_two_clusters_is_two_lines(store: Store) -> None:
    store.bind_cluster(OURS)
    line = JournalEntry(DRAIN.id, NOON, "", "begin", cluster=OURS)
    store.add_journal([line])
    of_their_cluster(store).add_journal([replace(line, cluster=THEIRS)])
    assert of_their_cluster(store).journal(DRAIN.id) == (replace(line, cluster=THEIRS),)


def test_a_line_about_another_cluster_is_refused_with_both_fsids_and_none_beside_it_is_appended(
    store: Store,
) -> None:
    store.bind_cluster(OURS)
    ours = JournalEntry(DRAIN.id, NOON, "", "begin", cluster=OURS)
    with pytest.raises(
        OfOtherCluster, match=f"about cluster {THEIRS}, and this store is about cluster {OURS}"
    ):
        store.add_journal([ours, replace(ours, cluster=THEIRS)])
    assert store.journal() == ()


def test_the_audit_is_of_all_clusters(store: Store) -> None:
    store.bind_cluster(OURS)
    store.add_journal([JournalEntry(AUDIT, NOON, "from here", "POST /x")])
    assert of_their_cluster(store).journal(AUDIT) == store.journal(AUDIT) != ()


def test_a_halt_is_of_all_clusters(store: Store) -> None:
    """A halt that held one cluster only would leave the other one moving."""
    store.bind_cluster(OURS)
    store.set_halt(HALT)
    assert of_their_cluster(store).halt_reason() == HALT


def test_every_table_with_a_cluster_is_given_to_the_cluster_that_the_store_is_bound_to(store: Store) -> None:
    """A new table with the column has to be named in data.store.store_cluster."""
    from predrain.data.store.store_cluster import _KEYS_BESIDE_CLUSTER

    assert {*_KEYS_BESIDE_CLUSTER} == {
        one for one in store_schema.metadata.tables.values() if "cluster" in one.c
    }

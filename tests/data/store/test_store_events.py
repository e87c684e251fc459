"""Events of the cluster and of drains as the store keeps them: in a file, in memory, in a real PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

from data.cluster_event import ClusterEvent, ClusterEventKind
from data.drain import DrainState
from data.ids import HostName, OsdId
from data.store.port import Store
from tests.data.store.test_store import DRAIN, HOUR, NOON


def osd_event(kind: ClusterEventKind, hour: int, epoch: int, osd: int = 3) -> ClusterEvent:
    return ClusterEvent(
        f"osd.{osd}", NOON + hour * HOUR, kind, (OsdId(osd),), HostName("stor-1"), epoch=epoch
    )


def test_events_of_the_cluster_are_kept_where_something_stands_otherwise_than_before(store: Store) -> None:
    down, again = osd_event(ClusterEventKind.OSD_DOWN, 0, 7), osd_event(ClusterEventKind.OSD_DOWN, 1, 8)
    other, up = osd_event(ClusterEventKind.OSD_DOWN, 1, 8, osd=4), osd_event(ClusterEventKind.OSD_UP, 2, 9)
    store.add_cluster_events([down])
    store.add_cluster_events([again, other])
    store.add_cluster_events([up, other])
    assert store.read_cluster_events() == (up, other, down)
    assert store.read_cluster_events(since=NOON + HOUR, until=NOON + 2 * HOUR) == (other,)
    assert store.read_cluster_events(limit=1) == (up,)
    assert store.last_cluster_events(ClusterEventKind.OSD_DOWN) == {"osd.4": other}


def test_what_an_older_map_says_of_an_osd_is_no_event(store: Store) -> None:
    down, older = osd_event(ClusterEventKind.OSD_DOWN, 1, 9), osd_event(ClusterEventKind.OSD_UP, 2, 8)
    store.add_cluster_events([down])
    store.add_cluster_events([older])
    assert store.read_cluster_events() == (down,)


def test_a_drain_is_told_once_for_each_of_its_states(store: Store) -> None:
    holds = replace(DRAIN, state=DrainState.HOLDING, revision=2, held_by=("osd.4 is full",))
    still = replace(holds, revision=3, held_by=("osd.4 is fuller",))
    goes_on = replace(still, state=DrainState.DRAINING, revision=4, held_by=())
    for one in (DRAIN, holds, holds, still, goes_on):
        store.save_drain(one)
    assert [(event.state, event.why) for event in reversed(store.read_cluster_events())] == [
        (DrainState.PROPOSED, "bad"),
        (DrainState.HOLDING, "osd.4 is full"),
        (DrainState.DRAINING, ""),
    ]


def test_old_events_of_the_cluster_are_dropped_with_the_history(store: Store) -> None:
    down, up = osd_event(ClusterEventKind.OSD_DOWN, 0, 7), osd_event(ClusterEventKind.OSD_UP, 2, 9)
    store.add_cluster_events([down, up])
    assert store.prune(history=NOON + HOUR) == 1
    assert store.read_cluster_events() == (up,)

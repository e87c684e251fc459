"""What a store keeps of the lives of disks and of the events of the cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from data.cluster_event import ClusterEvent, ClusterEventKind
from data.drain import Drain, DrainState, Intent
from data.ids import DeviceId, HostName, OsdId
from data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState
from data.store.port import Store

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DRAIN = Drain(
    "d-1", DeviceId("a"), (OsdId(3),), DrainState.PROPOSED, Intent.REPLACE, "controller", "bad", NOON, NOON
)


def life_change(number: int, device: str = "A", hour: int = 0) -> LifeChange:
    host = HostName(f"host-{number}")
    return LifeChange(
        DeviceId(device), NOON + hour * HOUR, LifeState.IN_SERVICE, LifeSource.COLLECTOR, LifeEvidence.READING,
        host, host=host,
    )  # fmt: skip


def test_changes_in_the_lives_of_disks_are_kept_once_and_told_newest_first(store: Store) -> None:
    first, second, other = life_change(1), life_change(2, hour=1), life_change(3, "B", hour=2)
    store.add_life_changes([first, second])
    store.add_life_changes([second, other])
    assert store.read_life_changes() == (other, second, first)
    assert store.read_life_changes(since=NOON + HOUR, until=NOON + 2 * HOUR) == (second,)
    assert store.read_life_changes(limit=1) == (other,)
    assert store.read_life_changes(device=DeviceId("A")) == (second, first)


def test_the_last_change_of_each_disk_can_be_followed(store: Store) -> None:
    assert store.last_life_changes() == (0, {})
    store.add_life_changes([life_change(1), life_change(2, hour=1), life_change(3, "B")])
    mark, last = store.last_life_changes()
    assert last == {"A": life_change(2, hour=1), "B": life_change(3, "B")}
    assert store.last_life_changes(mark) == (mark, {})
    store.add_life_changes([life_change(4, hour=3)])
    assert store.last_life_changes(mark)[1] == {"A": life_change(4, hour=3)}


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

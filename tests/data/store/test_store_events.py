"""The changes in the lives of disks and the events of the cluster that a store keeps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind, tell_outlook
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import GRID_DAYS, Outlook, Reason, Status, SurvivalCurve
from predrain.data.store.store_port import Store

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


def test_an_osd_state_from_an_older_map_is_no_event(store: Store) -> None:
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


def bad_outlook(hour: int) -> ClusterEvent:
    curve = SurvivalCurve(1 / (1 + day / 100) for day in GRID_DAYS)
    reasons = (Reason("pending", "16 pending sectors."),)
    outlook = Outlook(DeviceId("A"), NOON + hour * HOUR, Status.BAD, "model:1", reasons, "", survival=curve)
    return tell_outlook(ClusterEventKind.OUTLOOK_DOUBLED, outlook)


def test_every_announcement_of_an_outlook_is_one_event_however_often_it_is_told(store: Store) -> None:
    first, second = bad_outlook(1), bad_outlook(2)
    for told in ([first], [first, second], [second], [first]):
        store.add_cluster_events(told)
    assert store.read_cluster_events() == (second, first)
    assert (first.severity, first.why) == (Status.BAD, "16 pending sectors.")


def test_old_changes_in_the_lives_of_disks_are_dropped_but_the_newest_of_each_disk_and_slot(
    store: Store,
) -> None:
    in_3, in_4 = (replace(life_change(n), osds=(OsdId(n),)) for n in (3, 4))
    again = replace(in_4, at=NOON + HOUR, state=LifeState.SILENT)
    recent = replace(in_4, at=NOON + 9 * HOUR)
    other = replace(life_change(1, "B", hour=2), osds=(OsdId(7), OsdId(13)))
    store.add_life_changes([in_3, in_4, again, other, recent])
    assert store.prune(history=NOON + 5 * HOUR) == 2
    # The slot osd.3 has no newer change than the one that A left it with.
    assert store.read_life_changes() == (recent, other, in_3)
    assert store.prune(history=NOON + 99 * HOUR) == 0


def test_changes_are_found_by_the_slot_in_which_their_disk_stood(store: Store) -> None:
    in_3 = replace(life_change(3), osds=(OsdId(3),))
    both = replace(life_change(1, "B", hour=2), osds=(OsdId(3), OsdId(13)))
    store.add_life_changes([in_3, both, life_change(5, "C")])
    assert store.read_life_changes(osd=OsdId(3)) == (both, in_3)
    assert store.read_life_changes(osd=OsdId(13)) == (both,)
    assert store.read_life_changes(osd=OsdId(1)) == ()


def test_old_outcomes_are_dropped_but_the_newest_of_each_disk_fate_and_source(store: Store) -> None:
    def said(device: str, hour: int, fate: DriveFate, source: str = "ada") -> Outcome:
        return Outcome(DeviceId(device), NOON + hour * HOUR, fate, source, f"{hour}")

    kept = (
        said("A", 1, DriveFate.CLEARED), said("A", 2, DriveFate.SUSPECTED, "rule"), said("B", 3, DriveFate.FAILED),
        said("A", 4, DriveFate.FAILED), said("A", 9, DriveFate.SUSPECTED), said("A", 10, DriveFate.SUSPECTED),
    )  # fmt: skip
    for one in (said("A", 0, DriveFate.FAILED), said("B", 0, DriveFate.FAILED), *kept):
        store.add_outcome(one)
    assert store.prune(history=NOON + 5 * HOUR) == 2
    assert store.outcomes() == kept

"""The failure of a disk is learned from the cluster: nobody states it, and what may be anything else is no failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.failed_disks import DOWN_FOR_GOOD, TOGETHER, find_failed_disks
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome, OutcomeRule
from predrain.data.outlook import Status

DOWN = datetime(2026, 5, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
DISK, OTHER = DeviceId("ST16000NM001G_A"), DeviceId("ST16000NM001G_B")
HOST, OSD = HostName("stor-01"), OsdId(3)
SUSPICION = Outcome(DISK, DOWN, DriveFate.SUSPECTED, OutcomeRule.OSD_DOWN, "osd.3 is down in epoch 7")
REPLACED = LifeChange(
    DISK, DOWN + DAY, LifeState.RETIRED, LifeSource.CLUSTER, LifeEvidence.OTHER_DISK, OTHER,
    why=RetiredWhy.REPLACED, host=HOST, osds=(OSD,), successor=OTHER,
)  # fmt: skip
SERVES = replace(REPLACED, state=LifeState.IN_SERVICE, evidence=LifeEvidence.READING, why=None)
UNLISTED = replace(REPLACED, evidence=LifeEvidence.NOT_LISTED, why=RetiredWhy.REMOVED, successor=None)
UNREADABLE = replace(REPLACED, state=LifeState.SILENT, evidence=LifeEvidence.UNREADABLE, why=None)


def event(
    kind: ClusterEventKind, at: datetime = DOWN, osd: int = OSD, device: DeviceId = DISK, host: str = HOST
) -> ClusterEvent:
    return ClusterEvent(f"osd.{osd}", at, kind, (OsdId(osd),), HostName(host), device)


WENT_DOWN = event(ClusterEventKind.OSD_DOWN)


def failed(
    change: LifeChange | None = REPLACED,
    *outcomes: Outcome,
    events: Sequence[ClusterEvent] = (),
    drains: Sequence[Drain] = (),
    now: datetime = DOWN + 2 * DAY,
) -> list[Outcome]:
    lives = (
        {} if change is None else {DISK: DiskLife(change, Status.GOOD if change.state.is_living else None)}
    )
    told = sorted((WENT_DOWN, *events), key=lambda one: one.at, reverse=True)
    since: list[datetime] = []

    def read(first: datetime) -> list[ClusterEvent]:
        since.append(first)
        return [one for one in told if one.at >= first]

    said = sorted((SUSPICION, *outcomes), key=lambda one: one.at)
    found = list(find_failed_disks(said, lives, drains, read, now))
    assert len(since) <= 1
    return found


@pytest.mark.parametrize("evidence", [LifeEvidence.OTHER_DISK, LifeEvidence.OSD_GONE])
def test_a_disk_whose_osd_went_down_and_that_is_gone_failed_when_the_osd_went_down(
    evidence: LifeEvidence,
) -> None:
    (found,) = failed(replace(REPLACED, evidence=evidence))
    assert (found.device, found.at, found.fate, found.source) == (
        DISK,
        DOWN,
        DriveFate.FAILED,
        "rule:osd-lost",
    )
    assert found.note.startswith("osd.3 is down in epoch 7, no OSD ran on the disk again, and ")
    assert found.is_by_rule


def test_a_failure_is_stated_once() -> None:
    (found,) = failed()
    assert failed(REPLACED, found) == []


@pytest.mark.parametrize(
    "change",
    [
        None,
        SERVES,
        replace(REPLACED, evidence=LifeEvidence.NO_READING, why=RetiredWhy.LOST),
        UNREADABLE,
        UNLISTED,
    ],
    ids=[
        "not known",
        "it serves under another OSD",
        "its host is silent too",
        "unreadable for a day",
        "pulled",
    ],
)
def test_a_disk_that_is_not_surely_gone_is_not_called_failed(change: LifeChange | None) -> None:
    assert failed(change) == []


@pytest.mark.parametrize("change", [UNREADABLE, UNLISTED], ids=["no answer", "not listed"])
def test_a_disk_that_its_host_does_not_find_for_a_week_failed(change: LifeChange) -> None:
    assert failed(change, now=DOWN + DOWN_FOR_GOOD - MINUTE) == []
    (found,) = failed(change, now=DOWN + DOWN_FOR_GOOD)
    assert found.at == DOWN


def test_a_disk_that_was_called_failed_and_serves_again_did_not_fail() -> None:
    (lost,) = failed(UNLISTED, now=DOWN + DOWN_FOR_GOOD)
    up = event(ClusterEventKind.OSD_UP, DOWN + 9 * DAY)
    (back,) = failed(SERVES, lost, events=[up])
    assert (back.fate, back.at, back.source) == (DriveFate.CLEARED, up.at, "rule:osd-back")
    assert failed(SERVES, lost, back, events=[up]) == []
    assert failed(SERVES, lost) == [], "it answers a host, and no OSD runs on it"


def test_a_disk_that_came_back_under_an_osd_was_no_failure() -> None:
    assert failed(events=[event(ClusterEventKind.OSD_UP, DOWN + MINUTE)]) == []


def test_the_successor_that_runs_in_the_slot_does_not_bring_the_disk_back() -> None:
    assert failed(events=[event(ClusterEventKind.OSD_UP, DOWN + DAY, device=OTHER)])


def test_disks_of_a_host_that_go_down_together_did_not_fail() -> None:
    beside = event(ClusterEventKind.OSD_DOWN, DOWN - TOGETHER, osd=4, device=OTHER)
    assert failed(events=[beside]) == []
    assert failed(events=[replace(beside, at=beside.at - MINUTE)])
    assert failed(events=[replace(beside, host=HostName("stor-02"))])


@pytest.mark.parametrize(
    ("emptied", "intent", "counts"),
    [
        (DOWN - DAY, Intent.REPLACE, False),
        (DOWN + MINUTE, Intent.REPLACE, True),
        (DOWN - DAY, Intent.FILL, True),
    ],
    ids=["emptied before", "died while it was drained", "filled before"],
)
def test_a_disk_that_was_emptied_before_its_osd_was_stopped_did_not_fail(
    emptied: datetime, intent: Intent, counts: bool
) -> None:
    begun = DOWN - 9 * DAY
    drain = Drain("osd.3-x", DISK, (OSD,), DrainState.VERIFIED, intent, "predrain", "", begun, emptied)
    over = ClusterEvent(
        drain.id, emptied, ClusterEventKind.DRAIN, (OSD,), state=DrainState.DRAINED, intent=intent
    )
    assert bool(failed(drains=[drain], events=[over])) is counts


@pytest.mark.parametrize("fate", [DriveFate.FAILED, DriveFate.CONFIRMED, DriveFate.CLEARED])
def test_the_word_of_a_person_after_the_osd_went_down_stands(fate: DriveFate) -> None:
    assert failed(REPLACED, Outcome(DISK, DOWN + MINUTE, fate, "ada")) == []


def test_that_the_disk_was_replaced_does_not_say_that_it_was_well() -> None:
    assert failed(REPLACED, Outcome(DISK, DOWN + MINUTE, DriveFate.REPLACED, "ada"))


def test_a_second_suspicion_after_a_verdict_is_judged_anew() -> None:
    before = Outcome(DISK, DOWN - DAY, DriveFate.CLEARED, "ada")
    (found,) = failed(REPLACED, before, replace(SUSPICION, at=DOWN - 2 * DAY))
    assert found.at == DOWN

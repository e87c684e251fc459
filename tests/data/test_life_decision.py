"""The rule of the life cycle: golden cases of single disks, and what must hold for every combination of facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.life_decision import (
    DiskFacts,
    KnownCluster,
    LifeClock,
    OsdPlace,
    decide_life,
    places_told_by_readings,
)
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Counters, Identity, OsdDevice, Protocol, Reading, Role, Smart, Unreadable
from predrain.data.unreadable import UnreadableCause

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
DISK, OTHER = DeviceId("ST4000DM000_OLD"), DeviceId("ST4000DM000_NEW")
HOST = HostName("stor-01")
CLOCK = LifeClock(NOW, 2 * HOUR)
SMART = Smart(Protocol.ATA, Identity(model="ST4000DM000"), True, Counters(pending=0))
SILENT_FOR_A_DAY = Unreadable(NOW - DAY, "no answer within 30 s", UnreadableCause.TIMEOUT)


def reading(
    ago: timedelta = timedelta(), seen: Smart | Unreadable = SMART, osd: int | None = None
) -> Reading:
    osd_devices = () if osd is None else (OsdDevice(OsdId(osd), Role.DATA),)
    return Reading(DISK, HOST, NOW - ago, NOW - ago, seen, osd_devices)


OURS, THEIRS = (
    ClusterId("0" * 8 + "-0000-4000-8000-" + "0" * 12),
    ClusterId("1" * 8 + "-1111-4111-8111-" + "1" * 12),
)


def of_cluster(device: DeviceId, cluster: ClusterId | None) -> Reading:
    """A reading of a disk that is the data disk of osd.3 there."""
    return replace(reading(), device=device, osd_devices=(OsdDevice(OsdId(3), Role.DATA, cluster),))


@pytest.mark.parametrize("ours", [OURS, None], ids=["named", "not named"])
def test_osd_3_of_another_cluster_is_not_taken_for_the_own_one(ours: ClusterId | None) -> None:
    readings = {DISK: of_cluster(DISK, ours), OTHER: of_cluster(OTHER, THEIRS)}
    assert places_told_by_readings(readings, OURS).places[OsdId(3)].device == DISK


def test_an_osd_that_two_clusters_have_stands_nowhere_while_the_own_cluster_is_unknown() -> None:
    readings = {DISK: of_cluster(DISK, OURS), OTHER: of_cluster(OTHER, THEIRS)}
    assert places_told_by_readings(readings, None).places == {}
    assert places_told_by_readings({DISK: readings[DISK]}, None).places[OsdId(3)].device == DISK


def outlook(status: Status = Status.BAD) -> Outlook:
    return Outlook(DISK, NOW, status, "model:x", (), "Drain it now and replace the disk.", p_fail_30d=0.29)


def place(device: DeviceId | None = DISK, *, up: bool = True, serving: bool = True) -> OsdPlace:
    return OsdPlace(OsdId(5), HOST, device, up, serving)


def drain(state: DrainState, intent: Intent = Intent.REPLACE) -> Drain:
    return Drain("D-1", DISK, (OsdId(5),), state, intent, "jo", "bad", NOW - DAY, NOW - HOUR)


def said(fate: DriveFate, ago: timedelta = HOUR) -> Outcome:
    return Outcome(DISK, NOW - ago, fate, "jo")


def known(*places: OsdPlace) -> KnownCluster:
    return KnownCluster({one.osd: one for one in places}, NOW)


def on_record(state: LifeState = LifeState.IN_SERVICE, why: RetiredWhy | None = None) -> LifeChange:
    return LifeChange(
        DISK, NOW - 30 * DAY, state, LifeSource.COLLECTOR, LifeEvidence.READING, HOST, why, HOST, (OsdId(5),)
    )


AWAKE = NOW - DAY
HERE = DiskFacts(DISK, reading(), outlook(), (place(),), awake_since=AWAKE, before=on_record())
GONE = replace(HERE, reading=reading(5 * HOUR), places=())


@pytest.mark.parametrize(
    ("facts", "cluster", "expected"),
    [
        (HERE, known(place()), (LifeState.IN_SERVICE, None, LifeSource.COLLECTOR)),
        (
            replace(HERE, outlook=None, before=None),
            known(place()),
            (LifeState.NEW, None, LifeSource.COLLECTOR),
        ),
        (
            DiskFacts(DISK, places=(place(),)),
            known(place()),
            (LifeState.NEW, None, LifeSource.CLUSTER),
        ),
        (
            replace(HERE, reading=reading(3 * HOUR), awake_since=None),
            known(place()),
            (LifeState.SILENT, None, LifeSource.COLLECTOR),
        ),
        (
            replace(HERE, reading=reading(seen=SILENT_FOR_A_DAY)),
            known(place()),
            (LifeState.SILENT, None, LifeSource.COLLECTOR),
        ),
        (
            replace(HERE, drain=drain(DrainState.HOLDING)),
            known(place()),
            (LifeState.DRAINING, None, LifeSource.CLUSTER),
        ),
        (
            replace(HERE, drain=drain(DrainState.VERIFIED), places=(place(serving=False),)),
            known(place(serving=False)),
            (LifeState.DRAINED, None, LifeSource.CLUSTER),
        ),
        (
            replace(HERE, drain=drain(DrainState.HANDED_OVER), before=on_record(LifeState.DRAINED)),
            known(place()),
            (LifeState.IN_SERVICE, None, LifeSource.CLUSTER),
        ),
        (
            replace(GONE, drain=drain(DrainState.HANDED_OVER)),
            known(place(None, up=False)),
            (LifeState.RETIRED, RetiredWhy.REMOVED, LifeSource.COLLECTOR),
        ),
        (
            replace(HERE, drain=drain(DrainState.DRAINING, Intent.FILL)),
            known(place()),
            (LifeState.FILLING, None, LifeSource.CLUSTER),
        ),
        (
            replace(HERE, drain=drain(DrainState.VERIFIED, Intent.FILL)),
            known(place()),
            (LifeState.IN_SERVICE, None, LifeSource.COLLECTOR),
        ),
        (
            replace(GONE, statement=said(DriveFate.FAILED)),
            known(place(None, up=False)),
            (LifeState.FAILED, None, LifeSource.PERSON),
        ),
        (
            replace(GONE, statement=said(DriveFate.REMOVED)),
            known(place(None, up=False)),
            (LifeState.RETIRED, RetiredWhy.REMOVED, LifeSource.PERSON),
        ),
        (
            replace(HERE, statement=said(DriveFate.FAILED)),
            known(place()),
            (LifeState.IN_SERVICE, None, LifeSource.COLLECTOR),
        ),
        (
            GONE,
            known(place(OTHER)),
            (LifeState.RETIRED, RetiredWhy.REPLACED, LifeSource.CLUSTER),
        ),
        (
            replace(GONE, statement=said(DriveFate.FAILED)),
            known(place(OTHER)),
            (LifeState.RETIRED, RetiredWhy.REPLACED, LifeSource.CLUSTER),
        ),
        (
            GONE,
            known(OsdPlace(OsdId(9), HOST, OTHER)),
            (LifeState.RETIRED, RetiredWhy.REMOVED, LifeSource.CLUSTER),
        ),
        (
            GONE,
            known(place(None, up=False)),
            (LifeState.RETIRED, RetiredWhy.LOST, LifeSource.COLLECTOR),
        ),
        (
            replace(GONE, reading=reading(8 * DAY), awake_since=None),
            KnownCluster(),
            (LifeState.RETIRED, RetiredWhy.LOST, LifeSource.COLLECTOR),
        ),
    ],
    ids=[
        "read and judged", "not judged yet", "named by the cluster alone", "its host is silent",
        "does not answer", "is drained", "is empty", "serves again", "is empty and gone", "is filled",
        "was filled", "a person says failed", "a person says removed", "answers after it was called failed",
        "another disk in its slot", "failed, and another disk in its slot", "its OSD was purged",
        "its awake host reads it no more", "nobody read it for a week",
    ],
)  # fmt: skip
def test_the_known_facts_of_a_disk_determine_its_life_state(
    facts: DiskFacts, cluster: KnownCluster, expected: tuple[LifeState, RetiredWhy | None, LifeSource]
) -> None:
    change = decide_life(facts, cluster, CLOCK).change
    assert (change.state, change.why, change.source) == expected


def test_a_replaced_disk_names_its_successor_also_where_only_its_old_drain_tells_the_slot() -> None:
    facts = replace(GONE, before=None, drain=drain(DrainState.HANDED_OVER), drained_osds=(OsdId(5),))
    life = decide_life(facts, known(place(OTHER)), CLOCK)
    assert (life.change.successor, life.change.osds, life.severity) == (OTHER, (5,), None)
    assert (life.change.evidence, life.change.subject) == (LifeEvidence.OTHER_DISK, OTHER)


def test_a_life_state_settled_by_the_cluster_stands_until_the_cluster_is_seen_again() -> None:
    ended = decide_life(GONE, known(place(OTHER)), CLOCK).change
    assert decide_life(replace(GONE, before=ended), KnownCluster(), CLOCK).change is ended


@pytest.mark.parametrize("places", [(3, OTHER), (5, OTHER)], ids=["has an osd.3", "has no osd.3"])
def test_a_disk_under_osd_3_of_another_cluster_is_neither_replaced_nor_removed_in_the_own_one(
    places: tuple[int, DeviceId],
) -> None:
    osd = OsdId(places[0])
    cluster = KnownCluster({osd: OsdPlace(osd, HOST, places[1])}, NOW, OURS)
    facts = DiskFacts(DISK, reading=of_cluster(DISK, THEIRS), awake_since=NOW - DAY)
    change = decide_life(facts, cluster, CLOCK).change
    assert (change.state.is_living, change.successor, change.osds) == (True, None, ())


def test_a_late_reading_means_nothing_soon_after_a_start() -> None:
    facts = replace(HERE, reading=reading(5 * HOUR))
    assert decide_life(facts, known(place()), replace(CLOCK, settled=False)).state is LifeState.IN_SERVICE


def test_a_history_that_was_kept_apart_ends_when_it_was_settled_whose_it_is() -> None:
    apart = replace(on_record(), device=DeviceId(f"{DISK} on stor-02"), host=HostName("stor-02"))
    life = decide_life(DiskFacts(apart.device, before=apart), KnownCluster(), CLOCK)
    assert (life.change.state, life.change.why) == (LifeState.RETIRED, RetiredWhy.MOVED)


readings = st.one_of(
    st.none(),
    st.builds(
        reading,
        st.sampled_from([timedelta(), HOUR, 3 * HOUR, 2 * DAY, 9 * DAY]),
        st.sampled_from([SMART, SILENT_FOR_A_DAY]),
        st.sampled_from([None, 5, 7]),
    ),
)
places = st.sampled_from([(), (place(),), (place(up=False, serving=False),)])
drains = st.one_of(
    st.none(), st.builds(drain, st.sampled_from(list(DrainState)), st.sampled_from(list(Intent)))
)
statements = st.one_of(
    st.none(), st.builds(said, st.sampled_from(list(DriveFate)), st.sampled_from([HOUR, 5 * HOUR]))
)
changes = st.builds(
    lambda state, why: on_record(state, why if state is LifeState.RETIRED else None),
    st.sampled_from(list(LifeState)),
    st.sampled_from(list(RetiredWhy)),
)
disk_facts = st.builds(
    DiskFacts,
    st.just(DISK),
    readings,
    st.one_of(st.none(), st.builds(outlook, st.sampled_from(list(Status)))),
    places,
    drains,
    st.just(()),
    statements,
    st.sampled_from([None, NOW, AWAKE]),
    changes,
)
clusters = st.sampled_from(
    [KnownCluster(), known(place()), known(place(OTHER)), known(place(None, up=False))]
)
clocks = st.builds(LifeClock, st.just(NOW), st.just(2 * HOUR), st.booleans())


@given(disk_facts, clusters, clocks)
def test_every_disk_has_one_state_and_a_severity_exactly_while_it_lives(
    facts: DiskFacts, cluster: KnownCluster, clock: LifeClock
) -> None:
    life = decide_life(facts, cluster, clock)
    assert life.change.device == DISK
    assert (life.severity is not None) == life.state.is_living
    assert (life.change.why is not None) == (life.state is LifeState.RETIRED)


@given(disk_facts, clusters, clocks)
def test_a_change_on_record_is_not_made_again(
    facts: DiskFacts, cluster: KnownCluster, clock: LifeClock
) -> None:
    change = decide_life(facts, cluster, clock).change
    assert decide_life(replace(facts, before=change), cluster, clock).change == change


@given(disk_facts, clusters, clocks)
def test_the_changes_of_a_disk_are_in_order_of_time_and_none_is_of_the_future(
    facts: DiskFacts, cluster: KnownCluster, clock: LifeClock
) -> None:
    change = decide_life(facts, cluster, clock).change
    assert facts.before is None or facts.before.at <= change.at <= clock.now


@given(disk_facts, clusters)
def test_a_disk_under_a_running_osd_that_answers_is_never_retired(
    facts: DiskFacts, cluster: KnownCluster
) -> None:
    seen = replace(facts, reading=reading(), places=(place(),), statement=None)
    assert decide_life(seen, cluster, CLOCK).is_living


def test_every_kind_of_state_can_be_reached() -> None:
    reached: Mapping[LifeState, DiskLife] = {
        life.state: life
        for facts, cluster in (
            (HERE, known(place())),
            (replace(HERE, outlook=None, before=None), known(place())),
            (replace(HERE, reading=reading(3 * HOUR), awake_since=None), known(place())),
            (replace(HERE, drain=drain(DrainState.DRAINING)), known(place())),
            (replace(HERE, drain=drain(DrainState.VERIFIED)), known(place())),
            (replace(HERE, drain=drain(DrainState.DRAINING, Intent.FILL)), known(place())),
            (replace(GONE, statement=said(DriveFate.FAILED)), known(place(None, up=False))),
            (GONE, known(place(OTHER))),
        )
        for life in [decide_life(facts, cluster, CLOCK)]
    }
    assert reached.keys() == set(LifeState)

"""From what the service knows to events: each kind of change, its sentence and its link."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from predrain.data.cluster_event import ClusterEvent, ClusterEventKind, tell_halt
from predrain.data.drain import DrainState, Intent
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.life_cycle import LifeChange, LifeEvidence, LifeSource, LifeState, RetiredWhy
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import GRID_DAYS, Life, Outlook, Reason, Status, SurvivalCurve
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.events import event_query
from predrain.service.events.event import CurrentPlaces, HistoryEvent
from predrain.service.events.event_conversion import make_event
from predrain.service.events.event_kinds import HistoryGroup, HistoryKind, group_of
from predrain.service.events.event_query import HistoryCursor, HistoryPage, HistoryQuery, read_history
from predrain.service.events.event_sentences import describe_event, link_event
from predrain.service.streams.outlook_announcements import Alert, AnnouncementReason, tell_alert

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DISK, OSD, HOST = DeviceId("ST4000_Z1"), OsdId(3), HostName("stor-01")
PLACES = CurrentPlaces({OSD: HOST}, {OSD: DISK}, {DISK: OSD}, {DISK: HOST})
DOWN = ClusterEvent("osd.3", NOON, ClusterEventKind.OSD_DOWN, (OSD,), HOST, epoch=7)
PROPOSED = ClusterEvent(
    "osd.3-1", NOON, ClusterEventKind.DRAIN, (OSD,), None, DISK, DrainState.PROPOSED, Intent.REPLACE,
    "it has pending sectors", "ada",
)  # fmt: skip
FAILED = LifeChange(
    DISK, NOON, LifeState.FAILED, LifeSource.COLLECTOR, LifeEvidence.UNREADABLE, host=HOST, osds=(OSD,)
)
SWAPPED = replace(FAILED, state=LifeState.RETIRED, why=RetiredWhy.REPLACED, successor=DeviceId("ST4000_Z2"))


def bad_outlook(at: datetime = NOON) -> Outlook:
    curve = SurvivalCurve(1 / (1 + day / 100) for day in GRID_DAYS)
    reasons = (Reason("pending", "16 pending sectors."),)
    return Outlook(DISK, at, Status.BAD, "model:1", reasons, "", 0.1, 0.2, 0.3, curve, Life(1.0, 2.0, None))


@pytest.mark.parametrize(
    ("known", "kind", "sentence", "href"),
    [
        (DOWN, "osd_down", "osd.3 is down.", "/devices/ST4000_Z1"),
        (replace(DOWN, kind=ClusterEventKind.OSD_UP), "osd_up", "osd.3 is up again.", "/devices/ST4000_Z1"),
        (
            PROPOSED,
            "drain_proposed",
            "A drain of osd.3 was asked for by ada: it has pending sectors.",
            "/drains/osd.3-1",
        ),
        (
            replace(PROPOSED, state=DrainState.HANDED_OVER, why="", by=""),
            "drain_handed_over",
            "The drain of osd.3 is handed over.",
            "/drains/osd.3-1",
        ),
        (FAILED, "disk_failed", "ST4000_Z1 (osd.3) failed.", "/devices/ST4000_Z1"),
        (
            SWAPPED,
            "disk_replaced",
            "ST4000_Z1 (osd.3) was replaced by ST4000_Z2.",
            "/devices/ST4000_Z1",
        ),
        (
            Outcome(DISK, NOON, DriveFate.CLEARED, "ada", "a loose cable"),
            "disk_statement",
            "ST4000_Z1 (osd.3) was judged, says ada: cleared: a loose cable.",
            "/devices/ST4000_Z1",
        ),
        (
            Outcome(DISK, NOON, DriveFate.FAILED, "ada", "it clicks"),
            "disk_failed",
            "ST4000_Z1 (osd.3) failed, says ada: it clicks.",
            "/devices/ST4000_Z1",
        ),
        (
            tell_alert(Alert(AnnouncementReason.WORSE, bad_outlook())),
            "outlook_worse",
            "The outlook of ST4000_Z1 (osd.3) became worse: bad: 16 pending sectors.",
            "/devices/ST4000_Z1",
        ),
        (
            tell_halt("switch maintenance", "ada", NOON),
            "halted",
            "All drains were halted by ada: switch maintenance.",
            "/alerts",
        ),
        (tell_halt(None, "ada", NOON), "halt_lifted", "The halt was lifted by ada.", "/alerts"),
        (
            ClusterEvent("controller", NOON, ClusterEventKind.CONTROLLER, by="ceph-1 (process 9)"),
            "controller_changed",
            "The controller on ceph-1 (process 9) acts on drains now.",
            "/drains",
        ),
    ],
)
def test_each_change_is_one_event_with_a_sentence_and_a_link(
    known: event_query.KnownChange, kind: str, sentence: str, href: str
) -> None:
    event = make_event(known, PLACES)
    assert event is not None
    assert (event.kind, describe_event(event), link_event(event)) == (kind, sentence, href)
    if event.device is not None:
        assert (event.host, event.osd) == (HOST, OSD)


@pytest.mark.parametrize(
    "known",
    [
        replace(FAILED, evidence=LifeEvidence.STATEMENT, source=LifeSource.PERSON),
        replace(FAILED, state=LifeState.DRAINING, evidence=LifeEvidence.DRAIN),
        Outcome(DISK, NOON, DriveFate.SUSPECTED, "rule:osd-down", "osd.3 is down in epoch 7"),
    ],
    ids=["said by a person", "told by the drain", "told by the OSD"],
)
def test_a_change_that_another_change_reports_already_is_no_second_event(
    known: event_query.KnownChange,
) -> None:
    assert make_event(known, PLACES) is None


@pytest.mark.parametrize("state", DrainState)
def test_every_state_of_a_drain_is_a_kind_with_a_sentence(state: DrainState) -> None:
    event = make_event(replace(PROPOSED, state=state), PLACES)
    assert event is not None
    assert group_of(event.kind) is HistoryGroup.DRAIN
    assert "osd.3" in describe_event(event)


@pytest.mark.parametrize("kind", HistoryKind)
def test_every_kind_has_a_group_a_sentence_and_a_link(kind: HistoryKind) -> None:
    bare = HistoryEvent(NOON, kind)
    assert group_of(kind) in HistoryGroup
    assert describe_event(bare).endswith(".")
    assert link_event(bare).startswith("/")


@pytest.mark.parametrize(
    "why", ["another device is in its place", "It holds.", "why?", "  ", "stor-01, shelf 3 …"]
)
@pytest.mark.parametrize("kind", HistoryKind)
def test_every_event_is_a_sentence_that_ends_once_whoever_typed_its_reason(
    kind: HistoryKind, why: str
) -> None:
    said = describe_event(HistoryEvent(NOON, kind, device=DISK, osd=OSD, why=why, by="ada"))
    assert said.endswith((".", "?", "…"))
    assert not said.endswith("..")


def read(
    store: SqliteStore, asked: HistoryQuery, limit: int, after: HistoryCursor | None = None
) -> HistoryPage:
    return read_history(store, PLACES, asked, limit, after)


def read_all(store: SqliteStore, asked: HistoryQuery, limit: int) -> list[HistoryEvent]:
    found: list[HistoryEvent] = []
    page = read(store, asked, limit)
    while True:
        assert len(page.events) <= limit
        found += page.events
        if page.next is None:
            return found
        page = read(store, asked, limit, page.next)


@pytest.fixture
def busy() -> SqliteStore:
    """Many OSDs go down in one instant, and things happen before and after."""
    store = SqliteStore(":memory:")
    at_once = [
        replace(DOWN, subject=f"osd.{osd}", osds=(OsdId(osd),), host=HostName(f"stor-{osd % 7}"))
        for osd in range(30)
    ]
    store.add_cluster_events([*at_once, tell_halt("smoke", "ada", NOON + HOUR)])
    store.add_cluster_events([tell_alert(Alert(AnnouncementReason.WORSE, bad_outlook(NOON + 2 * HOUR)))])
    store.add_life_changes([FAILED, replace(SWAPPED, at=NOON + 3 * HOUR)])
    store.add_outcome(Outcome(DISK, NOON - HOUR, DriveFate.CLEARED, "ada"))
    return store


@pytest.mark.parametrize("limit", [1, 7, 1_000])
def test_pages_of_any_size_tell_every_event_once_newest_first(
    busy: SqliteStore, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_query, "AT_ONCE", 4)
    found = read_all(busy, HistoryQuery(), limit)
    assert len(found) == len({(event.at, event.key) for event in found}) == 35
    assert [event.at for event in found] == sorted((event.at for event in found), reverse=True)
    assert [event.kind for event in found[:3]] == ["disk_replaced", "outlook_worse", "halted"]


def test_only_what_is_asked_for_is_told(busy: SqliteStore) -> None:
    def kinds(**asked: object) -> list[str]:
        return [event.kind for event in read_all(busy, HistoryQuery(**asked), 5)]  # type: ignore[arg-type]

    assert kinds(kinds=frozenset({HistoryKind.HALTED})) == ["halted"]
    assert kinds(host=HostName("stor-2")) == ["osd_down"] * 4
    assert kinds(device=DISK) == [
        "disk_replaced",
        "outlook_worse",
        "disk_failed",
        "osd_down",
        "disk_statement",
    ]
    assert kinds(osd=OsdId(29)) == ["osd_down"]
    assert kinds(words=("SMOKE", "ada")) == ["halted"]
    assert kinds(words=("smoke", "bob")) == []
    assert kinds(since=NOON + HOUR, until=NOON + 3 * HOUR) == ["outlook_worse", "halted"]


def test_a_page_that_finds_little_stops_looking_and_says_where_to_go_on(
    busy: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_query, "MOST_LOOKED_AT", 10)
    asked = HistoryQuery(kinds=frozenset({HistoryKind.DISK_STATEMENT}))
    first = read(busy, asked, 5)
    assert first.events == ()
    assert first.next is not None
    assert [event.kind for event in read_all(busy, asked, 5)] == ["disk_statement"]

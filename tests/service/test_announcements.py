"""When an outlook is announced, beside the reading that it is of."""

from __future__ import annotations

from datetime import UTC, datetime

from predrain.data.cluster_event import ClusterEventKind, tell_outlook
from predrain.data.ids import DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.service.streams.outlook_announcements import AnnouncementReason, Announcements

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def outlook(status: Status) -> Outlook:
    return Outlook(DeviceId("A"), NOON, status, "rule:media-errors", reasons=(), prescription="")


def announced(*statuses: Status) -> Announcements:
    """Return the memory of a process that has announced these outlooks of one reading in turn."""
    known = Announcements()
    for status in statuses:
        known.remember_alerts(known.select_news([outlook(status)]))
    return known


def test_a_graver_judgement_of_the_same_reading_is_announced() -> None:
    """A reading of before that came late shows that a count rose."""
    (alert,) = announced(Status.WARNING).select_news([outlook(Status.BAD)])
    assert alert.why is AnnouncementReason.WORSE


def test_neither_the_same_nor_a_milder_judgement_of_the_same_reading_is_announced_again() -> None:
    known = announced(Status.WARNING, Status.BAD)
    assert not known.select_news([outlook(Status.BAD)])
    assert not known.select_news([outlook(Status.WARNING)])
    assert known.list_announced_outlooks()[DeviceId("A")].severity is Status.BAD


def test_the_event_of_a_graver_judgement_of_the_same_reading_is_kept_once() -> None:
    warned = tell_outlook(ClusterEventKind.OUTLOOK_WORSE, outlook(Status.WARNING))
    worse = tell_outlook(ClusterEventKind.OUTLOOK_WORSE, outlook(Status.BAD))
    assert worse.is_news_after(warned)
    assert not worse.is_news_after(worse)
    assert not warned.is_news_after(worse)

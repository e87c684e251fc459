"""Nobody is woken twice for one thing, and nobody misses one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.outlook import Status
from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.message_route import MessageRoute
from predrain.service.notifications.notification_log import AGAIN, CALM, GATHER, Message, NotificationLog
from predrain.service.notifications.silences import Silence
from tests.service.notifications.snapshots import NOW, Fleet, device, host_of

MINUTE = timedelta(minutes=1)


@dataclass
class Listener:
    """A channel that is looked at once a minute and always delivers."""

    min_severity: Severity = Severity.NOTICE
    now: datetime = NOW
    ledger: NotificationLog = field(default_factory=lambda: NotificationLog({}))
    silences: Sequence[Silence] = ()
    heard: list[Message] = field(default_factory=list)

    def live(self, standing: Sequence[AlertCause], time: timedelta, *, works: bool = True) -> list[Message]:
        """Let `time` pass with the same causes; returns what was heard."""
        before, end = len(self.heard), self.now + time
        while self.now < end:
            self.now += MINUTE
            self.ledger = self.ledger.with_current_causes(standing, self.now)
            for message in self.ledger.list_due_messages(
                standing, self.silences, self.now, MessageRoute(self.min_severity)
            ):
                self.heard.append(message)
                if works:
                    self.ledger = self.ledger.with_delivery(message)
        return self.heard[before:]


def a_cause(key: str, *names: str, severity: Severity = Severity.URGENT) -> AlertCause:
    return AlertCause(
        key,
        f"{key} stands",
        tuple(CausePart(name, f"{name} is sick", severity) for name in names),
        "Look.",
        "/",
    )


def test_a_cause_is_told_once_however_long_it_stands() -> None:
    listener = Listener()
    (message,) = listener.live([a_cause("host:a", "1")], timedelta(days=3))
    assert message.news == {"1"}
    assert message.at - NOW <= GATHER + MINUTE


def test_those_that_come_within_a_minute_are_told_together() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1")], MINUTE)
    (message,) = listener.live([a_cause("host:a", "1", "2", "3")], timedelta(hours=2))
    assert message.news == {"1", "2", "3"}


def test_a_cause_that_grows_is_told_again_after_an_hour_and_says_what_is_new() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1")], 10 * MINUTE)
    assert listener.live([a_cause("host:a", "1", "2")], 40 * MINUTE) == []
    (message,) = listener.live([a_cause("host:a", "1", "2")], AGAIN)
    assert (message.news, message.cause.names) == ({"2"}, {"1", "2"})


def test_a_cause_that_gets_worse_is_told_at_once() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1", severity=Severity.NOTICE)], 10 * MINUTE)
    (message,) = listener.live([a_cause("host:a", "1")], 3 * MINUTE)
    assert message.cause.severity is Severity.URGENT


def test_a_cause_that_gets_better_and_worse_again_is_told_no_second_time() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1")], 10 * MINUTE)
    listener.live([a_cause("host:a", "1", severity=Severity.NOTICE)], 10 * MINUTE)
    assert listener.live([a_cause("host:a", "1")], timedelta(hours=5)) == []


def test_the_end_is_told_once_after_it_has_lasted() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1")], 10 * MINUTE)
    assert listener.live([], CALM - MINUTE) == []
    (message,) = listener.live([], timedelta(days=1))
    assert message.over
    assert message.cause.title == "host:a stands"


def test_a_cause_is_over_when_the_last_of_it_is_and_no_sooner() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1", "2")], 10 * MINUTE)
    assert listener.live([a_cause("host:a", "2")], timedelta(days=1)) == []
    (message,) = listener.live([], timedelta(days=1))
    assert (message.over, message.cause.title) == (True, "host:a stands")


def test_a_point_that_comes_again_is_sent_again_though_other_points_of_its_cause_stood_meanwhile() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1", "2")], 10 * MINUTE)
    assert listener.live([a_cause("host:a", "2")], timedelta(days=1)) == []
    (message,) = listener.live([a_cause("host:a", "1", "2")], timedelta(days=1))
    assert message.news == {"1"}


def test_hosts_that_come_back_one_after_another_are_over_in_one_message() -> None:
    fleet, listener = Fleet(disks=80), Listener()
    fleet.silent = {host_of(10 * number): NOW - timedelta(hours=3) for number in range(8)}
    listener.live(find_alert_causes(fleet.snapshot()), timedelta(hours=1))
    for host in list(fleet.silent):
        del fleet.silent[host]
        listener.live(find_alert_causes(fleet.snapshot()), 4 * MINUTE)
    listener.live([], timedelta(hours=3))
    first, last = listener.heard
    assert first.cause.title == last.cause.title == "8 of 8 hosts are silent"
    assert (last.over, len(last.cause.points)) == (True, 8)


def test_a_flapping_condition_is_alerted_once() -> None:
    listener = Listener()
    standing = [a_cause("part:worker", "part:worker")]
    for turn in range(100):
        listener.live(standing if turn % 2 else [], 5 * MINUTE)
    assert len(listener.heard) == 1


def test_a_cause_that_ended_before_its_first_message_is_never_sent() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1")], MINUTE)
    assert listener.live([], timedelta(days=1)) == []


def test_disks_that_turn_out_to_be_one_cause_are_not_told_again() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1"), a_cause("host:b", "2")], 10 * MINUTE)
    (message,) = listener.live([a_cause("model:x", "1", "2", "3")], timedelta(hours=3))
    assert message.news == {"3"}


@pytest.mark.slow
def test_three_hundred_disks_that_turn_at_once_are_one_message() -> None:
    fleet, listener = Fleet(disks=450), Listener()
    fleet.sicken(*range(300))
    listener.live(find_alert_causes(fleet.snapshot()), timedelta(hours=12))
    assert len(listener.heard) == 1


@pytest.mark.slow
def test_three_hundred_disks_that_turn_within_an_hour_are_at_most_three_messages() -> None:
    fleet, listener = Fleet(disks=450), Listener()
    for minute in range(60):
        fleet.sicken(*range(minute * 5, minute * 5 + 5))
        listener.live(find_alert_causes(fleet.snapshot()), MINUTE)
    listener.live(find_alert_causes(fleet.snapshot()), timedelta(hours=12))
    assert len(listener.heard) <= 3
    told = {name for message in listener.heard for name in message.news}
    assert told == {f"disk:{device(number)}" for number in range(300)}


def test_a_restart_knows_what_was_told() -> None:
    listener = Listener()
    listener.live([a_cause("host:a", "1")], 10 * MINUTE)
    again = Listener(now=listener.now, ledger=NotificationLog(dict(listener.ledger.noted)))
    assert again.live([a_cause("host:a", "1")], timedelta(days=1)) == []


def test_an_undelivered_message_is_tried_again_under_the_same_id() -> None:
    listener = Listener()
    tried = listener.live([a_cause("host:a", "1")], 10 * MINUTE, works=False)
    assert len(tried) > 5
    assert len({message.id for message in tried}) == 1
    assert len(listener.live([a_cause("host:a", "1")], 10 * MINUTE)) == 1


def test_a_silenced_point_is_told_when_the_silence_ends() -> None:
    silence = Silence("s", NOW + timedelta(hours=2), "jo", "known", name="1")
    listener = Listener(silences=[silence])
    (message,) = listener.live([a_cause("host:a", "1", "2")], timedelta(minutes=110))
    assert message.cause.names == {"2"}
    (message,) = listener.live([a_cause("host:a", "1", "2")], timedelta(hours=2))
    assert message.news == {"1"}


def test_a_channel_for_what_is_urgent_hears_nothing_else() -> None:
    listener = Listener(Severity.URGENT)
    fleet = Fleet()
    fleet.sicken(3, status=Status.WARNING)
    assert listener.live(find_alert_causes(fleet.snapshot()), timedelta(hours=2)) == []
    fleet.sicken(3)
    assert len(listener.live(find_alert_causes(fleet.snapshot()), timedelta(hours=2))) == 1


points = st.sampled_from("12345")
looks = st.lists(st.dictionaries(points, st.sampled_from("ab")), max_size=200)


@given(looks)
def test_no_point_is_news_twice_while_it_stands_for_any_sequence_of_causes(
    found: list[dict[str, str]],
) -> None:
    listener = Listener()
    standing: set[str] = set()
    seen: dict[str, datetime] = {}
    for look in found:
        grouped = [
            a_cause(key, *(name for name in look if look[name] == key)) for key in sorted(set(look.values()))
        ]
        for message in listener.live(grouped, MINUTE):
            if message.over:
                assert message.cause.names <= standing
                standing -= message.cause.names
            else:
                assert not message.news & standing
                standing |= message.news
        seen |= dict.fromkeys(look, listener.now)
        forgotten = standing - listener.ledger.noted.keys()
        assert all(listener.now - seen[name] >= CALM for name in forgotten)
        standing -= forgotten

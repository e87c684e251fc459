"""The messages that channels get over restarts, failures and silences."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from predrain.data.outlook import Reason
from predrain.data.reading import Unreadable
from predrain.service.notifications.cause import Severity
from predrain.service.notifications.channel import NotDelivered
from predrain.service.notifications.message_route import MessageRoute
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.notifier import Notifier, remove_silence, save_silence, silences_of
from predrain.service.notifications.silences import Silence
from tests.service.notifications.snapshots import NOW, Fleet, device, host_of

MINUTE = timedelta(minutes=1)


@dataclass
class Kept:
    """Notes in memory."""

    rooms: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def read_notes(self, room: str) -> Mapping[str, bytes]:
        return dict(self.rooms.get(room, {}))

    def write_notes(self, room: str, changes: Mapping[str, bytes | None]) -> None:
        kept = self.rooms.setdefault(room, {})
        for name, raw in changes.items():
            if raw is None:
                kept.pop(name, None)
            else:
                kept[name] = raw


@dataclass
class Ear:
    """A channel that remembers, and can be deaf."""

    name: str = "ear"
    min_severity: Severity = Severity.NOTICE
    heard: list[Message] = field(default_factory=list)
    tried: int = 0
    deaf: bool = False
    refuses: tuple[str, ...] = ()
    """Causes that it never takes."""

    def deliver(self, message: Message) -> None:
        self.tried += 1
        if self.deaf or message.cause.key in self.refuses:
            raise NotDelivered("the ear is deaf")
        self.heard.append(message)


def live(notifier: Notifier, fleet: Fleet, time: timedelta) -> None:
    for _ in range(int(time / MINUTE)):
        fleet.now += MINUTE
        notifier.send_notifications(fleet.snapshot())


def a_sick_fleet() -> Fleet:
    fleet = Fleet()
    fleet.sicken(3)
    return fleet


def test_a_restart_tells_nothing_again() -> None:
    notes, ear, fleet = Kept(), Ear(), a_sick_fleet()
    live(Notifier(notes, [ear]), fleet, 10 * MINUTE)
    live(Notifier(notes, [ear]), fleet, 10 * MINUTE)
    assert len(ear.heard) == 1


def test_the_end_is_told_by_who_was_not_there_at_the_beginning() -> None:
    notes, ear, fleet = Kept(), Ear(), a_sick_fleet()
    live(Notifier(notes, [ear]), fleet, 10 * MINUTE)
    fleet.outlooks.clear()
    live(Notifier(notes, [ear]), fleet, 20 * MINUTE)
    live(Notifier(notes, [ear]), fleet, 20 * MINUTE)
    assert [message.over for message in ear.heard] == [False, True]
    assert notes.read_notes("told:ear") == {}


@pytest.mark.slow
def test_a_host_is_silent_however_often_this_service_starts_meanwhile() -> None:
    notes, ear, fleet = Kept(), Ear(), Fleet(silent={host_of(3): NOW - timedelta(hours=3)})
    live(Notifier(notes, [ear]), fleet, 10 * MINUTE)
    fleet.settled = False
    for _ in range(10):
        live(Notifier(notes, [ear]), fleet, 5 * MINUTE)
    fleet.settled = True
    live(Notifier(notes, [ear]), fleet, timedelta(days=9))
    assert [message.cause.title for message in ear.heard] == ["stor-00 is silent"]
    fleet.silent.clear()
    live(Notifier(notes, [ear]), fleet, timedelta(hours=1))
    assert [message.over for message in ear.heard] == [False, True]


@pytest.mark.slow
def test_a_cause_that_a_host_reported_before_it_fell_silent_is_not_over() -> None:
    notes, ear, fleet = Kept(), Ear(), Fleet()
    fleet.unread[device(3)] = Unreadable(NOW, "no answer within 30 s")
    fleet.sicken(4)
    notifier = Notifier(notes, [ear])
    live(notifier, fleet, timedelta(hours=1))
    fleet.silent[host_of(3)] = fleet.now
    live(notifier, fleet, timedelta(days=9))
    assert sorted(message.cause.title for message in ear.heard) == [
        "1 disk on stor-00 cannot be read", "ST4000DM000_Z00004 on stor-00 is bad", "stor-00 is silent",
    ]  # fmt: skip
    assert not any(message.over for message in ear.heard)


@pytest.mark.slow
def test_a_disk_that_is_called_bad_since_it_cannot_be_read_is_not_said_to_be_read_again() -> None:
    notes, ear, fleet = Kept(), Ear(), Fleet()
    fleet.unread[device(3)] = Unreadable(NOW, "no answer within 30 s")
    notifier = Notifier(notes, [ear])
    live(notifier, fleet, timedelta(hours=1))
    fleet.sicken(3, reason=Reason("unreadable", "It has not been read for a day.", None))
    live(notifier, fleet, timedelta(hours=3))
    assert [message.over for message in ear.heard] == [False, False]
    fleet.unread.clear()
    fleet.outlooks.clear()
    live(notifier, fleet, timedelta(hours=3))
    assert sorted(message.cause.title for message in ear.heard if message.over) == [
        "1 disk on stor-00 cannot be read", "ST4000DM000_Z00003 on stor-00 is bad",
    ]  # fmt: skip


def test_a_channel_that_fails_is_tried_ever_more_seldom_and_holds_nobody_up() -> None:
    deaf, ear, fleet = Ear("deaf", deaf=True), Ear(), a_sick_fleet()
    notifier = Notifier(Kept(), [deaf, ear])
    live(notifier, fleet, timedelta(hours=1))
    assert len(ear.heard) == 1
    assert 5 <= deaf.tried <= 12
    assert notifier.troubles == {"deaf": "the ear is deaf"}
    deaf.deaf = False
    live(notifier, fleet, timedelta(hours=1))
    assert [message.id for message in deaf.heard] == [ear.heard[0].id]
    assert notifier.troubles == {}


def test_messages_that_their_receiver_never_takes_keep_no_other_one_waiting() -> None:
    ear, fleet = Ear(refuses=("disks:host:stor-00", "disks:host:stor-01")), Fleet()
    notifier = Notifier(Kept(), [ear])
    fleet.sicken(3, 13, 23)
    live(notifier, fleet, 10 * MINUTE)
    fleet.sicken(33, reason=Reason("pending-stayed", "Sectors stayed pending.", "pending"))
    live(notifier, fleet, 20 * MINUTE)
    assert [message.cause.host for message in ear.heard] == ["stor-02", "stor-03"]
    assert notifier.troubles == {"ear": "the ear is deaf"}


def test_a_silence_outlives_the_process_and_ends_by_itself() -> None:
    notes, ear, fleet = Kept(), Ear(), a_sick_fleet()
    one = Silence("s-1", NOW + timedelta(hours=1), "jo", "it is being swapped", name=f"disk:{device(3)}")
    save_silence(notes, one, NOW)
    assert silences_of(notes, NOW) == (one,)
    live(Notifier(notes, [ear]), fleet, timedelta(minutes=50))
    assert ear.heard == []
    live(Notifier(notes, [ear]), fleet, timedelta(minutes=20))
    assert len(ear.heard) == 1
    assert silences_of(notes, fleet.now) == ()


def test_a_lifted_silence_is_no_more() -> None:
    notes = Kept()
    save_silence(notes, Silence("s-1", NOW + timedelta(hours=1), "jo", "why", host="stor-00"), NOW)
    assert remove_silence(notes, "s-1")
    assert not remove_silence(notes, "s-1")
    assert silences_of(notes, NOW) == ()


def test_an_older_release_does_not_read_a_narrowed_silence_as_one_of_everything() -> None:
    notes = Kept()
    one = Silence("s-1", NOW + timedelta(hours=1), "jo", "why", rack="a*", severity=Severity.NOTICE)
    save_silence(notes, one, NOW)
    assert notes.read_notes("silences") == {}
    assert silences_of(notes, NOW) == (one,)
    assert remove_silence(notes, "s-1")


def test_silences_that_are_over_are_forgotten_with_the_next() -> None:
    notes = Kept()
    save_silence(notes, Silence("s-1", NOW + timedelta(hours=1), "jo", "why"), NOW)
    save_silence(notes, Silence("s-2", NOW + timedelta(hours=9), "jo", "why"), NOW + timedelta(hours=2))
    assert notes.read_notes("silences").keys() == {"s-2"}


@dataclass
class Desk(Ear):
    """A channel whose receiver keeps alerts."""

    takes_acknowledgements: bool = True
    repeat_after: timedelta | None = None


def test_a_channel_that_is_slow_holds_nobody_up() -> None:
    heard = threading.Event()
    seen: list[bool] = []

    class Slow(Ear):
        def deliver(self, message: Message) -> None:
            seen.append(heard.wait(30))
            super().deliver(message)

    class Quick(Ear):
        def deliver(self, message: Message) -> None:
            super().deliver(message)
            heard.set()

    slow, quick = Slow("slow"), Quick("quick")
    live(Notifier(Kept(), [slow, quick]), a_sick_fleet(), 10 * MINUTE)
    assert seen == [True]
    assert len(slow.heard) == len(quick.heard) == 1


def test_a_channel_that_takes_long_for_each_message_gets_the_others_at_the_next_polls() -> None:
    seconds = 0.0

    class Slow(Ear):
        def deliver(self, message: Message) -> None:
            nonlocal seconds
            seconds += 15
            super().deliver(message)

    slow, fleet = Slow(), Fleet()
    fleet.sicken(3, 13, 23)
    notifier = Notifier(Kept(), [slow], monotonic=lambda: seconds)
    counts = []
    for _ in range(4):
        live(notifier, fleet, MINUTE)
        counts.append(len(slow.heard))
    assert counts == [0, 2, 3, 3]
    assert len({message.id for message in slow.heard}) == 3


def test_a_receiver_that_asks_for_a_pause_gets_it_and_loses_nothing() -> None:
    class Busy(Ear):
        def deliver(self, message: Message) -> None:
            self.tried += 1
            if self.tried == 1:
                raise NotDelivered("busy", timedelta(minutes=25))
            self.heard.append(message)

    busy, ear, fleet = Busy("busy"), Ear(), a_sick_fleet()
    notifier = Notifier(Kept(), [busy, ear])
    live(notifier, fleet, 25 * MINUTE)
    assert (busy.tried, len(busy.heard), len(ear.heard)) == (1, 0, 1)
    live(notifier, fleet, 5 * MINUTE)
    assert [message.id for message in busy.heard] == [ear.heard[0].id]
    assert notifier.troubles == {}


def test_a_channel_with_a_route_is_told_of_its_hosts_alone_and_of_their_end() -> None:
    ear, fleet = Ear("rack"), Fleet()
    fleet.sicken(3, 13)
    notifier = Notifier(Kept(), [ear], routes={"rack": MessageRoute(hosts=("stor-00",))})
    live(notifier, fleet, 10 * MINUTE)
    assert [message.cause.host for message in ear.heard] == ["stor-00"]
    fleet.outlooks.clear()
    live(notifier, fleet, 40 * MINUTE)
    assert [(message.cause.host, message.over) for message in ear.heard] == [
        ("stor-00", False),
        ("stor-00", True),
    ]


def test_a_silence_by_a_person_is_an_acknowledgement_once() -> None:
    notes, desk, ear, fleet = Kept(), Desk("desk"), Ear(), a_sick_fleet()
    notifier = Notifier(notes, [desk, ear])
    live(notifier, fleet, 5 * MINUTE)
    save_silence(notes, Silence("s-1", NOW + timedelta(hours=2), "jo", "swapped", host="stor-00"), NOW)
    live(notifier, fleet, 30 * MINUTE)
    assert [(message.acknowledged_by, message.cause.key) for message in desk.heard] == [
        (None, "disks:host:stor-00"), ("jo", "disks:host:stor-00"),
    ]  # fmt: skip
    live(Notifier(notes, [desk, ear]), fleet, 5 * MINUTE)
    assert (len(desk.heard), len(ear.heard)) == (2, 1)


def test_a_silence_over_some_points_acknowledges_nothing() -> None:
    notes, desk, fleet = Kept(), Desk("desk"), Fleet()
    fleet.sicken(3, 4)
    notifier = Notifier(notes, [desk])
    live(notifier, fleet, 5 * MINUTE)
    save_silence(
        notes, Silence("s-1", NOW + timedelta(hours=2), "jo", "swapped", name=f"disk:{device(3)}"), NOW
    )
    live(notifier, fleet, 30 * MINUTE)
    assert [message.acknowledged_by for message in desk.heard] == [None]


def test_a_receiver_that_forgets_hears_each_minute_of_what_stands_until_it_is_silenced_or_over() -> None:
    notes, desk, fleet = (
        Kept(),
        Desk("desk", takes_acknowledgements=False, repeat_after=MINUTE),
        a_sick_fleet(),
    )
    notifier = Notifier(notes, [desk])
    live(notifier, fleet, 10 * MINUTE)
    assert 8 <= len(desk.heard) <= 11
    assert {message.cause.key for message in desk.heard} == {"disks:host:stor-00"}
    assert {message.cause.severity for message in desk.heard} == {Severity.URGENT}
    save_silence(notes, Silence("s-1", fleet.now + timedelta(hours=1), "jo", "swapped", host="stor-00"), NOW)
    before = len(desk.heard)
    live(notifier, fleet, 10 * MINUTE)
    assert len(desk.heard) == before
    fleet.outlooks.clear()
    live(notifier, fleet, 40 * MINUTE)
    assert desk.heard[-1].over
    assert not any(message.over for message in desk.heard[:-1])


def test_the_end_goes_to_the_same_place_as_the_beginning() -> None:
    ear, fleet = Ear(), a_sick_fleet()
    notifier = Notifier(Kept(), [ear])
    live(notifier, fleet, 5 * MINUTE)
    fleet.outlooks.clear()
    live(notifier, fleet, 40 * MINUTE)
    first, last = (message.cause for message in ear.heard)
    assert (last.host, last.path, last.severity) == (first.host, first.path, first.severity)


def test_an_error_of_the_store_is_raised_after_every_channel_had_its_turn() -> None:
    class Broken(Kept):
        def read_notes(self, room: str) -> Mapping[str, bytes]:
            if room == "told:broken":
                raise OSError("the store is away")
            return super().read_notes(room)

    ear, fleet = Ear("works"), a_sick_fleet()
    notifier = Notifier(Broken(), [Ear("broken"), ear, Ear("third")])
    for _ in range(3):
        fleet.now += MINUTE
        with pytest.raises(OSError, match="the store is away"):
            notifier.send_notifications(fleet.snapshot())
    assert len(ear.heard) == 1

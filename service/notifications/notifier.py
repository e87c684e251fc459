"""Find the present causes, and send each channel its news. Only the store remembers what was sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import msgspec
import structlog

from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import AlertCause, AlertSnapshot
from predrain.service.notifications.channel import (
    AlertKeepingChannel,
    Deliveries,
    NotDelivered,
    NotificationChannel,
    PartlyDelivered,
)
from predrain.service.notifications.daily_digest import DailyDigest
from predrain.service.notifications.message_route import MessageRoute
from predrain.service.notifications.notification_log import Message, NotificationLog, NotifiedPoint
from predrain.service.notifications.notification_memory import NoteStore
from predrain.service.notifications.operational_causes import find_uncertain_points
from predrain.service.notifications.silences import Silence
from predrain.service.notifications.trial_message import send_test_message

LONGEST_PAUSE = timedelta(minutes=10)
SENDING_SECONDS = 20.0
"""The time in which a channel begins deliveries at one poll; the others are still due at the next poll."""
SILENCES, DIGEST = "silences", "digest"
NARROWED_SILENCES = "narrowed-silences"
"""Silences that an older release would read without these fields, and so as silences of more."""
SILENCE_ROOMS = (SILENCES, NARROWED_SILENCES)


@dataclass(slots=True)
class _Way:
    """A channel, its deliveries, and the time of the next attempt after a failure."""

    channel: NotificationChannel
    pause: timedelta = timedelta(0)
    not_before: datetime | None = None
    trouble: str | None = None
    failed: str | None = None
    """The id of the message that was tried last and failed."""
    repeated: datetime | None = None
    """The time at which the receiver last heard of every cause that stands."""
    deliveries: Deliveries = field(default_factory=Deliveries)

    @property
    def notes_namespace(self) -> str:
        return f"told:{self.channel.name}"

    def record_delivery(self, trouble: str | None, now: datetime) -> None:
        """Record that the channel took a message. trouble: why some recipients will never get it."""
        self.deliveries.sent, self.deliveries.last = self.deliveries.sent + 1, now
        self.pause, self.not_before = timedelta(0), None
        self.report_trouble(trouble)

    def record_failure(self, message: Message, failed: NotDelivered, now: datetime) -> None:
        """Record that the channel did not take `message`, and when it is tried next."""
        self.report_trouble(str(failed))
        self.failed = message.id
        self.deliveries.failed += 1
        self.pause = min(LONGEST_PAUSE, max(2 * self.pause, timedelta(minutes=1)))
        self.not_before = now + max(self.pause, failed.retry_after or timedelta(0))

    def report_trouble(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            structlog.get_logger().error(
                "a message was not delivered", channel=self.channel.name, reason=trouble
            )
        self.trouble = trouble


@dataclass(frozen=True, slots=True)
class ChannelState:
    """A channel as people may see it: nothing of it is secret."""

    name: str
    route: MessageRoute
    deliveries: Deliveries
    trouble: str | None
    """The reason why it does not deliver; None if it does."""


@dataclass(frozen=True, slots=True)
class _News:
    """The input of all channels at one poll."""

    causes: Sequence[AlertCause]
    silences: Sequence[Silence]
    doubtful: Container[str]
    """Names of points that may be present though unseen."""
    now: datetime


@dataclass(slots=True)
class Notifier:
    """Sends notifications. For one thread of one process: of the services that share a store the active one sends.

    confirm: called right before each delivery; it raises if this process is not the active one any more. `notes` then
    refuse what such a process writes.
    """

    notes: NoteStore
    channels: Sequence[NotificationChannel]
    digest: DailyDigest | None = None
    routes: Mapping[str, MessageRoute] = field(default_factory=dict)
    """The routes by name of the channel; a channel without one takes all points of its severity."""
    confirm: Callable[[], None] = lambda: None
    monotonic: Callable[[], float] = time.monotonic
    """Seconds of a clock that never jumps."""
    _ways: list[_Way] = field(init=False)

    def __post_init__(self) -> None:
        self._ways = [_Way(channel) for channel in self.channels]

    @property
    def troubles(self) -> dict[str, str]:
        """The reason for each channel that does not deliver."""
        told = {way.channel.name: way.trouble for way in self._ways}
        if self.digest is not None:
            told[DIGEST] = self.digest.trouble
        return {name: why for name, why in told.items() if why is not None}

    @property
    def deliveries(self) -> Mapping[str, Deliveries]:
        """The deliveries of each channel."""
        told = {way.channel.name: way.deliveries for way in self._ways}
        return told if self.digest is None else {**told, DIGEST: self.digest.deliveries}

    @property
    def states(self) -> tuple[ChannelState, ...]:
        """The channels, each with its route, deliveries and trouble."""
        return tuple(
            ChannelState(way.channel.name, self._route_of(way), way.deliveries, way.trouble)
            for way in self._ways
        )

    def send_test(self, name: str, now: datetime, why: str) -> None:
        """Send a test message by the channel `name`, from any thread. why: the occasion.

        Raises KeyError if there is no such channel, NotDelivered, PartlyDelivered.
        """
        send_test_message({way.channel.name: way.channel for way in self._ways}[name], now, why)

    def send_notifications(self, snapshot: AlertSnapshot) -> int:
        """Send the news; return how many messages were delivered. Raises what the store raises.

        All channels deliver at the same time, each for SENDING_SECONDS at most, so that a slow one delays no other
        one. A failing channel is tried again after a pause that doubles up to 10 min, or that its receiver names.
        """
        found = find_alert_causes(snapshot)
        doubtful = find_uncertain_points(snapshot).difference(*(cause.names for cause in found))
        news = _News(found, silences_of(self.notes, snapshot.now), doubtful, snapshot.now)
        delivered = sum(_run_together([partial(self._send_news, way, news) for way in self._ways]))
        if self.digest is not None:
            self.confirm()
            self.digest.send_due_digest(found, news.silences, snapshot.now, doubtful)
        return delivered

    def _send_news(self, way: _Way, news: _News) -> int:
        """Send what is due on one channel; return how many messages were delivered."""
        before = NotificationLog(
            {name: _NOTED.decode(raw) for name, raw in self.notes.read_notes(way.notes_namespace).items()}
        )
        ledger = before.with_current_causes(news.causes, news.now, news.doubtful)
        self._keep(way, before, ledger)
        if way.not_before is not None and news.now < way.not_before:
            return 0
        delivered, end = 0, self.monotonic() + SENDING_SECONDS
        due = ledger.list_due_messages(news.causes, news.silences, news.now, self._route_of(way))
        for message in _rotate_after_failed(way.failed, due):
            if self.monotonic() >= end or not self._deliver(way, message, news.now):
                return delivered
            # Saved at once: after a crash before this line the message is sent again, under the same id.
            before, ledger = ledger, ledger.with_delivery(message)
            self._keep(way, before, ledger)
            delivered += 1
        if isinstance(way.channel, AlertKeepingChannel):
            self._repeat(way, way.channel, ledger, news, end)
        return delivered

    def _repeat(
        self, way: _Way, channel: AlertKeepingChannel, ledger: NotificationLog, news: _News, end: float
    ) -> None:
        """Tell a receiver that keeps alerts which causes still stand, and which ones a person silenced."""
        pause = channel.repeat_after
        repeats = pause is not None and (way.repeated is None or news.now - way.repeated >= pause)
        for message in ledger.list_standing_messages(news.causes, news.silences, news.now):
            silenced = message.acknowledged_by is not None
            acknowledges = channel.takes_acknowledgements and not ledger.is_acknowledged(message)
            if not (acknowledges if silenced else repeats):
                continue
            if self.monotonic() >= end or not self._deliver(way, message, news.now):
                return
            if silenced:
                before, ledger = ledger, ledger.with_delivery(message)
                self._keep(way, before, ledger)
        if repeats:
            way.repeated = news.now

    def _deliver(self, way: _Way, message: Message, now: datetime) -> bool:
        """Deliver one message; return whether the channel took it."""
        trouble = None
        self.confirm()
        try:
            way.channel.deliver(message)
        except PartlyDelivered as part:
            trouble = str(part)
        except NotDelivered as failed:
            way.record_failure(message, failed, now)
            return False
        way.record_delivery(trouble, now)
        return True

    def _route_of(self, way: _Way) -> MessageRoute:
        found = self.routes.get(way.channel.name)
        return found if found is not None else MessageRoute(way.channel.min_severity)

    def _keep(self, way: _Way, before: NotificationLog, after: NotificationLog) -> None:
        changes: dict[str, bytes | None] = {
            name: msgspec.json.encode(one)
            for name, one in after.noted.items()
            if before.noted.get(name) != one
        }
        changes |= dict.fromkeys(before.noted.keys() - after.noted.keys())
        if changes:
            self.notes.write_notes(way.notes_namespace, changes)


def _run_together(steps: Sequence[Callable[[], int]]) -> list[int]:
    """Run the steps at the same time and return their results. Raises the first error when all have ended.

    The threads are daemons, so that a receiver that does not answer keeps no process from ending.
    """
    done: list[int] = []
    errors: list[Exception] = []

    def run(step: Callable[[], int]) -> None:
        try:
            done.append(step())
        except Exception as error:  # noqa: BLE001  (raised below, in the caller's thread)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(step,), name="notify", daemon=True) for step in steps[1:]]
    for thread in threads:
        thread.start()
    for step in steps[:1]:
        run(step)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return done


def _rotate_after_failed(failed: str | None, due: Iterable[Message]) -> list[Message]:
    """Return the messages after the failed one first, so that a message that is never accepted delays no other."""
    found = list(due)
    place = next((place for place, one in enumerate(found, 1) if one.id == failed), 0)
    return found[place:] + found[:place]


_NOTED = msgspec.json.Decoder(NotifiedPoint)
_SILENCE = msgspec.json.Decoder(Silence)


def silences_of(notes: NoteStore, now: datetime) -> tuple[Silence, ...]:
    """Return the silences in force, in the order in which they end."""
    found = [_SILENCE.decode(raw) for room in SILENCE_ROOMS for raw in notes.read_notes(room).values()]
    return tuple(sorted((one for one in found if one.until > now), key=lambda one: (one.until, one.id)))


def save_silence(notes: NoteStore, one: Silence, now: datetime) -> None:
    """Store a silence, and delete those that are over."""
    narrowed = bool(one.rack) or one.severity is not None
    for room in SILENCE_ROOMS:
        changes: dict[str, bytes | None] = {
            id_: None for id_, raw in notes.read_notes(room).items() if _SILENCE.decode(raw).until <= now
        }
        if narrowed is (room == NARROWED_SILENCES):
            changes[one.id] = msgspec.json.encode(one)
        if changes:
            notes.write_notes(room, changes)


def remove_silence(notes: NoteStore, id_: str) -> bool:
    """Remove a silence; return whether it existed."""
    for room in SILENCE_ROOMS:
        if id_ in notes.read_notes(room):
            notes.write_notes(room, {id_: None})
            return True
    return False

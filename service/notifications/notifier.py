"""Find the present causes, and send each channel its news. Only the store remembers what was sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import structlog

from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.cause import AlertSnapshot
from predrain.service.notifications.channel import (
    Deliveries,
    NotDelivered,
    NotificationChannel,
    PartlyDelivered,
)
from predrain.service.notifications.daily_digest import DailyDigest
from predrain.service.notifications.notification_log import Message, NotificationLog, NotifiedPoint
from predrain.service.notifications.notification_memory import NoteStore
from predrain.service.notifications.operational_causes import find_uncertain_points
from predrain.service.notifications.silences import Silence

LONGEST_PAUSE = timedelta(minutes=10)
SILENCES, DIGEST = "silences", "digest"


@dataclass(slots=True)
class _Way:
    """A channel, its deliveries, and the time of the next attempt after a failure."""

    channel: NotificationChannel
    pause: timedelta = timedelta(0)
    not_before: datetime | None = None
    trouble: str | None = None
    failed: str | None = None
    """The id of the message that was tried last and failed."""
    deliveries: Deliveries = field(default_factory=Deliveries)

    @property
    def notes_namespace(self) -> str:
        return f"told:{self.channel.name}"

    def report_trouble(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            structlog.get_logger().error(
                "a message was not delivered", channel=self.channel.name, reason=trouble
            )
        self.trouble = trouble


@dataclass(slots=True)
class Notifier:
    """Sends notifications. For one thread of one process: processes that share a store lock the task
    (`Store.try_lock_task`).
    """

    notes: NoteStore
    channels: Sequence[NotificationChannel]
    digest: DailyDigest | None = None
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

    def send_notifications(self, scene: AlertSnapshot) -> int:
        """Send the news; return how many messages were delivered. Raises what the store raises.

        A failing channel delays no other channel. It is tried again after a pause that doubles up to 10 min.
        """
        found, silences = find_alert_causes(scene), silences_of(self.notes, scene.now)
        doubtful = find_uncertain_points(scene).difference(*(cause.names for cause in found))
        delivered = 0
        for way in self._ways:
            before = NotificationLog(
                {name: _NOTED.decode(raw) for name, raw in self.notes.read_notes(way.notes_namespace).items()}
            )
            ledger = before.with_current_causes(found, scene.now, doubtful)
            if way.not_before is None or scene.now >= way.not_before:
                for message in _rotate_after_failed(
                    way.failed, ledger.list_due_messages(found, silences, scene.now, way.channel.min_severity)
                ):
                    trouble = None
                    try:
                        way.channel.deliver(message)
                    except PartlyDelivered as part:
                        trouble = str(part)
                    except NotDelivered as failed:
                        self._failed(way, message, failed, scene.now)
                        break
                    ledger = ledger.with_delivery(message)
                    # Saved at once: after a crash before this line the message is sent again, under the
                    # same id.
                    self._keep(way, before, ledger)
                    before, delivered = ledger, delivered + 1
                    way.deliveries.sent, way.deliveries.last = way.deliveries.sent + 1, scene.now
                    way.pause, way.not_before = timedelta(0), None
                    way.report_trouble(trouble)
            self._keep(way, before, ledger)
        if self.digest is not None:
            self.digest.send_due_digest(found, silences, scene.now, doubtful)
        return delivered

    def _failed(self, way: _Way, message: Message, failed: NotDelivered, now: datetime) -> None:
        way.report_trouble(str(failed))
        way.failed = message.id
        way.deliveries.failed += 1
        way.pause = min(LONGEST_PAUSE, max(2 * way.pause, timedelta(minutes=1)))
        way.not_before = now + way.pause

    def _keep(self, way: _Way, before: NotificationLog, after: NotificationLog) -> None:
        changes: dict[str, bytes | None] = {
            name: msgspec.json.encode(one)
            for name, one in after.noted.items()
            if before.noted.get(name) != one
        }
        changes |= dict.fromkeys(before.noted.keys() - after.noted.keys())
        if changes:
            self.notes.write_notes(way.notes_namespace, changes)


def _rotate_after_failed(failed: str | None, due: Iterable[Message]) -> list[Message]:
    """Return the messages after the failed one first, so that a message that is never accepted delays no other."""
    found = list(due)
    place = next((place for place, one in enumerate(found, 1) if one.id == failed), 0)
    return found[place:] + found[:place]


_NOTED = msgspec.json.Decoder(NotifiedPoint)
_SILENCE = msgspec.json.Decoder(Silence)


def silences_of(notes: NoteStore, now: datetime) -> tuple[Silence, ...]:
    """Return the silences in force, in the order in which they end."""
    found = [_SILENCE.decode(raw) for raw in notes.read_notes(SILENCES).values()]
    return tuple(sorted((one for one in found if one.until > now), key=lambda one: (one.until, one.id)))


def save_silence(notes: NoteStore, one: Silence, now: datetime) -> None:
    """Store a silence, and delete those that are over."""
    over: dict[str, bytes | None] = {
        id_: None for id_, raw in notes.read_notes(SILENCES).items() if _SILENCE.decode(raw).until <= now
    }
    notes.write_notes(SILENCES, over | {one.id: msgspec.json.encode(one)})


def remove_silence(notes: NoteStore, id_: str) -> bool:
    """Remove a silence; return whether it existed."""
    if id_ not in notes.read_notes(SILENCES):
        return False
    notes.write_notes(SILENCES, {id_: None})
    return True

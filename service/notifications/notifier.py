"""Looks at what stands, and tells each channel what is news there. What a channel was told is in the store alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import structlog

from predrain.service.notifications import causes
from predrain.service.notifications.around import unsure
from predrain.service.notifications.cause import Scene
from predrain.service.notifications.channel import Deliveries, NotificationChannel, NotTold, ToldInPart
from predrain.service.notifications.daily import Daily
from predrain.service.notifications.notes import Notes
from predrain.service.notifications.notification_log import Message, Noted, NotificationLog
from predrain.service.notifications.silence import Silence

LONGEST_PAUSE = timedelta(minutes=10)
SILENCES, DIGEST = "silences", "digest"


@dataclass(slots=True)
class _Way:
    """A channel, what it was told, and when it is tried again after it failed."""

    channel: NotificationChannel
    pause: timedelta = timedelta(0)
    not_before: datetime | None = None
    trouble: str | None = None
    failed: str | None = None
    """The message that was tried last and failed, by its id."""
    deliveries: Deliveries = field(default_factory=Deliveries)

    @property
    def room(self) -> str:
        return f"told:{self.channel.name}"

    def complain(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            structlog.get_logger().error(
                "a message was not delivered", channel=self.channel.name, why=trouble
            )
        self.trouble = trouble


@dataclass(slots=True)
class Teller:
    """For one thread of one process: who shares the store sees to it that there is no other (`Store.alone`)."""

    notes: Notes
    channels: Sequence[NotificationChannel]
    digest: Daily | None = None
    _ways: list[_Way] = field(init=False)

    def __post_init__(self) -> None:
        self._ways = [_Way(channel) for channel in self.channels]

    @property
    def troubles(self) -> dict[str, str]:
        """Which channels do not deliver, and why."""
        told = {way.channel.name: way.trouble for way in self._ways}
        if self.digest is not None:
            told[DIGEST] = self.digest.trouble
        return {name: why for name, why in told.items() if why is not None}

    @property
    def deliveries(self) -> Mapping[str, Deliveries]:
        """What each channel was given."""
        told = {way.channel.name: way.deliveries for way in self._ways}
        return told if self.digest is None else {**told, DIGEST: self.digest.deliveries}

    def look(self, scene: Scene) -> int:
        """Tell what is news; returns how many messages were delivered. Raises what the store raises.

        A channel that fails holds nobody else up; it is tried again after a pause that doubles up to ten minutes.
        """
        found, silences = causes(scene), silences_of(self.notes, scene.now)
        doubtful = unsure(scene).difference(*(cause.names for cause in found))
        delivered = 0
        for way in self._ways:
            before = NotificationLog(
                {name: _NOTED.decode(raw) for name, raw in self.notes.notes(way.room).items()}
            )
            ledger = before.seen(found, scene.now, doubtful)
            if way.not_before is None or scene.now >= way.not_before:
                for message in _after(way.failed, ledger.due(found, silences, scene.now, way.channel.least)):
                    trouble = None
                    try:
                        way.channel.deliver(message)
                    except ToldInPart as part:
                        trouble = str(part)
                    except NotTold as failed:
                        self._failed(way, message, failed, scene.now)
                        break
                    ledger = ledger.told(message)
                    # At once: what a crash comes before is told again, under the same id.
                    self._keep(way, before, ledger)
                    before, delivered = ledger, delivered + 1
                    way.deliveries.sent, way.deliveries.last = way.deliveries.sent + 1, scene.now
                    way.pause, way.not_before = timedelta(0), None
                    way.complain(trouble)
            self._keep(way, before, ledger)
        if self.digest is not None:
            self.digest.look(found, silences, scene.now, doubtful)
        return delivered

    def _failed(self, way: _Way, message: Message, failed: NotTold, now: datetime) -> None:
        way.complain(str(failed))
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
            self.notes.note(way.room, changes)


def _after(failed: str | None, due: Iterable[Message]) -> list[Message]:
    """Those that come after the one that failed first: one that its receiver never takes keeps no other waiting."""
    found = list(due)
    place = next((place for place, one in enumerate(found, 1) if one.id == failed), 0)
    return found[place:] + found[:place]


_NOTED = msgspec.json.Decoder(Noted)
_SILENCE = msgspec.json.Decoder(Silence)


def silences_of(notes: Notes, now: datetime) -> tuple[Silence, ...]:
    """Silences that stand, those that end first first."""
    found = [_SILENCE.decode(raw) for raw in notes.notes(SILENCES).values()]
    return tuple(sorted((one for one in found if one.until > now), key=lambda one: (one.until, one.id)))


def silence(notes: Notes, one: Silence, now: datetime) -> None:
    """Keep a silence; those that are over are forgotten."""
    over: dict[str, bytes | None] = {
        id_: None for id_, raw in notes.notes(SILENCES).items() if _SILENCE.decode(raw).until <= now
    }
    notes.note(SILENCES, over | {one.id: msgspec.json.encode(one)})


def lift(notes: Notes, id_: str) -> bool:
    """Whether there was such a silence."""
    if id_ not in notes.notes(SILENCES):
        return False
    notes.note(SILENCES, {id_: None})
    return True

"""Sends the digest of each day once, from what its store remembers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

import msgspec
import structlog

from predrain.service.notifications.cause import AlertCause
from predrain.service.notifications.channel import Deliveries, NotTold, ToldInPart
from predrain.service.notifications.digest import Digest, Hour
from predrain.service.notifications.notes import Notes
from predrain.service.notifications.silence import Silence

AGAIN = timedelta(minutes=10)
"""A digest that was not taken is tried again after this, until the next one is due."""
_ROOM, _NOTE = "digest", "last"
_DIGEST = msgspec.json.Decoder(Digest)


class Letters(Protocol):
    """The way out of digests."""

    def send(self, digest: Digest, day: date, at: datetime) -> None:
        """Hand it over, within a deadline; that of a day twice is the same letter. Raises NotTold, ToldInPart."""
        ...


@dataclass(slots=True)
class Daily:
    """For one thread of one process, as Teller is."""

    notes: Notes
    letters: Letters
    hour: Hour
    deliveries: Deliveries = field(default_factory=Deliveries)
    trouble: str | None = None
    _not_before: datetime | None = None

    def look(
        self,
        causes: Sequence[AlertCause],
        silences: Sequence[Silence],
        now: datetime,
        unsure: Set[str] = frozenset(),
    ) -> None:
        """Take in what stands, and send what is due. Raises what the store raises."""
        raw = self.notes.notes(_ROOM).get(_NOTE)
        # A first start has no day behind it, so that its first digest is that of the next day.
        before = _DIGEST.decode(raw) if raw is not None else Digest(self.hour.day(now), now)
        digest = before.seen(causes, _silenced(causes, silences), now, unsure)
        day = self.hour.day(now)
        if day > before.day and self._sent(digest, day, now):
            digest = digest.told(day, now)
        if raw is None or digest != before:
            self.notes.note(_ROOM, {_NOTE: msgspec.json.encode(digest)})

    def _sent(self, digest: Digest, day: date, now: datetime) -> bool:
        """Whether nothing is left to be sent."""
        if not digest.text(""):
            return True
        if self._not_before is not None and now < self._not_before:
            return False
        trouble = None
        try:
            self.letters.send(digest, day, now)
        except ToldInPart as part:
            trouble = str(part)
        except NotTold as failed:
            self._complain(str(failed))
            self._not_before = now + AGAIN
            self.deliveries.failed += 1
            return False
        self._complain(trouble)
        self._not_before = None
        self.deliveries.sent, self.deliveries.last = self.deliveries.sent + 1, now
        return True

    def _complain(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            structlog.get_logger().error("the digest was not delivered", why=trouble)
        self.trouble = trouble


def _silenced(causes: Sequence[AlertCause], silences: Sequence[Silence]) -> frozenset[str]:
    """Keys of the causes of which every point is silenced."""
    return frozenset(
        cause.key
        for cause in causes
        if all(any(silence.covers(cause, point) for silence in silences) for point in cause.points)
    )

"""Send the digest of each day once, from the causes that its store remembers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

import msgspec
import structlog

from predrain.service.notifications.cause import AlertCause
from predrain.service.notifications.channel import Deliveries, NotDelivered, PartlyDelivered
from predrain.service.notifications.digest_text import Digest, DigestHour
from predrain.service.notifications.notification_memory import NoteStore
from predrain.service.notifications.silences import Silence

AGAIN = timedelta(minutes=10)
"""The pause before a failed digest is tried again, until the next one is due."""
_ROOM, _NOTE = "digest", "last"
_DIGEST = msgspec.json.Decoder(Digest)


class DigestChannel(Protocol):
    """The channel for digests."""

    def send(self, digest: Digest, day: date, at: datetime) -> None:
        """Deliver the digest within a deadline; two for one day are the same letter. Raises NotDelivered,
        PartlyDelivered.
        """
        ...


@dataclass(slots=True)
class DailyDigest:
    """Sends the digest of each day. For one thread of one process, as for `Notifier`."""

    notes: NoteStore
    letters: DigestChannel
    hour: DigestHour
    deliveries: Deliveries = field(default_factory=Deliveries)
    trouble: str | None = None
    _not_before: datetime | None = None

    def send_due_digest(
        self,
        causes: Sequence[AlertCause],
        silences: Sequence[Silence],
        now: datetime,
        unsure: Set[str] = frozenset(),
    ) -> None:
        """Take in the present causes and send the digest if it is due. Raises what the store raises."""
        raw = self.notes.read_notes(_ROOM).get(_NOTE)
        # A first start has no day behind it, so its first digest is that of the next day.
        before = _DIGEST.decode(raw) if raw is not None else Digest(self.hour.find_due_day(now), now)
        digest = before.with_current_causes(causes, _find_silenced_causes(causes, silences), now, unsure)
        day = self.hour.find_due_day(now)
        if day > before.day and self._sent(digest, day, now):
            digest = digest.with_delivery(day, now)
        if raw is None or digest != before:
            self.notes.write_notes(_ROOM, {_NOTE: msgspec.json.encode(digest)})

    def _sent(self, digest: Digest, day: date, now: datetime) -> bool:
        """Send the digest unless it is empty; return whether nothing is left to be sent."""
        if not digest.format_text(""):
            return True
        if self._not_before is not None and now < self._not_before:
            return False
        trouble = None
        try:
            self.letters.send(digest, day, now)
        except PartlyDelivered as part:
            trouble = str(part)
        except NotDelivered as failed:
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
            structlog.get_logger().error("the digest was not delivered", reason=trouble)
        self.trouble = trouble


def _find_silenced_causes(causes: Sequence[AlertCause], silences: Sequence[Silence]) -> frozenset[str]:
    """Return the keys of the causes whose every point is silenced."""
    return frozenset(
        cause.key
        for cause in causes
        if all(any(silence.covers(cause, point) for silence in silences) for point in cause.points)
    )

"""The messages that one channel has sent, and so what is news there: nobody is woken twice for one thing.

The log knows points (a disk, a host, a part) and not causes. If disks of three hosts turn out to be one cause of
one model, the disks that were notified already are not notified again. The log is a value that the store keeps
for each channel, so that a restart knows what was sent. A message stays news until it is delivered, with the same
id each time.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.message_route import MessageRoute
from predrain.service.notifications.silences import Silence

GATHER = timedelta(minutes=1)
"""The time that the first point waits for others, so that points that come together are sent together."""
AGAIN = timedelta(hours=1)
"""A growing cause is sent again no sooner than after this time; a cause that gets worse is sent at once."""
CALM = timedelta(minutes=30)
"""A point must be away for this time to be over. Of a cause with several points only the end of the last one is
sent.
"""


@dataclass(frozen=True, slots=True)
class NotifiedPoint:
    """One point on one channel."""

    name: str
    key: str
    """The key of the cause in which the point was last notified. The end of that cause is notified, however
    points are grouped since.
    """
    title: str
    line: str
    since: datetime
    told: datetime | None = None
    as_severe: Severity | None = None
    """The severity with which the point was notified."""
    gone: datetime | None = None
    host: str | None = None
    """The host of the whole cause in which the point was notified; `model` and `path` likewise."""
    model: str | None = None
    path: str = "/alerts"
    acknowledged: bool = False
    """True if the receiver has heard that a person silenced the point."""


@dataclass(frozen=True, slots=True)
class Message:
    """The content of one delivery. `cause` is present, or, if `over`, was present; its points are then those that
    are gone, each with the severity with which it was notified.
    """

    id: str
    """The same for every attempt to deliver."""
    at: datetime
    cause: AlertCause
    news: frozenset[str]
    """Names of the points that were not notified before."""
    over: bool = False
    acknowledged_by: str | None = None
    """The person whose silence covers all points of the cause: nothing else is new. None: no person did."""


@dataclass(frozen=True, slots=True)
class NotificationLog:
    """All points noted for one channel."""

    noted: Mapping[str, NotifiedPoint]

    def with_current_causes(
        self, causes: Sequence[AlertCause], now: datetime, unsure: Container[str] = frozenset()
    ) -> NotificationLog:
        """Return the log after a poll that found `causes`. unsure: names of points that may be present though
        unseen.
        """
        noted = dict(self.noted)
        for cause in causes:
            for point in cause.points:
                before = noted.get(point.name) or NotifiedPoint(point.name, cause.key, cause.title, "", now)
                noted[point.name] = replace(before, line=point.line, gone=None)
        standing = {name for cause in causes for name in cause.names}
        for name in noted.keys() - standing:
            one = noted[name]
            if one.told is None:
                del noted[name]
            elif one.gone is None and name not in unsure:
                noted[name] = replace(one, gone=now)
        lasting = {one.key for one in noted.values() if one.told is not None and one.gone is None}
        return NotificationLog(
            {name: one for name, one in noted.items() if not (one.key in lasting and _is_over(one, now))}
        )

    def list_due_messages(
        self, causes: Sequence[AlertCause], silences: Iterable[Silence], now: datetime, route: MessageRoute
    ) -> Iterator[Message]:
        """Yield the messages that are due for `causes`, which `with_current_causes` took in.

        A silenced point waits until its silence ends. The end of a cause needs no route: the log has the cause.
        """
        standing = [silence for silence in silences if silence.until > now]
        for cause in causes:
            heard = tuple(
                point
                for point in cause.points
                if route.takes(cause, point) and not any(one.covers(cause, point) for one in standing)
            )
            if heard and (message := self._news(replace(cause, points=heard), now)):
                yield message
        for gone in self._list_notified_causes():
            if all(_is_over(one, now) for one in gone):
                cause = _rebuild_cause(gone)
                yield Message(self._id(cause, cause.names, over=True), now, cause, frozenset(), over=True)

    def list_standing_messages(
        self, causes: Sequence[AlertCause], silences: Iterable[Silence], now: datetime
    ) -> Iterator[Message]:
        """Yield, for each cause that was notified and stands, a message without news.

        If a silence covers all points of a cause, the message has the person as `acknowledged_by`. If it covers
        some points, the message has the others.
        """
        standing = [silence for silence in silences if silence.until > now]
        found = {point.name: (cause, point) for cause in causes for point in cause.points}
        for noted in self._list_notified_causes():
            if all(_is_over(one, now) for one in noted):
                continue
            by = {one.name: _find_silence(found.get(one.name), standing) for one in noted}
            heard = [one for one in noted if by[one.name] is None]
            cause = _rebuild_cause(heard or noted)
            person = None if heard else next(one.by for one in by.values() if one is not None)
            yield Message(self._id(cause, cause.names, over=False), now, cause, frozenset(), False, person)

    def is_acknowledged(self, message: Message) -> bool:
        """Return whether the receiver knows that all points of `message` are silenced."""
        return all(self.noted[name].acknowledged for name in message.cause.names)

    def _list_notified_causes(self) -> list[list[NotifiedPoint]]:
        """Return the points that were notified, in groups by the key of their cause, in order."""
        told: dict[str, list[NotifiedPoint]] = defaultdict(list)
        for one in sorted(self.noted.values(), key=lambda one: one.name):
            if one.told is not None:
                told[one.key].append(one)
        return [told[key] for key in sorted(told)]

    def with_delivery(self, message: Message) -> NotificationLog:
        """Return the log after the delivery of `message`."""
        noted = dict(self.noted)
        for point in message.cause.points:
            if message.over:
                noted.pop(point.name, None)
                continue
            cause, one = message.cause, noted[point.name]
            if message.acknowledged_by is not None:
                noted[point.name] = replace(one, acknowledged=True)
                continue
            one = replace(
                one, key=cause.key, title=cause.title, host=cause.host, model=cause.model, path=cause.path
            )
            if point.name in message.news:
                one = replace(one, told=message.at, as_severe=point.severity, acknowledged=False)
            noted[point.name] = one
        return NotificationLog(noted)

    def _news(self, cause: AlertCause, now: datetime) -> Message | None:
        news = [
            point
            for point in cause.points
            if (before := self.noted[point.name].as_severe) is None or not before.reaches(point.severity)
        ]
        if not news or all(now - self.noted[point.name].since < GATHER for point in news):
            return None
        of_it = [
            one
            for one in self.noted.values()
            if one.told is not None and (one.key == cause.key or one.name in cause.names)
        ]
        worst = {one.as_severe for one in of_it}
        worse = any(point.severity not in worst and point.severity is Severity.URGENT for point in news)
        if of_it and not worse and any(one.told and now - one.told < AGAIN for one in of_it):
            return None
        names = frozenset(point.name for point in news)
        return Message(self._id(cause, names, over=False), now, cause, names)

    def _id(self, cause: AlertCause, names: frozenset[str], *, over: bool) -> str:
        since = min(self.noted[name].since for name in names)
        said = [cause.key, cause.severity.value, str(over), since.isoformat(), *sorted(names)]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:24]


def _rebuild_cause(noted: Sequence[NotifiedPoint]) -> AlertCause:
    """Build a cause from the points that were notified of it, each with the severity that was notified."""
    points = tuple(CausePart(one.name, one.line, one.as_severe or Severity.NOTICE) for one in noted)
    first = noted[0]
    return AlertCause(first.key, first.title, points, "", first.path, first.host, first.model)


def _find_silence(found: tuple[AlertCause, CausePart] | None, silences: Iterable[Silence]) -> Silence | None:
    """Return the silence that covers a point of a cause; None if none does, or the point is not present."""
    return next((one for one in silences if one.covers(*found)), None) if found is not None else None


def _is_over(one: NotifiedPoint, now: datetime) -> bool:
    return one.gone is not None and now - one.gone >= CALM

"""What was told on one channel, and so what is news: nobody is woken twice for one thing.

The ledger knows points (a disk, a host, a part) and not causes: when disks of three hosts turn out to be one cause of
one model, those that were told already are not told again. It is a value; a channel keeps it, so that a restart
knows what was told. A message is news until it was delivered, with the same id each time.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.silence import Silence

GATHER = timedelta(minutes=1)
"""Those that come together are told together: so long the first waits for others."""
AGAIN = timedelta(hours=1)
"""A cause that grows is told again no sooner; one that gets worse is told at once."""
CALM = timedelta(minutes=30)
"""A point must be away for so long to be over; of a cause of several the last one's end is told, and no other's."""


@dataclass(frozen=True, slots=True)
class Noted:
    """One point on one channel."""

    name: str
    key: str
    """Of the cause that it was told by last, however it is grouped since: that one's end is told."""
    title: str
    line: str
    since: datetime
    told: datetime | None = None
    as_severe: Severity | None = None
    """How severe it was when it was told."""
    gone: datetime | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What one delivery says. `cause` stands, or, when `over`, stood; its points are then those that are gone."""

    id: str
    """The same however often delivery is tried."""
    at: datetime
    cause: AlertCause
    news: frozenset[str]
    """Names of the points that were not told before."""
    over: bool = False


@dataclass(frozen=True, slots=True)
class NotificationLog:
    """Everything noted on one channel."""

    noted: Mapping[str, Noted]

    def seen(
        self, causes: Sequence[AlertCause], now: datetime, unsure: Container[str] = frozenset()
    ) -> NotificationLog:
        """The ledger after a look that found `causes`. unsure: names of points that may stand though unseen."""
        noted = dict(self.noted)
        for cause in causes:
            for point in cause.points:
                before = noted.get(point.name) or Noted(point.name, cause.key, cause.title, "", now)
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

    def due(
        self, causes: Sequence[AlertCause], silences: Iterable[Silence], now: datetime, least: Severity
    ) -> Iterator[Message]:
        """What is to be told now of `causes`, which `seen` took in; a silenced point waits till its silence ends."""
        standing = [silence for silence in silences if silence.until > now]
        for cause in causes:
            heard = tuple(
                point
                for point in cause.points
                if point.severity.reaches(least) and not any(one.covers(cause, point) for one in standing)
            )
            if heard and (message := self._news(replace(cause, points=heard), now)):
                yield message
        told: dict[str, list[Noted]] = defaultdict(list)
        for one in self.noted.values():
            if one.told is not None:
                told[one.key].append(one)
        for key, gone in sorted(told.items()):
            if not all(_is_over(one, now) for one in gone):
                continue
            points = tuple(CausePart(one.name, one.line) for one in sorted(gone, key=lambda one: one.name))
            cause = AlertCause(key, gone[0].title, points, "", "/alerts")
            yield Message(self._id(cause, cause.names, over=True), now, cause, frozenset(), over=True)

    def told(self, message: Message) -> NotificationLog:
        """The ledger once `message` was delivered."""
        noted = dict(self.noted)
        for point in message.cause.points:
            if message.over:
                noted.pop(point.name, None)
                continue
            one = replace(noted[point.name], key=message.cause.key, title=message.cause.title)
            if point.name in message.news:
                one = replace(one, told=message.at, as_severe=point.severity)
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


def _is_over(one: Noted, now: datetime) -> bool:
    return one.gone is not None and now - one.gone >= CALM

"""What is dropped once it is too old: history and latency from the store, records from the log.

What stays in the store is thinned as it ages: readings and outlooks to one a day, latencies to one in ten minutes. Of
several services on one store one does so: who holds TIDYING, until the next day.

Records are dropped in the order in which they were sent, once their topic's age is over and every group of
readers has taken them. The groups that only look back never take anything: for them it is the age that ends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import msgspec

from predrain.data.log.port import Delivered, Log, Topic
from predrain.data.scorebook import Scorebook
from predrain.data.store.port import Store
from predrain.service import latency_ingest as latencies
from predrain.service import log_recall as memory
from predrain.service.access.audit import AUDIT
from predrain.service.scoring import worker
from predrain.service.scoring.deadletters import REPLAYING
from predrain.service.settings import RetentionTable

GROUP = "retention"
TIDYING = "retention"
"""The task (`Store.alone`) of who drops and thins what the store holds."""
EPOCH = date(1970, 1, 1)
HOURLY = timedelta(days=90)
"""Age at which readings and outlooks are thinned to one a day: the features look back no further by the hour."""
BY_WINDOW = timedelta(days=1)
"""Age at which an OSD's latencies become one summary in ten minutes."""
BATCH = 2_000
"""Records looked at and dropped in one go: who appends waits no longer than for these."""
BEYOND_ALL = 2**62
LOOKING_BACK = {
    Topic.OUTLOOKS: (memory.GROUP,),
    Topic.ACTIONS: (memory.GROUP,),
    Topic.DEAD_LETTERS: (REPLAYING,),
}
"""Topics that are history (announcements, curves, letters that nobody sent again), and who looks back at them."""
TAKEN = {Topic.READINGS: worker.GROUP, Topic.LATENCY: latencies.GROUP}
"""Topics that somebody has to take, though he may not have begun to."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """How much went: rows of the store, records of the log."""

    rows: int
    records: int


class _Sent(msgspec.Struct):
    """When an envelope was sent, or a drain's sample taken; whatever else a record holds."""

    sent_at: datetime | None = None
    at: datetime | None = None


def drop(
    log: Log, store: Store | None, kept: RetentionTable, now: datetime, scorebook: Scorebook | None = None
) -> Dropped:
    """Drop all that is older at `now` than `kept` says; `store`: None where another process tidies it.

    Raises what log and store raise; then it goes on later.
    """
    history = now - timedelta(days=kept.history_days)
    rows = _tidy(store, kept, now) if store is not None else 0
    if scorebook is not None:
        rows += scorebook.prune((history.astimezone(UTC).date() - EPOCH).days)
    records = 0
    for topic in Topic if log.trims else ():
        if topic in TAKEN:
            log.read(topic, TAKEN[topic], 0)  # a group that never read would keep nothing
        back = LOOKING_BACK.get(topic)
        before = history if back else now - timedelta(days=kept.log_days)
        records += _trim(log, topic, (GROUP, *(back or ())), before, now)
    return Dropped(rows, records)


def _tidy(store: Store, kept: RetentionTable, now: datetime) -> int:
    """Drop rows of the store, and thin those that stay; returns how many rows are no more."""
    latency = now - timedelta(days=kept.latency_days)
    return (
        store.prune(
            history=now - timedelta(days=kept.history_days),
            latency=latency,
            journal=(AUDIT, now - timedelta(days=kept.audit_days)),
        )
        + store.thin((now - HOURLY).astimezone(UTC).date())
        + store.coarsen(now - BY_WINDOW)
    )


def _trim(log: Log, topic: Topic, groups: tuple[str, ...], before: datetime, now: datetime) -> int:
    gone = 0
    while records := log.read(topic, GROUP, BATCH):
        last = _last_older(records, before, now)
        if last is None:
            break
        for group in groups:
            log.commit(topic, group, [last])
        gone += log.trim(topic, last.offset + 1)
    # A reader that was slow the last time may have taken by now what was old enough then; what this group has
    # not committed stays in any case.
    return gone + log.trim(topic, BEYOND_ALL)


def _last_older(records: tuple[Delivered, ...], before: datetime, now: datetime) -> Delivered | None:
    """The last of the leading records that were sent before `before`.

    One that does not say when, or says a time that has not come (a clock was set back since), goes with its
    neighbours, and a whole batch of such ones at once: it must not keep all that follows.
    """
    last = None
    for record in records:
        sent = _sent(record)
        if sent is None or sent > now:
            continue
        if sent >= before:
            return last
        last = record
    return records[-1] if last is None and len(records) == BATCH else last


def _sent(record: Delivered) -> datetime | None:
    try:
        told = msgspec.json.decode(record.value, type=_Sent)
    except msgspec.DecodeError:
        return None
    sent = told.sent_at or told.at
    return sent if sent is not None and sent.tzinfo is not None else None

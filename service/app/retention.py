"""Retention: drop what is too old, history and latencies from the store, records from the log.

The store's remaining history is thinned with age: readings and outlooks to one a day, latencies to one in 10 min.
Before that, an archive takes the readings by the hour, if the settings name its folder.
If several services share a store, the active one drops rows of the store.

Records are dropped in the order in which they were sent, once their topic's retention is over and every group of
readers has taken them. Groups that only look back never take anything: for them the retention alone counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import msgspec

from predrain.data.ids import DeviceId
from predrain.data.log.log_port import Delivered, Log, Topic
from predrain.data.scorebook import Scorebook
from predrain.data.store.store_port import Store
from predrain.service.access.audit import AUDIT
from predrain.service.config.settings import RetentionTable
from predrain.service.forecasting import worker
from predrain.service.storage.reading_archive import DaysToArchive, ReadingArchive
from predrain.service.streams import latency_ingest, log_recall
from predrain.service.streams.dead_letters import REPLAYING

GROUP = "retention"
ROOM = "retention"
"""The room of the store's notes that holds which days were thinned."""
_NOTE = "thinned"
EPOCH = date(1970, 1, 1)
HOURLY = timedelta(days=90)
"""The age at which readings and outlooks are thinned to one a day: the features use hourly values no further
back.
"""
LATE = timedelta(days=7)
"""The daily thinning looks at the days since the last one, and at so many days before: readings may come late."""
WHOLE_EVERY = 7
"""Days after which the thinning looks at all days again, for readings that came later still, as by an import."""
BY_WINDOW = timedelta(days=1)
"""The age at which an OSD's latencies become one summary in 10 min."""
BATCH = 2_000
"""Records that are read and dropped at once: an appending process waits for no more than these."""
BEYOND_ALL = 2**62
LOOKING_BACK = {
    Topic.OUTLOOKS: (log_recall.GROUP,),
    Topic.ACTIONS: (log_recall.GROUP,),
    Topic.DEAD_LETTERS: (REPLAYING,),
}
"""Topics that are history (announcements, curves, dead letters that were never replayed), and their reading
groups.
"""
TAKEN = {Topic.READINGS: worker.GROUP, Topic.LATENCY: latency_ingest.GROUP}
"""Topics with a group that must take every record, even if the group has not read yet."""


@dataclass(frozen=True, slots=True)
class DroppedCounts:
    """The numbers of dropped rows (store) and records (log)."""

    rows: int
    records: int


class _Sent(msgspec.Struct):
    """The time at which an envelope was sent, or a drain's sample taken; other fields of the record are ignored."""

    sent_at: datetime | None = None
    at: datetime | None = None


class _ThinnedDays(msgspec.Struct, frozen=True):
    """The days that were thinned: a day costs little if the days before it need no look."""

    before: date | None = None
    """The last thinning covered the days before this one."""
    whole: date | None = None
    """The same of the last thinning that looked at all days."""
    archive: str | None = None
    """The folder of the archive at that time: another archive has none of the earlier days."""


def thin_old_days(
    store: Store, now: datetime, archive: ReadingArchive | None = None, expired: date = EPOCH
) -> int:
    """Thin the store's days that are older than HOURLY; return the number of removed rows.

    The first call looks at all days, and so does one WHOLE_EVERY days later. The others look at the days
    since the last call, and LATE before it. The store keeps which days were thinned, so that neither a start nor
    another service begins again. With an `archive`, the days, and those before `expired`, are written
    there before; if that fails, nothing is thinned, and the next call looks at the same days.
    """
    before, folder = (
        (now - HOURLY).astimezone(UTC).date(),
        str(archive.folder) if archive is not None else None,
    )
    noted = _read_thinned_days(store)
    thinned = noted if noted.archive == folder else _ThinnedDays()
    since = thinned.before - LATE if thinned.before is not None else None
    if thinned.whole is None or not 0 <= (before - thinned.whole).days < WHOLE_EVERY:
        since = None
    safe: Iterable[Mapping[tuple[DeviceId, date], int] | None] = (None,)
    if archive is not None:
        safe = archive.save_days(DaysToArchive(before, since, expired))
    dropped = sum(store.thin_to_daily_values(before, since, archived) for archived in safe)
    after = _ThinnedDays(before, before if since is None else thinned.whole, folder)
    if after != noted:
        store.write_notes(ROOM, {_NOTE: msgspec.json.encode(after)})
    return dropped


def _read_thinned_days(store: Store) -> _ThinnedDays:
    """Return what the store notes; without a note, or with one that cannot be read, no day was thinned."""
    note = store.read_notes(ROOM).get(_NOTE)
    try:
        return _ThinnedDays() if note is None else msgspec.json.decode(note, type=_ThinnedDays)
    except msgspec.DecodeError:
        return _ThinnedDays()


def drop_expired_data(
    log: Log,
    store: Store | None,
    kept: RetentionTable,
    now: datetime,
    scorebook: Scorebook | None = None,
    archive: ReadingArchive | None = None,
) -> DroppedCounts:
    """Drop all that is older at `now` than `kept` allows. `store`: None if another process tidies it.

    The store's history comes last: all else is dropped although the archive fails. Raises what log, store and
    archive raise; the next call continues.
    """
    history = now - timedelta(days=kept.history_days)
    rows = _prune_by_time(store, kept, now) if store is not None else 0
    if scorebook is not None:
        rows += scorebook.prune((history.astimezone(UTC).date() - EPOCH).days)
    records = 0
    for topic in Topic if log.trims else ():
        if topic in TAKEN:
            log.read(topic, TAKEN[topic], 0)  # registers the group: an unknown one would keep nothing
        back = LOOKING_BACK.get(topic)
        before = history if back else now - timedelta(days=kept.log_days)
        records += _trim_topic(log, topic, (GROUP, *(back or ())), before, now)
    if store is not None:
        rows += _prune_history(store, history, now, archive)
    return DroppedCounts(rows, records)


def _prune_by_time(store: Store, kept: RetentionTable, now: datetime) -> int:
    """Drop and merge latencies, and drop lines of the audit; return the number of removed rows."""
    latency = now - timedelta(days=kept.latency_days)
    audit = AUDIT, now - timedelta(days=kept.audit_days)
    return store.prune(latency=latency, journal=audit) + store.merge_old_latencies(now - BY_WINDOW)


def _prune_history(store: Store, history: datetime, now: datetime, archive: ReadingArchive | None) -> int:
    """Thin the store's history and drop what is from before `history`; return the number of removed rows."""
    if archive is not None:  # a day is archived whole
        history = min(
            history, (now - HOURLY).astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        )
    expired = history.astimezone(UTC).date() + timedelta(days=1)
    return thin_old_days(store, now, archive, expired) + store.prune(history=history)


def _trim_topic(log: Log, topic: Topic, groups: tuple[str, ...], before: datetime, now: datetime) -> int:
    gone = 0
    while records := log.read(topic, GROUP, BATCH):
        last = _last_older(records, before, now)
        if last is None:
            break
        for group in groups:
            log.commit(topic, group, [last])
        gone += log.trim(topic, last.offset + 1)
    # A slow reader may have taken old records since the last time. The records that this group has not
    # committed stay in any case.
    return gone + log.trim(topic, BEYOND_ALL)


def _last_older(records: tuple[Delivered, ...], before: datetime, now: datetime) -> Delivered | None:
    """Return the last of the leading records that were sent before `before`.

    A record without a time, or with a time in the future (a clock was set back since), is dropped with its
    neighbours. A whole batch of such records is dropped at once, so that it does not block all that follow.
    """
    last = None
    for record in records:
        sent = _read_sent_time(record)
        if sent is None or sent > now:
            continue
        if sent >= before:
            return last
        last = record
    return records[-1] if last is None and len(records) == BATCH else last


def _read_sent_time(record: Delivered) -> datetime | None:
    try:
        told = msgspec.json.decode(record.value, type=_Sent)
    except msgspec.DecodeError:
        return None
    sent = told.sent_at or told.at
    return sent if sent is not None and sent.tzinfo is not None else None

"""The archive of hourly readings, written beside the service: in a process of its own that ends with a day's work.

Only that process loads pyarrow and numpy. It opens the store by itself and reads there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import structlog

from predrain.data.ids import DeviceId
from predrain.data.refusal import Refusal
from predrain.data.store.store_port import Store
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.runtime.child_work import run_in_child
from predrain.service.storage.backends import place_of_store, require_present_version


class ArchiveFailed(Refusal):
    """The archive could not be written, so nothing may be thinned."""


@dataclass(frozen=True, slots=True)
class DaysToArchive:
    """The days that are about to be thinned: those in [since, before), and all before `expired`.

    since: None, if all days before `before` are.
    """

    before: date
    since: date | None
    expired: date

    def choose_days(self, store: Store) -> tuple[date, ...]:
        """Return the days, oldest first. A day in [since, before) may have no readings."""
        if self.since is None:
            return store.list_reading_days(self.before)
        old = store.list_reading_days(min(self.expired, self.since))
        return (*old, *(self.since + timedelta(days=n) for n in range((self.before - self.since).days)))


@dataclass(frozen=True, slots=True)
class _ArchiveRun:
    """The result of one process, in types that need no heavy package."""

    readings: int
    counts: Mapping[tuple[DeviceId, date], int]
    left: tuple[date, ...]
    damaged: tuple[str, ...]
    dropped: tuple[date, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadingArchive:
    """The archive of one store. `store`: its file or URL."""

    store: Path | str
    folder: Path
    years: float

    @classmethod
    def from_settings(cls, settings: Settings) -> ReadingArchive | None:
        """Return the archive of the settings; None if they name no folder."""
        kept = settings.retention
        if kept.archive is None:
            return None
        store = place_of_store(settings, StateDir(settings.service.state))
        return cls(store, kept.archive, kept.archive_years)

    def save_days(self, days: DaysToArchive) -> Iterator[Mapping[tuple[DeviceId, date], int]]:
        """Archive the days, then drop the archive's oldest.

        Yield, at least once, how many readings of a device's day are safe, for days with several. Raises
        ArchiveFailed, ChildEnded, and the errors of the store.
        """
        run = run_in_child("the archive", _archive_chosen_days, self, days)
        while True:
            log = structlog.get_logger()
            for sentence in run.damaged:
                log.warning("a file of the archive is damaged", reason=sentence)
            if run.readings or run.dropped:
                log.info("archived", readings=run.readings, dropped_days=len(run.dropped))
            yield run.counts
            if not run.left:
                return
            run = run_in_child("the archive", _archive_days, self, run.left)


def _archive_chosen_days(archive: ReadingArchive, days: DaysToArchive) -> _ArchiveRun:
    with closing(_open_store(archive.store)) as store:
        return _archive_in_store(archive, store, days.choose_days(store))


def _archive_days(archive: ReadingArchive, days: tuple[date, ...]) -> _ArchiveRun:
    with closing(_open_store(archive.store)) as store:
        return _archive_in_store(archive, store, days)


def _open_store(place: Path | str) -> Store:
    """Open a store that is there. Raises ArchiveFailed for a file that is missing: opening would make one."""
    from predrain.data.store.store_opening import open_store

    if isinstance(place, Path) and not place.is_file():
        raise ArchiveFailed(f"there is no store {place} to archive: see `state` of [service]")
    require_present_version(place)
    return open_store(place)


def _archive_in_store(archive: ReadingArchive, store: Store, days: tuple[date, ...]) -> _ArchiveRun:
    from predrain.data.history.archive_writing import ArchiveUnwritable, archive_days, drop_old_partitions
    from predrain.data.history.history_export import find_death_days
    from predrain.features.drive_state import values_of

    try:
        done = archive_days(store, archive.folder, values_of, days, find_death_days(store))
        dropped = () if done.left else drop_old_partitions(archive.folder, archive.years)
    except ArchiveUnwritable as unwritable:
        raise ArchiveFailed(str(unwritable)) from unwritable  # a type that needs no heavy package
    return _ArchiveRun(done.readings, done.counts, done.left, done.damaged, dropped)

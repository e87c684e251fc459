"""Opening log and store together: refused where a start would silently begin anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from data.clock import Clock
from data.log.port import Log, Topic
from data.refusal import Refusal
from data.store.port import Store
from service.adapters import open_log, open_store, place_of_store
from service.settings import Settings
from service.state import StateDir
from service.storage.identity import (
    SERVICE_TOPICS,
    StoreMismatch,
    check_identity,
    find_mark,
    has_served,
    join_log_to_store,
)
from service.storage.pages import check_small


@contextmanager
def open_storage(
    settings: Settings,
    state: StateDir,
    clock: Clock,
    producer: str,
    *,
    marks: bool,
    accept_store: bool = False,
) -> Iterator[tuple[Log, Store]]:
    """Log and store of the settings, closed at the end.

    marks: whether this process lets the log carry the store's identity. accept_store: a person has said that the store
    is to be used as it is. Raises StoreMismatch, and at once what is wrong with either.
    """
    place = place_of_store(settings, state)
    with closing(open_log(settings, state)) as log:
        topics = SERVICE_TOPICS if settings.kafka.bootstrap else tuple(Topic)

        def refuse(why: str) -> Refusal:
            return StoreMismatch(_explain(settings, state, place, why))

        if isinstance(place, Path):
            gap = _find_gap(place)
            if gap and not accept_store and (find_mark(log) is not None or has_served(log, topics)):
                raise refuse(gap)  # before a new file is made
            check_small(place)
        with closing(open_store(settings, state)) as store:
            if not accept_store:
                check_identity(log, store, topics, refuse)
            elif marks and (mark := find_mark(log)) is not None:
                structlog.get_logger().warning(
                    "the store is accepted as it is", log_was_beside=mark.body.store
                )
            join_log_to_store(log, store, clock, producer, lambda: str(uuid.uuid4()), marks=marks)
            yield log, store


def _find_gap(path: Path) -> str | None:
    """What a start would replace by a new file."""
    if not path.exists():
        return "is missing"
    return None if path.stat().st_size else "has 0 bytes"


def _explain(settings: Settings, state: StateDir, place: Path | str, why: str) -> str:
    """What happened, what would come back by itself and what would not, and the ways on."""
    from service.backup.blanked import without_password
    from service.backup.newest import find_newest_backup
    from service.live import conf_of

    kept = "tokens, the audit, outcomes, silences and the history of the disks"
    if conf_of(settings.ceph) is not None:
        back = f"drains and the halt would come back by themselves, from the cluster; {kept} would not"
    else:
        back = f"without a cluster nothing would come back by itself: {kept} would be gone, and a halt too"
    backup = find_newest_backup(state)
    if isinstance(place, str):
        name, cure = without_password(place), "bring the database back (`pg_restore`)"
    elif backup is None:
        name, cure = (
            str(place),
            "restore a backup (`predrain restore`; none was found where the last ones were written)",
        )
    else:
        file, made_at = backup
        name = str(place)
        cure = f"restore the newest backup that was found, {file} of {made_at:%Y-%m-%d %H:%M} UTC (`predrain restore`)"
    commands = "`predrain up` or `predrain work`" if settings.kafka.bootstrap else "`predrain up`"
    return (
        f"the store {name} {why}, and the log beside it shows that a service has worked with another store: with this"
        f" one, {back}. Put the right store in its place, {cure}, or start anew with --accept-store, once ({commands})"
    )

"""Open log and store together, and refuse if a start would silently begin with a new store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from predrain.data.clock import Clock
from predrain.data.log.log_port import Log
from predrain.data.store.store_port import Store
from predrain.service.config.settings import Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.storage.backends import open_log, open_store, place_of_store
from predrain.service.storage.page_check import check_small
from predrain.service.storage.store_identity import (
    StoreLoss,
    StoreMismatch,
    find_loss,
    find_topics_of_services,
    join_log_to_store,
)


@contextmanager
def open_storage(
    settings: Settings,
    state: StateDir,
    clock: Clock,
    producer: str,
    *,
    marks: bool,
    accept_store: str | None = None,
) -> Iterator[tuple[Log, Store]]:
    """Open log and store of the settings; they are closed at the end.

    marks: whether this process writes the store's identity into the log. accept_store: the id of the one loss of
    a store (`StoreLoss.id`) that a person accepts: for that loss the store is used as it is, for any other one it
    is refused. Raises StoreMismatch, and at once if log or store is unusable.
    """
    place = place_of_store(settings, state)
    with closing(open_log(settings, state)) as log:
        topics = find_topics_of_services(settings.kafka.bootstrap_servers)

        def refuse_loss(loss: StoreLoss | None) -> None:
            if loss is None:
                return
            if (
                loss.id != accept_store or not marks
            ):  # without a mark the same id would accept the next loss too
                raise StoreMismatch(_explain_store_loss(settings, state, place, loss, accept_store))
            structlog.get_logger().warning(
                "the store is accepted as it is", reason=loss.why, log_was_beside=loss.lost, loss=loss.id
            )

        if isinstance(place, Path):
            if (gap := _find_gap(place)) is not None:
                refuse_loss(find_loss(log, None, topics, gap))  # before a new file is made
            check_small(place)
        with closing(open_store(settings, state)) as store:
            refuse_loss(find_loss(log, store, topics))
            join_log_to_store(log, store, clock, producer, lambda: str(uuid.uuid4()), marks=marks)
            yield log, store


def _find_gap(path: Path) -> str | None:
    """Return why a start would replace the file by a new one, or None if it would not."""
    if not path.exists():
        return "is missing"
    return None if path.stat().st_size else "has 0 bytes"


def _explain_store_loss(
    settings: Settings, state: StateDir, place: Path | str, loss: StoreLoss, accepted: str | None
) -> str:
    """Explain the loss, what would and would not come back by itself, and the ways to continue."""
    from predrain.service.backup.newest_backup import find_newest_backup
    from predrain.service.backup.secret_blanking import without_password
    from predrain.service.drains.live_cluster import conf_of

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
    commands = "`predrain up` or `predrain work`" if settings.kafka.bootstrap_servers else "`predrain up`"
    other = ""
    if accepted is not None and accepted != loss.id:
        other = f" --accept-store {accepted[:40]!r} names another loss than this one."
    return (
        f"the store {name} {loss.why}, and the log beside it shows that a service has worked with another store: with"
        f" this one, {back}.{other} Put the right store in its place, {cure}, or begin with an empty store by"
        f" --accept-store {loss.id} ({commands}), which accepts this loss and no later one"
    )

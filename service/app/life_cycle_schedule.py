"""The scheduled part of the life cycle: time passes for every disk, and changes and failures are recorded."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from predrain.data.failed_disks import find_failed_disks
from predrain.service.app.changes import ChangeKind
from predrain.service.runtime.service_lease import NotActive

if TYPE_CHECKING:
    from predrain.service.app.application import Application

_KINDS: Final = (ChangeKind.OSDS, ChangeKind.OUTLOOKS, ChangeKind.DEVICES, ChangeKind.STATUS)


def age_lives(application: Application) -> None:
    """Take in the newest view of the cluster, let time pass, and notify listeners if the life of a disk changed."""
    shown, now = application.get_snapshot().lives, application.clock.now()
    application.fleet.build_snapshot(None, application.lives, now)
    application.lives.apply_elapsed_time(now, hearing="worker" not in application.faults)
    if application.lives.current_lives is not shown:
        application.changes.notify_change(*_KINDS)


def keep_lives(application: Application) -> None:
    """Take over the statements and records of others, let time pass, and record what is new.

    Of the services that share a store the active one records; any of them can, since all reach the same answer. Raises
    what the store raises.
    """
    application.lives.update_outcomes(application.store.outcomes())
    if application.parts.shares:
        application.lives.load_recorded_changes()
    age_lives(application)
    if application.is_active:
        application.lives.record()


def note_failures(application: Application) -> None:
    """Record which disks failed, by what the cluster did with them; the forecast learns from these statements.

    Of the services that share a store the active one records. Raises what the store raises.
    """
    store = application.store
    if not application.is_active:
        return
    failed = find_failed_disks(
        store.outcomes(),
        application.lives.current_lives,
        store.drains(),
        store.read_cluster_events,
        application.clock.now(),
    )
    if not failed:
        return
    with suppress(NotActive):
        application.confirm_active()
        for one in failed:
            store.add_outcome(one)
        application.lives.update_outcomes(store.outcomes())
        application.changes.notify_change(ChangeKind.DEVICES)

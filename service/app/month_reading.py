"""Reads the facts of the monthly report from the store, and builds the report."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from predrain.data.store.store_port import Store
from predrain.service.app.current_places import find_current_places
from predrain.service.events.event_query import iterate_events_back
from predrain.service.fleet.monthly_report import (
    LOOKED_BACK,
    MonthlyReport,
    ReportedDisk,
    build_monthly_report,
    find_month_bounds,
    find_reported_disks,
)

if TYPE_CHECKING:
    from datetime import datetime

    from predrain.service.app.application import Application


def read_monthly_report(application: Application, month: str | None) -> MonthlyReport:
    """Read the report of a month of the form 2026-10; None: the last month that is over.

    Raises BadMonth, and what the store raises.
    """
    now, store = application.clock.now(), application.store
    since, end = find_month_bounds(month or f"{now.replace(day=1) - timedelta(days=1):%Y-%m}")
    until = min(end, now)
    snapshot = application.get_snapshot()
    events = tuple(iterate_events_back(store, find_current_places(snapshot), since, end))
    devices = find_reported_disks(events)
    outlooks = dict(store.iterate_outlooks(dict.fromkeys(devices, since - LOOKED_BACK)))
    disks = {
        device: ReportedDisk(store.read_life_changes(device=device), outlooks.get(device, ()))
        for device in devices
    }
    kept_from = now - timedelta(days=application.settings.retention.history_days)
    return build_monthly_report(
        since,
        until,
        is_whole=end <= now and kept_from <= since and _knows_time_before(store, since),
        events=events,
        disks=disks,
        living=snapshot.is_living,
        drains={drain.id: drain for drain in snapshot.drains},
        samples=application.timelines.list_samples,
        latency_limit=application.policy.latency_hold,
    )


def _knows_time_before(store: Store, since: datetime) -> bool:
    """Return whether the store has any event from before `since`."""
    return bool(
        store.read_life_changes(until=since, limit=1) or store.read_cluster_events(until=since, limit=1)
    )

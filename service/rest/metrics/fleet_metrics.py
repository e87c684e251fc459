"""Metrics of disks and of the hosts that deliver readings, as few series: by host and by model, never by disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from prometheus_client.core import Metric

from predrain.data.ids import DeviceId, HostName
from predrain.data.life_cycle import LifeState
from predrain.data.outlook import Status
from predrain.data.reading import Smart, Unreadable
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.fleet_counts import UNHEARD, count_fleet_disks
from predrain.service.notifications.heat_causes import is_hot
from predrain.service.rest.metrics import metric_catalogue as c
from predrain.service.rest.metrics.metric_family import MOST, OTHER


@dataclass(slots=True)
class CountsByHostAndModel:
    """The counts of the present disks, by host and by model."""

    heard: dict[str, datetime | None] = field(default_factory=dict)
    """The time at which each host's newest reading was taken; None: there was none."""
    models: Counter[str] = field(default_factory=Counter)
    bad: Counter[tuple[str, str]] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    blind: Counter[str] = field(default_factory=Counter)
    hot: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Hot disks by rack (empty: none is known) and host."""
    since: datetime | None = None
    """The time since which the disk that has been unreadable for longest is so; None: no disk is."""


def count_by_host_and_model(
    snapshot: FleetSnapshot, now: datetime, stale_after: timedelta
) -> CountsByHostAndModel:
    """Count the disks of a snapshot. A disk under an OSD is on the host in the cluster map, any other on the host that
    read it last.
    """
    found = CountsByHostAndModel()
    hosts, models = _map_hosts_and_models(snapshot)
    racks = snapshot.racks_of_hosts()
    if snapshot.view is not None:
        found.heard = {str(osd.host): None for osd in snapshot.view.osds.values()}
    oldest = now - max(UNHEARD, 4 * stale_after)
    for device, reading in snapshot.readings.items():
        host = hosts.get(device)
        if host is None:
            host = reading.host
            if host not in found.heard if snapshot.view is not None else reading.taken_at < oldest:
                continue
        newest = found.heard.get(host)
        if newest is None or newest < reading.taken_at:
            found.heard[host] = reading.taken_at
        if not snapshot.is_living(device):
            continue
        seen = reading.seen
        model = models.get(device) or (seen.identity.model if isinstance(seen, Smart) else None) or "unknown"
        found.models[model] += 1
        life = snapshot.lives.get(device)
        if life is not None and life.holds_data and life.severity is Status.BAD:
            found.bad[host, model] += 1
        if is_hot(reading) and now - reading.taken_at <= stale_after:
            found.hot[racks.get(HostName(host), ""), host] += 1
        if isinstance(seen, Unreadable):
            _count_unreadable_disk(found, host, seen)
    return found


def collect_fleet_metrics(snapshot: FleetSnapshot, now: datetime, stale_after: timedelta) -> Iterator[Metric]:
    """Yield every series about disks and hosts."""
    counted = count_fleet_disks(snapshot, now, stale_after)
    yield c.DEVICES.build_labelled_metric(
        {status.value: counted.statuses.get(status, 0) for status in Status}
    )
    states = Counter(life.state for life in snapshot.lives.values())
    yield c.LIVES.build_labelled_metric({state.value: states[state] for state in LifeState})
    yield c.STALE.build_single_metric(counted.total - counted.fresh)
    yield c.STALE_AFTER.build_single_metric(stale_after.total_seconds())
    if counted.expected_30d is not None:
        yield c.EXPECTED.build_single_metric(counted.expected_30d)
    newest = max((reading.taken_at for reading in snapshot.readings.values()), default=None)
    if newest is not None:
        yield c.NEWEST.build_single_metric((now - newest).total_seconds())
    yield from _by_host(count_by_host_and_model(snapshot, now, stale_after), now)


def _by_host(found: CountsByHostAndModel, now: datetime) -> Iterator[Metric]:
    ages = {host: (now - at).total_seconds() for host, at in found.heard.items() if at is not None}
    shown = sorted(ages, key=lambda host: -ages[host])[:MOST]
    yield c.HOSTS.build_single_metric(len(found.heard))
    yield c.HOSTS_UNHEARD.build_single_metric(len(found.heard) - len(ages))
    yield c.HOST_AGE.build_labelled_metric({host: ages[host] for host in shown})
    yield c.HOST_UNREADABLE.build_labelled_metric(merge_rare_series(found.unreadable))
    yield c.HOST_BLIND.build_labelled_metric(merge_rare_series(found.blind))
    yield c.HOT.build_metric(found.hot.most_common(MOST))
    if found.since is not None:
        yield c.UNREADABLE_FOR.build_single_metric((now - found.since).total_seconds())
    models = merge_rare_series(found.models)
    yield c.MODELS.build_labelled_metric(models)
    bad: Counter[tuple[str, str]] = Counter()
    for (host, model), count in found.bad.most_common():
        model = model if model in models else OTHER
        bad[(host if len(bad) < MOST else OTHER), model] += count
    yield c.BAD.build_metric(bad.items())


def merge_rare_series(counted: Counter[str]) -> Mapping[str, float]:
    """Return the most frequent counts, and the sum of all others as one series."""
    shown: dict[str, float] = dict(counted.most_common(MOST - 1))
    if rest := counted.total() - sum(shown.values()):
        shown[OTHER] = shown.get(OTHER, 0) + rest
    return shown


def _map_hosts_and_models(snapshot: FleetSnapshot) -> tuple[dict[DeviceId, HostName], dict[DeviceId, str]]:
    """Return the host of each disk in the cluster map, including DB and WAL disks, and the models that it knows."""
    hosts: dict[DeviceId, HostName] = {}
    models: dict[DeviceId, str] = {}
    for osd in snapshot.view.osds.values() if snapshot.view is not None else ():
        for device in (osd.device, *osd.shared_devices):
            if device is not None:
                hosts[device] = osd.host
        if osd.device is not None and osd.model is not None:
            models[osd.device] = osd.model
    return hosts, models


def _count_unreadable_disk(found: CountsByHostAndModel, host: str, seen: Unreadable) -> None:
    """Count one unreadable disk. A host without smartctl is no evidence against its disks (data.reading)."""
    if seen.cause.blames_host:
        found.blind[host] += 1
        return
    found.unreadable[host] += 1
    found.since = min(found.since or seen.since, seen.since)

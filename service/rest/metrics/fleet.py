"""Disks, and the hosts that tell of them, as few series: by host and by model, never by disk."""

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
from predrain.service.fleet import FleetSnapshot
from predrain.service.fleet_counts import UNHEARD, tally
from predrain.service.notifications.heat import is_hot
from predrain.service.rest.metrics import catalogue as c
from predrain.service.rest.metrics.family import MOST, OTHER


@dataclass(slots=True)
class Spread:
    """What is told of the disks that are there, host by host and model by model."""

    heard: dict[str, datetime | None] = field(default_factory=dict)
    """When each host's newest reading was taken; None: there was none."""
    models: Counter[str] = field(default_factory=Counter)
    bad: Counter[tuple[str, str]] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    blind: Counter[str] = field(default_factory=Counter)
    hot: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By rack (empty: none is known) and host."""
    since: datetime | None = None
    """When the disk became unreadable that has been so for longest."""


def spread(sight: FleetSnapshot, now: datetime, stale_after: timedelta) -> Spread:
    """Count `sight`. A disk under an OSD is where the cluster has it, any other where it was read last."""
    found = Spread()
    seats, models = _seats(sight)
    racks = sight.racks_of_hosts()
    if sight.view is not None:
        found.heard = {str(osd.host): None for osd in sight.view.osds.values()}
    oldest = now - max(UNHEARD, 4 * stale_after)
    for device, reading in sight.readings.items():
        host = seats.get(device)
        if host is None:
            host = reading.host
            if host not in found.heard if sight.view is not None else reading.taken_at < oldest:
                continue
        newest = found.heard.get(host)
        if newest is None or newest < reading.taken_at:
            found.heard[host] = reading.taken_at
        if not sight.is_living(device):
            continue
        seen = reading.seen
        model = models.get(device) or (seen.identity.model if isinstance(seen, Smart) else None) or "unknown"
        found.models[model] += 1
        life = sight.lives.get(device)
        if life is not None and life.holds_data and life.severity is Status.BAD:
            found.bad[host, model] += 1
        if is_hot(reading) and now - reading.taken_at <= stale_after:
            found.hot[racks.get(HostName(host), ""), host] += 1
        if isinstance(seen, Unreadable):
            _unread(found, host, seen)
    return found


def fleet(sight: FleetSnapshot, now: datetime, stale_after: timedelta) -> Iterator[Metric]:
    """Every series about disks and hosts."""
    counted = tally(sight, now, stale_after)
    yield c.DEVICES.by({status.value: counted.statuses.get(status, 0) for status in Status})
    states = Counter(life.state for life in sight.lives.values())
    yield c.LIVES.by({state.value: states[state] for state in LifeState})
    yield c.STALE.one(counted.total - counted.fresh)
    yield c.STALE_AFTER.one(stale_after.total_seconds())
    if counted.expected_30d is not None:
        yield c.EXPECTED.one(counted.expected_30d)
    newest = max((reading.taken_at for reading in sight.readings.values()), default=None)
    if newest is not None:
        yield c.NEWEST.one((now - newest).total_seconds())
    yield from _by_host(spread(sight, now, stale_after), now)


def _by_host(found: Spread, now: datetime) -> Iterator[Metric]:
    ages = {host: (now - at).total_seconds() for host, at in found.heard.items() if at is not None}
    shown = sorted(ages, key=lambda host: -ages[host])[:MOST]
    yield c.HOSTS.one(len(found.heard))
    yield c.HOSTS_UNHEARD.one(len(found.heard) - len(ages))
    yield c.HOST_AGE.by({host: ages[host] for host in shown})
    yield c.HOST_UNREADABLE.by(most(found.unreadable))
    yield c.HOST_BLIND.by(most(found.blind))
    yield c.HOT.of(found.hot.most_common(MOST))
    if found.since is not None:
        yield c.UNREADABLE_FOR.one((now - found.since).total_seconds())
    models = most(found.models)
    yield c.MODELS.by(models)
    bad: Counter[tuple[str, str]] = Counter()
    for (host, model), count in found.bad.most_common():
        model = model if model in models else OTHER
        bad[(host if len(bad) < MOST else OTHER), model] += count
    yield c.BAD.of(bad.items())


def most(counted: Counter[str]) -> Mapping[str, float]:
    """The most frequent as they are, the rest as one."""
    shown: dict[str, float] = dict(counted.most_common(MOST - 1))
    if rest := counted.total() - sum(shown.values()):
        shown[OTHER] = shown.get(OTHER, 0) + rest
    return shown


def _seats(sight: FleetSnapshot) -> tuple[dict[DeviceId, HostName], dict[DeviceId, str]]:
    """Where the cluster has each disk, those that hold a DB or WAL too, and the models that it knows."""
    hosts: dict[DeviceId, HostName] = {}
    models: dict[DeviceId, str] = {}
    for osd in sight.view.osds.values() if sight.view is not None else ():
        for device in (osd.device, *osd.shared_devices):
            if device is not None:
                hosts[device] = osd.host
        if osd.device is not None and osd.model is not None:
            models[osd.device] = osd.model
    return hosts, models


def _unread(found: Spread, host: str, seen: Unreadable) -> None:
    """A host without smartctl says nothing against its disks (data.reading)."""
    if seen.cause.blames_host:
        found.blind[host] += 1
        return
    found.unreadable[host] += 1
    found.since = min(found.since or seen.since, seen.since)

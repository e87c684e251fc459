"""The guards of requests about disks: pure functions of values, each refusal with its kind and numbers.

A light moves no head and is refused only if the host cannot be asked. A self-test competes with clients and with the
movement of data, so it also needs a calm host: no halt, no drain or fill of the disk, no PG of the host that is not
active+clean, and one long test a host.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.core.pg_survey import is_pg_at_rest
from predrain.data.disk_request import DiskPermission, DiskRequest, DiskVerb, HostSelfTest
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.host_names import is_same_host
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.self_test import SelfTestKind

SILENT_AFTER: Final = timedelta(minutes=6)
"""Time without a question after which a host counts as silent; it asks every 20 s, and every 2 min after a failure."""
VIEW_TOO_OLD: Final = timedelta(minutes=5)
_RESTING: Final = frozenset(
    {DrainState.PROPOSED, DrainState.VERIFIED, DrainState.HANDED_OVER, DrainState.CANCELLED}
)
"""States of a drain in which no data moves and none will move without a further approval."""


class RequestRefusalKind(StrEnum):
    """The reasons why a request is not taken, or not handed out."""

    DISK_GONE = "disk-gone"
    NO_HOST = "no-host"
    HOST_SILENT = "host-silent"
    NO_KEY = "no-key"
    NOT_ALLOWED = "not-allowed"
    REQUEST_OPEN = "request-open"
    HALTED = "halted"
    DISK_DRAINS = "disk-drains"
    OSD_FILLS = "osd-fills"
    CLUSTER_UNKNOWN = "cluster-unknown"
    PGS_UNCLEAN = "pgs-unclean"
    TEST_RUNNING = "test-running"
    LONG_TEST_ON_HOST = "long-test-on-host"

    @property
    def stops_running_test(self) -> bool:
        """Return whether a test that runs already is stopped for this reason."""
        return self in _STOPPING


_STOPPING: Final = frozenset(
    {RequestRefusalKind.HALTED, RequestRefusalKind.DISK_DRAINS, RequestRefusalKind.OSD_FILLS}
)


@dataclass(frozen=True, slots=True)
class RequestRefusal:
    """One reason. `count`: PGs that are not active+clean. `drain`, `device`: those that are in the way."""

    kind: RequestRefusalKind
    count: int | None = None
    drain: str | None = None
    device: DeviceId | None = None
    since: datetime | None = None
    """The time of the host's last question; None: it never asked."""


class CollectorState(msgspec.Struct, frozen=True):
    """The last question of a host for work."""

    host: HostName
    asked_at: datetime
    allow: tuple[DiskPermission, ...]
    has_key: bool
    running: tuple[HostSelfTest, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestSituation:
    """All that the guards know about one disk and its host.

    `collector`: None if the host never asked. `unclean_pgs`: PGs of the host that are not active+clean; None: unknown.
    `open_requests`: those of the host that have not ended.
    """

    device: DeviceId
    host: HostName
    """The host that reads the disk; "" if no host is known, or if two hosts have a disk of that name."""
    now: datetime
    is_living: bool
    collector: CollectorState | None
    halted: bool
    drains: tuple[Drain, ...]
    unclean_pgs: int | None
    open_requests: tuple[DiskRequest, ...]


def find_request_refusals(verb: DiskVerb, seen: RequestSituation) -> tuple[RequestRefusal, ...]:
    """Return every reason why `verb` is refused for the disk now; none: it may be asked for."""
    found = [*_find_host_refusals(verb, seen)]
    if any(one.device == seen.device for one in seen.open_requests):
        found.append(RequestRefusal(RequestRefusalKind.REQUEST_OPEN))
    if verb.test_kind is not None:
        found += find_test_refusals(seen)
        found += _find_running_tests(verb, seen)
    return tuple(found)


def find_test_refusals(seen: RequestSituation) -> tuple[RequestRefusal, ...]:
    """Return every reason why no test may begin on the disk now, apart from those of its host."""
    found = []
    if not seen.is_living:
        found.append(RequestRefusal(RequestRefusalKind.DISK_GONE))
    if seen.halted:
        found.append(RequestRefusal(RequestRefusalKind.HALTED))
    for drain in seen.drains:
        if drain.state not in _RESTING and drain.intent is not Intent.QUARANTINE:
            fills = drain.intent is Intent.FILL
            kind = RequestRefusalKind.OSD_FILLS if fills else RequestRefusalKind.DISK_DRAINS
            found.append(RequestRefusal(kind, drain=drain.id))
    if seen.unclean_pgs is None:
        found.append(RequestRefusal(RequestRefusalKind.CLUSTER_UNKNOWN))
    elif seen.unclean_pgs:
        found.append(RequestRefusal(RequestRefusalKind.PGS_UNCLEAN, count=seen.unclean_pgs))
    return tuple(found)


def _find_host_refusals(verb: DiskVerb, seen: RequestSituation) -> Sequence[RequestRefusal]:
    if not seen.host:
        return [RequestRefusal(RequestRefusalKind.NO_HOST)]
    told = seen.collector
    # A time in the future is not old: the clock was set back, and the host asked since.
    if told is None or seen.now - told.asked_at > SILENT_AFTER:
        return [RequestRefusal(RequestRefusalKind.HOST_SILENT, since=told.asked_at if told else None)]
    found = []
    if verb.permission not in told.allow:
        found.append(RequestRefusal(RequestRefusalKind.NOT_ALLOWED))
    if not told.has_key:
        found.append(RequestRefusal(RequestRefusalKind.NO_KEY))
    return found


def _find_running_tests(verb: DiskVerb, seen: RequestSituation) -> Sequence[RequestRefusal]:
    running = {one.device: one.kind for one in seen.collector.running} if seen.collector else {}
    if seen.device in running:
        return [RequestRefusal(RequestRefusalKind.TEST_RUNNING)]
    if verb is not DiskVerb.LONG_TEST:
        return []
    # A test of unknown kind may be a long one.
    others = {device for device, kind in running.items() if kind is not SelfTestKind.SHORT}
    others |= {one.device for one in seen.open_requests if one.verb is DiskVerb.LONG_TEST}
    return [
        RequestRefusal(RequestRefusalKind.LONG_TEST_ON_HOST, device=other)
        for other in sorted(others - {seen.device})
    ]


def count_unclean_pgs(view: ClusterView) -> Mapping[HostName, int]:
    """Return for each host of the cluster the number of its PGs that are not active+clean; 0 for a calm host."""
    found = {osd.runs_on: 0 for osd in view.osds.values()}
    for pg in view.pgs.values():
        if is_pg_at_rest(pg):
            continue
        members = (view.osds.get(OsdId(osd)) for osd in {*pg.up, *pg.acting})
        for host in {osd.runs_on for osd in members if osd is not None}:
            found[host] += 1
    return found


def find_unclean_pgs(unclean: Mapping[HostName, int] | None, host: HostName, *, has_osds: bool) -> int | None:
    """Return the number of PGs of `host` that are not active+clean, or None if it is not known.

    unclean: `count_unclean_pgs` of a fresh view; None without one. has_osds: OSDs lie on a disk of the host. A host
    without OSDs has no PGs.
    """
    if unclean is None:
        return None
    own = [count for name, count in unclean.items() if is_same_host(name, host)]
    if own:
        return sum(own)
    return None if has_osds else 0


def find_drains_of_disk(
    drains: Collection[Drain], device: DeviceId, osds: Collection[OsdId]
) -> tuple[Drain, ...]:
    """Return the drains of the disk and of the OSDs on it."""
    return tuple(one for one in drains if one.device == device or not frozenset(osds).isdisjoint(one.osds))

"""Causes beside sick disks: what cannot be read, what is held or broken, and what waits for a person.

Disks that two hosts name at the same time make one cause per pair of hosts, for any number of disks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from urllib.parse import quote

from predrain.data.drain import Drain, DrainState
from predrain.data.ids import DeviceId, HostName
from predrain.data.life_cycle import RetiredWhy
from predrain.data.messages import format_count
from predrain.data.outlook import Status
from predrain.data.reading import Reading, Unreadable
from predrain.data.residence import ResidenceState, ResidenceVerdict, decide_residence
from predrain.service.notifications.cause import (
    CLUSTER_KEYS,
    AlertCause,
    AlertCauseKind,
    AlertSnapshot,
    CausePart,
    Severity,
)
from predrain.service.notifications.disk_causes import HEARD, describe_drain_activity

HELD = timedelta(days=1)
"""A drain that holds for longer than this waits for something that does not come by itself."""
HOSTS_AT_ONCE = 3
"""More hosts than this at once have one common cause. Exactly this many silent hosts have one if they are over
half of all.
"""


def find_operational_causes(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield all causes except sick and hot disks."""
    heard: dict[HostName, list[Reading]] = defaultdict(list)
    for reading in snapshot.fleet.readings.values():
        if snapshot.now - reading.taken_at <= HEARD and snapshot.fleet.is_living(reading.device):
            heard[reading.host].append(reading)
    newest = {host: max(reading.taken_at for reading in readings) for host, readings in heard.items()}
    silent = {host: at for host, at in newest.items() if snapshot.now - at > snapshot.stale_after}
    if snapshot.settled:
        untold = {host: at for host, at in silent.items() if host not in snapshot.host_mismatches}
        yield from _find_silent_host_causes(snapshot, untold, len(heard))
    yield from _find_host_mismatch_causes(snapshot)
    yield from _find_unreadable_causes(
        snapshot, (one for host in heard.keys() - silent.keys() for one in heard[host])
    )
    yield from _find_drain_causes(snapshot)
    yield from _find_empty_disk_causes(snapshot)
    yield from contested_disks(snapshot)
    if (halt := snapshot.fleet.halt) is not None:
        title = "Everything is halted"
        todo = (
            "Lift the halt when its reason is gone (`predrain unhalt`; where the service's cephx user only reads, "
            "`ceph predrain unhalt`)."
        )
        if halt.is_transient:
            title, todo = (
                "The cluster does not answer",
                "`predrain doctor` tells why. Drains go on when it does.",
            )
        yield AlertCause(
            "halted", title, (CausePart("halted", halt.reason),), todo, "/drains", kind=AlertCauseKind.HALTED
        )
    for part in snapshot.broken:
        point = CausePart(f"part:{part.name}", part.sentence, Severity.URGENT)
        todo = part.cure or "`predrain doctor` tells what is reachable."
        title = f"predrain's {part.name} does not work"
        if part.name == CLUSTER_KEYS:
            title = "Texts that predrain keeps in the cluster are not believed"
            todo = "`predrain doctor` names all of them; `predrain ceph adopt` shows what they say."
        yield AlertCause(point.name, title, (point,), todo, "/", kind=AlertCauseKind.BROKEN_PART)
    for doubt in snapshot.doubts:
        point = CausePart(f"forecast:{doubt.name}", doubt.sentence)
        yield AlertCause(
            point.name,
            f"The forecast is in doubt: {doubt.name}",
            (point,),
            doubt.cure,
            "/forecast",
            kind=AlertCauseKind.FORECAST_DOUBT,
        )


def find_uncertain_points(snapshot: AlertSnapshot) -> frozenset[str]:
    """Return the names of points that may still be present although no cause has them.

    The disks of a silent host were not read since. A disk that does not answer was not read either, so it may
    still be hot, or unreadable although another cause names it. Soon after a start no host is called silent.
    """
    awake, names = snapshot.find_reporting_hosts(), set[str]()
    for one in snapshot.fleet.readings.values():
        life = snapshot.fleet.lives.get(one.device)
        if life is None or (not life.is_living and life.change.why is not RetiredWhy.LOST):
            continue
        if one.host not in awake:
            names |= {f"{kind}:{one.device}" for kind in ("disk", "hot", "unreadable")}
            names |= {f"{kind}:{one.host}" for kind in ("silent", "unable", "misnamed")}
        elif isinstance(one.seen, Unreadable) and snapshot.now - one.taken_at <= snapshot.stale_after:
            names |= {f"{kind}:{one.device}" for kind in ("hot", "unreadable")}
    return frozenset(names)


def _find_silent_host_causes(
    snapshot: AlertSnapshot, silent: dict[HostName, datetime], hosts: int
) -> Iterator[AlertCause]:
    lines = {
        host: f"{host}: no disk was read since {_format_utc_time(at)}." for host, at in sorted(silent.items())
    }
    if len(silent) > HOSTS_AT_ONCE or (len(silent) == HOSTS_AT_ONCE and 2 * len(silent) > hosts):
        todo = "Look at what they share: network, Kafka, this service. Their readings arrive when it is back."
        points = tuple(
            CausePart(f"silent:{host}", line, Severity.URGENT, host) for host, line in lines.items()
        )
        racks, title = snapshot.fleet.racks_of_hosts(), f"{len(silent)} of {hosts} hosts are silent"
        if len(shared := {racks.get(host) for host in silent}) == 1 and None not in shared:
            title += f", all of them of rack {shared.pop()}"
        yield AlertCause("silent", title, points, todo, "/fleet", kind=AlertCauseKind.SILENT_HOSTS)
        return
    todo = "Look whether the host and its `predrain collect` run. Its readings arrive when it is back."
    for host, line in lines.items():
        yield _of_host(
            AlertCauseKind.SILENT_HOSTS,
            "silent",
            host,
            f"{host} is silent",
            [CausePart(f"silent:{host}", line)],
            todo,
        )


def _find_host_mismatch_causes(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield a cause for each host that was renamed and not enrolled again."""
    for own, named in sorted(snapshot.host_mismatches.items()):
        line = (
            f"{own}: its token comes with readings that name {named}; they are refused and wait in its spool."
        )
        point = CausePart(f"misnamed:{own}", line)
        todo = (
            f"Enrol it under the name that it has now (`predrain token enrol {named}`, there `predrain collect --enrol"
            " TOKEN`), or set `host` of its [collector] to the name that it had."
        )
        yield _of_host(
            AlertCauseKind.HOST_MISMATCH, "misnamed", own, f"{own} calls itself {named}", [point], todo
        )


def _find_unreadable_causes(snapshot: AlertSnapshot, readings: Iterable[Reading]) -> Iterator[AlertCause]:
    """Yield a cause per host for disks that do not answer, and one cause for all hosts that cannot ask their
    disks.
    """
    mute: dict[HostName, list[CausePart]] = defaultdict(list)
    unable: dict[HostName, str] = {}
    for reading in readings:
        if not isinstance(reading.seen, Unreadable):
            continue
        if snapshot.fleet.severity(reading.device) in (Status.WARNING, Status.BAD):
            continue
        if reading.seen.cause.blames_host:
            unable[reading.host] = reading.seen.why
        else:
            line = f"{reading.device}: unreadable since {_format_utc_time(reading.seen.since)}, {reading.seen.why}"
            mute[reading.host].append(CausePart(f"unreadable:{reading.device}", line, host=reading.host))
    if len(mute) > HOSTS_AT_ONCE:
        all_ = tuple(point for _, points in sorted(mute.items()) for point in points)
        title = f"{len(all_)} disks on {len(mute)} hosts cannot be read"
        todo = "Look at what the hosts share: kernel, smartctl, controllers and their firmware."
        yield AlertCause("unreadable", title, all_, todo, "/fleet", kind=AlertCauseKind.UNREADABLE_DISKS)
        mute.clear()
    for host, points in sorted(mute.items()):
        title = f"{format_count(len(points), 'disk')} on {host} cannot be read"
        todo = "Look whether device, cable and controller are there; a disk that stays away is replaced."
        yield _of_host(AlertCauseKind.UNREADABLE_DISKS, "unreadable", host, title, points, todo)
    if unable:
        title = f"{format_count(len(unable), 'host')} cannot ask disks"
        points = [
            CausePart(f"unable:{host}", f"{host}: {why}", host=host) for host, why in sorted(unable.items())
        ]
        todo = "Give the collector smartctl and the right to run it."
        yield AlertCause("unable", title, tuple(points), todo, "/fleet", kind=AlertCauseKind.UNABLE_HOSTS)


def _find_drain_causes(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    mode = snapshot.policy.mode
    drains = {drain.id: drain for drain in snapshot.fleet.drain_of().values()}
    failed = [
        CausePart(
            f"failed:{id_}",
            f"{_format_osds(drain)}: {describe_drain_activity(drain, mode)}",
            Severity.URGENT,
            _find_drain_host(snapshot, drain),
        )
        for id_, drain in sorted(drains.items())
        if drain.state is DrainState.FAILED
    ]
    if failed:
        todo = "Read the journal on the page; nothing goes on by itself."
        yield AlertCause(
            "drains:failed",
            f"{format_count(len(failed), 'drain')} failed",
            tuple(failed),
            todo,
            "/drains",
            kind=AlertCauseKind.FAILED_DRAINS,
        )
    held = [
        CausePart(
            f"held:{id_}",
            f"{_format_osds(drain)}: {describe_drain_activity(drain, mode)}",
            host=_find_drain_host(snapshot, drain),
        )
        for id_, drain in sorted(drains.items())
        if drain.state is DrainState.HOLDING and snapshot.now - drain.updated_at > HELD
    ]
    if held:
        title = f"{format_count(len(held), 'drain')} held for over a day"
        yield AlertCause(
            "drains:held",
            title,
            tuple(held),
            "See to what holds it, or cancel it.",
            "/drains",
            kind=AlertCauseKind.HELD_DRAINS,
        )
    still = [
        CausePart(
            f"still:{id_}",
            f"{_format_osds(drain)}: {describe_drain_activity(drain, mode)}",
            host=_find_drain_host(snapshot, drain),
        )
        for id_, drain in sorted(drains.items())
        if drain.state is DrainState.DRAINING and drain.held_by
    ]
    if still:
        title = f"{format_count(len(still), 'drain')} {'stands' if len(still) == 1 else 'stand'} still"
        todo = "See to what it waits for (a PG in backfill_toofull: to room at its target), or cancel it."
        yield AlertCause(
            "drains:still", title, tuple(still), todo, "/drains", kind=AlertCauseKind.STILL_DRAINS
        )


def _find_empty_disk_causes(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield a cause for each host with disks that are emptied and can be swapped."""
    drains = {drain.id: drain for drain in snapshot.fleet.drain_of().values()}
    empty: dict[HostName, list[CausePart]] = defaultdict(list)
    for id_, drain in sorted(drains.items()):
        if drain.state is DrainState.VERIFIED and drain.is_emptied:
            disk = f" ({drain.device})" if drain.device is not None else ""
            line = f"{_format_osds(drain)}{disk}: all of its data is elsewhere, drain {id_}."
            empty[_find_drain_host(snapshot, drain)].append(CausePart(f"empty:{id_}", line))
    for host, points in sorted(empty.items()):
        title = f"{format_count(len(points), 'disk')} on {host} can be swapped"
        yield _of_host(
            AlertCauseKind.EMPTY_DISKS,
            "empty",
            host,
            title,
            points,
            "Swap the disk; `predrain drain hand-over ID` tells the steps.",
        )


def _of_host(
    kind: AlertCauseKind, key: str, host: HostName, title: str, points: list[CausePart], todo: str
) -> AlertCause:
    """Build the cause of one host. `key`: the first part of the cause's key, which silences name."""
    path = f"/fleet?q={quote(host)}"
    return AlertCause(f"{key}:{host}", title, tuple(points), todo, path, host, kind=kind)


def _find_drain_host(snapshot: AlertSnapshot, drain: Drain) -> HostName:
    view = snapshot.fleet.view
    hosts = [view.osds[osd].host for osd in drain.osds if view and osd in view.osds]
    return hosts[0] if hosts else HostName("an unknown host")


def _format_osds(drain: Drain) -> str:
    return ", ".join(f"osd.{osd}" for osd in drain.osds)


def _format_utc_time(at: datetime) -> str:
    return f"{at:%d %b %H:%M} UTC"


def contested_disks(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield causes for the disks whose host is not settled."""
    found: dict[tuple[HostName, ...], list[tuple[DeviceId, ResidenceVerdict]]] = defaultdict(list)
    view = snapshot.fleet.view
    for device, residence in sorted(snapshot.fleet.residences.items()):
        if not residence.claims:
            continue
        listed = view.hosts_of(device) if view is not None else frozenset[HostName]()
        verdict = decide_residence(residence, listed, snapshot.now, snapshot.limits)
        if verdict.is_contested:
            found[tuple(sorted({verdict.home, *verdict.rivals}))].append((device, verdict))
    for hosts, disks in sorted(found.items()):
        named = " and ".join(hosts)
        title = f"{disks[0][0]} is on {len(hosts)} hosts"
        if len(disks) > 1:
            title = f"{len(disks)} disks are on {named} at the same time"
        asked = any(verdict.state is ResidenceState.ASKED for _, verdict in disks)
        todo = (
            "Look which host has the disk, and say so (on its page, or by `predrain disk host DEVICE HOST`). "
            if asked
            else "Look whether two drives carry one serial number, or both hosts reach one drive. "
        )
        todo += "Until then they are two disks, and neither is drained without a person."
        points = tuple(
            CausePart(f"twice:{device}", _describe_contested_disk(device, verdict))
            for device, verdict in disks
        )
        path = f"/devices/{quote(disks[0][0], '')}" if len(disks) == 1 else "/fleet"
        yield AlertCause(
            f"twice:{','.join(hosts)}", title, points, todo, path, kind=AlertCauseKind.CONTESTED_DISKS
        )


def _describe_contested_disk(device: DeviceId, verdict: ResidenceVerdict) -> str:
    rivals = " and ".join(verdict.rivals)
    since = f" since {verdict.since:%d %b %H:%M} UTC" if verdict.since is not None else ""
    return (
        f"{device} answers on {verdict.home} and on {rivals}{since}: its history is what {verdict.home} reads, what "
        f"{rivals} sends is kept apart."
    )

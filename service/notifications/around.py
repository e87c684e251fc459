"""Causes beside sick disks: what cannot be read, what is held or broken, what waits for a person's hands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from urllib.parse import quote

from predrain.actions.controller.leadership import passes
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import HostName
from predrain.data.life_cycle import RetiredWhy
from predrain.data.outlook import Status
from predrain.data.reading import Reading, Unreadable
from predrain.service.notifications.cause import CLUSTER_KEYS, AlertCause, CausePart, Scene, Severity
from predrain.service.notifications.disks import HEARD, doing
from predrain.service.notifications.residence import contested_disks

HELD = timedelta(days=1)
"""A drain that holds for longer waits for something that does not come by itself."""
HOSTS_AT_ONCE = 3
"""More hosts than these at once have one cause; so many have one if they are over half of all."""


def around(scene: Scene) -> Iterator[AlertCause]:
    """Everything but sick disks."""
    heard: dict[HostName, list[Reading]] = defaultdict(list)
    for reading in scene.sight.readings.values():
        if scene.now - reading.taken_at <= HEARD and scene.sight.is_living(reading.device):
            heard[reading.host].append(reading)
    newest = {host: max(reading.taken_at for reading in readings) for host, readings in heard.items()}
    silent = {host: at for host, at in newest.items() if scene.now - at > scene.stale_after}
    if scene.settled:
        untold = {host: at for host, at in silent.items() if host not in scene.misnamed}
        yield from _silent(scene, untold, len(heard))
    yield from _misnamed(scene)
    yield from _unreadable(scene, (one for host in heard.keys() - silent.keys() for one in heard[host]))
    yield from _drains(scene)
    yield from contested_disks(scene)
    if scene.sight.halted is not None:
        title = "Everything is halted"
        todo = (
            "Lift the halt when its reason is gone (`predrain unhalt`; where the service's cephx user only reads, "
            "`ceph predrain unhalt`)."
        )
        if passes(scene.sight.halted):
            title, todo = (
                "The cluster does not answer",
                "`predrain doctor` tells why. Drains go on when it does.",
            )
        yield AlertCause("halted", title, (CausePart("halted", scene.sight.halted),), todo, "/drains")
    for part in scene.broken:
        point = CausePart(f"part:{part.name}", part.sentence, Severity.URGENT)
        todo = part.cure or "`predrain doctor` tells what is reachable."
        title = f"predrain's {part.name} does not work"
        if part.name == CLUSTER_KEYS:
            title = "Texts that predrain keeps in the cluster are not believed"
            todo = "`predrain doctor` names all of them; `predrain ceph adopt` shows what they say."
        yield AlertCause(point.name, title, (point,), todo, "/")
    for doubt in scene.doubts:
        point = CausePart(f"forecast:{doubt.name}", doubt.sentence)
        yield AlertCause(
            point.name, f"The forecast is in doubt: {doubt.name}", (point,), doubt.cure, "/forecast"
        )


def unsure(scene: Scene) -> frozenset[str]:
    """Names of points that may stand though no cause has them.

    Nobody has read the disks of a silent host since, nor one that answers no more, whatever it is told by; and soon
    after a start no host is called silent.
    """
    awake, names = scene.awake(), set[str]()
    for one in scene.sight.readings.values():
        life = scene.sight.lives.get(one.device)
        if life is None or (not life.is_living and life.change.why is not RetiredWhy.LOST):
            continue
        if one.host not in awake:
            names |= {f"{kind}:{one.device}" for kind in ("disk", "hot", "unreadable")}
            names |= {f"{kind}:{one.host}" for kind in ("silent", "unable", "misnamed")}
        elif isinstance(one.seen, Unreadable) and scene.now - one.taken_at <= scene.stale_after:
            names |= {f"{kind}:{one.device}" for kind in ("hot", "unreadable")}
    return frozenset(names)


def _silent(scene: Scene, silent: dict[HostName, datetime], hosts: int) -> Iterator[AlertCause]:
    lines = {host: f"{host}: no disk was read since {_clock(at)}." for host, at in sorted(silent.items())}
    if len(silent) > HOSTS_AT_ONCE or (len(silent) == HOSTS_AT_ONCE and 2 * len(silent) > hosts):
        todo = "Look at what they share: network, Kafka, this service. What they read meanwhile comes when it is back."
        points = tuple(
            CausePart(f"silent:{host}", line, Severity.URGENT, host) for host, line in lines.items()
        )
        racks, title = scene.sight.racks_of_hosts(), f"{len(silent)} of {hosts} hosts are silent"
        if len(shared := {racks.get(host) for host in silent}) == 1 and None not in shared:
            title += f", all of them of rack {shared.pop()}"
        yield AlertCause("silent", title, points, todo, "/fleet")
        return
    todo = (
        "Look whether the host and its `predrain collect` run. What it read meanwhile comes when it is back."
    )
    for host, line in lines.items():
        yield _of_host(host, f"{host} is silent", [CausePart(f"silent:{host}", line)], todo)


def _misnamed(scene: Scene) -> Iterator[AlertCause]:
    """Hosts that were renamed and not enrolled anew."""
    for own, named in sorted(scene.misnamed.items()):
        line = (
            f"{own}: its token comes with readings that name {named}; they are refused and wait in its spool."
        )
        point = CausePart(f"misnamed:{own}", line)
        todo = (
            f"Enrol it under the name that it has now (`predrain token enrol {named}`, there `predrain collect --enrol"
            " TOKEN`), or set `host` of its [collector] to the name that it had."
        )
        yield _of_host(own, f"{own} calls itself {named}", [point], todo)


def _unreadable(scene: Scene, readings: Iterable[Reading]) -> Iterator[AlertCause]:
    """Disks that do not answer, by host; and hosts that cannot ask theirs, all together."""
    mute: dict[HostName, list[CausePart]] = defaultdict(list)
    unable: dict[HostName, str] = {}
    for reading in readings:
        if not isinstance(reading.seen, Unreadable):
            continue
        if scene.sight.severity(reading.device) in (Status.WARNING, Status.BAD):
            continue
        if reading.seen.cause.blames_host:
            unable[reading.host] = reading.seen.why
        else:
            line = f"{reading.device}: unreadable since {_clock(reading.seen.since)}, {reading.seen.why}"
            mute[reading.host].append(CausePart(f"unreadable:{reading.device}", line, host=reading.host))
    if len(mute) > HOSTS_AT_ONCE:
        all_ = tuple(point for _, points in sorted(mute.items()) for point in points)
        title = f"{len(all_)} disks on {len(mute)} hosts cannot be read"
        todo = "Look at what the hosts share: kernel, smartctl, controllers and their firmware."
        yield AlertCause("unreadable", title, all_, todo, "/fleet")
        mute.clear()
    for host, points in sorted(mute.items()):
        title = f"{_number(len(points), 'disk')} on {host} cannot be read"
        todo = "Look whether device, cable and controller are there; a disk that stays away is replaced."
        yield _of_host(host, title, points, todo)
    if unable:
        title = f"{_number(len(unable), 'host')} cannot ask disks"
        points = [
            CausePart(f"unable:{host}", f"{host}: {why}", host=host) for host, why in sorted(unable.items())
        ]
        todo = "Give the collector smartctl and the right to run it."
        yield AlertCause("unable", title, tuple(points), todo, "/fleet")


def _drains(scene: Scene) -> Iterator[AlertCause]:
    mode = scene.policy.mode
    drains = {drain.id: drain for drain in scene.sight.drain_of().values()}
    failed = [
        CausePart(
            f"failed:{id_}", f"{_osds(drain)}: {doing(drain, mode)}", Severity.URGENT, _host(scene, drain)
        )
        for id_, drain in sorted(drains.items())
        if drain.state is DrainState.FAILED
    ]
    if failed:
        todo = "Read the journal on the page; nothing goes on by itself."
        yield AlertCause(
            "drains:failed", f"{_number(len(failed), 'drain')} failed", tuple(failed), todo, "/drains"
        )
    held = [
        CausePart(f"held:{id_}", f"{_osds(drain)}: {doing(drain, mode)}", host=_host(scene, drain))
        for id_, drain in sorted(drains.items())
        if drain.state is DrainState.HOLDING and scene.now - drain.updated_at > HELD
    ]
    if held:
        title = f"{_number(len(held), 'drain')} held for over a day"
        yield AlertCause("drains:held", title, tuple(held), "See to what holds it, or cancel it.", "/drains")
    still = [
        CausePart(f"still:{id_}", f"{_osds(drain)}: {doing(drain, mode)}", host=_host(scene, drain))
        for id_, drain in sorted(drains.items())
        if drain.state is DrainState.DRAINING and drain.held_by
    ]
    if still:
        title = f"{_number(len(still), 'drain')} {'stands' if len(still) == 1 else 'stand'} still"
        todo = "See to what it waits for (a PG in backfill_toofull: to room at its target), or cancel it."
        yield AlertCause("drains:still", title, tuple(still), todo, "/drains")
    empty: dict[HostName, list[CausePart]] = defaultdict(list)
    for id_, drain in sorted(drains.items()):
        if drain.state is DrainState.VERIFIED and drain.emptied:
            disk = f" ({drain.device})" if drain.device is not None else ""
            line = f"{_osds(drain)}{disk}: all of its data is elsewhere, drain {id_}."
            empty[_host(scene, drain)].append(CausePart(f"empty:{id_}", line))
    for host, points in sorted(empty.items()):
        title = f"{_number(len(points), 'disk')} on {host} can be swapped"
        yield _of_host(host, title, points, "Swap the disk; `predrain drain done ID` tells the steps.")


def _of_host(host: HostName, title: str, points: list[CausePart], todo: str) -> AlertCause:
    kind = points[0].name.partition(":")[0]
    return AlertCause(f"{kind}:{host}", title, tuple(points), todo, f"/fleet?q={quote(host)}", host)


def _host(scene: Scene, drain: Drain) -> HostName:
    view = scene.sight.view
    seats = [view.osds[osd].host for osd in drain.osds if view and osd in view.osds]
    return seats[0] if seats else HostName("an unknown host")


def _osds(drain: Drain) -> str:
    return ", ".join(f"osd.{osd}" for osd in drain.osds)


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _clock(at: datetime) -> str:
    return f"{at:%d %b %H:%M} UTC"

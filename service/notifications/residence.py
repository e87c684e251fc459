"""Disks that two hosts name at the same time: one cause a pair of hosts, however many disks they have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from urllib.parse import quote

from predrain.data.ids import DeviceId, HostName
from predrain.data.residence import ResidenceState, ResidenceVerdict, decide_residence
from predrain.service.notifications.cause import AlertCause, CausePart, Scene


def contested_disks(scene: Scene) -> Iterator[AlertCause]:
    """Disks of which it is not settled in which of several hosts they live."""
    found: dict[tuple[HostName, ...], list[tuple[DeviceId, ResidenceVerdict]]] = defaultdict(list)
    view = scene.sight.view
    for device, residence in sorted(scene.sight.residences.items()):
        if not residence.claims:
            continue
        listed = view.hosts_of(device) if view is not None else frozenset[HostName]()
        verdict = decide_residence(residence, listed, scene.now, scene.limits)
        if verdict.is_contested:
            found[tuple(sorted({verdict.home, *verdict.rivals}))].append((device, verdict))
    for hosts, disks in sorted(found.items()):
        named = " and ".join(hosts)
        title = f"{disks[0][0]} is on {len(hosts)} hosts"
        if len(disks) > 1:
            title = f"{len(disks)} disks are on {named} at the same time"
        asked = any(verdict.state is ResidenceState.ASKED for _, verdict in disks)
        todo = (
            "Look which host has the disk, and say so (on its page, or by `predrain disk home DEVICE HOST`). "
            if asked
            else "Look whether two drives carry one serial number, or both hosts reach one drive. "
        )
        todo += "Until then they are two disks, and neither is drained without a person."
        points = tuple(CausePart(f"twice:{device}", _line(device, verdict)) for device, verdict in disks)
        path = f"/devices/{quote(disks[0][0], '')}" if len(disks) == 1 else "/fleet"
        yield AlertCause(f"twice:{','.join(hosts)}", title, points, todo, path)


def _line(device: DeviceId, verdict: ResidenceVerdict) -> str:
    rivals = " and ".join(verdict.rivals)
    since = f" since {verdict.since:%d %b %H:%M} UTC" if verdict.since is not None else ""
    return (
        f"{device} answers on {verdict.home} and on {rivals}{since}: its history is what {verdict.home} reads, what "
        f"{rivals} sends is kept apart."
    )

"""OSDs that die together: those whose DB or WAL lies on one shared device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from predrain.actions.cluster.view import ClusterView
from predrain.data.drain import Drain, Move
from predrain.data.ids import DeviceId, OsdId, PgId

Fates = Mapping[OsdId, tuple[DeviceId, ...]]


def devices_of(view: ClusterView, osd: OsdId) -> tuple[DeviceId, ...]:
    """Every device that the OSD needs, its own first."""
    found = view.osds[osd]
    return (*((found.device,) if found.device is not None else ()), *found.shared_devices)


def slot_reused(view: ClusterView, drain: Drain) -> bool:
    """Whether another device is in the place of the one that this drain is about."""
    if drain.device is None:
        return False
    known = [osd for id_ in drain.osds if (osd := view.osds.get(id_)) is not None]
    devices = {device for osd in known for device in devices_of(view, osd.id)}
    return bool(known) and all(osd.device is not None for osd in known) and drain.device not in devices


def list_disks_in_use(view: ClusterView, drain: Drain) -> tuple[OsdId, ...]:
    """OSDs of an emptied drain that are up and in, on the disk that was emptied. Nothing of a filled disk."""
    if drain.device is None or not drain.intent.empties_osd:
        return ()
    known = [osd for id_ in drain.osds if (osd := view.osds.get(id_)) is not None]
    return tuple(
        osd.id for osd in known if osd.up and osd.reweight > 0.0 and drain.device in devices_of(view, osd.id)
    )


def fates(view: ClusterView) -> Fates:
    """The shared devices of each OSD that has any."""
    return {osd.id: osd.shared_devices for osd in view.osds.values() if osd.shared_devices}


def crowded(shared: Fates, now: Collection[int], want: Collection[int]) -> tuple[DeviceId, int] | None:
    """A shared device under more members of `want` than of `now`, and more than one, with how many; None: no such."""
    if not shared:
        return None
    before, after = _tally(shared, now), _tally(shared, want)
    worse = [(members, device) for device, members in after.items() if members > max(1, before[device])]
    if not worse:
        return None
    members, device = max(worse)
    return device, members


def doomed(view: ClusterView, moves: Iterable[Move]) -> tuple[PgId, DeviceId, int] | None:
    """A PG that these moves would crowd on one shared device, so that its death leaves less than `min_size`."""
    shared = fates(view)
    if not shared:
        return None
    want: dict[PgId, tuple[int, ...]] = {}
    for move in moves:
        if move.pg in view.pgs:
            up = want.get(move.pg, view.pgs[move.pg].up)
            want[move.pg] = tuple(int(move.target) if osd == move.source else osd for osd in up)
    for id_, up in want.items():
        found = crowded(shared, view.pgs[id_].up, up)
        if found and len(set(up)) - found[1] < view.pools[view.pgs[id_].pool].min_size:
            return id_, *found
    return None


def _tally(shared: Fates, members: Collection[int]) -> Counter[DeviceId]:
    return Counter(device for osd in members for device in shared.get(OsdId(osd), ()))

"""`OsdLayout`: all that a map says of its OSDs except how full they are.

The fullness of an OSD changes with every poll of a cluster that clients write to. Hosts, devices, weights and the state
of an OSD change seldom. Each result from them is computed once for each change, and not for each poll, guard and drain.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import compress
from operator import attrgetter, is_not

from predrain.actions.cluster.cluster_view import Osd
from predrain.data.identity_memo import has_same_keys, remember_results
from predrain.data.ids import DeviceId, OsdId

_read_layout = attrgetter(
    "id", "host", "rack", "device", "up", "reweight", "crush_weight", "primary_affinity", "device_class", "model",
    "shared_devices", "machine", "old_weight",
)  # fmt: skip
"""Every field of an OSD but its sizes."""


class OsdLayout:
    """The results from the OSDs of a map without their sizes. Maps that differ only in sizes share one instance."""

    def __init__(self, osds: Mapping[OsdId, Osd]) -> None:
        self._osds = osds

    def matches_osds(self, osds: Mapping[OsdId, Osd]) -> bool:
        """Return whether these OSDs differ from the layout's at most in their sizes."""
        mine = self._osds
        if not has_same_keys(mine, osds):
            return False
        other = map(is_not, mine.values(), osds.values())
        return all(
            _read_layout(before) == _read_layout(now)
            for before, now in compress(zip(mine.values(), osds.values(), strict=True), other)
        )

    def with_sizes_of(self, osds: Mapping[OsdId, Osd]) -> OsdLayout:
        """Return this layout, which matches `osds`, and compare it with `osds` from now on."""
        self._osds = osds
        return self

    @cached_property
    def down(self) -> frozenset[OsdId]:
        """The OSDs that are down."""
        return frozenset(id_ for id_, osd in self._osds.items() if not osd.up)

    @cached_property
    def out(self) -> frozenset[OsdId]:
        """The OSDs with override 0."""
        return frozenset(osd.id for osd in self._osds.values() if osd.reweight == 0.0)

    @cached_property
    def serving(self) -> frozenset[OsdId]:
        """The OSDs that are up and whose override is not 0."""
        return frozenset(osd.id for osd in self._osds.values() if osd.up and osd.reweight > 0)

    @cached_property
    def overrides(self) -> Mapping[OsdId, float]:
        """The override of every OSD."""
        return {osd.id: osd.reweight for osd in self._osds.values()}

    @cached_property
    def weights(self) -> tuple[tuple[OsdId, bool, float, float], ...]:
        """Each OSD with whether it is up, its override and its CRUSH weight."""
        return tuple((osd.id, osd.up, osd.reweight, osd.crush_weight) for osd in self._osds.values())

    @cached_property
    def weightless(self) -> frozenset[OsdId]:
        """The OSDs without CRUSH weight."""
        return frozenset(osd.id for osd in self._osds.values() if osd.crush_weight <= 0)

    @cached_property
    def affinities(self) -> Mapping[OsdId, float]:
        """The primary affinity of each OSD that has one below 1."""
        return {osd.id: osd.primary_affinity for osd in self._osds.values() if osd.primary_affinity < 1.0}

    @cached_property
    def devices(self) -> Mapping[OsdId, tuple[DeviceId, ...]]:
        """Every device that each OSD needs, its own first."""
        return {
            id_: (*((osd.device,) if osd.device is not None else ()), *osd.shared_devices)
            for id_, osd in self._osds.items()
        }

    @cached_property
    def shared_devices(self) -> Mapping[OsdId, tuple[DeviceId, ...]]:
        """The shared devices of each OSD that has any."""
        return {osd.id: osd.shared_devices for osd in self._osds.values() if osd.shared_devices}

    @cached_property
    def osds_by_device(self) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """The OSDs that need each device, in the order of the map; an OSD that names a device twice is there twice."""
        found: dict[DeviceId, list[OsdId]] = {}
        for id_, devices in self.devices.items():
            for device in devices:
                found.setdefault(device, []).append(id_)
        return {device: tuple(osds) for device, osds in found.items()}

    @cached_property
    def serving_devices(self) -> Mapping[DeviceId, tuple[OsdId, ...]]:
        """The devices under OSDs that are up and in, each with those OSDs, lowest first."""
        serving = self.serving
        found = {
            device: tuple(sorted(osd for osd in osds if osd in serving))
            for device, osds in self.osds_by_device.items()
        }
        return {device: osds for device, osds in found.items() if osds}

    @cached_property
    def models(self) -> Mapping[DeviceId, str | None]:
        """The model of each device that is the data device of an OSD."""
        return {osd.device: osd.model for osd in self._osds.values() if osd.device is not None}

    @cached_property
    def devices_by_model(self) -> Mapping[str | None, frozenset[DeviceId]]:
        """The data devices of each model."""
        found: dict[str | None, set[DeviceId]] = {}
        for device, model in self.models.items():
            found.setdefault(model, set()).add(device)
        return {model: frozenset(devices) for model, devices in found.items()}


class _KnownLayouts:
    """The last layouts. A cluster has one; tests and plans ask for others beside it."""

    def __init__(self) -> None:
        self._last: tuple[OsdLayout, ...] = ()

    def find_layout(self, osds: Mapping[OsdId, Osd]) -> OsdLayout:
        for known in self._last:
            if known.matches_osds(osds):
                return known.with_sizes_of(osds)
        found = OsdLayout(osds)
        self._last = (found, *self._last[:3])
        return found


_KNOWN_LAYOUTS = _KnownLayouts()


@remember_results(limit=4)
def find_osd_layout(osds: Mapping[OsdId, Osd]) -> OsdLayout:
    """Return the layout of these OSDs: a known one, if they differ from its OSDs at most in their sizes."""
    return _KNOWN_LAYOUTS.find_layout(osds)


@remember_results(limit=4)
def sum_osd_sizes(osds: Mapping[OsdId, Osd]) -> tuple[int, int]:
    """Return the bytes that all OSDs hold, and the size of those that are up and in; unknown sizes count as 0."""
    used = sum(osd.used_bytes or 0 for osd in osds.values())
    return used, sum(osd.size_bytes or 0 for osd in osds.values() if osd.up and osd.reweight > 0)

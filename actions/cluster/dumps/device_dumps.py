"""`ceph device ls` and `ceph osd metadata`: the devices of each OSD with their roles and published life
expectancies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from predrain.actions.cluster.dumps.dump_decoding import decode_answer
from predrain.actions.cluster.dumps.pg_dump import parse_ceph_time
from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.outside_text import CLUSTER_NAME, clean_identifier

_NEXT_ID = re.compile(r",(?=[^,=]+=)")


class _Location(msgspec.Struct):
    host: str = ""
    dev: str = ""


class _Device(msgspec.Struct):
    devid: str
    location: list[_Location] = []
    daemons: list[str] = []
    life_expectancy_min: str = ""
    life_expectancy_max: str = ""


class _Metadata(msgspec.Struct):
    id: int
    hostname: str = ""
    device_ids: str = ""
    bluestore_bdev_devices: str = ""
    bluefs_db_devices: str = ""
    bluefs_wal_devices: str = ""


_DEVICES = msgspec.json.Decoder(list[_Device])
_METADATA = msgspec.json.Decoder(list[_Metadata])

Life = tuple[datetime, datetime | None]


@dataclass(frozen=True, slots=True)
class DeviceList:
    """Devices by OSD and by the place where they are plugged in, and the published life expectancies."""

    of_osd: Mapping[OsdId, tuple[DeviceId, ...]]
    plugged: Mapping[tuple[str, str], DeviceId]
    lives: Mapping[DeviceId, Life]


@dataclass(frozen=True, slots=True)
class OsdMetadata:
    """The data that an OSD reported at its last start: kernel names (`sdb`) by role, and their ids if the OSD knew
    them.
    """

    host: HostName | None
    data: tuple[str, ...]
    beside: tuple[str, ...]
    """Devices of the DB and the WAL."""
    ids: Mapping[str, DeviceId]


@dataclass(frozen=True, slots=True)
class OsdDevices:
    """The devices of one OSD; None and empty if they are not known."""

    data: DeviceId | None = None
    beside: tuple[DeviceId, ...] = ()

    @property
    def model(self) -> str | None:
        """Return the drive model as it stands in the id, with underscores: the part before the serial number."""
        return self.data.rpartition("_")[0] or None if self.data else None


def device_ls(raw: bytes) -> DeviceList:
    """Parse the list. Raises NotUnderstood."""
    of_osd: dict[OsdId, tuple[DeviceId, ...]] = {}
    plugged: dict[tuple[str, str], DeviceId] = {}
    lives: dict[DeviceId, Life] = {}
    for device in decode_answer("device_ls", raw, _DEVICES):
        id_ = DeviceId(clean_identifier(device.devid, CLUSTER_NAME.limit))
        for daemon in device.daemons:
            kind, _, number = daemon.partition(".")
            if kind == "osd" and number.isascii() and number.isdigit() and len(number) < 10:
                osd = OsdId(int(number))
                of_osd[osd] = (*of_osd.get(osd, ()), id_)
        for place in device.location:
            plugged[(clean_identifier(place.host, CLUSTER_NAME.limit), place.dev)] = id_
        life = _parse_life_expectancy(device)
        if life is not None:
            lives[id_] = life
    return DeviceList(of_osd, plugged, lives)


def _parse_life_expectancy(device: _Device) -> Life | None:
    ends = [
        None if not text.strip("0.") else parse_ceph_time("device_ls", "life expectancy", _add_midnight(text))
        for text in (device.life_expectancy_min, device.life_expectancy_max)
    ]
    return None if ends[0] is None else (ends[0], ends[1])


def _add_midnight(text: str) -> str:
    return f"{text}T00:00:00+0000" if len(text) == len("2027-01-01") else text


def osd_metadata(raw: bytes) -> Mapping[OsdId, OsdMetadata]:
    """Parse the metadata of every OSD. Raises NotUnderstood."""
    return {
        OsdId(row.id): OsdMetadata(
            host=HostName(clean_identifier(row.hostname, CLUSTER_NAME.limit)) if row.hostname else None,
            data=_split_device_names(row.bluestore_bdev_devices),
            beside=tuple(
                dict.fromkeys(
                    (
                        *_split_device_names(row.bluefs_db_devices),
                        *_split_device_names(row.bluefs_wal_devices),
                    )
                )
            ),
            ids=_parse_device_ids(row.device_ids),
        )
        for row in decode_answer("osd_metadata", raw, _METADATA)
    }


def _split_device_names(text: str) -> tuple[str, ...]:
    return tuple(clean_identifier(name, CLUSTER_NAME.limit) for name in text.split(",") if name)


def _parse_device_ids(text: str) -> dict[str, DeviceId]:
    """Parse `sdb=VENDOR_MODEL_SERIAL,nvme0n1=...`. An id may hold blanks, commas and more."""
    pairs = (item.partition("=") for item in _NEXT_ID.split(text) if "=" in item)
    return {name: DeviceId(clean_identifier(id_, CLUSTER_NAME.limit)) for name, _, id_ in pairs if id_}


def find_osd_devices(
    osd: OsdId, devices: DeviceList | None, bodies: Mapping[OsdId, OsdMetadata] | None
) -> OsdDevices:
    """Return the devices of an OSD by role.

    `device ls` names the devices; the OSD's metadata distinguish data from DB and WAL. Without metadata a single
    device is taken as the one that holds the data, and of several devices the role is unknown.
    """
    body = bodies.get(osd) if bodies else None
    if body is None or not body.data:
        listed = devices.of_osd.get(osd, ()) if devices else ()
        return OsdDevices(listed[0]) if len(listed) == 1 else OsdDevices()
    data = _find_device_ids(body, body.data, devices)
    beside = _find_device_ids(body, tuple(name for name in body.beside if name not in body.data), devices)
    if not data and devices and len(listed := devices.of_osd.get(osd, ())) == 1 and listed[0] not in beside:
        data = listed
    return OsdDevices(data[0], (*data[1:], *beside)) if data else OsdDevices(None, beside)


def _find_device_ids(
    body: OsdMetadata, names: tuple[str, ...], devices: DeviceList | None
) -> tuple[DeviceId, ...]:
    plugged = devices.plugged if devices else {}
    ids = (body.ids.get(name) or plugged.get((body.host or "", name)) for name in names)
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ is not None))

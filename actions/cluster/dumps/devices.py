"""`ceph device ls` and `ceph osd metadata`: which devices an OSD lives on, in which role, how long they may last."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from predrain.actions.cluster.dumps.decoding import decoded
from predrain.actions.cluster.dumps.pg_dump import instant
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
    """Devices by daemon and by where they are plugged in, and the published life expectancies."""

    of_osd: Mapping[OsdId, tuple[DeviceId, ...]]
    plugged: Mapping[tuple[str, str], DeviceId]
    lives: Mapping[DeviceId, Life]


@dataclass(frozen=True, slots=True)
class OsdMetadata:
    """What an OSD told of itself when it last started. Kernel names (`sdb`) by role, and their ids where it knew."""

    host: HostName | None
    data: tuple[str, ...]
    beside: tuple[str, ...]
    """DB and WAL."""
    ids: Mapping[str, DeviceId]


@dataclass(frozen=True, slots=True)
class OsdDevices:
    """The devices of one OSD; None and empty where they are not known."""

    data: DeviceId | None = None
    beside: tuple[DeviceId, ...] = ()

    @property
    def model(self) -> str | None:
        """The drive model as it stands in the id, with underscores: all before the serial number."""
        return self.data.rpartition("_")[0] or None if self.data else None


def device_ls(raw: bytes) -> DeviceList:
    """The list. Raises NotUnderstood."""
    of_osd: dict[OsdId, tuple[DeviceId, ...]] = {}
    plugged: dict[tuple[str, str], DeviceId] = {}
    lives: dict[DeviceId, Life] = {}
    for device in decoded("device_ls", raw, _DEVICES):
        id_ = DeviceId(clean_identifier(device.devid, CLUSTER_NAME.limit))
        for daemon in device.daemons:
            kind, _, number = daemon.partition(".")
            if kind == "osd" and number.isascii() and number.isdigit() and len(number) < 10:
                osd = OsdId(int(number))
                of_osd[osd] = (*of_osd.get(osd, ()), id_)
        for place in device.location:
            plugged[(clean_identifier(place.host, CLUSTER_NAME.limit), place.dev)] = id_
        life = _life(device)
        if life is not None:
            lives[id_] = life
    return DeviceList(of_osd, plugged, lives)


def _life(device: _Device) -> Life | None:
    ends = [
        None if not text.strip("0.") else instant("device_ls", "life expectancy", _dated(text))
        for text in (device.life_expectancy_min, device.life_expectancy_max)
    ]
    return None if ends[0] is None else (ends[0], ends[1])


def _dated(text: str) -> str:
    return f"{text}T00:00:00+0000" if len(text) == len("2027-01-01") else text


def osd_metadata(raw: bytes) -> Mapping[OsdId, OsdMetadata]:
    """Every OSD's body. Raises NotUnderstood."""
    return {
        OsdId(row.id): OsdMetadata(
            host=HostName(clean_identifier(row.hostname, CLUSTER_NAME.limit)) if row.hostname else None,
            data=_names(row.bluestore_bdev_devices),
            beside=tuple(dict.fromkeys((*_names(row.bluefs_db_devices), *_names(row.bluefs_wal_devices)))),
            ids=_ids(row.device_ids),
        )
        for row in decoded("osd_metadata", raw, _METADATA)
    }


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _ids(text: str) -> dict[str, DeviceId]:
    """`sdb=VENDOR_MODEL_SERIAL,nvme0n1=...`; an id may hold blanks, commas and more."""
    pairs = (item.partition("=") for item in _NEXT_ID.split(text) if "=" in item)
    return {name: DeviceId(clean_identifier(id_, CLUSTER_NAME.limit)) for name, _, id_ in pairs if id_}


def parts(osd: OsdId, devices: DeviceList | None, bodies: Mapping[OsdId, OsdMetadata] | None) -> OsdDevices:
    """The devices of an OSD by role. `device ls` names them, the OSD's metadata tell data from DB and WAL; without
    metadata a single device is the one that holds the data, and of several none is known to."""
    body = bodies.get(osd) if bodies else None
    if body is None or not body.data:
        listed = devices.of_osd.get(osd, ()) if devices else ()
        return OsdDevices(listed[0]) if len(listed) == 1 else OsdDevices()
    data = _named(body, body.data, devices)
    beside = _named(body, tuple(name for name in body.beside if name not in body.data), devices)
    if not data and devices and len(listed := devices.of_osd.get(osd, ())) == 1 and listed[0] not in beside:
        data = listed
    return OsdDevices(data[0], (*data[1:], *beside)) if data else OsdDevices(None, beside)


def _named(body: OsdMetadata, names: tuple[str, ...], devices: DeviceList | None) -> tuple[DeviceId, ...]:
    plugged = devices.plugged if devices else {}
    ids = (body.ids.get(name) or plugged.get((body.host or "", name)) for name in names)
    return tuple(dict.fromkeys(id_ for id_ in ids if id_ is not None))

"""Other sources on an OSD's devices: LVM tags (`ceph-volume lvm list`, `raw list`, `lvs`) and `ceph osd metadata`.

The input is the bytes that the command printed. A row that cannot be read is reported and does not cost the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from predrain.data.ids import OsdId, OsdKey, parse_cluster_id
from predrain.data.reading import Role

LARGEST = 64 << 20
"""Bytes. `ceph osd metadata` of 6,000 OSDs has some 20 MB."""
LARGEST_ID = 10**9
_TYPES = {"block": Role.DATA, "data": Role.DATA, "db": Role.DB, "wal": Role.WAL, "journal": Role.JOURNAL}
_DEVICE_TAG = {Role.DATA: "block", Role.DB: "db", Role.WAL: "wal", Role.JOURNAL: "journal"}


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """The statement of a source that an OSD has a role on some devices."""

    key: OsdKey
    """Without a cluster if the source does not give its fsid."""
    role: Role
    devices: tuple[str, ...]
    """Paths or kernel names, which together hold it."""
    volume: str = ""
    """The path of the logical volume. It is preferred to `devices` if it is known."""
    host: str = ""
    """The OSD's host, if the source gives it."""


@dataclass(frozen=True, slots=True)
class _Tagged:
    """A volume with its tags, its path and the devices that it lies on."""

    tags: Mapping[str, str]
    path: str
    devices: tuple[str, ...]


class _Volume(msgspec.Struct):
    """A row of `ceph-volume lvm list`."""

    type: str = ""
    lv_path: str = ""
    lv_tags: str = ""
    devices: list[str] = []
    tags: dict[str, str] = {}


class _Raw(msgspec.Struct):
    """A row of `ceph-volume raw list`."""

    osd_id: int
    ceph_fsid: str = ""
    device: str = ""
    device_db: str = ""
    device_wal: str = ""


class _Lv(msgspec.Struct):
    """A row of `lvs --reportformat json`."""

    lv_tags: str = ""
    lv_path: str = ""
    devices: str = ""


class _Lvs(msgspec.Struct):
    lv: list[_Lv] = []


class _Report(msgspec.Struct):
    report: list[_Lvs]


class _Metadata(msgspec.Struct):
    """A row of `osd metadata`.

    A field that a release does not give is empty; `_dev_node` held the devices before 14.2.
    """

    id: int
    hostname: str = ""
    bluestore_bdev_devices: str = ""
    bluestore_bdev_dev_node: str = ""
    bluefs_db_devices: str = ""
    bluefs_db_dev_node: str = ""
    bluefs_wal_devices: str = ""
    bluefs_wal_dev_node: str = ""


_ROWS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VOLUMES = msgspec.json.Decoder(list[_Volume])
_RAW = msgspec.json.Decoder(_Raw, strict=False)
_REPORT = msgspec.json.Decoder(_Report)
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_ONE = msgspec.json.Decoder(_Metadata, strict=False)


def volume_claims(told: bytes, trouble: list[str]) -> tuple[DeviceClaim, ...]:
    """Parse the claims of `ceph-volume lvm list --format json`, `ceph-volume raw list` or `lvs -o lv_path,lv_tags`.

    `lvs` may print JSON or text. Never raises.
    """
    if len(told) > LARGEST:
        trouble.append(_describe_unreadable("The list of volumes", f"it has {len(told):,} bytes"))
        return ()
    if not told.lstrip().startswith(b"{"):
        return _of_volumes(_of_text(told))
    try:
        rows = _ROWS.decode(told)
        if "report" in rows:
            report = _REPORT.decode(told)
            return _of_volumes(
                _Tagged(_parse_lv_tags(lv.lv_tags), lv.lv_path, _parse_extent_devices(lv.devices))
                for part in report.report
                for lv in part.lv
            )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        trouble.append(_describe_unreadable("The list of volumes", str(error)))
        return ()
    volumes: list[_Tagged] = []
    raw: list[DeviceClaim] = []
    unread = 0
    for row in map(bytes, rows.values()):
        try:
            if row.lstrip().startswith(b"["):
                listed = _VOLUMES.decode(row)
                volumes += [
                    _Tagged(one.tags or _parse_lv_tags(one.lv_tags), one.lv_path, tuple(one.devices))
                    for one in listed
                ]
            else:
                raw += _of_raw(_RAW.decode(row))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            unread += 1
    if unread:
        trouble.append(
            _describe_unreadable("The list of volumes", f"{unread} of {len(rows)} rows are no row of an OSD")
        )
    return (*_of_volumes(volumes), *raw)


def metadata_claims(told: bytes, trouble: list[str]) -> tuple[DeviceClaim, ...]:
    """Parse the claims of `ceph osd metadata --format json`, of all OSDs or of one. Never raises."""
    if len(told) > LARGEST:
        trouble.append(_describe_unreadable("The OSDs' metadata", f"they have {len(told):,} bytes"))
        return ()
    try:
        rows = [bytes(row) for row in _LIST.decode(told)] if told.lstrip().startswith(b"[") else [told]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        trouble.append(_describe_unreadable("The OSDs' metadata", str(error)))
        return ()
    claims: list[DeviceClaim] = []
    unread = 0
    for raw in rows:
        try:
            claims.extend(_of_metadata(_ONE.decode(raw)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            unread += 1
    if unread:
        trouble.append(
            _describe_unreadable("The OSDs' metadata", f"{unread} of {len(rows)} rows are no row of an OSD")
        )
    return tuple(claims)


def _of_metadata(row: _Metadata) -> Iterator[DeviceClaim]:
    parts = {
        Role.DATA: row.bluestore_bdev_devices or row.bluestore_bdev_dev_node,
        Role.DB: row.bluefs_db_devices or row.bluefs_db_dev_node,
        Role.WAL: row.bluefs_wal_devices or row.bluefs_wal_dev_node,
    }
    for role, text in parts.items():
        names = tuple(name for name in text.split(",") if name)
        if names and 0 <= row.id < LARGEST_ID:
            yield DeviceClaim(OsdKey(None, OsdId(row.id)), role, names, host=row.hostname)


def _of_raw(row: _Raw) -> Iterator[DeviceClaim]:
    key = OsdKey(parse_cluster_id(row.ceph_fsid), OsdId(row.osd_id))
    for role, device in {Role.DATA: row.device, Role.DB: row.device_db, Role.WAL: row.device_wal}.items():
        if device and 0 <= row.osd_id < LARGEST_ID:
            yield DeviceClaim(key, role, (device,))


def _of_text(told: bytes) -> Iterator[_Tagged]:
    """Parse `lvs --noheadings`: one line for each volume, its columns separated by blanks, in any order."""
    for line in told.decode(errors="replace").splitlines():
        words = line.split()
        tags = next((_parse_lv_tags(word) for word in words if "ceph.osd_id=" in word), {})
        path = next((word for word in words if word.startswith("/dev/") and "=" not in word), "")
        yield _Tagged(tags, path, ())


def _of_volumes(volumes: Iterable[_Tagged]) -> tuple[DeviceClaim, ...]:
    """Return the claims of the volumes about themselves and about devices without tags of their own.

    The latter come from data volumes: a DB, WAL or journal on a partition.
    """
    own: dict[tuple[OsdKey, Role], dict[DeviceClaim, None]] = {}
    beside: list[DeviceClaim] = []
    for one in volumes:
        for claim in _list_tag_claims(one):
            own.setdefault((claim.key, claim.role), {})[claim] = None
            if claim.role is Role.DATA:
                beside += _list_companion_claims(claim, one.tags)
    told = [claim for claims in own.values() for claim in claims]
    return (*told, *(claim for claim in beside if (claim.key, claim.role) not in own))


def _list_tag_claims(one: _Tagged) -> Iterator[DeviceClaim]:
    """Yield the claim of one volume.

    The tag decides which OSD it belongs to: ceph-volume may list it under another number.
    """
    tags = one.tags
    number, role = tags.get("ceph.osd_id", ""), _TYPES.get(tags.get("ceph.type", ""))
    if role is None or not (number.isascii() and number.isdigit() and int(number[:10]) < LARGEST_ID):
        return
    volume = one.path or tags.get(f"ceph.{_DEVICE_TAG[role]}_device", "")
    key = OsdKey(parse_cluster_id(tags.get("ceph.cluster_fsid", "")), OsdId(int(number[:10])))
    yield DeviceClaim(key, role, one.devices, volume)


def _list_companion_claims(data: DeviceClaim, tags: Mapping[str, str]) -> Iterator[DeviceClaim]:
    for role in (Role.DB, Role.WAL, Role.JOURNAL):
        if device := tags.get(f"ceph.{_DEVICE_TAG[role]}_device"):
            yield DeviceClaim(data.key, role, (device,))


def _parse_lv_tags(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition("=") for pair in text.split(","))}


def _parse_extent_devices(text: str) -> tuple[str, ...]:
    """Return the devices in `/dev/sda(0),/dev/sdb(25599)`, the places where a volume's segments begin."""
    return tuple(dict.fromkeys(part.partition("(")[0] for part in text.split(",") if part))


def _describe_unreadable(what: str, why: str) -> str:
    return f"{what} cannot be read ({why[:200]}); the links in the OSDs' folders are used without."

"""What others say of an OSD's devices: LVM tags (`ceph-volume lvm list`, `raw list`, `lvs`) and `ceph osd metadata`.

Bytes come in as the command printed them. A row that cannot be read is told and does not cost the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec

from predrain.data.ids import OsdId
from predrain.data.reading import Role

LARGEST = 64 << 20
"""Bytes. `ceph osd metadata` of 6,000 OSDs has some 20 MB."""
LARGEST_ID = 10**9
_TYPES = {"block": Role.DATA, "data": Role.DATA, "db": Role.DB, "wal": Role.WAL, "journal": Role.JOURNAL}
_DEVICE_TAG = {Role.DATA: "block", Role.DB: "db", Role.WAL: "wal", Role.JOURNAL: "journal"}


@dataclass(frozen=True, slots=True)
class Claim:
    """An OSD is said to keep a role on some devices."""

    osd: OsdId
    role: Role
    devices: tuple[str, ...]
    """Paths or kernel names, which together hold it."""
    volume: str = ""
    """The path of the logical volume, which says it better where it is known."""
    fsid: str = ""
    """The cluster's, where it is told."""
    host: str = ""
    """The OSD's host, where it is told."""


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
    """A row of `osd metadata`. What a release does not tell is empty; `_dev_node` is what stood there before 14.2."""

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


def volume_claims(told: bytes, trouble: list[str]) -> tuple[Claim, ...]:
    """Claims of `ceph-volume lvm list --format json`, of `ceph-volume raw list`, or of `lvs -o lv_path,lv_tags` (as
    JSON or as text). Never raises."""
    if len(told) > LARGEST:
        trouble.append(_unread("The list of volumes", f"it has {len(told):,} bytes"))
        return ()
    if not told.lstrip().startswith(b"{"):
        return _of_volumes(_of_text(told))
    try:
        rows = _ROWS.decode(told)
        if "report" in rows:
            report = _REPORT.decode(told)
            return _of_volumes(
                _Tagged(_tags(lv.lv_tags), lv.lv_path, _extents(lv.devices))
                for part in report.report
                for lv in part.lv
            )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        trouble.append(_unread("The list of volumes", str(error)))
        return ()
    volumes: list[_Tagged] = []
    raw: list[Claim] = []
    unread = 0
    for row in map(bytes, rows.values()):
        try:
            if row.lstrip().startswith(b"["):
                listed = _VOLUMES.decode(row)
                volumes += [
                    _Tagged(one.tags or _tags(one.lv_tags), one.lv_path, tuple(one.devices)) for one in listed
                ]
            else:
                raw += _of_raw(_RAW.decode(row))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            unread += 1
    if unread:
        trouble.append(_unread("The list of volumes", f"{unread} of {len(rows)} rows are no row of an OSD"))
    return (*_of_volumes(volumes), *raw)


def metadata_claims(told: bytes, trouble: list[str]) -> tuple[Claim, ...]:
    """Claims of `ceph osd metadata --format json`, of all OSDs or of one. Never raises."""
    if len(told) > LARGEST:
        trouble.append(_unread("The OSDs' metadata", f"they have {len(told):,} bytes"))
        return ()
    try:
        rows = [bytes(row) for row in _LIST.decode(told)] if told.lstrip().startswith(b"[") else [told]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        trouble.append(_unread("The OSDs' metadata", str(error)))
        return ()
    claims: list[Claim] = []
    unread = 0
    for raw in rows:
        try:
            claims.extend(_of_metadata(_ONE.decode(raw)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            unread += 1
    if unread:
        trouble.append(_unread("The OSDs' metadata", f"{unread} of {len(rows)} rows are no row of an OSD"))
    return tuple(claims)


def _of_metadata(row: _Metadata) -> Iterator[Claim]:
    parts = {
        Role.DATA: row.bluestore_bdev_devices or row.bluestore_bdev_dev_node,
        Role.DB: row.bluefs_db_devices or row.bluefs_db_dev_node,
        Role.WAL: row.bluefs_wal_devices or row.bluefs_wal_dev_node,
    }
    for role, text in parts.items():
        names = tuple(name for name in text.split(",") if name)
        if names and 0 <= row.id < LARGEST_ID:
            yield Claim(OsdId(row.id), role, names, host=row.hostname)


def _of_raw(row: _Raw) -> Iterator[Claim]:
    for role, device in {Role.DATA: row.device, Role.DB: row.device_db, Role.WAL: row.device_wal}.items():
        if device and 0 <= row.osd_id < LARGEST_ID:
            yield Claim(OsdId(row.osd_id), role, (device,), fsid=row.ceph_fsid)


def _of_text(told: bytes) -> Iterator[_Tagged]:
    """`lvs --noheadings`: a line a volume, its columns between blanks in any order."""
    for line in told.decode(errors="replace").splitlines():
        words = line.split()
        tags = next((_tags(word) for word in words if "ceph.osd_id=" in word), {})
        path = next((word for word in words if word.startswith("/dev/") and "=" not in word), "")
        yield _Tagged(tags, path, ())


def _of_volumes(volumes: Iterable[_Tagged]) -> tuple[Claim, ...]:
    """What the volumes say of themselves; and what those with data say of others, which have no tags of their own: a
    DB, WAL or journal on a partition."""
    own: dict[tuple[OsdId, Role], dict[Claim, None]] = {}
    beside: list[Claim] = []
    for one in volumes:
        for claim in _tagged(one):
            own.setdefault((claim.osd, claim.role), {})[claim] = None
            if claim.role is Role.DATA:
                beside += _beside(claim, one.tags)
    told = [claim for claims in own.values() for claim in claims]
    return (*told, *(claim for claim in beside if (claim.osd, claim.role) not in own))


def _tagged(one: _Tagged) -> Iterator[Claim]:
    """The claim of one volume. The tag says whose it is: ceph-volume may list it under another OSD's number."""
    tags = one.tags
    number, role = tags.get("ceph.osd_id", ""), _TYPES.get(tags.get("ceph.type", ""))
    if role is None or not (number.isascii() and number.isdigit() and int(number[:10]) < LARGEST_ID):
        return
    volume = one.path or tags.get(f"ceph.{_DEVICE_TAG[role]}_device", "")
    yield Claim(OsdId(int(number[:10])), role, one.devices, volume, tags.get("ceph.cluster_fsid", ""))


def _beside(data: Claim, tags: Mapping[str, str]) -> Iterator[Claim]:
    for role in (Role.DB, Role.WAL, Role.JOURNAL):
        if device := tags.get(f"ceph.{_DEVICE_TAG[role]}_device"):
            yield Claim(data.osd, role, (device,), fsid=data.fsid)


def _tags(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (pair.partition("=") for pair in text.split(","))}


def _extents(text: str) -> tuple[str, ...]:
    """`/dev/sda(0),/dev/sdb(25599)`: where a volume's segments begin."""
    return tuple(dict.fromkeys(part.partition("(")[0] for part in text.split(",") if part))


def _unread(what: str, why: str) -> str:
    return f"{what} cannot be read ({why[:200]}); the links in the OSDs' folders are used without."

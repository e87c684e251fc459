"""What Ceph's `devicehealth` kept: `ceph device get-health-metrics DEVID`, from files or from the cluster itself.

A file holds, of one device, scrapes under their stamps (`20240531-120000`, UTC), or the same under device ids, or what
telemetry sends for a prediction (`smart_data`, without a serial number). A scrape is smartctl's JSON as Ceph's agent
got it, or the agent's error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from predrain.data.ids import DeviceId, HostName
from predrain.data.importing.port import ImportPart, Item, NoScrape, UnusableItem, version_of
from predrain.data.importing.rows import NoReading, TableColumns
from predrain.data.reading import Reading
from predrain.data.smart import LARGEST_DOCUMENT, SmartDocument, Undecodable, decode

ENDINGS = (".json",)
LARGEST_FILE = 16 * LARGEST_DOCUMENT
"""Bytes. A year of daily scrapes of one device is below 10 MiB."""

_STAMPS = ("%Y%m%d-%H%M%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ")
Scrapes = Mapping[str, msgspec.Raw]


class _Failed(msgspec.Struct):
    """What Ceph's agent writes where it could not run smartctl."""

    error: str | None = None
    smartctl_error_code: int | None = None
    smartctl_output: str | None = None


class _Old(msgspec.Struct):
    """One attribute as telemetry keeps it."""

    val_raw: int | None = None
    val_norm: int | None = None


class _Prediction(msgspec.Struct):
    attr: dict[str, _Old] = {}


class _Telemetry(msgspec.Struct):
    smart_data: dict[str, _Prediction]
    model: str | None = None
    capacity_bytes: int | None = None


def parts(paths: Sequence[Path], host: HostName, device: DeviceId | None) -> Iterator[ImportPart]:
    """One part a file. device: whose the scrapes are that do not say it themselves."""
    for path in paths:

        def items(skip: int, path: Path = path) -> Generator[Item]:
            yield from islice(_of_file(path, host, device), skip, None)

        yield ImportPart(str(path.resolve()), version_of(path, host, device), items)


def part_of(device: DeviceId, host: HostName, ask: Callable[[], bytes]) -> ImportPart:
    """A device of a cluster that answers: `ask` sends `device get-health-metrics`."""

    def items(skip: int) -> Generator[Item]:
        yield from islice(_of_answer(device, ask(), host, device), skip, None)

    return ImportPart(device, None, items)


def _of_file(path: Path, host: HostName, device: DeviceId | None) -> Iterator[Item]:
    try:
        with path.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        yield UnusableItem(
            str(path), f"the file cannot be read ({error.strerror or error}): check its permissions"
        )
        return
    if len(content) > LARGEST_FILE:
        yield UnusableItem(
            str(path), f"the file is larger than {LARGEST_FILE // 2**20} MiB: keep one device a file"
        )
        return
    yield from _of_answer(str(path), content, host, device)


def _of_answer(name: str, content: bytes, host: HostName, device: DeviceId | None) -> Iterator[Item]:
    try:
        found = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        yield UnusableItem(name, f"this is not what `ceph device get-health-metrics` prints ({error})")
        return
    if "smart_data" in found:
        yield from _prediction(name, content, host, device)
    elif "smartctl" in found or "device" in found:
        yield _scrape(name, None, content, host, device)
    else:
        for key, value in found.items():
            where = f"{name} {key}"
            if (at := _stamp(key)) is not None:
                yield _scrape(where, at, bytes(value), host, device)
            else:
                yield from _under_device(where, key, bytes(value), host)


def _under_device(where: str, key: str, content: bytes, host: HostName) -> Iterator[Item]:
    """Scrapes, or one without a stamp, under a device's id."""
    try:
        inner = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        yield UnusableItem(where, "neither a scrape under its stamp nor a device's scrapes")
        return
    stamped = {stamp: at for stamp in inner if (at := _stamp(stamp)) is not None}
    if not stamped and inner:
        yield _scrape(where, None, content, host, DeviceId(key))
    for stamp, at in stamped.items():
        yield _scrape(f"{where} {stamp}", at, bytes(inner[stamp]), host, DeviceId(key))


def _scrape(where: str, at: datetime | None, content: bytes, host: HostName, device: DeviceId | None) -> Item:
    failed = _failure(content)
    if failed is not None:
        return NoScrape(where, failed)
    try:
        found = decode(content)
    except Undecodable as refusal:
        return NoScrape(where, str(refusal)) if refusal.read_failed else UnusableItem(where, str(refusal))
    if found.untold is not None:
        return NoScrape(where, found.untold)
    who, taken_at = _owner(found, device), at or found.taken_at
    if who is None:
        return UnusableItem(
            where, "the scrape names no serial number, or a masked one: say whose it is with --device"
        )
    if taken_at is None:
        return UnusableItem(where, "the scrape has no time")
    return Reading(who, host, taken_at, taken_at, found.smart)


def _owner(found: SmartDocument, device: DeviceId | None) -> DeviceId | None:
    """The disk itself says best whose a scrape is; but of two names for one serial number Ceph's own is meant."""
    serial = "_".join((found.smart.identity.serial or "").split())
    if device is not None and serial and device.endswith(f"_{serial}"):
        return device
    return found.device_id or device


def _failure(content: bytes) -> str | None:
    try:
        record = msgspec.json.decode(content, type=_Failed)
    except msgspec.MsgspecError:
        return None
    if record.smartctl_error_code is None and record.error is None:
        return None
    said = " ".join((record.smartctl_output or "").split())[:200]
    return f"{record.error or 'smartctl failed'}{f' ({said})' if said else ''}"


def _prediction(name: str, content: bytes, host: HostName, device: DeviceId | None) -> Iterator[Item]:
    try:
        found = msgspec.json.decode(content, type=_Telemetry)
    except msgspec.MsgspecError as error:
        yield UnusableItem(name, f"this is not what telemetry sends for a prediction ({error})")
        return
    if device is None:
        yield UnusableItem(name, "telemetry leaves the serial number out: say whose it is with --device")
        return
    for stamp, scrape in found.smart_data.items():
        at = _stamp(stamp)
        row: dict[str, object] = {"device": device, "taken_at": at, "model": found.model}
        row["capacity_bytes"] = found.capacity_bytes
        for number, old in scrape.attr.items():
            row |= {f"smart_{number}_raw": old.val_raw, f"smart_{number}_normalized": old.val_norm}
        try:
            shape = TableColumns({column: place for place, column in enumerate(row)}, host)
            yield shape.reading(tuple(row.values()))
        except NoReading as reason:
            yield UnusableItem(f"{name} {stamp}", str(reason))


def _stamp(key: str) -> datetime | None:
    """`devicehealth` stamps with the manager's clock in UTC."""
    for form in _STAMPS:
        try:
            return datetime.strptime(key, form).replace(tzinfo=UTC)
        except ValueError:
            pass
    return None

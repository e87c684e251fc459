"""Imports the scrapes of Ceph's `devicehealth`: `ceph device get-health-metrics DEVID`, from files or the cluster.

A file holds the scrapes of one device under their stamps (`20240531-120000`, UTC), or the same under device ids, or
the data that telemetry sends for a prediction (`smart_data`, without a serial number). A scrape is smartctl's JSON as
Ceph's agent got it, or the agent's error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from predrain.data.ids import DeviceId, HostName
from predrain.data.importing.import_port import ImportPart, Item, NoScrape, UnusableItem, version_of
from predrain.data.importing.import_rows import NoReading, TableColumns
from predrain.data.reading import Reading
from predrain.data.smart import LARGEST_DOCUMENT, SmartDocument, Undecodable, decode_smartctl_output

ENDINGS = (".json",)
LARGEST_FILE = 16 * LARGEST_DOCUMENT
"""Bytes. A year of daily scrapes of one device is below 10 MiB."""

_STAMPS = ("%Y%m%d-%H%M%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ")
Scrapes = Mapping[str, msgspec.Raw]


class _Failed(msgspec.Struct):
    """The error that Ceph's agent writes if it could not run smartctl."""

    error: str | None = None
    smartctl_error_code: int | None = None
    smartctl_output: str | None = None


class _Old(msgspec.Struct):
    """One attribute as telemetry stores it."""

    val_raw: int | None = None
    val_norm: int | None = None


class _Prediction(msgspec.Struct):
    attr: dict[str, _Old] = {}


class _Telemetry(msgspec.Struct):
    smart_data: dict[str, _Prediction]
    model: str | None = None
    capacity_bytes: int | None = None


def list_ceph_import_parts(
    paths: Sequence[Path], host: HostName, device: DeviceId | None
) -> Iterator[ImportPart]:
    """Yield one part for each file. `device` is the device of scrapes that do not name one."""
    for path in paths:

        def items(skip: int, path: Path = path) -> Generator[Item]:
            yield from islice(_of_file(path, host, device), skip, None)

        yield ImportPart(str(path.resolve()), version_of(path, host, device), items)


def part_of(device: DeviceId, host: HostName, ask: Callable[[], bytes]) -> ImportPart:
    """Build the part of a device of a running cluster: `ask` sends `device get-health-metrics`."""

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
        yield from _parse_prediction_telemetry(name, content, host, device)
    elif "smartctl" in found or "device" in found:
        yield _parse_scrape(name, None, content, host, device)
    else:
        for key, value in found.items():
            where = f"{name} {key}"
            if (at := _parse_scrape_stamp(key)) is not None:
                yield _parse_scrape(where, at, bytes(value), host, device)
            else:
                yield from _under_device(where, key, bytes(value), host)


def _under_device(where: str, key: str, content: bytes, host: HostName) -> Iterator[Item]:
    """Yield the scrapes, or the one without a stamp, under a device's id."""
    try:
        inner = msgspec.json.decode(content, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        yield UnusableItem(where, "neither a scrape under its stamp nor a device's scrapes")
        return
    stamped = {stamp: at for stamp in inner if (at := _parse_scrape_stamp(stamp)) is not None}
    if not stamped and inner:
        yield _parse_scrape(where, None, content, host, DeviceId(key))
    for stamp, at in stamped.items():
        yield _parse_scrape(f"{where} {stamp}", at, bytes(inner[stamp]), host, DeviceId(key))


def _parse_scrape(
    where: str, at: datetime | None, content: bytes, host: HostName, device: DeviceId | None
) -> Item:
    failed = _find_scrape_failure(content)
    if failed is not None:
        return NoScrape(where, failed)
    try:
        found = decode_smartctl_output(content)
    except Undecodable as refusal:
        return NoScrape(where, str(refusal)) if refusal.read_failed else UnusableItem(where, str(refusal))
    if found.missing_state_reason is not None:
        return NoScrape(where, found.missing_state_reason)
    who, taken_at = _find_scrape_device(found, device), at or found.taken_at
    if who is None:
        return UnusableItem(
            where, "the scrape names no serial number, or a masked one: say whose it is with --device"
        )
    if taken_at is None:
        return UnusableItem(where, "the scrape has no time")
    return Reading(who, host, taken_at, taken_at, found.smart)


def _find_scrape_device(found: SmartDocument, device: DeviceId | None) -> DeviceId | None:
    """Return the device of a scrape.

    The disk's own id is taken, but of two ids with one serial number Ceph's is taken.
    """
    serial = "_".join((found.smart.identity.serial or "").split())
    if device is not None and serial and device.endswith(f"_{serial}"):
        return device
    return found.device_id or device


def _find_scrape_failure(content: bytes) -> str | None:
    try:
        record = msgspec.json.decode(content, type=_Failed)
    except msgspec.MsgspecError:
        return None
    if record.smartctl_error_code is None and record.error is None:
        return None
    said = " ".join((record.smartctl_output or "").split())[:200]
    return f"{record.error or 'smartctl failed'}{f' ({said})' if said else ''}"


def _parse_prediction_telemetry(
    name: str, content: bytes, host: HostName, device: DeviceId | None
) -> Iterator[Item]:
    try:
        found = msgspec.json.decode(content, type=_Telemetry)
    except msgspec.MsgspecError as error:
        yield UnusableItem(name, f"this is not what telemetry sends for a prediction ({error})")
        return
    if device is None:
        yield UnusableItem(name, "telemetry leaves the serial number out: say whose it is with --device")
        return
    for stamp, scrape in found.smart_data.items():
        at = _parse_scrape_stamp(stamp)
        row: dict[str, object] = {"device": device, "taken_at": at, "model": found.model}
        row["capacity_bytes"] = found.capacity_bytes
        for number, old in scrape.attr.items():
            row |= {f"smart_{number}_raw": old.val_raw, f"smart_{number}_normalized": old.val_norm}
        try:
            shape = TableColumns({column: place for place, column in enumerate(row)}, host)
            yield shape.parse_row(tuple(row.values()))
        except NoReading as reason:
            yield UnusableItem(f"{name} {stamp}", str(reason))


def _parse_scrape_stamp(key: str) -> datetime | None:
    """Parse a stamp of `devicehealth`, which is the manager's time in UTC; return None for other text."""
    for form in _STAMPS:
        try:
            return datetime.strptime(key, form).replace(tzinfo=UTC)
        except ValueError:
            pass
    return None

"""`devices`: every disk that was ever read, what it said, what is forecast of it, what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId, OsdId
from predrain.data.life_cycle import DiskLife, LifeState
from predrain.data.outcome import Fate, Outcome
from predrain.data.outlook import Status
from predrain.data.outside_text import REASON
from predrain.data.reading import Counters, Logs, Protocol, Reading, Role, Smart
from predrain.service.application import House
from predrain.service.fleet import FleetSnapshot
from predrain.service.rest import caching
from predrain.service.rest.bodies import (
    LifeChangeBody,
    OutlookBody,
    PointBody,
    ResponseBody,
    UnreadableBody,
    clean_field,
    curve_body,
    life_change_body,
    outlook_body,
    smart_of,
    unreadable_body,
)
from predrain.service.rest.client_latency import felt
from predrain.service.rest.guarding import Actor, Reader
from predrain.service.rest.listing import IncrementalList, MadeOf, differing
from predrain.service.rest.once import Once
from predrain.service.rest.outlooks import Cursor, Limit
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse, in_turn, kept

router = APIRouter(tags=["devices"])
SHOWN = 100
"""Changes in the life of a disk that are answered with it."""
Id = Annotated[
    str,
    Path(max_length=520, description="Ceph's device id; ` on HOST` follows where two hosts name one disk."),
]
"""A path where it stands in one: Ceph hands a SAS drive's serial number on as it is, be there a slash in it."""


class DeviceBody(ResponseBody):
    """A disk in a list. `host`, `taken_at`: of its newest reading; unknown for a disk that was never read.

    `severity`: null for a disk that failed or is retired. `status`: the same, with `unknown` in place of null.
    """

    device: str
    host: str | None
    osds: list[OsdId]
    model: str | None
    serial: str | None
    protocol: Protocol | None
    capacity_bytes: int | None
    state: LifeState
    severity: Status | None
    status: Status
    taken_at: datetime | None


class DevicePage(ResponseBody):
    """A page of devices in order of their ids."""

    items: list[DeviceBody]
    next: str | None


class IdentityBody(ResponseBody):
    """Who the drive says it is."""

    vendor: str | None
    model: str | None
    family: str | None
    serial: str | None
    wwn: str | None
    firmware: str | None
    capacity_bytes: int | None
    rotation_rpm: int | None


class DeviceDrainBody(ResponseBody):
    """A drain that this device had."""

    id: str
    state: DrainState
    created_at: datetime


class OutcomeBody(ResponseBody):
    """A statement about the device's end."""

    at: datetime
    fate: Fate
    source: str
    note: str


class SeatBody(ResponseBody):
    """An OSD that lies on the disk, and what it keeps there."""

    osd: OsdId
    role: Role


class WholeDeviceBody(DeviceBody):
    """One disk with everything known of it. `seats`: as its host told with the newest reading. `life`: how it
    stands now; `life_changes`: those on record, newest first. `outlook`: null for a disk that failed or is retired."""

    seats: list[SeatBody]
    identity: IdentityBody | None
    power_on_hours: int | None
    passed: bool | None
    unreadable: UnreadableBody | None
    life: LifeChangeBody
    life_changes: list[LifeChangeBody]
    outlook: OutlookBody | None
    drains: list[DeviceDrainBody]
    outcomes: list[OutcomeBody]
    family_survival: list[PointBody] | None


class OutcomeRequest(BaseModel):
    """What became of a device."""

    model_config = ConfigDict(extra="forbid")

    fate: Fate
    note: Annotated[str, Field(max_length=REASON.limit), clean_field(REASON)] = ""


class SeriesBody(ResponseBody):
    """A counter or probability over time: (milliseconds since 1970, value)."""

    name: str
    unit: str | None
    points: list[tuple[int, float | None]]


class HistoryBody(ResponseBody):
    """Series that were ever reported, counters that moved first; null is a reading without that value."""

    device: str
    from_: datetime = Field(serialization_alias="from")
    to: datetime
    series: list[SeriesBody]


def _listing(house: House) -> IncrementalList[str]:
    return IncrementalList(house, _touched, lambda *made_of: DeviceBody(**_row(*made_of)), str)


@router.get("/devices", response_model=DevicePage, responses=caching.polled(401, 422))
async def devices(
    request: Request,
    listing: Annotated[IncrementalList[str], Depends(kept("devices", _listing))],
    _: Reader,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """Every device that was read, that the cluster names, or that is on record."""
    return await in_turn(
        request, "devices", lambda: listing.ready(limit, cursor), lambda: listing.page(limit, cursor)
    )


@router.get("/devices/{id:path}/history", response_model=HistoryBody, responses=caching.polled(401, 404, 422))
def history(
    request: Request,
    house: TheHouse,
    _: Reader,
    id: Id,  # noqa: A002
    days: Annotated[int, Query(ge=1, le=3650)] = 60,
) -> Response:
    """What a device said and what was forecast of it over the last `days`."""
    sight, name, now = house.sight(), DeviceId(id), house.clock.now()
    osds = known_device(sight, name)
    since = now - timedelta(days=days)
    readings, outlooks = house.store.readings(name, since), house.store.outlooks(name, since)
    series = [
        SeriesBody(
            name="p_fail_30d", unit="probability", points=[(_ms(o.as_of), o.p_fail_30d) for o in outlooks]
        )
    ]
    series += _moved_first([_series(readings, name, unit) for name, unit in SERIES])
    if len(osds) == 1:  # of a disk under many OSDs nobody knows whose wait it was
        waits = felt(house.store.latency(osds[0], since), since, now)
        series += [SeriesBody(name=kind, unit="ms", points=points) for kind, points in waits.items()]
    told = [one for one in series if any(value is not None for _, value in one.points)]
    return caching.answer(request, HistoryBody(device=name, from_=since, to=now, series=told))


@router.get("/devices/{id:path}", response_model=WholeDeviceBody, responses=caching.polled(401, 404))
def device(request: Request, house: TheHouse, _: Reader, id: Id) -> Response:  # noqa: A002
    """One device."""
    sight, name = house.sight(), DeviceId(id)
    osds = known_device(sight, name)
    reading, life = sight.readings.get(name), sight.lives[name]
    outlook = sight.outlooks.get(name) if life.is_living else None
    smart, family = smart_of(reading), house.family_survival(name) if life.is_living else None
    body = WholeDeviceBody(
        **_row(*_parts(sight, name, osds)),
        seats=[SeatBody(osd=seat.osd, role=seat.role) for seat in reading.seats] if reading else [],
        identity=_identity(smart) if smart else None,
        power_on_hours=smart.power_on_hours if smart else None,
        passed=smart.passed if smart else None,
        unreadable=unreadable_body(reading),
        life=life_change_body(life.change),
        life_changes=[
            life_change_body(one) for one in house.store.read_life_changes(limit=SHOWN, device=name)
        ],
        outlook=outlook_body(outlook, curve=True) if outlook else None,
        drains=[
            DeviceDrainBody(id=drain.id, state=drain.state, created_at=drain.created_at)
            for drain in sight.drains
            if drain.device == name
        ],
        family_survival=curve_body(family) if family is not None else None,
        outcomes=[
            OutcomeBody(at=one.at, fate=one.fate, source=one.source, note=one.note)
            for one in house.store.outcomes()
            if one.device == name
        ],
    )
    return caching.answer(request, body)


@router.post(
    "/devices/{id:path}/outcome",
    status_code=201,
    response_model=OutcomeBody,
    responses=declared(401, 403, 404, 409, 422),
)
def outcome(
    house: TheHouse,
    caller: Actor,
    once: Once,
    id: Id,  # noqa: A002
    said: OutcomeRequest,
) -> Response:
    """Say what became of a device; the last word counts."""
    name = DeviceId(id)
    known_device(house.sight(), name)
    one = Outcome(name, house.clock.now(), said.fate, caller.name, said.note)

    def conclude() -> OutcomeBody:
        house.conclude(one)
        return OutcomeBody(at=one.at, fate=one.fate, source=one.source, note=one.note)

    return once.answer(conclude, 201)


UNITS = {"percentage_used": "%", "available_spare_pct": "%", "bytes_written": "bytes", "bytes_read": "bytes"}
SERIES: tuple[tuple[str, str], ...] = (
    *((field.name, UNITS.get(field.name, "count")) for kind in (Counters, Logs) for field in fields(kind)),
    ("temperature_c", "C"),
    ("power_on_hours", "hours"),
)


def _series(readings: tuple[Reading, ...], name: str, unit: str) -> SeriesBody:
    points: list[tuple[int, float | None]] = []
    for reading in readings:
        smart = smart_of(reading)
        holders = (smart, smart.counters, smart.logs) if smart else ()
        value = next((getattr(one, name) for one in holders if hasattr(one, name)), None)
        points.append((_ms(reading.taken_at), value))
    return SeriesBody(name=name, unit=unit, points=points)


def _moved_first(series: list[SeriesBody]) -> list[SeriesBody]:
    """Counters that moved come first; bytes and hours always move and tell nothing by that."""

    def rank(one: SeriesBody) -> bool:
        values = {value for _, value in one.points if value is not None}
        return one.unit not in ("count", "%") or len(values) < 2

    return sorted(series, key=rank)


def known_device(sight: FleetSnapshot, name: DeviceId) -> tuple[OsdId, ...]:
    """The OSDs on a device. Raises Problem where nothing of it is on record."""
    osds = sight.osds_of().get(name, ())
    if name not in sight.lives:
        raise HttpProblem(404, f"No device {name} was ever read here.", listed_at="/api/v1/devices")
    return osds


def _touched(sight: FleetSnapshot, before: FleetSnapshot | None) -> Mapping[str, MadeOf | None]:
    osds = sight.osds_of()
    if before is None or before.view is not sight.view:
        touched = (
            sight.readings.keys()
            | sight.lives.keys()
            | osds.keys()
            | (before.osds_of().keys() if before else set())
        )
    else:
        touched = differing(sight.readings, before.readings) | differing(sight.lives, before.lives)
    return {
        name: _parts(sight, name, osds.get(name, ())) if name in sight.lives else None for name in touched
    }


def _parts(
    sight: FleetSnapshot, name: DeviceId, osds: tuple[OsdId, ...]
) -> tuple[DeviceId, Reading | None, DiskLife, tuple[OsdId, ...], str | None, str | None]:
    """What `_row` is made of; host and model as the cluster names them."""
    seat = sight.view.osds[osds[0]] if sight.view and osds else None
    host, model = (seat.host, seat.model) if seat else (None, None)
    return name, sight.readings.get(name), sight.lives[name], osds, host, model


def _row(
    name: DeviceId,
    reading: Reading | None,
    life: DiskLife,
    osds: tuple[OsdId, ...],
    host: str | None,
    model: str | None,
) -> dict[str, Any]:
    smart = smart_of(reading)
    identity = smart.identity if smart else None
    return {
        "device": name,
        "host": reading.host if reading else host or life.change.host,
        "osds": list(osds),
        "model": (identity.model if identity else None) or model,
        "serial": identity.serial if identity else None,
        "protocol": smart.protocol if smart else None,
        "capacity_bytes": identity.capacity_bytes if identity else None,
        "state": life.state,
        "severity": life.severity,
        "status": life.severity or Status.UNKNOWN,
        "taken_at": reading.taken_at if reading else None,
    }


def _identity(smart: Smart) -> IdentityBody:
    return IdentityBody(**{name: getattr(smart.identity, name) for name in IdentityBody.model_fields})


def _ms(at: datetime) -> int:
    return round(at.astimezone(UTC).timestamp() * 1000)

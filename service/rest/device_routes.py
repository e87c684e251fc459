"""`devices`: every disk that was ever read, with its readings, its forecast and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from predrain.data.drain import DrainState
from predrain.data.ids import DeviceId, OsdId
from predrain.data.life_cycle import DiskLife, LifeState
from predrain.data.outcome import DriveFate, Outcome
from predrain.data.outlook import Advice, Outlook, Status
from predrain.data.outside_text import REASON
from predrain.data.reading import Counters, Logs, OsdDevice, Protocol, Reading, Role, Smart
from predrain.service.app.application import Application
from predrain.service.fleet.differing_keys import find_differing_keys
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Actor, Reader
from predrain.service.rest.dependencies import TheApplication, create_singleton_dependency, in_turn
from predrain.service.rest.idempotency import Once
from predrain.service.rest.list_answers import IncrementalList, MadeOf
from predrain.service.rest.operating_limit import find_operating_limit
from predrain.service.rest.osd_latency_series import (
    OSD_SERIES,
    SLOW_RATIO,
    compute_osd_latency_series,
    to_epoch_milliseconds,
)
from predrain.service.rest.outlook_routes import Cursor, Limit
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import (
    LifeChangeBody,
    OutlookBody,
    PointBody,
    ResponseBody,
    UnreadableBody,
    clean_field,
    curve_body,
    life_change_body,
    list_own_reasons,
    outlook_body,
    smart_of,
    unreadable_body,
)

router = APIRouter(tags=["devices"])
SHOWN = 100
"""The most changes in the life of a disk in one answer."""
Id = Annotated[
    str,
    Path(max_length=520, description="Ceph's device id; ` on HOST` follows where two hosts name one disk."),
]
"""A device id in a path. It may contain a slash, because Ceph leaves the serial number of a SAS drive as it is."""


class DeviceBody(ResponseBody):
    """A disk in a list. `host`, `taken_at`: of its newest reading; unknown for a disk that was never read.

    `severity`: null for a disk that failed or is retired. `status`: the same, with `unknown` in place of null.
    `slot`: as in the row of its OSD; null without an OSD. `device_name`: the kernel's name, such as `sdb`, when its OSD
    started. `p_fail_30d` and the life: null without a forecast. `source`, `rule_score`, `reasons`, `prescription` and
    `advice`: of its outlook, without the sentences that are about its model and not about the disk itself.
    """

    device: str
    host: str | None
    slot: int | None
    device_name: str | None
    osds: list[OsdId]
    model: str | None
    serial: str | None
    protocol: Protocol | None
    capacity_bytes: int | None
    state: LifeState
    severity: Status | None
    status: Status
    p_fail_30d: float | None
    life_p10_days: float | None
    life_p90_days: float | None
    source: str | None
    rule_score: float | None
    reasons: list[str]
    prescription: str | None
    advice: Advice | None
    power_on_hours: int | None
    temperature_c: int | None
    temperature_limit_c: int | None
    """The drive's own limit of operation."""
    temperature_critical_c: int | None
    """The drive's own last limit, above which it may stop."""
    taken_at: datetime | None


class DevicePage(ResponseBody):
    """A page of devices in order of their ids, as of the change `at`; `full` is false if only changed devices are
    listed. Devices may change while the pages are requested: after the last page, request what changed since the first.
    """

    items: list[DeviceBody]
    next: str | None
    at: str
    full: bool
    removed: list[str]
    """Devices that have gone since `since`."""


class IdentityBody(ResponseBody):
    """The identity that the drive reports."""

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
    fate: DriveFate
    source: str
    note: str


class OsdDeviceBody(ResponseBody):
    """An OSD that lies on the disk, and what it keeps there."""

    osd: OsdId
    role: Role
    cluster: str | None
    """The fsid of the OSD's cluster; null where the disk's host does not report it."""


def _osd_device_body(one: OsdDevice) -> OsdDeviceBody:
    return OsdDeviceBody(osd=one.osd, role=one.role, cluster=one.cluster)


class WholeDeviceBody(DeviceBody):
    """One disk with everything known of it. `osd_devices`: as its host reported with the newest reading. `life`: its
    state now; `life_changes`: those on record, newest first. `outlook`: null for a disk that failed or is retired."""

    osd_devices: list[OsdDeviceBody]
    identity: IdentityBody | None
    passed: bool | None
    unreadable: UnreadableBody | None
    life: LifeChangeBody
    life_changes: list[LifeChangeBody]
    outlook: OutlookBody | None
    drains: list[DeviceDrainBody]
    outcomes: list[OutcomeBody]
    family_survival: list[PointBody] | None


class OutcomeRequest(BaseModel):
    """A person's statement about the device's end."""

    model_config = ConfigDict(extra="forbid")

    fate: DriveFate
    note: Annotated[str, Field(max_length=REASON.limit), clean_field(REASON)] = ""


class SeriesBody(ResponseBody):
    """A counter or probability over time: (milliseconds since 1970, value)."""

    name: str
    unit: str | None
    points: list[tuple[int, float | None]]


class HistoryBody(ResponseBody):
    """The series that the device ever reported, those that changed first; null is a reading without that value.

    If one OSD alone is on the device, there are also series of the OSD, as its host counted: `read_ms`, `write_ms` and
    `commit_ms` (medians), `latency_ratio` (to the median of the host's other OSDs of its class; the median over time),
    `slow_minutes` (minutes at `slow_ratio` or more) and `slow_ops` (the most at once). Each has 480 points at most, and
    goes back as far as `retention.latency_days`.
    """

    device: str
    from_: datetime = Field(serialization_alias="from")
    to: datetime
    series: list[SeriesBody]
    slow_ratio: float
    """The ratio from which a minute of the OSD counts as slow. It takes hours of such minutes to call the OSD slow."""


def _create_device_list(application: Application) -> IncrementalList[str]:
    return IncrementalList(
        application, _find_changed_devices, lambda *made_of: DeviceBody(**_build_device_fields(*made_of)), str
    )


@router.get("/devices", response_model=DevicePage, responses=http_caching.declare_list_responses(401, 422))
async def list_devices(
    request: Request,
    listing: Annotated[
        IncrementalList[str], Depends(create_singleton_dependency("devices", _create_device_list))
    ],
    _: Reader,
    limit: Limit = 1000,
    cursor: Cursor = None,
    since: Annotated[
        str | None,
        Query(
            max_length=64,
            description="The field `at` of an earlier answer: only devices that changed since are listed. Repeat it "
            "with the cursor of a next page of such a list.",
        ),
    ] = None,
) -> Response:
    """List every device that was read, that the cluster names, or that is on record, or only those that changed."""
    return await in_turn(
        request,
        "devices",
        lambda: listing.followed_ready(limit, cursor, since),
        lambda: listing.build_page_since(limit, cursor, since),
    )


@router.get(
    "/devices/{id:path}/history",
    response_model=HistoryBody,
    responses=http_caching.declare_polled_responses(401, 404, 422),
)
def get_device_history(
    request: Request,
    application: TheApplication,
    _: Reader,
    id: Id,  # noqa: A002
    days: Annotated[int, Query(ge=1, le=3650)] = 60,
) -> Response:
    """List a device's counters and forecasts over the last `days`."""
    snapshot, name, now = application.get_snapshot(), DeviceId(id), application.clock.now()
    osds = known_device(snapshot, name)
    since = now - timedelta(days=days)
    readings, outlooks = application.store.readings(name, since), application.store.outlooks(name, since)
    series = [
        SeriesBody(
            name="p_fail_30d",
            unit="probability",
            points=[(to_epoch_milliseconds(o.as_of), o.p_fail_30d) for o in outlooks],
        )
    ]
    series += _moved_first([_build_counter_series(readings, name, unit) for name, unit in SERIES])
    if len(osds) == 1:  # the latency of a disk under many OSDs cannot be attributed to one of them
        windows = application.store.read_latency_beside(osds[0], since)
        found = compute_osd_latency_series(windows, osds[0], _list_peers(snapshot, osds[0]), since, now)
        series += [
            SeriesBody(name=name, unit=OSD_SERIES[name], points=points) for name, points in found.items()
        ]
    told = [one for one in series if any(value is not None for _, value in one.points)]
    return http_caching.build_etag_response(
        request, HistoryBody(device=name, from_=since, to=now, series=told, slow_ratio=SLOW_RATIO)
    )


@router.get(
    "/devices/{id:path}",
    response_model=WholeDeviceBody,
    responses=http_caching.declare_polled_responses(401, 404),
)
def get_device(request: Request, application: TheApplication, _: Reader, id: Id) -> Response:  # noqa: A002
    """One device."""
    snapshot, name = application.get_snapshot(), DeviceId(id)
    osds = known_device(snapshot, name)
    reading, life = snapshot.readings.get(name), snapshot.lives[name]
    outlook = snapshot.outlooks.get(name) if life.is_living else None
    smart, family = smart_of(reading), application.family_survival(name) if life.is_living else None
    body = WholeDeviceBody(
        **_build_device_fields(*_collect_row_inputs(snapshot, name, osds)),
        osd_devices=[_osd_device_body(one) for one in reading.osd_devices] if reading else [],
        identity=_build_identity_body(smart) if smart else None,
        passed=smart.passed if smart else None,
        unreadable=unreadable_body(reading),
        life=life_change_body(life.change),
        life_changes=[
            life_change_body(one) for one in application.store.read_life_changes(limit=SHOWN, device=name)
        ],
        outlook=outlook_body(outlook, curve=True) if outlook else None,
        drains=[
            DeviceDrainBody(id=drain.id, state=drain.state, created_at=drain.created_at)
            for drain in snapshot.drains
            if drain.device == name
        ],
        family_survival=curve_body(family) if family is not None else None,
        outcomes=[
            OutcomeBody(at=one.at, fate=one.fate, source=one.source, note=one.note)
            for one in application.store.outcomes()
            if one.device == name
        ],
    )
    return http_caching.build_etag_response(request, body)


@router.post(
    "/devices/{id:path}/outcome",
    status_code=201,
    response_model=OutcomeBody,
    responses=declare_problem_responses(401, 403, 404, 409, 422),
)
def record_device_outcome(
    application: TheApplication,
    caller: Actor,
    once: Once,
    id: Id,  # noqa: A002
    said: OutcomeRequest,
) -> Response:
    """State what became of a device; the last statement counts."""
    name = DeviceId(id)
    known_device(application.get_snapshot(), name)
    one = Outcome(name, application.clock.now(), said.fate, caller.name, said.note)

    def conclude() -> OutcomeBody:
        application.record_outcome(one)
        return OutcomeBody(at=one.at, fate=one.fate, source=one.source, note=one.note)

    return once.respond_once(conclude, 201)


UNITS = {"percentage_used": "%", "available_spare_pct": "%", "bytes_written": "bytes", "bytes_read": "bytes"}
SERIES: tuple[tuple[str, str], ...] = (
    *((field.name, UNITS.get(field.name, "count")) for kind in (Counters, Logs) for field in fields(kind)),
    ("kernel_errors", "count"),
    ("temperature_c", "C"),
    ("power_on_hours", "hours"),
)


def _build_counter_series(readings: tuple[Reading, ...], name: str, unit: str) -> SeriesBody:
    points: list[tuple[int, float | None]] = []
    for reading in readings:
        smart = smart_of(reading)
        holders = (reading, smart, smart.counters, smart.logs) if smart else (reading,)
        value = next((getattr(one, name) for one in holders if hasattr(one, name)), None)
        points.append((to_epoch_milliseconds(reading.taken_at), value))
    return SeriesBody(name=name, unit=unit, points=points)


def _list_peers(snapshot: FleetSnapshot, osd: OsdId) -> frozenset[OsdId]:
    """Return the other OSDs of the same device class, of any host."""
    known = snapshot.view.osds if snapshot.view else {}
    own = known.get(osd)
    return frozenset(
        one.id for one in known.values() if own and one.id != osd and one.device_class == own.device_class
    )


def _moved_first(series: list[SeriesBody]) -> list[SeriesBody]:
    """Return the counters that changed first. Bytes and hours always change, so they do not count as changed."""

    def rank(one: SeriesBody) -> bool:
        values = {value for _, value in one.points if value is not None}
        return one.unit not in ("count", "%") or len(values) < 2

    return sorted(series, key=rank)


def known_device(snapshot: FleetSnapshot, name: DeviceId) -> tuple[OsdId, ...]:
    """Return the OSDs on a device. Raises HttpProblem if nothing of the device is on record."""
    osds = snapshot.osds_of().get(name, ())
    if name not in snapshot.lives:
        raise HttpProblem(404, f"No device {name} was ever read here.", listed_at="/api/v1/devices")
    return osds


def _find_changed_devices(
    snapshot: FleetSnapshot, before: FleetSnapshot | None
) -> Mapping[str, MadeOf | None]:
    osds = snapshot.osds_of()
    if before is None or before.view is not snapshot.view:
        touched = (
            snapshot.readings.keys()
            | snapshot.lives.keys()
            | osds.keys()
            | (before.osds_of().keys() if before else set())
        )
    else:
        pairs = (
            (snapshot.readings, before.readings),
            (snapshot.outlooks, before.outlooks),
            (snapshot.lives, before.lives),
        )
        touched = {name for now, then in pairs for name in find_differing_keys(now, then)}
    return {
        name: _collect_row_inputs(snapshot, name, osds.get(name, ())) if name in snapshot.lives else None
        for name in touched
    }


RowInputs = tuple[
    DeviceId,
    Reading | None,
    DiskLife,
    tuple[OsdId, ...],
    str | None,
    str | None,
    str | None,
    int | None,
    Outlook | None,
]
"""The arguments of `_build_device_fields`."""


def _collect_row_inputs(snapshot: FleetSnapshot, name: DeviceId, osds: tuple[OsdId, ...]) -> RowInputs:
    """Return the arguments of `_build_device_fields`, with host, slot and model as the cluster names them."""
    seat = snapshot.view.osds[osds[0]] if snapshot.view and osds else None
    life, outlook = snapshot.lives[name], snapshot.outlooks.get(name)
    if not life.is_living:
        outlook = None
    return (
        name,
        snapshot.readings.get(name),
        life,
        osds,
        seat.host if seat else None,
        seat.model if seat else None,
        seat.device_name if seat else None,
        snapshot.find_slots_by_osd()[seat.id] if seat else None,
        outlook,
    )


def _build_device_fields(
    name: DeviceId,
    reading: Reading | None,
    life: DiskLife,
    osds: tuple[OsdId, ...],
    host: str | None,
    model: str | None,
    device_name: str | None,
    slot: int | None,
    outlook: Outlook | None,
) -> dict[str, Any]:
    smart = smart_of(reading)
    identity = smart.identity if smart else None
    lifespan = outlook.life if outlook else None
    return {
        "device": name,
        "host": reading.host if reading else host or life.change.host,
        "slot": slot,
        "device_name": device_name,
        "osds": list(osds),
        "model": (identity.model if identity else None) or model,
        "serial": identity.serial if identity else None,
        "protocol": smart.protocol if smart else None,
        "capacity_bytes": identity.capacity_bytes if identity else None,
        "state": life.state,
        "severity": life.severity,
        "status": life.severity or Status.UNKNOWN,
        "p_fail_30d": outlook.p_fail_30d if outlook else None,
        "life_p10_days": lifespan.p10_days if lifespan else None,
        "life_p90_days": lifespan.p90_days if lifespan else None,
        "source": outlook.source if outlook else None,
        "rule_score": outlook.rule_score if outlook else None,
        "reasons": list_own_reasons(outlook),
        "prescription": outlook.prescription if outlook else None,
        "advice": outlook.advice if outlook else None,
        "power_on_hours": smart.power_on_hours if smart else None,
        "temperature_c": smart.temperature_c if smart else None,
        "temperature_limit_c": find_operating_limit(smart) if smart else None,
        "temperature_critical_c": smart.temperature_critical_c if smart else None,
        "taken_at": reading.taken_at if reading else None,
    }


def _build_identity_body(smart: Smart) -> IdentityBody:
    return IdentityBody(**{name: getattr(smart.identity, name) for name in IdentityBody.model_fields})

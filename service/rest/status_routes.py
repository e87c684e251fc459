"""`GET status`: a summary of the whole service."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from weakref import ReferenceType

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from predrain.actions.core.drain_policy import Mode
from predrain.service.app.application import Application
from predrain.service.app.demo_status import DemoStatus
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.fleet_counts import FleetTally, count_fleet_disks
from predrain.service.rest import http_caching
from predrain.service.rest.acting_process_answers import ActingBody, acting_body
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import (
    TheApplication,
    TheSnapshot,
    create_singleton_dependency,
    made_once,
)
from predrain.service.rest.service_state_answers import ServiceStateBody, service_state_body
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["status"])


class ForecastBody(ResponseBody):
    """The expected number of present disks that fail within 30 days; `silent`: those without a symptom."""

    bundle: str | None
    expected_30d: float | None
    expected_silent_30d: float | None


class ReadingsBody(ResponseBody):
    """Disks that were read within two intervals, and all present disks."""

    fresh: int
    total: int


class DemoRowBody(ResponseBody):
    """One line of the demo's last table."""

    what: str
    with_: str | float | None = Field(serialization_alias="with")
    without: str | float | None


class DemoTableBody(ResponseBody):
    """The demo's results with and without predrain, from the same seed."""

    rows: list[DemoRowBody]


class DemoBody(ResponseBody):
    """The progress of the demo."""

    day: int
    days: int
    seed: int
    seconds_per_day: float
    note: str
    table: DemoTableBody | None


class StatusBody(ResponseBody):
    """`controller` is `running` or `holding: WHY`; unknown figures are null. `halt_passes`: true if no person halted,
    the cluster does not answer, and the halt ends when it answers."""

    cluster: str
    now: datetime
    as_of: datetime | None
    epoch: int | None
    health: str | None
    mode: Mode
    halted: str | None
    halt_passes: bool
    osds: int
    hosts: int
    forecast: ForecastBody
    readings: ReadingsBody
    view_age_seconds: float | None
    controller: str
    acting: ActingBody
    service: ServiceStateBody
    other_clusters: int
    """Other clusters whose services are asked (`GET clusters`)."""
    demo: DemoBody | None


class CachedFleetCounts:
    """The sums over all disks, computed at most once per change and second for all requests."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._counted: tuple[ReferenceType[FleetSnapshot], datetime, FleetTally] | None = None

    def find_ready_counts(self, snapshot: FleetSnapshot, asked: datetime) -> FleetTally | None:
        """Return the sums of this snapshot in the second of the request, or sums that were begun later, or None."""
        if self._counted is None:
            return None
        of, begun, counted = self._counted
        same = of() is snapshot and int(begun.timestamp()) == int(asked.timestamp())
        return counted if same or begun > asked else None

    def count(self) -> FleetTally:
        """Compute the sums as of now and cache them."""
        begun, snapshot = self._application.clock.now(), self._application.get_snapshot()
        counted = count_fleet_disks(snapshot, begun, self._application.stale_after)
        self._counted = ReferenceType(snapshot), begun, counted
        return counted


async def _load_fleet_counts(
    request: Request,
    application: TheApplication,
    snapshot: TheSnapshot,
    counting: Annotated[
        CachedFleetCounts, Depends(create_singleton_dependency("counting", CachedFleetCounts))
    ],
) -> FleetTally:
    asked = application.clock.now()
    return await made_once(
        request, "the sums", lambda: counting.find_ready_counts(snapshot, asked), counting.count
    )


@router.get("/status", response_model=StatusBody, responses=http_caching.declare_polled_responses(401))
def get_service_status(
    request: Request,
    application: TheApplication,
    _: Reader,
    snapshot: TheSnapshot,
    counted: Annotated[FleetTally, Depends(_load_fleet_counts)],
) -> Response:
    """Cluster, forecast, freshness, and whether drains may act."""
    return http_caching.build_etag_response(request, _build_status_body(application, snapshot, counted))


def _build_status_body(application: Application, snapshot: FleetSnapshot, counted: FleetTally) -> StatusBody:
    now, view = application.clock.now(), application.fleet.view  # a poll that changed nothing is still a poll
    return StatusBody(
        cluster=application.settings.service.cluster_name,
        now=now,
        as_of=application.derive_from_snapshot("as of", _find_newest_outlook_time)
        or (view.as_of if view else None),
        epoch=view.epoch if view else None,
        health=view.health if view else None,
        mode=application.policy.mode,
        halted=snapshot.halted,
        halt_passes=snapshot.halt is not None and snapshot.halt.is_transient,
        osds=len(view.osds) if view else 0,
        hosts=len({osd.host for osd in view.osds.values()}) if view else 0,
        forecast=ForecastBody(
            bundle=application.bundle_name,
            expected_30d=counted.expected_30d,
            expected_silent_30d=counted.expected_silent_30d,
        ),
        readings=ReadingsBody(fresh=counted.fresh, total=counted.total),
        view_age_seconds=(now - view.as_of).total_seconds() if view else None,
        controller=application.describe_controller(),
        acting=acting_body(application),
        service=service_state_body(application),
        other_clusters=len(application.other_clusters.list_known()),
        demo=_build_demo_body(application.demo()) if application.demo else None,
    )


def _find_newest_outlook_time(snapshot: FleetSnapshot) -> datetime | None:
    return max((outlook.as_of for outlook in snapshot.outlooks.values()), default=None)


def _build_demo_body(demo: DemoStatus | None) -> DemoBody | None:
    if demo is None:
        return None
    rows = [DemoRowBody(what=row.what, with_=row.with_predrain, without=row.without) for row in demo.rows]
    return DemoBody(
        day=demo.day,
        days=demo.days,
        seed=demo.seed,
        seconds_per_day=demo.seconds_per_day,
        note=demo.note,
        table=DemoTableBody(rows=rows) if rows else None,
    )

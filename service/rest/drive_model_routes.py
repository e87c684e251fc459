"""`GET models`: the drive models of the fleet, one row each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from predrain.service.app.application import Application
from predrain.service.fleet.drive_models import DiskRecords, DriveModelNumbers, count_drive_models
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication, create_singleton_dependency
from predrain.service.rest.outlook_routes import Cursor, Limit
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["devices"])


class DriveModelBody(ResponseBody):
    """The drives of one model. `model`: null for disks that report none. `disks`: those that neither failed nor are
    retired; `failed`: those that failed here. `age_days_p50`: the median of their power-on times.

    `failures_per_year`: failures for each of the `drive_years` that such drives were watched here, with the ends of its
    95 % interval.
    """

    model: str | None
    disks: int
    failed: int
    warning: int
    bad: int
    capacity_bytes: int | None
    age_days_p50: float | None
    drive_years: float
    failures_per_year: float | None
    failures_per_year_low: float | None
    failures_per_year_high: float | None


class DriveModelPage(ResponseBody):
    """A page of models in order of their names; disks that report no model come last."""

    items: list[DriveModelBody]
    next: str | None


def _create_disk_records(application: Application) -> DiskRecords:
    return DiskRecords(application.store)


@router.get(
    "/models", response_model=DriveModelPage, responses=http_caching.declare_polled_responses(401, 422)
)
def list_drive_models(
    request: Request,
    application: TheApplication,
    records: Annotated[
        DiskRecords, Depends(create_singleton_dependency("disk records", _create_disk_records))
    ],
    _: Reader,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> Response:
    """List the drive models of the fleet with their disks, failures, disks at risk and annual failure rate."""
    numbers = application.derive_from_snapshot(
        "drive models",
        lambda snapshot: count_drive_models(
            snapshot, records.read_watched_disks(snapshot), application.clock.now()
        ),
    )
    keyed = [(f"{one.model is None:d} {one.model or ''}", one) for one in numbers]
    shown, following = http_caching.page_of(keyed, limit, cursor)
    return http_caching.build_etag_response(
        request, DriveModelPage(items=[_build_drive_model_body(one) for one in shown], next=following)
    )


def _build_drive_model_body(one: DriveModelNumbers) -> DriveModelBody:
    return DriveModelBody(
        model=one.model,
        disks=one.disks,
        failed=one.failed,
        warning=one.warning,
        bad=one.bad,
        capacity_bytes=one.capacity_bytes,
        age_days_p50=one.age_days_p50,
        drive_years=round(one.drive_years, 3),
        failures_per_year=one.rate.rate if one.rate else None,
        failures_per_year_low=one.rate.low if one.rate else None,
        failures_per_year_high=one.rate.high if one.rate else None,
    )

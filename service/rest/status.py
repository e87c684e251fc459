"""`GET status`: the whole service in one screenful."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from predrain.actions.controller.leadership import passes
from predrain.actions.core.policy import Mode
from predrain.service.application import House
from predrain.service.demo_status import DemoStatus
from predrain.service.fleet import FleetSnapshot
from predrain.service.fleet_counts import FleetTally, tally
from predrain.service.rest import caching
from predrain.service.rest.acting import ActingBody, acting_body
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Reader
from predrain.service.rest.within import TheHouse, TheSight, kept, made_once

router = APIRouter(tags=["status"])


class ForecastBody(ResponseBody):
    """How many of the disks that are there are expected to fail within 30 days; `silent`: without a symptom."""

    bundle: str | None
    expected_30d: float | None
    expected_silent_30d: float | None


class ReadingsBody(ResponseBody):
    """Disks read within two intervals, of all that are there."""

    fresh: int
    total: int


class DemoRowBody(ResponseBody):
    """One line of the demo's last table."""

    what: str
    with_: str | float | None = Field(serialization_alias="with")
    without: str | float | None


class DemoTableBody(ResponseBody):
    """The same seed with and without predrain."""

    rows: list[DemoRowBody]


class DemoBody(ResponseBody):
    """How far the demo is."""

    day: int
    days: int
    seed: int
    seconds_per_day: float
    note: str
    table: DemoTableBody | None


class StatusBody(ResponseBody):
    """`controller` is `running` or `holding: WHY`; unknown figures are null. `halt_passes`: nobody halted, the cluster
    does not answer, and what halts ends when it does."""

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
    demo: DemoBody | None


class Counting:
    """The sums over all disks, counted once a change and second, however many ask."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._counted: tuple[FleetSnapshot, datetime, FleetTally] | None = None

    def ready(self, sight: FleetSnapshot, asked: datetime) -> FleetTally | None:
        """The sums of this sight in the second in which they were asked for, or any that were begun after that."""
        if self._counted is None:
            return None
        of, begun, counted = self._counted
        same = of is sight and int(begun.timestamp()) == int(asked.timestamp())
        return counted if same or begun > asked else None

    def count(self) -> FleetTally:
        """As of now."""
        begun, sight = self._house.clock.now(), self._house.sight()
        counted = tally(sight, begun, self._house.stale_after)
        self._counted = sight, begun, counted
        return counted


async def _counted(
    request: Request,
    house: TheHouse,
    sight: TheSight,
    counting: Annotated[Counting, Depends(kept("counting", Counting))],
) -> FleetTally:
    asked = house.clock.now()
    return await made_once(request, "the sums", lambda: counting.ready(sight, asked), counting.count)


@router.get("/status", response_model=StatusBody, responses=caching.polled(401))
def status(
    request: Request,
    house: TheHouse,
    _: Reader,
    sight: TheSight,
    counted: Annotated[FleetTally, Depends(_counted)],
) -> Response:
    """Cluster, forecast, freshness, and whether drains may act."""
    return caching.answer(request, _body(house, sight, counted))


def _body(house: House, sight: FleetSnapshot, counted: FleetTally) -> StatusBody:
    now, view = house.clock.now(), house.fleet.view  # a look that changed nothing is still a look
    return StatusBody(
        cluster=house.settings.service.cluster_name,
        now=now,
        as_of=house.derived("as of", _newest) or (view.as_of if view else None),
        epoch=view.epoch if view else None,
        health=view.health if view else None,
        mode=house.policy.mode,
        halted=sight.halted,
        halt_passes=passes(sight.halted),
        osds=len(view.osds) if view else 0,
        hosts=len({osd.host for osd in view.osds.values()}) if view else 0,
        forecast=ForecastBody(
            bundle=house.bundle_name,
            expected_30d=counted.expected_30d,
            expected_silent_30d=counted.expected_silent_30d,
        ),
        readings=ReadingsBody(fresh=counted.fresh, total=counted.total),
        view_age_seconds=(now - view.as_of).total_seconds() if view else None,
        controller=house.controlling(),
        acting=acting_body(house),
        demo=_demo(house.demo()) if house.demo else None,
    )


def _newest(sight: FleetSnapshot) -> datetime | None:
    return max((outlook.as_of for outlook in sight.outlooks.values()), default=None)


def _demo(demo: DemoStatus | None) -> DemoBody | None:
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

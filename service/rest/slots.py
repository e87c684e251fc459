"""`GET slots/OSD`: which disk stands in the slot of an OSD, which stood there before, and what became of each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from predrain.data.ids import OsdId
from predrain.data.life_cycle import LifeState
from predrain.data.outlook import Status
from predrain.service.fleet import FleetSnapshot
from predrain.service.lifecycle.slots import SlotStay, read_stays
from predrain.service.rest import caching
from predrain.service.rest.bodies import LifeChangeBody, ResponseBody, life_change_body
from predrain.service.rest.guarding import Reader
from predrain.service.rest.problems import HttpProblem, declared
from predrain.service.rest.within import TheHouse

router = APIRouter(tags=["slots"])


class SlotDiskBody(ResponseBody):
    """One disk that stands or stood in a slot. `until`: null while it stands there. `since`: null where the record does
    not reach back so far. `changes`: those of its life in that slot, newest first. `state` and `severity`: now.
    """

    device: str
    since: datetime | None
    until: datetime | None
    state: LifeState
    severity: Status | None
    changes: list[LifeChangeBody]


class SlotBody(ResponseBody):
    """The slot of an OSD. `device`: the disk that stands there; null: none does, or none is known. `disks`: that one
    first, then those of before, the last one first.
    """

    osd: int
    host: str | None
    device: str | None
    disks: list[SlotDiskBody]


@router.get("/slots/{osd}", response_model=SlotBody, responses=declared(401, 404, 422))
def slot(
    request: Request, house: TheHouse, _: Reader, osd: Annotated[int, Path(ge=0, le=2**31 - 1)]
) -> Response:
    """Which disk stands in the slot of an OSD, which stood there before, and what became of each."""
    sight, id_ = house.sight(), OsdId(osd)
    stays = read_stays(house.store, sight, id_)
    known = sight.view.osds.get(id_) if sight.view is not None else None
    if not stays and known is None:
        raise HttpProblem(404, f"No osd.{osd} was ever known here.", listed_at="/api/v1/osds")
    host = known.host if known is not None else stays[0].changes[-1].host
    device = next((stay.device for stay in stays if stay.until is None), None)
    disks = [_disk_body(sight, stay) for stay in stays]
    return caching.answer(request, SlotBody(osd=osd, host=host, device=device, disks=disks))


def _disk_body(sight: FleetSnapshot, stay: SlotStay) -> SlotDiskBody:
    life = sight.lives.get(stay.device)
    return SlotDiskBody(
        device=stay.device,
        since=stay.since,
        until=stay.until,
        state=life.state if life is not None else stay.changes[-1].state,
        severity=life.severity if life is not None else None,
        changes=[life_change_body(change) for change in reversed(stay.changes)],
    )

"""`GET slots/OSD`: the disk in the slot of an OSD, the disks before it, and the outcome of each."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from predrain.data.ids import OsdId
from predrain.data.life_cycle import LifeState
from predrain.data.outlook import Status
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.slot_history import SlotStay, read_stays
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.cluster_paths import find_cluster
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.problem_answers import HttpProblem, declare_problem_responses
from predrain.service.rest.shared_bodies import LifeChangeBody, ResponseBody, life_change_body

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
    """The slot of an OSD. `device`: the disk that stands there; null: none does, or none is known. `disks`: that disk
    first, then the disks before it, newest first.
    """

    osd: int
    cluster: str | None
    """The fsid of the OSD's cluster; null before a cluster answered."""
    host: str | None
    device: str | None
    disks: list[SlotDiskBody]


@router.get("/slots/{osd}", response_model=SlotBody, responses=declare_problem_responses(401, 404, 422))
def get_osd_slot(
    request: Request, application: TheApplication, _: Reader, osd: Annotated[int, Path(ge=0, le=2**31 - 1)]
) -> Response:
    """List the disk that stands in the slot of an OSD, the disks that stood there before, and the end of each."""
    snapshot, id_ = application.get_snapshot(), OsdId(osd)
    stays = read_stays(application.store, snapshot, id_)
    known = snapshot.view.osds.get(id_) if snapshot.view is not None else None
    if not stays and known is None:
        raise HttpProblem(404, f"No osd.{osd} was ever known here.", listed_at="/api/v1/osds")
    host = known.host if known is not None else stays[0].changes[-1].host
    device = next((stay.device for stay in stays if stay.until is None), None)
    disks = [_disk_body(snapshot, stay) for stay in stays]
    body = SlotBody(osd=osd, cluster=find_cluster(application), host=host, device=device, disks=disks)
    return http_caching.build_etag_response(request, body)


def _disk_body(snapshot: FleetSnapshot, stay: SlotStay) -> SlotDiskBody:
    life = snapshot.lives.get(stay.device)
    return SlotDiskBody(
        device=stay.device,
        since=stay.since,
        until=stay.until,
        state=life.state if life is not None else stay.changes[-1].state,
        severity=life.severity if life is not None else None,
        changes=[life_change_body(change) for change in reversed(stay.changes)],
    )

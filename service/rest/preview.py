"""`GET forecast/preview`: what other costs of a failure would have given here."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from predrain.service.rest import caching
from predrain.service.rest.bodies import ResponseBody
from predrain.service.rest.guarding import Reader
from predrain.service.rest.within import TheHouse

if TYPE_CHECKING:
    from predrain.service.cost_replay import Preview

router = APIRouter(tags=["forecast"])
NOT_HERE = (
    "This process scores no disks; ask the service that does, or use predrain policy preview on its host."
)
NO_SCOREBOOK = "No scorebook is kept here, so what was forecast cannot be replayed."


class PreviewRowBody(ResponseBody):
    """One base cost of a failure and what it would have given. `here`: it is the one that is set. `cost_bytes`: bytes
    moved, and each byte rebuilt times the cost that is set."""

    failure_cost: float
    here: bool
    drains: int
    in_time: int
    for_nothing: int
    undecided: int
    moved_bytes: int
    nothing_bytes: int
    rebuilt_bytes: int
    moving_hours: float
    cost_bytes: float


class PolicyPreviewBody(ResponseBody):
    """The settings beside each other over the same days and disks. `running`: it is being made, and `rows` are those of
    before, if any. `trouble`: why there is none."""

    days: int
    running: bool
    made_at: datetime | None
    first: str | None
    last: str | None
    disks: int | None
    failures: int | None
    rows: list[PreviewRowBody]
    trouble: str | None


@router.get("/forecast/preview", response_model=PolicyPreviewBody, responses=caching.polled(401))
def preview_policy(
    request: Request,
    house: TheHouse,
    _: Reader,
    days: Annotated[int, Query(ge=1, le=365, description="Days back from today that are replayed.")] = 90,
) -> Response:
    """What the last days would have looked like at other costs. The first answer begins it; ask again until it is
    there."""
    champion, scorebook = (house.lineup.champion if house.ready else None), house.scorer.scorebook
    if champion is None or scorebook is None:
        return caching.answer(request, _body(days, trouble=NOT_HERE if champion is None else NO_SCOREBOOK))
    state = house.previews.request_preview(
        days, champion, scorebook, house.store, house.policy, house.clock.now()
    )
    return caching.answer(
        request, _body(state.days, state.preview, state.made_at, running=state.running, trouble=state.trouble)
    )


def _body(
    days: int,
    preview: Preview | None = None,
    made_at: datetime | None = None,
    *,
    running: bool = False,
    trouble: str | None = None,
) -> PolicyPreviewBody:
    rows = [
        PreviewRowBody(**{name: getattr(row, name) for name in PreviewRowBody.model_fields})
        for row in (preview.rows if preview else ())
    ]
    return PolicyPreviewBody(
        days=days,
        running=running,
        made_at=made_at,
        first=preview.first if preview else None,
        last=preview.last if preview else None,
        disks=preview.disks if preview else None,
        failures=preview.failures if preview else None,
        rows=rows,
        trouble=trouble,
    )

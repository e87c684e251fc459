"""`GET forecast/preview`: the drains and losses that other costs of a failure would have given here."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.shared_bodies import ResponseBody

if TYPE_CHECKING:
    from predrain.service.forecasting.cost_replay import CostPreview

router = APIRouter(tags=["forecast"])
NOT_HERE = (
    "This process scores no disks; ask the service that does, or use predrain policy preview on its host."
)
NO_SCOREBOOK = "No scorebook is kept here, so what was forecast cannot be replayed."


class PreviewRowBody(ResponseBody):
    """One base cost of a failure and the results that it would have had. `current`: true for the cost that is set.
    `cost_bytes`: moved bytes, plus rebuilt bytes times the cost that is set."""

    failure_cost: float
    current: bool
    drains: int
    in_time: int
    needless: int
    undecided: int
    moved_bytes: int
    needless_bytes: int
    rebuilt_bytes: int
    moving_hours: float
    cost_bytes: float


class PolicyPreviewBody(ResponseBody):
    """The settings side by side, over the same days and disks. `running`: the replay is under way, and `rows` are those
    of the replay before, if any. `error`: the reason why there is no result."""

    days: int
    running: bool
    made_at: datetime | None
    first: str | None
    last: str | None
    disks: int | None
    failures: int | None
    rows: list[PreviewRowBody]
    error: str | None


@router.get(
    "/forecast/preview",
    response_model=PolicyPreviewBody,
    responses=http_caching.declare_polled_responses(401),
)
def preview_policy(
    request: Request,
    application: TheApplication,
    _: Reader,
    days: Annotated[
        int, Query(ge=1, le=365, description="The number of days up to today that are replayed.")
    ] = 90,
) -> Response:
    """Replay the last days at other costs. The first request begins the replay; repeat it until the answer has the
    result."""
    champion, scorebook = (
        (application.deployed_models.champion if application.ready else None),
        application.scorer.scorebook,
    )
    if champion is None or scorebook is None:
        return http_caching.build_etag_response(
            request, _build_preview_body(days, trouble=NOT_HERE if champion is None else NO_SCOREBOOK)
        )
    state = application.previews.request_preview(
        days, champion, scorebook, application.store, application.policy, application.clock.now()
    )
    return http_caching.build_etag_response(
        request,
        _build_preview_body(
            state.days, state.preview, state.made_at, running=state.running, trouble=state.trouble
        ),
    )


def _build_preview_body(
    days: int,
    preview: CostPreview | None = None,
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
        error=trouble,
    )

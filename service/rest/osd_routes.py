"""`GET osds`: one row per OSD with everything that the map, the list and the tooltip show."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field
from starlette.responses import Response

from predrain.actions.cluster.cluster_view import ClusterView, Osd
from predrain.actions.core.messages import describe_state, state_names_intent
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.life_cycle import DiskLife, LifeState
from predrain.data.outlook import Advice, Outlook, Status
from predrain.data.reading import Reading
from predrain.service.app.application import Application
from predrain.service.fleet.differing_keys import find_differing_keys
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import create_singleton_dependency, in_turn
from predrain.service.rest.list_answers import IncrementalList, MadeOf
from predrain.service.rest.outlook_routes import Cursor
from predrain.service.rest.shared_bodies import (
    ResponseBody,
    UnreadableBody,
    list_own_reasons,
    smart_of,
    unreadable_body,
)

router = APIRouter(tags=["osds"])
SLOW_RULE = "slow"
MOST = 10_000
FULLNESS_STEPS = 1_000
"""Steps of an OSD's size in which its used bytes are listed. Each poll of the cluster finds a few more bytes on nearly
every OSD, and a reader would otherwise get the whole list with each poll.
"""
LATENCY_STEPS = 20
"""Steps of a latency ratio of 1, for the same reason. Every bound of the page's colours is one."""


class OsdDrainBody(ResponseBody):
    """The drain that concerns an OSD now."""

    id: str
    state: DrainState
    state_text: str
    state_names_intent: bool
    """True if `state_text` shows the intent by itself, as "filling" does."""
    intent: Intent
    moved_bytes: int
    planned_bytes: int
    held_by: list[str]


class OsdBody(ResponseBody):
    """One OSD, the disk that stands in it, and its forecast. `slot` counts a host's OSDs from 0 in order of their ids.

    `state`: of the disk; null where no disk is known. `status`: the disk's `severity`, and `unknown` for a disk that
    failed or is retired, of which nothing is forecast. `used_bytes` is listed in thousandths of `size_bytes`, rounded
    down, and `latency_ratio` in twentieths.
    """

    osd: int
    cluster: str | None
    """The fsid of the OSD's cluster; null where the cluster reports none."""
    host: str
    rack: str | None
    slot: int
    device: str | None
    model: str | None
    up: bool
    in_: bool = Field(serialization_alias="in")
    reweight: float
    size_bytes: int | None
    used_bytes: int | None
    state: LifeState | None
    severity: Status | None
    status: Status
    source: str | None
    p_fail_30d: float | None
    p_fail_30d_week_ago: float | None
    life_p10_days: float | None
    life_p50_days: float | None
    life_p90_days: float | None
    reasons: list[str]
    prescription: str | None
    advice: Advice | None
    rule_score: float | None
    """The evidence of a rule, 0 to 1, which is not a probability."""
    as_of: datetime | None
    age_days: float | None
    latency_ratio: float | None
    slow: bool
    """True if a rule for slow disks made the outlook."""
    unreadable: UnreadableBody | None
    drain: OsdDrainBody | None
    blocking_drain: str | None
    """The id of the drain that stands in the way of a new one to replace the disk; null: such a proposal is accepted.
    A drain that failed stands in the way until it is resumed or cancelled, and a quarantine does not."""


class OsdPage(ResponseBody):
    """A page of OSDs in order of their ids, as of the change `at`; `full` is false if only changed OSDs are listed.

    OSDs may change while the pages are requested. After the last page, request what changed since `at` of the first.
    """

    items: list[OsdBody]
    next: str | None
    at: str
    full: bool
    removed: list[OsdId]
    """OSDs that have gone since `since`."""


def _create_osd_list(application: Application) -> IncrementalList[int]:
    return IncrementalList(application, _find_changed_osds, build_osd_body, int)


@router.get("/osds", response_model=OsdPage, responses=http_caching.declare_list_responses(401, 422))
async def list_osds(
    request: Request,
    listing: Annotated[IncrementalList[int], Depends(create_singleton_dependency("osds", _create_osd_list))],
    _: Reader,
    limit: Annotated[int, Query(ge=1, le=MOST, description="The most items of a page.")] = MOST,
    cursor: Cursor = None,
    since: Annotated[
        str | None,
        Query(
            max_length=64,
            description="The field `at` of an earlier answer: only OSDs that changed since are listed. Repeat it with "
            "the cursor of a next page of such a list.",
        ),
    ] = None,
) -> Response:
    """List every OSD of the cluster, or only those that changed; the list is empty while no cluster is configured."""
    return await in_turn(
        request,
        "osds",
        lambda: listing.followed_ready(limit, cursor, since),
        lambda: listing.build_page_since(limit, cursor, since),
    )


def _find_changed_osds(snapshot: FleetSnapshot, before: FleetSnapshot | None) -> Mapping[int, MadeOf | None]:
    view = snapshot.view
    if view is None:
        return {}
    from predrain.actions.engine.proposals import (
        find_blocking_drains,  # it imports numpy, and a start without a cluster need not wait
    )

    drains, touched = snapshot.drain_of(), set[OsdId]()
    blocking = find_blocking_drains(snapshot.drains)
    if before is None or before.view is not view:
        touched.update(view.osds, before.view.osds if before and before.view else ())
    else:
        osds = snapshot.osds_of()
        pairs = (
            (snapshot.readings, before.readings),
            (snapshot.outlooks, before.outlooks),
            (snapshot.lives, before.lives),
        )
        for now, then in pairs:
            touched.update(osd for device in find_differing_keys(now, then) for osd in osds.get(device, ()))
        blocked_before = find_blocking_drains(before.drains)
        touched |= (
            drains.keys() | before.drain_of().keys() | blocking.keys() | blocked_before.keys()
        ) & view.osds.keys()
    return {
        id_: made_of(snapshot, view, id_, drains.get(id_), blocking.get(id_)) if id_ in view.osds else None
        for id_ in touched
    }


class ListedOsd(NamedTuple):
    """The facts of the cluster in an OSD's row."""

    id: OsdId
    host: HostName
    rack: str | None
    device: DeviceId | None
    model: str | None
    up: bool
    reweight: float
    size_bytes: int | None
    used_bytes: int | None
    """In steps of the size (FULLNESS_STEPS)."""


def _list_osd(osd: Osd) -> ListedOsd:
    used = osd.used_bytes
    if used is not None and osd.size_bytes:
        step = max(1, osd.size_bytes // FULLNESS_STEPS)
        used = used // step * step
    return ListedOsd(
        osd.id, osd.host, osd.rack, osd.device, osd.model, osd.up, osd.reweight, osd.size_bytes, used
    )


def made_of(
    snapshot: FleetSnapshot, view: ClusterView, id_: OsdId, drain: Drain | None, blocking: Drain | None = None
) -> MadeOf:
    """Return the content of an OSD's row, from which `build_osd_body` makes the body."""
    osd, ratio = view.osds[id_], view.latency_ratio.get(id_)
    return (
        _list_osd(osd),
        snapshot.find_slots_by_osd()[id_],
        snapshot.lives.get(osd.device) if osd.device else None,
        snapshot.outlooks.get(osd.device) if osd.device and snapshot.is_living(osd.device) else None,
        snapshot.readings.get(osd.device) if osd.device else None,
        snapshot.week_ago.get(osd.device) if osd.device else None,
        round(ratio * LATENCY_STEPS) / LATENCY_STEPS if ratio is not None else None,
        _build_osd_drain_body(drain) if drain else None,
        view.fsid,
        blocking.id if blocking else None,
    )


def build_osd_body(
    osd: ListedOsd,
    slot: int,
    standing: DiskLife | None,
    outlook: Outlook | None,
    reading: Reading | None,
    week_ago: float | None,
    latency_ratio: float | None,
    drain: OsdDrainBody | None,
    cluster: ClusterId | None,
    blocking_drain: str | None,
) -> OsdBody:
    """Return the body of an OSD's row."""
    smart = smart_of(reading)
    hours = smart.power_on_hours if smart else None
    life = outlook.life if outlook else None
    return OsdBody(
        osd=osd.id,
        cluster=cluster,
        host=osd.host,
        rack=osd.rack,
        slot=slot,
        device=osd.device,
        model=osd.model or (smart.identity.model if smart else None),
        up=osd.up,
        in_=osd.reweight > 0,
        reweight=osd.reweight,
        size_bytes=osd.size_bytes,
        used_bytes=osd.used_bytes,
        state=standing.state if standing else None,
        severity=standing.severity if standing else None,
        status=(standing.severity if standing else None) or Status.UNKNOWN,
        source=outlook.source if outlook else None,
        p_fail_30d=outlook.p_fail_30d if outlook else None,
        p_fail_30d_week_ago=week_ago if outlook else None,
        life_p10_days=life.p10_days if life else None,
        life_p50_days=life.p50_days if life else None,
        life_p90_days=life.p90_days if life else None,
        reasons=list_own_reasons(outlook),
        prescription=outlook.prescription if outlook else None,
        advice=outlook.advice if outlook else None,
        rule_score=outlook.rule_score if outlook else None,
        as_of=outlook.as_of if outlook else None,
        age_days=hours / 24 if hours is not None else None,
        latency_ratio=latency_ratio,
        slow=outlook is not None and (outlook.rule or "").startswith(SLOW_RULE),
        unreadable=unreadable_body(reading),
        drain=drain,
        blocking_drain=blocking_drain,
    )


def _build_osd_drain_body(drain: Drain) -> OsdDrainBody:
    progress = drain.progress
    return OsdDrainBody(
        id=drain.id,
        state=drain.state,
        state_text=describe_state(drain.state, drain.intent),
        state_names_intent=state_names_intent(drain.state, drain.intent),
        intent=drain.intent,
        moved_bytes=progress.moved_bytes,
        planned_bytes=progress.planned_bytes,
        held_by=list(drain.held_by),
    )

"""The answers about a plan: in numbers and by rack, or with every move."""

from __future__ import annotations

from collections import defaultdict

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.data.drain import BoundKind, Mechanic, Plan
from predrain.data.ids import OsdId
from predrain.data.messages import describe_bottleneck, describe_bound, describe_plan_refusal
from predrain.service.rest.shared_bodies import ResponseBody


class TargetBody(ResponseBody):
    """The data that the OSDs of one rack take."""

    rack: str | None
    bytes: int
    hosts: int
    osds: int


class PlanBody(ResponseBody):
    """A drain's plan: its mechanic, the racks that take the data, and the refusals that stand against it."""

    mechanic: Mechanic
    reason: str
    bytes: int
    pgs: int
    fullest_osd: OsdId | None
    fullest_after: float | None
    cluster_after: float | None
    eta_hours: float | None
    bottleneck: str
    refusals: list[str]
    targets: list[TargetBody]


class MoveBody(ResponseBody):
    """The way of one PG's copy or shard."""

    pg: str
    source: OsdId
    target: OsdId
    bytes: int


class ReceiverBody(ResponseBody):
    """The data that one OSD takes, and how full the OSD is before and after; null where its sizes are not known."""

    osd: OsdId
    pgs: int
    bytes: int
    before: float | None
    after: float | None


class BoundBody(ResponseBody):
    """A lower bound of the plan's duration; the longest bound is the plan's bottleneck."""

    name: str
    hours: float
    kind: BoundKind


class LineBody(ResponseBody):
    """One PG's `up` as it is and as it will be, and the bytes that travel for it."""

    pg: str
    before: list[int]
    after: list[int]
    bytes: int
    text: str


class WholePlanBody(PlanBody):
    """The plan with every move in order of risk, the OSDs that take data, the bounds, and the map's changes by line."""

    epoch: int
    moves: list[MoveBody]
    receivers: list[ReceiverBody]
    bounds: list[BoundBody]
    rejected: list[str]
    survival_probability: float | None
    diff: list[LineBody]


def plan_body(plan: Plan, view: ClusterView | None) -> PlanBody:
    """Return a plan's numbers, by rack."""
    return PlanBody(**_build_plan_fields(plan, view))  # type: ignore[arg-type]


def whole_plan_body(plan: Plan, view: ClusterView | None) -> WholePlanBody:
    """Return a plan with every move."""
    from predrain.actions.planning.map_diff import list_plan_lines

    return WholePlanBody(
        **_build_plan_fields(plan, view),  # type: ignore[arg-type]
        epoch=plan.epoch,
        moves=[MoveBody(pg=m.pg, source=m.source, target=m.target, bytes=m.bytes) for m in plan.moves],
        receivers=[
            ReceiverBody(osd=t.osd, pgs=t.pgs, bytes=t.bytes, before=t.before, after=t.after)
            for t in plan.targets
        ],
        bounds=[
            BoundBody(name=describe_bound(bound), hours=bound.hours, kind=bound.kind) for bound in plan.bounds
        ],
        rejected=list(plan.rejected),
        survival_probability=plan.survives,
        diff=[
            LineBody(
                pg=line.pg,
                before=list(line.before),
                after=list(line.after),
                bytes=line.bytes,
                text=str(line),
            )
            for line in (list_plan_lines(view, plan) if view else ())
        ],
    )


def _build_plan_fields(plan: Plan, view: ClusterView | None) -> dict[str, object]:
    return {
        "mechanic": plan.mechanic,
        "reason": plan.why,
        "bytes": plan.bytes,
        "pgs": len({move.pg for move in plan.moves}),
        "fullest_osd": plan.fullest_osd,
        "fullest_after": plan.fullest_after,
        "cluster_after": plan.cluster_after,
        "eta_hours": plan.eta_hours,
        "bottleneck": describe_bottleneck(plan),
        "refusals": [describe_plan_refusal(one) for one in plan.refusals],
        "targets": _sum_targets_by_rack(plan, view),
    }


def _sum_targets_by_rack(plan: Plan, view: ClusterView | None) -> list[TargetBody]:
    """Return bytes, hosts and OSDs by rack, the largest share first. An OSD that left the map has no rack."""
    share: dict[str | None, int] = defaultdict(int)
    hosts: dict[str | None, set[str]] = defaultdict(set)
    osds: dict[str | None, set[OsdId]] = defaultdict(set)
    for move in plan.moves:
        osd = view.osds.get(move.target) if view else None
        rack = osd.rack if osd else None
        share[rack] += move.bytes
        osds[rack].add(move.target)
        if osd:
            hosts[rack].add(osd.host)
    ordered = sorted(share, key=lambda rack: (-share[rack], rack or ""))
    return [TargetBody(rack=r, bytes=share[r], hosts=len(hosts[r]), osds=len(osds[r])) for r in ordered]

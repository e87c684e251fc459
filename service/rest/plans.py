"""A plan as it is answered: in numbers and by rack, or with every move."""

from __future__ import annotations

from collections import defaultdict

from predrain.actions.cluster.view import ClusterView
from predrain.data.drain import Mechanic, Plan
from predrain.data.ids import OsdId
from predrain.service.rest.bodies import ResponseBody


class TargetBody(ResponseBody):
    """What one rack takes."""

    rack: str | None
    bytes: int
    hosts: int
    osds: int


class PlanBody(ResponseBody):
    """What a drain does, where the data goes, and what stands against it."""

    mechanic: Mechanic
    why: str
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
    """One shard's way."""

    pg: str
    source: OsdId
    target: OsdId
    bytes: int


class ReceiverBody(ResponseBody):
    """What one OSD takes, and how full it is before and after; null where its sizes are not known."""

    osd: OsdId
    pgs: int
    bytes: int
    before: float | None
    after: float | None


class BoundBody(ResponseBody):
    """Something that takes at least so long; the longest is the plan's bottleneck."""

    name: str
    hours: float


class LineBody(ResponseBody):
    """One PG's `up` as it is and as it will be, and the bytes that travel for it."""

    pg: str
    before: list[int]
    after: list[int]
    bytes: int
    text: str


class WholePlanBody(PlanBody):
    """The same with all that was weighed: every move in order of risk, and the map's difference line by line."""

    epoch: int
    moves: list[MoveBody]
    receivers: list[ReceiverBody]
    bounds: list[BoundBody]
    rejected: list[str]
    survives: float | None
    diff: list[LineBody]


def plan_body(plan: Plan, view: ClusterView | None) -> PlanBody:
    """In numbers."""
    return PlanBody(**_numbers(plan, view))  # type: ignore[arg-type]


def whole_plan_body(plan: Plan, view: ClusterView | None) -> WholePlanBody:
    """With every move."""
    from predrain.actions.planning.diff import diff

    return WholePlanBody(
        **_numbers(plan, view),  # type: ignore[arg-type]
        epoch=plan.epoch,
        moves=[MoveBody(pg=m.pg, source=m.source, target=m.target, bytes=m.bytes) for m in plan.moves],
        receivers=[
            ReceiverBody(osd=t.osd, pgs=t.pgs, bytes=t.bytes, before=t.before, after=t.after)
            for t in plan.targets
        ],
        bounds=[BoundBody(name=bound.name, hours=bound.hours) for bound in plan.bounds],
        rejected=list(plan.rejected),
        survives=plan.survives,
        diff=[
            LineBody(
                pg=line.pg,
                before=list(line.before),
                after=list(line.after),
                bytes=line.bytes,
                text=str(line),
            )
            for line in (diff(view, plan) if view else ())
        ],
    )


def _numbers(plan: Plan, view: ClusterView | None) -> dict[str, object]:
    return {
        "mechanic": plan.mechanic,
        "why": plan.why,
        "bytes": plan.bytes,
        "pgs": len({move.pg for move in plan.moves}),
        "fullest_osd": plan.fullest_osd,
        "fullest_after": plan.fullest_after,
        "cluster_after": plan.cluster_after,
        "eta_hours": plan.eta_hours,
        "bottleneck": plan.bottleneck,
        "refusals": list(plan.refusals),
        "targets": _targets(plan, view),
    }


def _targets(plan: Plan, view: ClusterView | None) -> list[TargetBody]:
    """Bytes, hosts and OSDs by rack, the largest share first; an OSD that left the map has no rack."""
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

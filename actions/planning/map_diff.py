"""A plan as a diff of the map, line by line: a dry run prints it, and the mechanics carry it out."""

from __future__ import annotations

from dataclasses import dataclass

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.data.drain import Plan
from predrain.data.ids import PgId
from predrain.data.messages import format_size


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One PG: its `up` now, its `up` when the plan is done, and the bytes that move for it."""

    pg: PgId
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        before, after = _format_members(self.before), _format_members(self.after)
        return f"PG {self.pg}: {before} -> {after}, {format_size(self.bytes)}"


def list_plan_lines(view: ClusterView, plan: Plan) -> tuple[PlanLine, ...]:
    """Return the PGs that the plan still changes, in its order. Moves already made are left out."""
    lines: dict[PgId, PlanLine] = {}
    for move in plan.moves:
        pg = view.pgs.get(move.pg)
        if pg is None or move.source not in pg.up:
            continue
        known = lines.get(move.pg, PlanLine(pg.id, pg.up, pg.up, 0))
        after = tuple(int(move.target) if osd == move.source else osd for osd in known.after)
        lines[move.pg] = PlanLine(pg.id, pg.up, after, known.bytes + move.bytes)
    return tuple(lines.values())


def _format_members(members: tuple[int, ...]) -> str:
    return "[" + ",".join("none" if osd == ITEM_NONE else str(osd) for osd in members) + "]"

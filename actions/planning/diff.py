"""A plan as a diff of the map: what a dry run prints and what the mechanics carry out, line by line."""

from __future__ import annotations

from dataclasses import dataclass

from predrain.actions.cluster.view import ClusterView
from predrain.actions.crush.map import ITEM_NONE
from predrain.data.drain import Plan
from predrain.data.ids import PgId

_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"))


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One PG: its `up` now, its `up` when the plan is done, and the bytes that travel for it."""

    pg: PgId
    before: tuple[int, ...]
    after: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"PG {self.pg}: {_members(self.before)} -> {_members(self.after)}, {in_units(self.bytes)}"


def diff(view: ClusterView, plan: Plan) -> tuple[PlanLine, ...]:
    """The PGs that the plan still changes, in its order. Moves that are made already are left out."""
    lines: dict[PgId, PlanLine] = {}
    for move in plan.moves:
        pg = view.pgs.get(move.pg)
        if pg is None or move.source not in pg.up:
            continue
        known = lines.get(move.pg, PlanLine(pg.id, pg.up, pg.up, 0))
        after = tuple(int(move.target) if osd == move.source else osd for osd in known.after)
        lines[move.pg] = PlanLine(pg.id, pg.up, after, known.bytes + move.bytes)
    return tuple(lines.values())


def _members(members: tuple[int, ...]) -> str:
    return "[" + ",".join("none" if osd == ITEM_NONE else str(osd) for osd in members) + "]"


def in_units(size: int) -> str:
    """`12 GiB`, `1.4 MiB`, `900 bytes`."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.0f} {name}" if size >= 10 * unit else f"{size / unit:.1f} {name}"
    return f"{size} bytes"

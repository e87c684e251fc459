"""Where no spare failure domain is left (k+m = hosts): CRUSH weight 0 may still find room inside the host.

At override 0 CRUSH has no legal choice there and ends with holes or one OSD twice under HEALTH_OK (ceph.md d), so a
whole host cannot be emptied; a disk can, onto its siblings.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from predrain.actions.cluster.view import ClusterView, Pg
from predrain.actions.core.pg_survey import whole
from predrain.actions.core.verdicts import count
from predrain.actions.placement.what_if import placed, stirred_by, weighed, why_no_crush_weight
from predrain.actions.planning.routes import moves_between
from predrain.data.drain import Drain, Move
from predrain.data.ids import OsdId, PgId

_NO_SETS = (
    "remove them (ceph osd crush weight-set rm-compat, ceph osd crush weight-set rm POOL), or drain by hand."
)


@dataclass(frozen=True, slots=True)
class Inside:
    """The moves of a CRUSH weight of 0, the PGs that it can stir at all, and what forbids it."""

    why: str
    moves: tuple[Move, ...]
    stirred: tuple[PgId, ...]
    problem: str = ""


def inside_host(
    view: ClusterView,
    drain: Drain,
    homeless: list[PgId],
    out: frozenset[OsdId],
    ordered: list[Pg],
    restless: Collection[PgId],
) -> Inside:
    """What happens when the CRUSH weights of the drain's OSDs go to 0.

    ordered: every PG, riskiest first. restless: those that are not at rest.
    """
    leaving = frozenset(drain.osds)
    why = _why(view, homeless)
    if sets := why_no_crush_weight(view):
        problem = (
            f"{why}, and the mechanic that is left, CRUSH weight 0, is not to be had. {sets}: {_NO_SETS}"
        )
        return Inside(why, (), (), problem)
    touched = stirred_by(view, drain.osds, {}, restless)
    final = placed(view, (), touched, crush=weighed(view, dict.fromkeys(drain.osds, 0.0)))
    moves: list[Move] = []
    for pg in (pg for pg in ordered if pg.id in touched):
        want = final[pg.id]
        if not whole(want, view.pools[pg.pool].size) or leaving & set(want):
            return Inside(
                why, (), (), f"{why}; CRUSH weight 0 does not help (PG {pg.id}). {_cannot(view, leaving)}"
            )
        moves.extend(moves_between(pg, want, leaving))
    to_others = next((move for move in moves if move.target in out - leaving), None)
    if to_others is not None:
        return Inside(
            why, (), (), f"{why}, and osd.{to_others.target} beside it drains as well; wait for that."
        )
    stays = _inside(view, moves, leaving)
    told = "the data stays inside the host" if stays else "nearly all stays inside the host"
    return Inside(f"{why}; by CRUSH weight {told}", tuple(moves), tuple(sorted(touched)))


def _why(view: ClusterView, homeless: list[PgId]) -> str:
    pool = view.pools[view.pgs[homeless[0]].pool]
    return (
        f"At override 0 {count(len(homeless), 'PG')} of pool {pool.name} would end without {pool.size} "
        f"distinct places ({pool.size} shards, no spare failure domain)"
    )


def _cannot(view: ClusterView, leaving: frozenset[OsdId]) -> str:
    hosts = {view.osds[osd].host for osd in leaving}
    siblings = [osd.id for osd in view.osds.values() if osd.host in hosts and osd.id not in leaving]
    if siblings:
        return "It cannot be emptied."
    names = ", ".join(sorted(hosts))
    return f"It cannot be emptied: no other OSD is on {names}, and a host cannot be evacuated without a spare one."


def _inside(view: ClusterView, moves: list[Move], leaving: frozenset[OsdId]) -> bool:
    return all(
        view.osds[move.source].host == view.osds[move.target].host for move in moves if move.source in leaving
    )

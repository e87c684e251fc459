"""Plans for pools without a spare failure domain (k+m = hosts), where CRUSH weight 0 may move data inside the
host.

At override 0 CRUSH has no legal choice there. It ends with holes or one OSD twice under HEALTH_OK (ceph.md
d). A whole host can therefore not be emptied, but a disk can, onto its siblings.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.core.pg_survey import has_all_members
from predrain.actions.placement.what_if import (
    apply_crush_weights,
    compute_up_sets,
    find_weight_affected_pgs,
    has_weight_sets,
)
from predrain.actions.planning.pg_routes import moves_between
from predrain.data.drain import Drain, Move
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import format_count
from predrain.data.plan_refusal import PlanRefusal, PlanRefusalKind


@dataclass(frozen=True, slots=True)
class ZeroWeightEffects:
    """The moves that a CRUSH weight of 0 causes, the PGs that it can affect at all, and the problem that
    forbids it.
    """

    why: str
    moves: tuple[Move, ...]
    affected: tuple[PgId, ...]
    problem: PlanRefusal | None = None


def inside_host(
    view: ClusterView,
    drain: Drain,
    homeless: list[PgId],
    out: frozenset[OsdId],
    ordered: list[Pg],
    unclean: Collection[PgId],
) -> ZeroWeightEffects:
    """Compute what happens when the CRUSH weights of the drain's OSDs go to 0.

    `ordered`: every PG, riskiest first. `unclean`: PGs that are not at rest.
    """
    leaving = frozenset(drain.osds)
    why = _explain_missing_places(view, homeless)
    pool = view.pools[view.pgs[homeless[0]].pool]
    refusal = PlanRefusal(
        PlanRefusalKind.ZERO_WITH_WEIGHT_SETS, pgs=len(homeless), pool=pool.name, size=pool.size
    )
    if has_weight_sets(view):
        return ZeroWeightEffects(why, (), (), refusal)
    touched = find_weight_affected_pgs(view, drain.osds, {}, unclean)
    final = compute_up_sets(
        view, (), touched, crush=apply_crush_weights(view, dict.fromkeys(drain.osds, 0.0))
    )
    moves: list[Move] = []
    for pg in (pg for pg in ordered if pg.id in touched):
        want = final[pg.id]
        if not has_all_members(want, view.pools[pg.pool].size) or leaving & set(want):
            kind, hosts = _find_reason_without_place(view, leaving)
            return ZeroWeightEffects(why, (), (), replace(refusal, kind=kind, pg=pg.id, name=hosts))
        moves.extend(moves_between(pg, want, leaving))
    to_others = next((move for move in moves if move.target in out - leaving), None)
    if to_others is not None:
        beside = replace(refusal, kind=PlanRefusalKind.ZERO_BESIDE_DRAIN, osd=to_others.target)
        return ZeroWeightEffects(why, (), (), beside)
    stays = _is_within_host(view, moves, leaving)
    told = "the data stays inside the host" if stays else "nearly all stays inside the host"
    return ZeroWeightEffects(f"{why}; by CRUSH weight {told}", tuple(moves), tuple(sorted(touched)))


def _explain_missing_places(view: ClusterView, homeless: list[PgId]) -> str:
    pool = view.pools[view.pgs[homeless[0]].pool]
    return (
        f"At override 0 {format_count(len(homeless), 'PG')} of pool {pool.name} would end without {pool.size} "
        f"distinct places ({pool.size} shards, no spare failure domain)"
    )


def _find_reason_without_place(view: ClusterView, leaving: frozenset[OsdId]) -> tuple[PlanRefusalKind, str]:
    """Return the kind of refusal, and the names of the hosts that would be left without an OSD."""
    hosts = {view.osds[osd].host for osd in leaving}
    siblings = [osd.id for osd in view.osds.values() if osd.host in hosts and osd.id not in leaving]
    if siblings:
        return PlanRefusalKind.ZERO_WITHOUT_PLACE, ""
    return PlanRefusalKind.ZERO_OF_LAST_OSD, ", ".join(sorted(hosts))


def _is_within_host(view: ClusterView, moves: list[Move], leaving: frozenset[OsdId]) -> bool:
    return all(
        view.osds[move.source].host == view.osds[move.target].host for move in moves if move.source in leaving
    )

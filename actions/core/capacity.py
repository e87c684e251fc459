"""Capacity: the bytes that each OSD holds once all data that is on its way to it has arrived."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from predrain.actions.cluster.cluster_view import ClusterView, Pg
from predrain.actions.cluster.osd_layout import find_osd_layout, sum_osd_sizes
from predrain.actions.core.claimed_settings import collect_upmap_items
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import Survey, has_all_members
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.data.drain import Drain, DrainState, Move
from predrain.data.identity_memo import remember_results
from predrain.data.ids import OsdId, PgId


def compute_fullness_limit(view: ClusterView, policy: Policy) -> float:
    """Return the fullness in [0, 1] that no target may pass: min(nearfull, backfillfull - margin), but at
    least 0.
    """
    return max(0.0, min(view.nearfull_ratio, view.backfillfull_ratio - policy.backfillfull_margin))


@dataclass(slots=True)
class OsdCapacity:
    """The bytes that each OSD holds, and the bytes that moves will add. Mutable, because a planner adds each
    move as it plans.
    """

    view: ClusterView
    limit: float
    promised: dict[OsdId, int]

    def fullness(self, osd: OsdId, extra: int = 0) -> float | None:
        """Return the OSD's fullness in [0, 1] with all promised bytes and `extra`, or None if its sizes are
        not known.
        """
        found = self.view.osds.get(osd)
        if found is None or found.used_bytes is None or not found.size_bytes:
            return None
        return (found.used_bytes + self.promised.get(osd, 0) + extra) / found.size_bytes

    def fits(self, osd: OsdId, extra: int) -> bool:
        """Return whether the OSD stays within the limit with `extra` more bytes; False for an OSD of unknown
        size.
        """
        after = self.fullness(osd, extra)
        return after is not None and after <= self.limit

    def promise(self, osd: OsdId, extra: int) -> None:
        """Count `extra` bytes as if they were already on the OSD."""
        self.promised[osd] = self.promised.get(osd, 0) + extra


def list_unstarted_fill_osds(view: ClusterView, drain: Drain) -> frozenset[OsdId]:
    """Return the OSDs that a fill has not begun with.

    `osd df` shows 0 kB for an OSD that is out. Its sizes are known only after the first reweight step has
    taken it in. From then on an unknown size holds the fill as it holds any drain.
    """
    joining = drain.osds if drain.intent.fills_osd else ()
    return frozenset(osd for osd in joining if osd in view.osds and view.osds[osd].reweight == 0.0)


def list_remaining_moves(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Return the moves of the plan that have not begun: the source is still in `up`, and the target is not."""
    return () if drain.plan is None else _list_remaining_moves(drain.plan.moves, view.pgs)


@remember_results(limit=64)
def _list_remaining_moves(moves: tuple[Move, ...], pgs: Mapping[PgId, Pg]) -> tuple[Move, ...]:
    return tuple(
        move
        for move in moves
        if (pg := pgs.get(move.pg)) is not None and move.source in pg.up and move.target not in pg.up
    )


def find_lost_pgs(view: ClusterView, drain: Drain) -> frozenset[PgId]:
    """Return the PGs of the plan that lack a copy because the disk died before its copy was moved.

    The source of such a PG is in neither `up` nor `acting`. A PG that has all its copies elsewhere is not
    among them. A PG whose target serves because of this drain's upmap item is not among them either. Without
    the upmap item a serving target proves nothing, because Ceph may rebuild a dead disk's copy there.
    """
    sent = collect_upmap_items(drain.ours).keys()
    return frozenset(
        move.pg
        for move in (drain.plan.moves if drain.plan else ())
        if (pg := view.pgs.get(move.pg)) is not None
        and move.source not in pg.up
        and move.source not in pg.acting
        and (move.target not in pg.acting or (move.pg not in sent and not _is_up(view, move.source)))
        and ("degraded" in pg.states or not has_all_members(pg.acting, view.pools[pg.pool].size))
    )


def _is_up(view: ClusterView, osd: OsdId) -> bool:
    return osd in view.osds and view.osds[osd].up


def list_returning_moves(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Return the moves that a drain that is being cancelled must still undo."""
    return tuple(
        Move(move.pg, move.target, move.source, move.bytes)
        for move in (drain.plan.moves if drain.plan else ())
        if (pg := view.pgs.get(move.pg)) is not None and move.target in pg.up and move.source not in pg.up
    )


def compute_osd_capacity(survey: Survey, policy: Policy, moves: Iterable[Move] = ()) -> OsdCapacity:
    """Compute the capacity of each OSD, with pending backfills and `moves` counted as promised."""
    promised = dict(survey.incoming)
    for move in moves:
        promised[move.target] = promised.get(move.target, 0) + move.bytes
    return OsdCapacity(survey.view, compute_fullness_limit(survey.view, policy), promised)


def promised_by_others(context: Context, view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Return the moves that all other engaged drains must still make, or undo if they are being cancelled."""
    return tuple(
        move
        for other in context.list_other_drains(drain)
        if is_drain_engaged(other)
        for move in (list_returning_moves if other.state is DrainState.CANCELLING else list_remaining_moves)(
            view, other
        )
    )


def cluster_after(view: ClusterView, gone: Iterable[OsdId], come: Iterable[OsdId] = ()) -> float | None:
    """Return the cluster's fullness in [0, 1] after the OSDs `gone` are empty and the OSDs `come` have their
    share.

    Return None if no size is known or the size of one of `come` is unknown.
    """
    leaving, joining = set(gone), {view.osds[osd] for osd in come if osd in view.osds}
    used, size = sum_osd_sizes(view.osds)
    serving = find_osd_layout(view.osds).serving
    for osd in leaving | {osd.id for osd in joining}:
        size -= (view.osds[osd].size_bytes or 0) if osd in serving else 0
    if any(osd.size_bytes is None for osd in joining):
        return None
    size += sum(osd.size_bytes or 0 for osd in joining)
    return used / size if size else None


def when_done(view: ClusterView, drain: Drain, draining: frozenset[OsdId] = frozenset()) -> float | None:
    """Return the cluster's fullness in [0, 1] after this drain is done and all OSDs in `draining` are empty."""
    leaving = list_leaving_osds(drain)
    return cluster_after(view, draining | leaving, drain.osds if drain.intent.fills_osd else ())


def list_leaving_osds(drain: Drain) -> frozenset[OsdId]:
    """Return the OSDs that hold no data when the drain is done."""
    return frozenset(drain.osds) if drain.intent.empties_osd else frozenset()

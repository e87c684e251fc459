"""Room: what each OSD will hold once everything that is on its way has arrived."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.claimed_settings import pinned
from predrain.actions.core.pg_survey import Survey, whole
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context, engaged
from predrain.data.drain import Drain, DrainState, Move
from predrain.data.ids import OsdId, PgId


def limit(view: ClusterView, policy: Policy) -> float:
    """Fullness in [0, 1] that no target may pass: min(nearfull, backfillfull - margin), 0 where that is
    negative."""
    return max(0.0, min(view.nearfull_ratio, view.backfillfull_ratio - policy.backfillfull_margin))


@dataclass(slots=True)
class OsdCapacity:
    """Bytes that each OSD holds or was promised. Mutable on purpose: a planner promises as it goes."""

    view: ClusterView
    limit: float
    promised: dict[OsdId, int]

    def fullness(self, osd: OsdId, extra: int = 0) -> float | None:
        """Fullness in [0, 1] with all promises kept; None when the OSD's sizes are not known."""
        found = self.view.osds.get(osd)
        if found is None or found.used_bytes is None or not found.size_bytes:
            return None
        return (found.used_bytes + self.promised.get(osd, 0) + extra) / found.size_bytes

    def fits(self, osd: OsdId, extra: int) -> bool:
        """Whether `extra` more bytes stay within the limit; an OSD of unknown size holds nothing."""
        after = self.fullness(osd, extra)
        return after is not None and after <= self.limit

    def promise(self, osd: OsdId, extra: int) -> None:
        """Count `extra` bytes as if they were there."""
        self.promised[osd] = self.promised.get(osd, 0) + extra


def waiting(view: ClusterView, drain: Drain) -> frozenset[OsdId]:
    """OSDs that a fill has not begun with: `osd df` says 0 kB of an OSD that is out, so their sizes are told only once
    the first rung has taken them in; from then on an unknown size holds the fill like any drain.
    """
    joining = drain.osds if drain.intent.fills_osd else ()
    return frozenset(osd for osd in joining if osd in view.osds and view.osds[osd].reweight == 0.0)


def remaining(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """Moves of the drain's plan that have not been begun: the source is still in `up` and the target
    is not.
    """
    if drain.plan is None:
        return ()
    return tuple(
        move
        for move in drain.plan.moves
        if (pg := view.pgs.get(move.pg)) is not None and move.source in pg.up and move.target not in pg.up
    )


def find_lost_pgs(view: ClusterView, drain: Drain) -> frozenset[PgId]:
    """PGs of the plan that are short of a copy and whose source is gone from `up` and `acting`: the disk died before
    its copy was moved. One that has all its copies elsewhere is not among them, nor one whose target serves because
    this drain pinned it there; that the target serves is no sign of it where Ceph rebuilds a dead disk's copies there.
    """
    sent = pinned(drain.ours).keys()
    return frozenset(
        move.pg
        for move in (drain.plan.moves if drain.plan else ())
        if (pg := view.pgs.get(move.pg)) is not None
        and move.source not in pg.up
        and move.source not in pg.acting
        and (move.target not in pg.acting or (move.pg not in sent and not _is_up(view, move.source)))
        and ("degraded" in pg.states or not whole(pg.acting, view.pools[pg.pool].size))
    )


def _is_up(view: ClusterView, osd: OsdId) -> bool:
    return osd in view.osds and view.osds[osd].up


def returning(view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """What a drain that is being cancelled has still to bring back."""
    return tuple(
        Move(move.pg, move.target, move.source, move.bytes)
        for move in (drain.plan.moves if drain.plan else ())
        if (pg := view.pgs.get(move.pg)) is not None and move.target in pg.up and move.source not in pg.up
    )


def room(survey: Survey, policy: Policy, moves: Iterable[Move] = ()) -> OsdCapacity:
    """Room with pending backfill and `moves` promised."""
    space = OsdCapacity(survey.view, limit(survey.view, policy), dict(survey.incoming))
    for move in moves:
        space.promise(move.target, move.bytes)
    return space


def promised_by_others(context: Context, view: ClusterView, drain: Drain) -> tuple[Move, ...]:
    """What every other engaged drain has still to move, or to bring back."""
    return tuple(
        move
        for other in context.others(drain)
        if engaged(other)
        for move in (returning if other.state is DrainState.CANCELLING else remaining)(view, other)
    )


def cluster_after(view: ClusterView, gone: Iterable[OsdId], come: Iterable[OsdId] = ()) -> float | None:
    """Fullness in [0, 1] of what is in when `gone` are empty and `come` have their share; None when no size is known,
    or one of `come` is not.
    """
    leaving, joining = set(gone), set(come)
    used = sum(osd.used_bytes or 0 for osd in view.osds.values())
    sizes = [
        osd.size_bytes if osd.id in joining else osd.size_bytes or 0
        for osd in view.osds.values()
        if osd.id in joining or (osd.id not in leaving and osd.up and osd.reweight > 0)
    ]
    size = sum(known for known in sizes if known is not None)
    return used / size if size and None not in sizes else None


def when_done(view: ClusterView, drain: Drain, draining: frozenset[OsdId] = frozenset()) -> float | None:
    """Fullness in [0, 1] of the cluster when the drain is done and all that is `draining` now is empty."""
    leaving = list_leaving_osds(drain)
    return cluster_after(view, draining | leaving, drain.osds if drain.intent.fills_osd else ())


def list_leaving_osds(drain: Drain) -> frozenset[OsdId]:
    """OSDs that hold no data when the drain is done."""
    return frozenset(drain.osds) if drain.intent.empties_osd else frozenset()

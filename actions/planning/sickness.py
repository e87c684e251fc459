"""Whether reading the suspect hurts, and whether stopping its OSD would be bearable."""

from __future__ import annotations

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import count
from predrain.data.drain import Drain


def hurts(drain: Drain, context: Context) -> str:
    """Why the disk should be read as little as can be, as the head of a sentence; empty when nothing says so."""
    slow = [context.slow.osds[osd] for osd in drain.osds if osd in context.slow.osds]
    if slow:
        return (
            f"reading this disk hurts clients (it answers {slow[0].ratio:.2f} times as slowly as its peers)"
        )
    if drain.spare_reads:
        return "reading this disk hurts clients, so a person says"
    outlook = context.outlooks.get(drain.device) if drain.device else None
    if outlook is not None and outlook.source == "rule:unreadable":
        return "the disk cannot be read any more"
    return ""


def may_stop(view: ClusterView, drain: Drain, context: Context) -> str:
    """What stopping the drain's OSDs would do now, in one sentence; that is for a person to do, never for us.

    Counted from `acting`: `ok-to-stop` is wrong on some releases (ceph.md 6).
    """
    stopped = set(drain.osds)
    survey = context.survey
    worst: tuple[int, str] | None = None
    bare = 0
    for pg in view.pgs.values():
        lost = len(stopped & set(pg.acting))
        if not lost:
            continue
        margin = survey.alive(pg) - lost - view.pools[pg.pool].min_size
        bare += margin <= 0
        if worst is None or (margin, pg.id) < worst:
            worst = (margin, pg.id)
    if worst is None:
        return "Stopping the OSD: nothing is on it."
    if bare:
        return (
            f"Stopping the OSD: {count(bare, 'PG')} would be at min_size or below (PG {worst[1]}); "
            "one more failure and they serve no more, so it may not be stopped."
        )
    return "Stopping the OSD: every PG would stay above min_size, but be degraded until it is whole; a person's word."

"""Decides whether reading the suspect harms clients, and describes the effect of stopping its OSD."""

from __future__ import annotations

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain
from predrain.data.messages import format_count


def explain_harmful_reads(drain: Drain, context: Context) -> str:
    """Return the reason to read the disk as little as possible, as the start of a sentence; empty if there is
    none.
    """
    slow = [context.slow.osds[osd] for osd in drain.osds if osd in context.slow.osds]
    if slow:
        return (
            f"reading this disk hurts clients (it answers {slow[0].ratio:.2f} times as slowly as its peers)"
        )
    if drain.spare_reads:
        return "reading this disk hurts clients, so a person says"
    outlook = context.outlooks.get(drain.device) if drain.device else None
    if outlook is not None and outlook.rule == "unreadable":
        return "the disk cannot be read any more"
    return ""


def may_stop(view: ClusterView, drain: Drain, context: Context) -> str:
    """Describe in one sentence the effect of stopping the drain's OSDs now; only a person may stop them.

    Copies are counted from `acting`, because `ok-to-stop` is wrong on some releases (ceph.md 6).
    """
    stopped = set(drain.osds)
    survey = context.survey
    worst: tuple[int, str] | None = None
    bare = 0
    for pg in find_pg_index(view.pgs).list_pgs_of_any(stopped):
        lost = len(stopped & set(pg.acting))
        if not lost:
            continue
        margin = survey.count_alive_members(pg) - lost - view.pools[pg.pool].min_size
        bare += margin <= 0
        if worst is None or (margin, pg.id) < worst:
            worst = (margin, pg.id)
    if worst is None:
        return "Stopping the OSD: nothing is on it."
    if bare:
        return (
            f"Stopping the OSD: {format_count(bare, 'PG')} would be at min_size or below (PG {worst[1]}); "
            "one more failure and they serve no more, so it may not be stopped."
        )
    return "Stopping the OSD: every PG would stay above min_size, but be degraded until it is whole; a person's word."

"""Guards that count copies, room and how much is going on at once."""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from collections.abc import Collection

from predrain.actions.cluster.view import ClusterView
from predrain.actions.core.capacity import (
    cluster_after,
    list_leaving_osds,
    promised_by_others,
    remaining,
    room,
    waiting,
)
from predrain.actions.core.in_flight import list_own_pgs, list_touched_pgs
from predrain.actions.core.messages import WORDS, describe_limit
from predrain.actions.core.pg_survey import serving_whole
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context, engaged
from predrain.actions.core.verdicts import Pass, Refuse, count
from predrain.actions.placement.shared_failure import doomed
from predrain.data.drain import Drain, DrainState
from predrain.data.ids import PgId


def redundancy(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Every PG that the next step touches has all its copies now, counted from `acting`: a change may not meet a PG
    that is short. A walk leaves those that are short alone until they are whole.

    `ok-to-stop` is not asked: it answers wrongly on some releases (ceph.md 6).
    """
    survey, touched = context.survey, list_touched_pgs(drain, context)
    short = [
        pg
        for pg in survey.restless.values()
        if pg.id in touched
        and any(osd in pg.up or osd in pg.acting for osd in drain.osds)
        and not survey.is_whole(pg)
    ]
    if not short:
        together = doomed(view, remaining(view, drain))
        if together is None:
            return Pass("every PG on it has all its copies")
        id_, device, members = together
        return Refuse(
            "redundancy",
            f"PG {id_} would have {members} members on OSDs of {device}, which die together; too few would be left.",
            {"members": members},
        )
    worst = min(short, key=lambda pg: (survey.alive(pg) - view.pools[pg.pool].min_size, pg.id))
    pool = view.pools[worst.pool]
    return Refuse(
        "redundancy",
        f"{count(len(short), 'PG')} of the suspect short of copies "
        f"(PG {worst.id} has {survey.alive(worst)} of {pool.size}, serves from {pool.min_size}).",
        {"pgs": len(short), "alive": survey.alive(worst), "size": pool.size, "min_size": pool.min_size},
    )


def refuse_short(pgs: Collection[PgId], context: Context) -> Refuse | None:
    """A refusal of a step that would change a PG which lacks a copy, also of one that no plan names."""
    survey = context.survey
    short = sorted(pg for pg in pgs if pg in survey.restless and not survey.is_whole(survey.restless[pg]))
    if not short:
        return None
    return Refuse(
        "redundancy",
        f"The next step would change {count(len(short), 'PG')} short of copies ({short[0]}); the step waits for them.",
        {"pgs": len(short)},
    )


def space(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """No target over its limit with all drains and pending backfill counted, nor the cluster once the
    drive is gone.
    """
    if drain.plan is None or drain.state is DrainState.CANCELLING:
        return Pass("nothing is planned yet")
    mine = remaining(view, drain)
    full = room(context.survey, policy, (*mine, *promised_by_others(context, view, drain)))
    worst: tuple[float, int] | None = None
    for target in sorted({move.target for move in mine} - waiting(view, drain)):
        fill = full.fullness(target)
        if fill is None:
            return Refuse("space", f"osd.{target} reports no sizes; its room is not known.", {"osd": target})
        if worst is None or fill > worst[0]:
            worst = (fill, target)
    if worst and worst[0] > full.limit:
        return Refuse(
            "space",
            f"osd.{worst[1]} would be {worst[0]:.0%} full, {describe_limit(full.limit)}.",
            {"osd": worst[1], "fill": worst[0], "limit": full.limit},
        )
    gone = context.draining() | list_leaving_osds(drain)
    after = cluster_after(view, gone)
    if after is None:
        return Refuse("space", "No OSD reports its size; the cluster's room is not known.")
    if after > view.nearfull_ratio:
        return Refuse(
            "space",
            f"The cluster would be {after:.0%} full without it, nearfull is {view.nearfull_ratio:.0%}.",
            {"fill": after, "limit": view.nearfull_ratio},
        )
    return Pass(
        f"fullest target osd.{worst[1]} {worst[0]:.0%}, {describe_limit(full.limit)}"
        if worst
        else "nothing left to move"
    )


def budget(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Drains at once a host, a rack, a cluster; OSDs out or draining. Elder drains go before younger ones."""
    if not drain.intent.moves_data:
        return _quarantines(view, drain, policy, context)
    ahead = [
        other
        for other in context.others(drain)
        if other.intent.moves_data
        and not _awaits_dead_disk(view, other)
        and (drain.state is DrainState.APPROVED or _elder(other, drain))
    ]
    busy_osds = {osd for other in ahead for osd in other.osds if osd in view.osds}
    mine = [view.osds[osd] for osd in drain.osds if osd in view.osds]
    hosts = {osd.host for osd in mine}
    racks = {osd.rack for osd in mine} - {None}
    on_host = sum(
        1 for other in ahead if any(view.osds[o].host in hosts for o in other.osds if o in view.osds)
    )
    in_rack = sum(
        1 for other in ahead if any(view.osds[o].rack in racks for o in other.osds if o in view.osds)
    )
    for have, most, where in (
        (on_host, policy.drains_per_host, f"host {', '.join(sorted(hosts))}"),
        (in_rack, policy.drains_per_rack, f"rack {', '.join(sorted(str(rack) for rack in racks))}"),
        (len(ahead), policy.drains_per_cluster, "the cluster"),
    ):
        if have >= most:
            return Refuse(
                "budget",
                f"{count(have, 'drain')} under way in {where}, limit {most}.",
                {"drains": have, "limit": most},
            )
    out = {osd.id for osd in view.osds.values() if osd.reweight == 0.0} | busy_osds | set(drain.osds)
    most_out = max(len(drain.osds), int(policy.out_share_max * len(view.osds)))
    if drain.intent.empties_osd and len(out) > most_out and out - set(drain.osds):
        return Refuse(
            "budget",
            f"{count(len(out), 'OSD')} of {len(view.osds)} would be out or draining, limit {most_out}.",
            {"out": len(out), "limit": most_out},
        )
    return Pass(f"{len(ahead)} other drains, {len(out)} of {most_out} OSDs out or draining")


def _awaits_dead_disk(view: ClusterView, drain: Drain) -> bool:
    """Whether a cancelled drain can go on only once its OSDs are up, for days maybe: nothing of it moves meanwhile."""
    known = [osd for id_ in drain.osds if (osd := view.osds.get(id_)) is not None]
    return drain.state is DrainState.CANCELLING and all(osd.is_down_and_out for osd in known)


def safe_to_destroy(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Before hand-over: no PG names the OSD, those that it held are at rest, and every other one has all its copies."""
    if drain.intent.fills_osd:
        return Pass("nothing is destroyed: the disk was filled")
    for osd in drain.osds:
        held = context.survey.of_osd(osd)
        if held:
            return Refuse(
                "safe-to-destroy",
                f"{count(len(held), 'PG')} still name osd.{osd}.",
                {"osd": osd, "pgs": len(held)},
            )
    own = list_own_pgs(drain)
    restless = [
        pg
        for pg in context.survey.restless.values()
        if pg.id in own or not serving_whole(pg.states) or not context.survey.is_whole(pg)
    ]
    if restless:
        return Refuse(
            "safe-to-destroy",
            f"{count(len(restless), 'PG')} {'is' if len(restless) == 1 else 'are'} not whole; "
            "a copy on the old disk may still be wanted.",
            {"pgs": len(restless)},
        )
    return Pass(WORDS[drain.intent].counted)


def _quarantines(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Of all that leads PGs only so much may stop; and no more at once than the others can lead for it."""
    ahead = (
        other
        for other in context.drains
        if other.id != drain.id
        and other.intent is drain.intent
        and (engaged(other) or (other.state is DrainState.APPROVED and _elder(other, drain)))
    )
    spared = {osd for other in ahead for osd in other.osds}
    most = max(len(drain.osds), int(policy.out_share_max * len(view.osds)))
    if drain.state is DrainState.APPROVED and len(spared | set(drain.osds)) > most:
        return Refuse(
            "budget",
            f"{count(len(spared), 'OSD')} of {len(view.osds)} in quarantine, limit {most}.",
            {"quarantined": len(spared), "limit": most},
        )
    return Pass(f"{count(len(spared), 'other OSD')} in quarantine, limit {most}")


def _elder(other: Drain, drain: Drain) -> bool:
    return (other.created_at, other.id) < (drain.created_at, drain.id)

"""Guards that count copies, capacity, the number of drains at once, and the backfills of one reweight step."""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from collections.abc import Collection

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.core.capacity import (
    cluster_after,
    compute_osd_capacity,
    list_leaving_osds,
    list_remaining_moves,
    list_unstarted_fill_osds,
    promised_by_others,
)
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import Pass, Refuse
from predrain.actions.core.held_throttles import (
    SchedulerSupport,
    determine_scheduler_support,
    explain_unreliable_throttle,
)
from predrain.actions.core.in_flight import at_work, list_own_pgs, list_touched_pgs
from predrain.actions.core.messages import INTENT_TEXTS
from predrain.actions.core.pg_survey import serving_whole
from predrain.actions.core.situation import Context, is_drain_engaged
from predrain.actions.placement.failure_domains import find_endangered_pg
from predrain.data.drain import Drain, DrainState, Mechanic
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import OsdId, PgId
from predrain.data.messages import describe_limit, format_count

_LADDERS = frozenset({Mechanic.OVERRIDE_LADDER, Mechanic.CRUSH_LADDER})


def check_redundancy(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Require that every PG that the next step touches has all its copies now, counted from `acting`.

    A walk does not touch PGs that lack a copy until they are whole. `ok-to-stop` is not used, because it
    gives wrong answers on some releases (ceph.md 6).
    """
    survey, touched = context.survey, list_touched_pgs(drain, context)
    short = [
        pg
        for pg in survey.list_unclean_pgs(survey.find_ids_by_osds(drain.osds))
        if pg.id in touched
        and any(osd in pg.up or osd in pg.acting for osd in drain.osds)
        and not survey.is_whole(pg)
    ]
    if not short:
        together = find_endangered_pg(view, list_remaining_moves(view, drain))
        if together is None:
            return Pass("every PG on it has all its copies")
        id_, device, members = together
        return Refuse(
            HoldReason.REDUNDANCY,
            f"PG {id_} would have {members} members on OSDs of {device}, which die together; too few would be left.",
            {"members": members},
        )
    worst = min(short, key=lambda pg: (survey.count_alive_members(pg) - view.pools[pg.pool].min_size, pg.id))
    pool = view.pools[worst.pool]
    return Refuse(
        HoldReason.REDUNDANCY,
        f"{format_count(len(short), 'PG')} of the suspect short of copies "
        f"(PG {worst.id} has {survey.count_alive_members(worst)} of {pool.size}, serves from {pool.min_size}).",
        {
            "pgs": len(short),
            "alive": survey.count_alive_members(worst),
            "size": pool.size,
            "min_size": pool.min_size,
        },
    )


def refuse_short(pgs: Collection[PgId], context: Context) -> Refuse | None:
    """Return a refusal if the step would change a PG that lacks a copy, including a PG that no plan names."""
    survey = context.survey
    short = sorted(pg for pg in pgs if pg in survey.unclean and not survey.is_whole(survey.unclean[pg]))
    if not short:
        return None
    return Refuse(
        HoldReason.REDUNDANCY,
        f"The next step would change {format_count(len(short), 'PG')} short of copies ({short[0]}); the "
        "step waits for them.",
        {"pgs": len(short)},
    )


def check_capacity(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse if a target would pass its limit, with all drains and pending backfill counted.

    Also refuse if the cluster would be nearfull without the drive.
    """
    if drain.plan is None or drain.state is DrainState.CANCELLING:
        return Pass("nothing is planned yet")
    mine = list_remaining_moves(view, drain)
    full = compute_osd_capacity(context.survey, policy, (*mine, *promised_by_others(context, view, drain)))
    worst: tuple[float, OsdId] | None = None
    for target in sorted({move.target for move in mine} - list_unstarted_fill_osds(view, drain)):
        fill = full.fullness(target)
        if fill is None:
            return Refuse(
                HoldReason.SPACE, f"osd.{target} reports no sizes; its room is not known.", osd=target
            )
        if worst is None or fill > worst[0]:
            worst = (fill, target)
    if worst and worst[0] > full.limit:
        return Refuse(
            HoldReason.SPACE,
            f"osd.{worst[1]} would be {worst[0]:.0%} full, {describe_limit(full.limit)}.",
            {"fill": worst[0], "limit": full.limit},
            osd=worst[1],
        )
    gone = context.list_draining_osds() | list_leaving_osds(drain)
    after = cluster_after(view, gone)
    if after is None:
        return Refuse(HoldReason.SPACE, "No OSD reports its size; the cluster's room is not known.")
    if after > view.nearfull_ratio:
        return Refuse(
            HoldReason.SPACE,
            f"The cluster would be {after:.0%} full without it, nearfull is {view.nearfull_ratio:.0%}.",
            {"fill": after, "limit": view.nearfull_ratio},
        )
    return Pass(
        f"fullest target osd.{worst[1]} {worst[0]:.0%}, {describe_limit(full.limit)}"
        if worst
        else "nothing left to move"
    )


def check_drain_budget(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Limit the drains at once in a host, a rack and the cluster, and the OSDs out or draining.

    Older drains go before younger ones.
    """
    if not drain.intent.moves_data:
        return _check_quarantine_budget(view, drain, policy, context)
    ahead = [
        other
        for other in context.list_other_drains(drain)
        if other.intent.moves_data
        and not _awaits_dead_disk(view, other)
        and (drain.state is DrainState.APPROVED or _is_older_drain(other, drain))
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
                HoldReason.BUDGET,
                f"{format_count(have, 'drain')} under way in {where}, limit {most}.",
                {"drains": have, "limit": most},
            )
    out = find_osd_layout(view.osds).out | busy_osds | set(drain.osds)
    most_out = max(len(drain.osds), int(policy.out_share_max * len(view.osds)))
    if drain.intent.empties_osd and len(out) > most_out and out - set(drain.osds):
        return Refuse(
            HoldReason.BUDGET,
            f"{format_count(len(out), 'OSD')} of {len(view.osds)} would be out or draining, limit {most_out}.",
            {"out": len(out), "limit": most_out},
        )
    return Pass(f"{len(ahead)} other drains, {len(out)} of {most_out} OSDs out or draining")


def _awaits_dead_disk(view: ClusterView, drain: Drain) -> bool:
    """Return whether a cancelled drain waits for its OSDs to come up, perhaps for days; nothing of it moves
    then.
    """
    known = [osd for id_ in drain.osds if (osd := view.osds.get(id_)) is not None]
    return drain.state is DrainState.CANCELLING and all(osd.is_down_and_out for osd in known)


def safe_to_destroy(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Check before hand-over that no PG needs the OSD.

    No PG may name it, the PGs that it held must be at rest, and every other PG must have all its copies.
    """
    if drain.intent.fills_osd:
        return Pass("nothing is destroyed: the disk was filled")
    for osd in drain.osds:
        held = context.survey.of_osd(osd)
        if held:
            return Refuse(
                HoldReason.SAFE_TO_DESTROY,
                f"{format_count(len(held), 'PG')} still name osd.{osd}.",
                {"pgs": len(held)},
                osd=osd,
            )
    own = list_own_pgs(drain)
    unclean = [
        pg
        for pg in context.survey.unclean.values()
        if pg.id in own or not serving_whole(pg.states) or not context.survey.is_whole(pg)
    ]
    if unclean:
        return Refuse(
            HoldReason.SAFE_TO_DESTROY,
            f"{format_count(len(unclean), 'PG')} {'is' if len(unclean) == 1 else 'are'} not whole; "
            "a copy on the old disk may still be wanted.",
            {"pgs": len(unclean)},
        )
    return Pass(INTENT_TEXTS[drain.intent].counted)


def _check_quarantine_budget(
    view: ClusterView, drain: Drain, policy: Policy, context: Context
) -> Pass | Refuse:
    """Limit the share of OSDs that are in quarantine at once, since the others must be primary for their PGs."""
    ahead = (
        other
        for other in context.drains
        if other.id != drain.id
        and other.intent is drain.intent
        and (
            is_drain_engaged(other) or (other.state is DrainState.APPROVED and _is_older_drain(other, drain))
        )
    )
    spared = {osd for other in ahead for osd in other.osds}
    most = max(len(drain.osds), int(policy.out_share_max * len(view.osds)))
    if drain.state is DrainState.APPROVED and len(spared | set(drain.osds)) > most:
        return Refuse(
            HoldReason.BUDGET,
            f"{format_count(len(spared), 'OSD')} of {len(view.osds)} in quarantine, limit {most}.",
            {"quarantined": len(spared), "limit": most},
        )
    return Pass(f"{format_count(len(spared), 'other OSD')} in quarantine, limit {most}")


def _is_older_drain(other: Drain, drain: Drain) -> bool:
    return (other.created_at, other.id) < (drain.created_at, drain.id)


def check_throttle(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse to change a weight of an OSD with erasure-coded PGs while its backfills cannot be bounded.

    A reweight step may move several PGs. Each is read from k disks, and up to 1000 backfills would run at
    once. Single PGs may move by upmap items.
    """
    why = explain_unreliable_throttle(view, at_work(drain))
    if (
        drain.plan is None
        or drain.plan.mechanic not in _LADDERS
        or determine_scheduler_support(view) not in (SchedulerSupport.PROFILE, SchedulerSupport.NONE)
    ):
        return Pass(f"one PG at a time, for {why}" if why else "one backfill at a time is in force")
    moved = {pg.pool for move in drain.plan.moves if (pg := view.pgs.get(move.pg)) is not None}
    coded = sorted(view.pools[pool].name for pool in moved if view.pools[pool].erasure)
    if not coded or why is None:
        return Pass("no erasure-coded PG moves by a weight")
    return Refuse(
        HoldReason.THROTTLE,
        f"Pool {coded[0]} is erasure-coded, and nothing bounds its backfills ({why}): no weight is touched. Run the "
        "OSDs with osd_op_queue wpq, or let upmaps be used (require_min_compat_client luminous).",
        {"pool": coded[0], "pools": len(coded)},
    )

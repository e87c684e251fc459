"""Guards that ask about the state of the cluster: known, healthy, whole, and not changed by another party."""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from predrain.actions.cluster.cluster_view import ClusterView, Pg, StretchMode
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.claimed_settings import describe_left
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.guard_verdicts import Pass, Refuse
from predrain.actions.core.in_flight import list_own_pgs, list_ready_pgs, list_touched_pgs
from predrain.actions.core.pg_survey import at_rest, is_recovering, serving_whole
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain
from predrain.data.hold_reason import HoldReason
from predrain.data.identity_memo import remember_results
from predrain.data.ids import OsdId
from predrain.data.messages import describe_plan_refusal, format_count
from predrain.data.setting import OsdFlag


def check_halt(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse while a person's halt is in force; only a person lifts it."""
    if context.halted is None:
        return Pass("no halt stands")
    left = describe_left(view, context.drains, moving=True)
    also = f" Meanwhile {left}." if left else ""
    return Refuse(HoldReason.HALT, f"Halted: {context.halted}.{also}")


def stale_view(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Require statistics that are known, recent, from the same mgr, and later than our changes (ceph.md e)."""
    age = (context.now - view.as_of).total_seconds()
    limit = policy.view_age_max.total_seconds()
    memory = context.memory
    if not view.statistics_known:
        return Refuse(
            HoldReason.STALE_VIEW,
            "The mgr's statistics are empty or behind the map; nothing is known of the PGs.",
        )
    if age > limit:
        return Refuse(
            HoldReason.STALE_VIEW,
            f"The cluster was last seen {age:.0f} s ago, limit {limit:.0f} s.",
            {"age_seconds": age, "limit_seconds": limit},
        )
    if memory.new_mgr and view.as_of < memory.trusted_from:
        return Refuse(
            HoldReason.STALE_VIEW,
            f"Another mgr ({view.mgr_id or 'unnamed'}) answers; its first numbers are waited for.",
        )
    late = (context.now - memory.trusted_from).total_seconds()
    own = list_own_pgs(drain)
    if not memory.is_settled(view, own) and late > limit:
        silent = len(memory.changed.keys() & own)
        what = f"{format_count(silent, 'PG')} did not report" if silent else "no statistics came"
        return Refuse(
            HoldReason.STALE_VIEW,
            f"{what} since our last command, {late:.0f} s late, limit {limit:.0f} s.",
            {"pgs": silent, "late_seconds": late},
        )
    return Pass(f"seen {max(age, 0):.0f} s ago")


STRETCH_TEXTS = {
    StretchMode.DEGRADED: "The cluster is in degraded stretch mode: a site is away, and PGs have copies at the other "
    "one alone.",
    StretchMode.RECOVERING: "The cluster recovers from degraded stretch mode: the PGs of the site that came back are "
    "filled.",
}


def check_cluster_health(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse in trouble that is not our own doing.

    The trouble counts if the next step would touch it, or if a PG serves no clients. It also counts if so
    many PGs recover that recovery must have the cluster to itself, or if a stretched cluster has lost one of
    its sites.
    """
    if (stretched := STRETCH_TEXTS.get(view.stretch_mode)) is not None:
        return Refuse(HoldReason.UNHEALTHY, stretched, {"stretch_mode": view.stretch_mode.value})
    bad = list_troubled_pgs(context)
    touched = list_touched_pgs(drain, context)
    beside = _find_down(view, drain, context)
    stopped = [pg for pg in bad if pg.id in touched or not is_recovering(pg.states)]
    share = len(bad) / max(1, len(view.pgs))
    if not beside and not stopped and share <= policy.recovering_share_max:
        elsewhere = f"; {format_count(len(bad), 'PG')} elsewhere not whole" if bad else ""
        return Pass(f"no PG that the next step touches is degraded, inactive or unknown{elsewhere}")
    parts = []
    layout = find_osd_layout(view.osds)
    down = beside or sorted(layout.down - layout.out)
    if down:
        parts.append(f"{_format_osd_names(down)} {'is' if len(down) == 1 else 'are'} down")
    if bad:
        worst = min(stopped or bad, key=lambda pg: (at_rest(pg.states), pg.id))
        words = "+".join(sorted(worst.states)) or "unknown"
        stuck = context.memory.find_stuck_seconds(worst.id, context.now)
        span = f" for {stuck:.0f} s" if stuck is not None else ""
        parts.append(f"{format_count(len(stopped or bad), 'PG')} not whole (PG {worst.id} is {words}{span})")
        if stuck is not None:
            parts.append(
                f"its clients wait; `ceph pg {worst.id} query` names the OSD that it waits for, and a restart of "
                "this OSD ends the wait"
            )
    if not (beside or stopped):
        parts.append(f"that is {share:.1%} of all, limit {policy.recovering_share_max:.1%} while data moves")
    return Refuse(
        HoldReason.UNHEALTHY, f"{'; '.join(parts)}.", {"pgs": len(stopped or bad), "down": len(down)}
    )


def _find_down(view: ClusterView, drain: Drain, context: Context) -> list[OsdId]:
    """Return OSDs that are down and in, and that belong to the drain or to a PG that its next step may touch."""
    layout = find_osd_layout(view.osds)
    down = layout.down - layout.out
    if not down:
        return []
    ready, leaving, index = list_ready_pgs(drain, context), set(drain.osds), find_pg_index(view.pgs)
    return sorted(
        osd
        for osd in down
        if osd in leaving
        or any(pg.id in ready if ready else leaving & {*pg.up, *pg.acting} for pg in index.list_pgs(osd))
    )


def foreign_trouble(context: Context) -> bool:
    """Return whether a PG is in trouble that we did not cause; the operator's throttles must then be given
    back.
    """
    return bool(list_troubled_pgs(context))


@remember_results(limit=2)
def list_troubled_pgs(context: Context) -> tuple[Pg, ...]:
    """Return the PGs that are in trouble that we did not cause."""
    return tuple(pg for pg in context.survey.unclean.values() if not _is_excused_pg(pg, context))


def _is_excused_pg(pg: Pg, context: Context) -> bool:
    """Return whether the PG is misplaced but whole, or changed by us with every former member present.

    Log recovery after our change shows as degraded. A PG that is stuck in its peering is not excused.
    """
    if serving_whole(pg.states):
        return True
    survey = context.survey
    ours = pg.id in context.list_affected_pgs() or bool(
        context.list_draining_osds() & (set(pg.acting) - set(pg.up))
    )
    known = "unknown" not in pg.states and pg.states != frozenset()
    stuck = context.memory.find_stuck_seconds(pg.id, context.now) is not None
    return ours and known and not stuck and survey.is_whole(pg)


def check_pg_members(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Require that `up` and `acting` of each PG that the next step touches have no hole and no repeated OSD.

    Ceph's health does not show this reliably (ceph.md d).
    """
    touched = list_touched_pgs(drain, context)
    broken = {id_: pg for id_, pg in context.survey.broken.items() if id_ in touched}
    if not broken:
        return Pass("every PG that the next step touches has all its members, each once")
    pg = broken[min(broken)]
    size = view.pools[pg.pool].size
    return Refuse(
        HoldReason.WHOLE,
        f"{format_count(len(broken), 'PG')} {'lacks' if len(broken) == 1 else 'lack'} a member or "
        f"{'has' if len(broken) == 1 else 'have'} one twice "
        f"(PG {pg.id}: up {_format_members(pg.up)}, acting {_format_members(pg.acting)}, {size} wanted).",
        {"pgs": len(broken)},
    )


_STOPPERS = frozenset({"pause", "norecover", "nobackfill", "norebalance", "noout", "noup", "nodown", "noin"})


def check_plan_refusals(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse if the plan itself cannot be carried out: it has no legal place, or no capacity in any."""
    if drain.plan is None or not drain.plan.refusals:
        return Pass("the plan is legal on every map along the way")
    more = len(drain.plan.refusals) - 1
    rest = f" And {more} more." if more else ""
    first = drain.plan.refusals[0]
    return Refuse(HoldReason.PLAN, describe_plan_refusal(first) + rest, {"problems": more + 1}, osd=first.osd)


def operator_flags(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse if a flag is set by which an operator keeps data in place; flags that our journal owns are
    excepted.
    """
    ours = {key.name for key, value in drain.ours.items() if isinstance(key, OsdFlag) and value == "on"}
    flags = sorted((view.flags & _STOPPERS) - ours)
    local = sorted(
        f"{flag} on osd.{osd}"
        for osd in drain.osds
        for flag in view.osd_flags.get(osd, frozenset()) & _STOPPERS
        if not (flag == "noin" and drain.intent.fills_osd)
    )
    if not flags and not local:
        return Pass("no flag stands in the way")
    names = ", ".join([*flags, *local])
    return Refuse(HoldReason.OPERATOR_FLAGS, f"The operator has set {names}.", {"flags": names})


def check_pg_autoscale(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse while a pool of its PGs changes `pg_num` or `pgp_num`: the plan's PGs would soon lie elsewhere."""
    changing = {pool.id for pool in view.pools.values() if pool.changes}
    if not changing:
        return Pass("no pool changes its number of PGs")
    leaving = set(drain.osds)
    own = list_own_pgs(drain)
    touched = {
        pg.pool
        for pg in view.pgs.values()
        if pg.pool in changing and (pg.id in own or leaving & {*pg.up, *pg.acting})
    }
    for pool in (view.pools[id_] for id_ in sorted(touched)):
        for name, now, target in pool.changes:
            return Refuse(
                HoldReason.AUTOSCALE,
                f"{name} of pool {pool.name} goes from {now} to {target}.",
                {"pool": pool.name, "what": name, "now": now, "target": target},
            )
    return Pass("no pool of its PGs changes its number of PGs")


def upgrade(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse while an upgrade is under way or daemons of two releases run."""
    if view.upgrade_running:
        return Refuse(
            HoldReason.UPGRADE,
            "An upgrade is running or paused and restarts OSDs itself; `ceph orch upgrade stop` ends it early.",
        )
    if view.mixed_versions:
        return Refuse(HoldReason.UPGRADE, "Daemons of different releases run.")
    return Pass("one release, no upgrade")


def unknown_release(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse on a release whose output and commands have not been checked."""
    if view.release in policy.known_releases:
        return Pass(f"{view.release} is known")
    known = ", ".join(sorted(policy.known_releases))
    return Refuse(
        HoldReason.UNKNOWN_RELEASE,
        f"Ceph '{view.release}' is not known here (known: {known}).",
        {"release": view.release},
    )


def scrub_errors(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse if a PG of the plan has inconsistent or unfound objects: the copy that leaves may be the good
    one.
    """
    survey, touched = context.survey, {move.pg for move in drain.plan.moves} if drain.plan else set()
    bad = [
        pg
        for pg in survey.list_unclean_pgs(touched | survey.find_ids_by_osds(drain.osds))
        if (pg.id in touched or any(osd in pg.acting for osd in drain.osds))
        and (pg.unfound_objects or pg.states & {"inconsistent", "recovery_unfound", "backfill_unfound"})
    ]
    if not bad:
        return Pass("no scrub error in the plan")
    names = ", ".join(sorted(pg.id for pg in bad)[:3])
    return Refuse(
        HoldReason.SCRUB_ERRORS,
        f"{format_count(len(bad), 'PG')} of the plan inconsistent or short of objects ({names}).",
        {"pgs": len(bad)},
        firm=any(pg.unfound_objects or not pg.states & {"inconsistent"} for pg in bad),
    )


def _format_osd_names(osds: list[OsdId]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds[:3]) + (
        f" and {len(osds) - 3} more" if len(osds) > 3 else ""
    )


def _format_members(members: tuple[int, ...]) -> str:
    return "[" + ", ".join("none" if osd == 0x7FFFFFFF else str(osd) for osd in members) + "]"

"""Guards that ask how the cluster is: known, healthy, whole, not being worked on by somebody else."""

# ruff: noqa: ARG001  (guards share one signature)
from __future__ import annotations

from predrain.actions.cluster.view import ClusterView, Pg, StretchMode
from predrain.actions.core.in_flight import list_own_pgs, list_ready_pgs, list_touched_pgs
from predrain.actions.core.interval_claims import describe_left
from predrain.actions.core.pg_survey import at_rest, is_recovering, serving_whole
from predrain.actions.core.policy import Policy
from predrain.actions.core.situation import Context
from predrain.actions.core.verdicts import Pass, Refuse, count
from predrain.data.drain import Drain
from predrain.data.ids import OsdId
from predrain.data.setting import OsdFlag


def halt(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """A person halted everything, until a person lifts the halt."""
    if context.halted is None:
        return Pass("no halt stands")
    left = describe_left(view, context.drains, moving=True)
    also = f" Meanwhile {left}." if left else ""
    return Refuse("halt", f"Halted: {context.halted}.{also}")


def stale_view(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Statistics must be known, young, from the same mgr, and later than what we changed (ceph.md e)."""
    age = (context.now - view.as_of).total_seconds()
    limit = policy.view_age_max.total_seconds()
    memory = context.memory
    if not view.statistics_known:
        return Refuse(
            "stale-view", "The mgr's statistics are empty or behind the map; nothing is known of the PGs."
        )
    if age > limit:
        return Refuse(
            "stale-view",
            f"The cluster was last seen {age:.0f} s ago, limit {limit:.0f} s.",
            {"age_seconds": age, "limit_seconds": limit},
        )
    if memory.new_mgr and view.as_of < memory.trusted_from:
        return Refuse(
            "stale-view",
            f"Another mgr ({view.mgr_id or 'unnamed'}) answers; its first numbers are waited for.",
        )
    late = (context.now - memory.trusted_from).total_seconds()
    own = list_own_pgs(drain)
    if not memory.settled(view, own) and late > limit:
        silent = len(memory.changed.keys() & own)
        what = f"{count(silent, 'PG')} did not report" if silent else "no statistics came"
        return Refuse(
            "stale-view",
            f"{what} since our last command, {late:.0f} s late, limit {limit:.0f} s.",
            {"pgs": silent, "late_seconds": late},
        )
    return Pass(f"seen {max(age, 0):.0f} s ago")


_STRETCHED = {
    StretchMode.DEGRADED: "The cluster is in degraded stretch mode: a site is away, and PGs have copies at the other "
    "one alone.",
    StretchMode.RECOVERING: "The cluster recovers from degraded stretch mode: the PGs of the site that came back are "
    "filled.",
}


def unhealthy(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Trouble that is not our own doing: where the next step would touch it, where a PG serves nobody, or where so much
    of the cluster recovers that recovery must have it to itself. A stretched cluster without one of its sites is such.
    """
    if (stretched := _STRETCHED.get(view.stretch_mode)) is not None:
        return Refuse("unhealthy", stretched, {"stretch_mode": view.stretch_mode.value})
    bad = [pg for pg in context.survey.restless.values() if not _excused(pg, context)]
    touched = list_touched_pgs(drain, context)
    beside = _find_down(view, drain, context)
    stopped = [pg for pg in bad if pg.id in touched or not is_recovering(pg.states)]
    share = len(bad) / max(1, len(view.pgs))
    if not beside and not stopped and share <= policy.recovering_share_max:
        elsewhere = f"; {count(len(bad), 'PG')} elsewhere not whole" if bad else ""
        return Pass(f"no PG that the next step touches is degraded, inactive or unknown{elsewhere}")
    parts = []
    down = beside or sorted(osd.id for osd in view.osds.values() if not osd.up and osd.reweight > 0)
    if down:
        parts.append(f"{_names(down)} {'is' if len(down) == 1 else 'are'} down")
    if bad:
        worst = min(stopped or bad, key=lambda pg: (at_rest(pg.states), pg.id))
        words = "+".join(sorted(worst.states)) or "unknown"
        parts.append(f"{count(len(stopped or bad), 'PG')} not whole (PG {worst.id} is {words})")
    if not (beside or stopped):
        parts.append(f"that is {share:.1%} of all, limit {policy.recovering_share_max:.1%} while data moves")
    return Refuse("unhealthy", f"{'; '.join(parts)}.", {"pgs": len(stopped or bad), "down": len(down)})


def _find_down(view: ClusterView, drain: Drain, context: Context) -> list[OsdId]:
    """OSDs that are down and in, of the drain itself or in a PG that its next step may touch."""
    down = {osd.id for osd in view.osds.values() if not osd.up and osd.reweight > 0}
    if not down:
        return []
    ready, leaving = list_ready_pgs(drain, context), set(drain.osds)
    beside = {
        osd
        for pg in view.pgs.values()
        if (pg.id in ready if ready else leaving & {*pg.up, *pg.acting})
        for osd in (*pg.up, *pg.acting)
    }
    return sorted(osd for osd in down if osd in beside or osd in leaving)


def foreign_trouble(context: Context) -> bool:
    """Whether something is wrong that we did not cause: then the operator's throttles must be given back."""
    return any(not _excused(pg, context) for pg in context.survey.restless.values())


def _excused(pg: Pg, context: Context) -> bool:
    """Misplaced but whole; or ours with every former member there (log recovery shows as degraded)."""
    if serving_whole(pg.states):
        return True
    survey = context.survey
    ours = pg.id in context.touched() or bool(context.draining() & (set(pg.acting) - set(pg.up)))
    return ours and "unknown" not in pg.states and pg.states != frozenset() and survey.is_whole(pg)


def whole(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """No hole and no repeated OSD in `up` or `acting` of a PG that the next step touches, whatever health says
    (ceph.md d).
    """
    touched = list_touched_pgs(drain, context)
    broken = {id_: pg for id_, pg in context.survey.broken.items() if id_ in touched}
    if not broken:
        return Pass("every PG that the next step touches has all its members, each once")
    pg = broken[min(broken)]
    size = view.pools[pg.pool].size
    return Refuse(
        "whole",
        f"{count(len(broken), 'PG')} {'lacks' if len(broken) == 1 else 'lack'} a member or "
        f"{'has' if len(broken) == 1 else 'have'} one twice "
        f"(PG {pg.id}: up {_members(pg.up)}, acting {_members(pg.acting)}, {size} wanted).",
        {"pgs": len(broken)},
    )


_STOPPERS = frozenset({"pause", "norecover", "nobackfill", "norebalance", "noout", "noup", "nodown", "noin"})


def plan(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """The plan itself says that it cannot be carried out: no legal place, or no room in any."""
    if drain.plan is None or not drain.plan.refusals:
        return Pass("the plan is legal on every map along the way")
    more = len(drain.plan.refusals) - 1
    rest = f" And {more} more." if more else ""
    return Refuse("plan", drain.plan.refusals[0] + rest, {"problems": more + 1})


def operator_flags(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Flags by which an operator says "leave it alone"; those that our journal owns are excepted."""
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
    return Refuse("operator-flags", f"The operator has set {names}.", {"flags": names})


def autoscale(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """While a pool changes its `pg_num` or `pgp_num`, every plan for its PGs is for PGs that will lie elsewhere."""
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
                "autoscale",
                f"{name} of pool {pool.name} goes from {now} to {target}.",
                {"pool": pool.name, "what": name, "now": now, "target": target},
            )
    return Pass("no pool of its PGs changes its number of PGs")


def upgrade(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Daemons of two releases, or an upgrade under way."""
    if view.upgrade_running:
        return Refuse(
            "upgrade",
            "An upgrade is running or paused and restarts OSDs itself; `ceph orch upgrade stop` ends it early.",
        )
    if view.mixed_versions:
        return Refuse("upgrade", "Daemons of different releases run.")
    return Pass("one release, no upgrade")


def unknown_release(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """A release whose words nobody has checked."""
    if view.release in policy.known_releases:
        return Pass(f"{view.release} is known")
    known = ", ".join(sorted(policy.known_releases))
    return Refuse(
        "unknown-release",
        f"Ceph '{view.release}' is not known here (known: {known}).",
        {"release": view.release},
    )


def scrub_errors(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Inconsistent or unfound objects in a PG of the plan: the copy that leaves may be the good one."""
    touched = {move.pg for move in drain.plan.moves} if drain.plan else set()
    bad = [
        pg
        for pg in context.survey.restless.values()
        if (pg.id in touched or any(osd in pg.acting for osd in drain.osds))
        and (pg.unfound_objects or pg.states & {"inconsistent", "recovery_unfound", "backfill_unfound"})
    ]
    if not bad:
        return Pass("no scrub error in the plan")
    names = ", ".join(sorted(pg.id for pg in bad)[:3])
    return Refuse(
        "scrub-errors",
        f"{count(len(bad), 'PG')} of the plan inconsistent or short of objects ({names}).",
        {"pgs": len(bad)},
        firm=any(pg.unfound_objects or not pg.states & {"inconsistent"} for pg in bad),
    )


def _names(osds: list[OsdId]) -> str:
    return ", ".join(f"osd.{osd}" for osd in osds[:3]) + (
        f" and {len(osds) - 3} more" if len(osds) > 3 else ""
    )


def _members(members: tuple[int, ...]) -> str:
    return "[" + ", ".join("none" if osd == 0x7FFFFFFF else str(osd) for osd in members) + "]"

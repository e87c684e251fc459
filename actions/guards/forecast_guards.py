"""Guards that ask whether the forecast may be believed. A person's own request is no forecast and passes."""

from __future__ import annotations

from datetime import datetime, timedelta

from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.cluster.osd_layout import find_osd_layout
from predrain.actions.core.cost_assessment import weigh_one
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.forecast_confirmation import READINGS_MIN
from predrain.actions.core.guard_verdicts import Pass, Refuse
from predrain.actions.core.situation import Context
from predrain.data.drain import Drain
from predrain.data.hold_reason import HoldReason
from predrain.data.ids import DeviceId
from predrain.data.messages import format_count
from predrain.data.outlook import Advice, Outlook, Status
from predrain.data.residence import ResidenceLimits, ResidenceState, decide_residence

AUTOMATIC = "predrain"
"""`Drain.asked_by` of an automatic drain."""
_INSTANT = timedelta(microseconds=1)
_PROVEN = "The outlook is confirmed, and the bundle is proven."


def mass_suspicion(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Refuse if too many disks of one model are newly bad: the forecast is then at fault, not the drives."""
    if drain.asked_by != AUTOMATIC:
        return Pass("a person asked")
    if not drain.intent.moves_data or drain.spare_reads:
        return Pass("a measured latency is no forecast")
    layout = find_osd_layout(view.osds)
    model = layout.models.get(drain.device) if drain.device else None
    since = context.now - policy.mass_suspicion_window
    peers = layout.devices_by_model.get(model, frozenset())
    newly = len(peers & turned_after(context, since))
    most = max(float(policy.mass_suspicion_min), policy.mass_suspicion_share * len(peers))
    if newly > most:
        return Refuse(
            HoldReason.MASS_SUSPICION,
            f"{newly} of {len(peers)} disks of model {model or 'unknown'} turned bad, or worth a drain, within "
            f"{policy.mass_suspicion_window.days} days, limit {most:.0f}; look at the forecast before the disks.",
            {"newly_bad": newly, "of": len(peers), "limit": most},
        )
    return Pass(f"{newly} newly bad of this model, limit {most:.0f}")


def check_trust(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Check the evidence for an automatic drain.

    The outlook must exist, belong to one drive, be young, and be confirmed by enough readings. The bundle
    must have proven itself. By the chance to fail, a drain must pay. If a rule judges the disk worse than the
    forecast does, or judges alone, a disk that is bad by its newest reading is enough.
    """
    if drain.asked_by != AUTOMATIC:
        return Pass("a person asked")
    if (slow := _check_slowness(drain, policy, context)) is not None:
        return slow
    if (two := _two_disks(view, drain, context)) is not None:
        return two
    outlook = context.outlooks.get(drain.device) if drain.device else None
    if outlook is None or outlook.severity is Status.UNKNOWN:
        return Refuse(HoldReason.TRUST, "There is no outlook for this device; nothing is known of it.")
    if outlook.advice is Advice.CHECK_CABLE:
        return Refuse(
            HoldReason.TRUST, "Its cable or backplane is to be checked first; a drain would not mend that."
        )
    if outlook.p_fail_30d is not None:
        worth = _worth_it(view, drain, outlook, policy, context)
        if isinstance(worth, Pass) or outlook.rule_score is None:
            return worth
    if outlook.severity is not Status.BAD:
        return Refuse(
            HoldReason.TRUST,
            f"The outlook is {outlook.severity.value}, not bad.",
            {"status": outlook.severity.value},
        )
    if outlook.held is not None:
        return Refuse(
            HoldReason.TRUST,
            f"The disk is still called bad, but the newest reading says {outlook.status.value}; a drain that nobody "
            "asked for waits for readings that agree.",
            {"status": outlook.status.value, "severity": outlook.severity.value},
        )
    if (old := _too_old(outlook, policy, context)) is not None:
        return old
    readings, span = (
        (policy.hard_evidence_readings, policy.hard_evidence_hours)
        if outlook.hard
        else (policy.confirmation_readings, policy.confirmation_hours)
    )
    if outlook.readings < readings or outlook.span_hours < span:
        return Refuse(
            HoldReason.TRUST,
            f"{format_count(outlook.readings, 'reading')} over {outlook.span_hours:.1f} h bear it out, "
            f"{readings} over {span:.0f} h are wanted.",
            {"readings": outlook.readings, "span_hours": outlook.span_hours},
        )
    return (
        _check_bundle(view, policy, context)
        if outlook.bundle is not None
        else Pass("a rule's verdict, confirmed")
    )


def _too_old(outlook: Outlook, policy: Policy, context: Context) -> Refuse | None:
    hours = (context.now - outlook.as_of).total_seconds() / 3600
    oldest = policy.outlook_age_max.total_seconds() / 3600
    if hours <= oldest:
        return None
    return Refuse(
        HoldReason.TRUST,
        f"The outlook is {hours:.0f} h old, limit {oldest:.0f} h.",
        {"age_hours": hours, "limit": oldest},
    )


def _worth_it(
    view: ClusterView, drain: Drain, outlook: Outlook, policy: Policy, context: Context
) -> Pass | Refuse:
    """Check whether a drain pays by the chance of the newest reading, and whether that is confirmed."""
    if (old := _too_old(outlook, policy, context)) is not None:
        return old
    weighed = weigh_one(view, drain.device, policy, context)
    if weighed is None:
        return Refuse(
            HoldReason.TRUST, "How much the disk holds is not known, so neither is what a drain would cost."
        )
    cost = weighed.cost
    if not cost.pays:
        return Refuse(
            HoldReason.TRUST,
            f"{cost.sentence} A drain does not pay yet.",
            {"moving": cost.moving, "waiting": cost.waiting},
        )
    if not weighed.confirmed:
        return Refuse(
            HoldReason.TRUST,
            f"{format_count(weighed.readings, 'reading')} over {_describe_span(weighed.span_hours)} "
            f"{'bears' if weighed.readings == 1 else 'bear'} out that a drain pays; {READINGS_MIN} of one host over "
            f"{_describe_span(weighed.wanted_hours)} are wanted, of counts that neither fell nor stand at their limit.",
            {
                "readings": weighed.readings,
                "span_hours": weighed.span_hours,
                "wanted_hours": weighed.wanted_hours,
            },
        )
    bundle = _check_bundle(view, policy, context)
    return bundle if isinstance(bundle, Refuse) else Pass(f"{cost.sentence} {bundle.sentence}")


def _describe_span(hours: float) -> str:
    return f"{hours:.0f} h" if hours >= 2 else f"{60 * hours:.0f} min"


def turned_after(context: Context, since: datetime) -> set[DeviceId]:
    """Return the disks that turned bad after `since`, and those whose drain began to pay after it."""
    bad = {device for device, at in context.bad_since.items() if at > since}
    paying = {
        device
        for device, disk in context.weighed.items()
        if disk.paying_since is not None and disk.paying_since > since
    }
    return bad | paying


def _two_disks(view: ClusterView, drain: Drain, context: Context) -> Refuse | None:
    """Return a refusal if it is not settled which host has the drain's disk, by the rule that files its
    readings.
    """
    if drain.device is None:
        return None
    beside = find_osd_layout(view.osds).osds_by_device.get(drain.device, ())
    hosts = sorted({view.osds[osd].runs_on for osd in beside if view.osds[osd].device == drain.device})
    if len(hosts) > 1:
        return Refuse(
            HoldReason.TRUST,
            f"OSDs on {' and '.join(hosts)} name the same device, {drain.device}: two drives go by one name, "
            "and which of them the outlook is of is unknown. Drain the right one by its OSD.",
            {"hosts": len(hosts)},
        )
    known = context.residences.get(drain.device)
    if known is None:
        return None
    verdict = decide_residence(known, hosts, context.now, ResidenceLimits())
    if verdict.state is ResidenceState.SETTLED and verdict.home == known.home:
        return None
    named = sorted({known.home, *known.hosts_apart})
    return Refuse(
        HoldReason.TRUST,
        f"{' and '.join(named)} name the same device, {drain.device}, and which of them has it is not settled. "
        "Drain the right one by its OSD, or name its host (`predrain disk host`).",
        {"hosts": len(named)},
    )


def _check_slowness(drain: Drain, policy: Policy, context: Context) -> Pass | Refuse | None:
    """Judge a quarantine, or a drain for slowness, by latencies; None if the forecast decides."""
    if drain.intent.moves_data and not drain.spare_reads:
        return None
    if not context.slow.is_recent(context.now, policy.slow_age_max):
        hours = policy.slow_age_max.total_seconds() / 3600
        return Refuse(
            HoldReason.TRUST,
            f"No latencies were judged for {hours:g} h; it is not known whether the disk is slow.",
        )
    slow = [context.slow.osds[osd] for osd in drain.osds if osd in context.slow.osds]
    if not slow:
        return Refuse(HoldReason.TRUST, "The newest latencies do not show it slower than its peers.")
    if not drain.intent.moves_data or any(
        one.lasting and one.slow_duration >= policy.slow_drain_after for one in slow
    ):
        return Pass(slow[0].reason)
    days = policy.slow_drain_after.total_seconds() / 86_400
    return Refuse(HoldReason.TRUST, f"It has not been slow for {days:g} days yet.", {"days": days})


def _check_bundle(view: ClusterView, policy: Policy, context: Context) -> Pass | Refuse:
    if context.bundle_since is None:
        return Pass(_PROVEN)
    age = context.now - context.bundle_since
    if age < policy.new_bundle_quiet:
        left = (policy.new_bundle_quiet - age).total_seconds() / 3600
        return Refuse(
            HoldReason.TRUST,
            f"The bundle is new; it proposes nothing for another {left:.0f} h.",
            {"hours_left": left},
        )
    plugged = find_osd_layout(view.osds).models.keys()
    newly = len(plugged & turned_after(context, context.bundle_since - _INSTANT))
    devices = len(plugged)
    if devices and newly / devices > policy.new_bundle_bad_share and newly > policy.mass_suspicion_min:
        most = policy.new_bundle_bad_share
        return Refuse(
            HoldReason.TRUST,
            f"The new bundle calls {newly} of {devices} disks newly bad, limit {most:.1%}.",
            {"newly_bad": newly, "devices": devices},
        )
    return Pass(_PROVEN)

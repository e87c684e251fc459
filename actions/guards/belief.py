"""Guards that ask whether the forecast may be believed. A person's own word is not a forecast and passes."""

from __future__ import annotations

from actions.cluster.view import ClusterView
from actions.context import Context
from actions.guards.verdict import Pass, Refuse, count
from actions.policy import Policy
from data.drain import Drain, Intent
from data.outlook import Status
from data.residence import ResidenceLimits, ResidenceState, decide_residence

AUTOMATIC = "predrain"
"""`Drain.asked_by` of a drain that nobody asked for."""


def mass_suspicion(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """Too many newly bad disks of one model: it is the forecast that is sick, not the drives."""
    if drain.asked_by != AUTOMATIC:
        return Pass("a person asked")
    if drain.intent is Intent.QUARANTINE or drain.spare_reads:
        return Pass("a measured latency is no forecast")
    models = {osd.device: osd.model for osd in view.osds.values() if osd.device is not None}
    model = models.get(drain.device) if drain.device else None
    since = context.now - policy.suspicion_window
    peers = [device for device, name in models.items() if name == model]
    newly = sum(1 for device in peers if context.bad_since.get(device, since) > since)
    most = max(float(policy.suspicion_min), policy.suspicion_share * len(peers))
    if newly > most:
        return Refuse(
            "mass-suspicion",
            f"{newly} of {len(peers)} disks of model {model or 'unknown'} turned bad within "
            f"{policy.suspicion_window.days} days, limit {most:.0f}; look at the forecast before the disks.",
            {"newly_bad": newly, "of": len(peers), "limit": most},
        )
    return Pass(f"{newly} newly bad of this model, limit {most:.0f}")


def trust(view: ClusterView, drain: Drain, policy: Policy, context: Context) -> Pass | Refuse:
    """The outlook must be there, of one drive, bad by its newest reading, young and borne out by enough readings;
    the bundle must have proven itself.
    """
    if drain.asked_by != AUTOMATIC:
        return Pass("a person asked")
    if (slow := _slowness(drain, policy, context)) is not None:
        return slow
    if (two := _two_disks(view, drain, context)) is not None:
        return two
    outlook = context.outlooks.get(drain.device) if drain.device else None
    if outlook is None or outlook.severity is Status.UNKNOWN:
        return Refuse("trust", "There is no outlook for this device; nothing is known of it.")
    if outlook.severity is not Status.BAD:
        return Refuse(
            "trust", f"The outlook is {outlook.severity.value}, not bad.", {"status": outlook.severity.value}
        )
    if outlook.held is not None:
        return Refuse(
            "trust",
            f"The disk is still called bad, but the newest reading says {outlook.status.value}; a drain that nobody "
            "asked for waits for readings that agree.",
            {"status": outlook.status.value, "severity": outlook.severity.value},
        )
    hours = (context.now - outlook.as_of).total_seconds() / 3600
    oldest = policy.outlook_age_max.total_seconds() / 3600
    if hours > oldest:
        return Refuse(
            "trust",
            f"The outlook is {hours:.0f} h old, limit {oldest:.0f} h.",
            {"age_hours": hours, "limit": oldest},
        )
    readings, span = (
        (policy.hard_readings, policy.hard_hours)
        if outlook.hard
        else (policy.trust_readings, policy.trust_hours)
    )
    if outlook.readings < readings or outlook.span_hours < span:
        return Refuse(
            "trust",
            f"{count(outlook.readings, 'reading')} over {outlook.span_hours:.1f} h bear it out, "
            f"{readings} over {span:.0f} h are wanted.",
            {"readings": outlook.readings, "span_hours": outlook.span_hours},
        )
    return (
        _bundle(view, policy, context)
        if outlook.source.startswith("model:")
        else Pass("a rule's verdict, confirmed")
    )


def _two_disks(view: ClusterView, drain: Drain, context: Context) -> Refuse | None:
    """A refusal where it is not settled which host the drain's disk lives in, by the rule that files its readings."""
    if drain.device is None:
        return None
    hosts = sorted({osd.runs_on for osd in view.osds.values() if osd.device == drain.device})
    if len(hosts) > 1:
        return Refuse(
            "trust",
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
        "trust",
        f"{' and '.join(named)} name the same device, {drain.device}, and which of them has it is not settled. "
        "Drain the right one by its OSD, or name its host (`predrain disk home`).",
        {"hosts": len(named)},
    )


def _slowness(drain: Drain, policy: Policy, context: Context) -> Pass | Refuse | None:
    """What latencies say of a quarantine, or of a drain for slowness; None where it is the forecast's to say."""
    if drain.intent is not Intent.QUARANTINE and not drain.spare_reads:
        return None
    if not context.slow.recent(context.now, policy.slow_age_max):
        hours = policy.slow_age_max.total_seconds() / 3600
        return Refuse(
            "trust", f"No latencies have told anything for {hours:g} h; whether it is slow is not known."
        )
    slow = [context.slow.osds[osd] for osd in drain.osds if osd in context.slow.osds]
    if not slow:
        return Refuse("trust", "The newest latencies do not show it slower than its peers.")
    if drain.intent is Intent.QUARANTINE or any(
        one.lasting and one.lasted >= policy.slow_drain_after for one in slow
    ):
        return Pass(slow[0].reason)
    days = policy.slow_drain_after.total_seconds() / 86_400
    return Refuse("trust", f"It has not been slow for {days:g} days yet.", {"days": days})


def _bundle(view: ClusterView, policy: Policy, context: Context) -> Pass | Refuse:
    if context.bundle_since is None:
        return Pass("a confirmed outlook of a proven bundle")
    age = context.now - context.bundle_since
    if age < policy.new_bundle_quiet:
        left = (policy.new_bundle_quiet - age).total_seconds() / 3600
        return Refuse(
            "trust", f"The bundle is new; it proposes nothing for another {left:.0f} h.", {"hours_left": left}
        )
    plugged = {osd.device for osd in view.osds.values() if osd.device is not None}
    newly = sum(
        1
        for device, since in context.bad_since.items()
        if device in plugged and since >= context.bundle_since
    )
    devices = len(plugged)
    if devices and newly / devices > policy.new_bundle_bad_share and newly > policy.suspicion_min:
        most = policy.new_bundle_bad_share
        return Refuse(
            "trust",
            f"The new bundle calls {newly} of {devices} disks newly bad, limit {most:.1%}.",
            {"newly_bad": newly, "devices": devices},
        )
    return Pass("a confirmed outlook of a proven bundle")

"""The module's health checks, each of which `ceph health mute CODE` mutes.

A summary stays the same while nothing changes, since each new summary is a line in the cluster's log. Ages and
progress are in the detail.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .last_report import LastReport, format_age
from .service_report import ReportedDrain, ReportedOsd

DETAILS_MAX = 50
UNREACHABLE_AFTER = 3
"""Number of polls without an answer."""
STUCK = frozenset({"holding", "failed"})
BEGUN = frozenset({"preparing", "draining", "drained", "cancelling"})
"""States that a drain keeps while guards hold it. Together with STUCK: the states of drains that may stand still."""

Checks = dict[str, dict[str, Any]]


def build_health_checks(known: LastReport, url: str, now: float, fast_maps: str = "") -> Checks:
    """Build all present health checks. fast_maps: the warning about fast maps that were left behind; "" for none."""
    found: Checks = {}
    told = known.told
    stale = f"as of {format_age(known.age(now))}: the service does not answer"
    tail = [stale] if known.failures >= UNREACHABLE_AFTER else []
    if told is not None:
        for status, code, what in (
            ("bad", "PREDRAIN_DEVICE_BAD", "expected to fail soon"),
            ("warning", "PREDRAIN_DEVICE_WARNING", "with a raised risk to fail"),
        ):
            osds = [osd for osd in told.osds if osd.status == status]
            if osds:
                summary = f"{_format_count(len(osds), 'OSD')} on a device {what}"
                found[code] = _build_health_check(
                    summary, len(osds), [describe_reported_osd(osd) for osd in osds], tail
                )
        held = [
            drain for drain in told.drains if drain.state in STUCK or (drain.state in BEGUN and drain.held_by)
        ]
        if held:
            lines = [
                f"{drain.id} ({_format_drain_osds(drain)}): {explain_held_drain(drain)}" for drain in held
            ]
            found["PREDRAIN_DRAIN_HELD"] = _build_health_check(
                f"{_format_count(len(held), 'drain')} held", len(held), lines, tail
            )
    halt = known.find_halt_reason()
    if halt is not None or known.halt_unread:
        lines = [f"why: {halt or known.halt_unread}", "no command is sent; lift it: ceph predrain unhalt"]
        found["PREDRAIN_HALTED"] = _build_health_check("predrain is halted", 1, lines, [])
    if fast_maps:
        found["PREDRAIN_FAST_MAPS_LEFT"] = _build_health_check(
            "the monitors' interval was left as a drain set it", 1, [fast_maps], []
        )
    if url and known.failures >= UNREACHABLE_AFTER:
        lines = [f"{url}: {known.trouble}", f"last answer: {format_age(known.age(now))}"]
        found["PREDRAIN_SERVICE_UNREACHABLE"] = _build_health_check(
            "the predrain service gives no answer to use", 1, lines, []
        )
    return found


def describe_reported_osd(osd: ReportedOsd) -> str:
    """Describe one OSD in one line: place, probability, reason, and drain."""
    words = [f"osd.{osd.osd} on {osd.host}"]
    if osd.device:
        words[0] += f" ({osd.device})"
    if osd.p_fail_30d is not None:
        words.append(f"{100 * osd.p_fail_30d:.1f} % within 30 days")
    if osd.reasons:
        words.append(osd.reasons[0])
    if osd.drain:
        words.append(f"drain {osd.drain}")
    return ": ".join([words[0], "; ".join(words[1:])]) if words[1:] else words[0]


def explain_held_drain(drain: ReportedDrain) -> str:
    """Return the reason why a drain does not go on, with the ways out."""
    said = "; ".join(drain.held_by) or drain.end_reason or drain.reason
    return f"{said} Ways out: {' '.join(drain.ways_out)}" if drain.ways_out else said


def _format_drain_osds(drain: ReportedDrain) -> str:
    return " ".join(f"osd.{osd}" for osd in drain.osds[:10])


def _format_count(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _build_health_check(
    summary: str, count: int, lines: Sequence[str], tail: Sequence[str]
) -> dict[str, Any]:
    detail: list[str] = list(lines[:DETAILS_MAX])
    if len(lines) > DETAILS_MAX:
        detail.append(f"and {len(lines) - DETAILS_MAX} more: ceph predrain ls --bad")
    return {"severity": "warning", "summary": summary, "count": count, "detail": [*detail, *tail]}

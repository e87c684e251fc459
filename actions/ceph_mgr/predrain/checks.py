"""The module's health checks, each mutable by `ceph health mute CODE`. Summaries keep still while nothing changes:
ages and progress are in the detail, since each new summary is a line in the cluster's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .known import LastReport, ago
from .told import ReportedDrain, ReportedOsd

DETAILS_MAX = 50
UNREACHABLE_AFTER = 3
"""Rounds without an answer."""
STUCK = frozenset({"holding", "failed"})
BEGUN = frozenset({"preparing", "draining", "drained", "cancelling"})
"""Beside those: states in which guards hold a drain, or nothing moves, and which it keeps meanwhile."""

Checks = dict[str, dict[str, Any]]


def checks(known: LastReport, url: str, now: float, fast_maps: str = "") -> Checks:
    """All that stand now. fast_maps: what is to be said of fast maps that were left; "" for nothing."""
    found: Checks = {}
    told = known.told
    stale = f"as of {ago(known.age(now))}: the service does not answer"
    tail = [stale] if known.failures >= UNREACHABLE_AFTER else []
    if told is not None:
        for status, code, what in (
            ("bad", "PREDRAIN_DEVICE_BAD", "expected to fail soon"),
            ("warning", "PREDRAIN_DEVICE_WARNING", "with a raised risk to fail"),
        ):
            osds = [osd for osd in told.osds if osd.status == status]
            if osds:
                summary = f"{_many(len(osds), 'OSD')} on a device {what}"
                found[code] = _check(summary, len(osds), [line(osd) for osd in osds], tail)
        held = [
            drain for drain in told.drains if drain.state in STUCK or (drain.state in BEGUN and drain.held_by)
        ]
        if held:
            lines = [f"{drain.id} ({_osds(drain)}): {why(drain)}" for drain in held]
            found["PREDRAIN_DRAIN_HELD"] = _check(f"{_many(len(held), 'drain')} held", len(held), lines, tail)
    halt = known.halt()
    if halt is not None or known.halt_unread:
        lines = [f"why: {halt or known.halt_unread}", "no command is sent; lift it: ceph predrain unhalt"]
        found["PREDRAIN_HALTED"] = _check("predrain is halted", 1, lines, [])
    if fast_maps:
        found["PREDRAIN_FAST_MAPS_LEFT"] = _check(
            "the monitors' interval was left as a drain set it", 1, [fast_maps], []
        )
    if url and known.failures >= UNREACHABLE_AFTER:
        lines = [f"{url}: {known.trouble}", f"last answer: {ago(known.age(now))}"]
        found["PREDRAIN_SERVICE_UNREACHABLE"] = _check(
            "the predrain service gives no answer to use", 1, lines, []
        )
    return found


def line(osd: ReportedOsd) -> str:
    """One OSD in one line: where, how sure, why, and what is done about it."""
    words = [f"osd.{osd.osd} on {osd.host}"]
    if osd.device:
        words[0] += f" ({osd.device})"
    if osd.p_fail_30d is not None:
        words.append(f"{100 * osd.p_fail_30d:.1f} % within 30 days")
    if osd.why:
        words.append(osd.why[0])
    if osd.drain:
        words.append(f"drain {osd.drain}")
    return ": ".join([words[0], "; ".join(words[1:])]) if words[1:] else words[0]


def why(drain: ReportedDrain) -> str:
    """Why a drain does not go on."""
    said = "; ".join(drain.held_by) or drain.ended_why or drain.reason
    return f"{said} Ways out: {' '.join(drain.ways_out)}" if drain.ways_out else said


def _osds(drain: ReportedDrain) -> str:
    return " ".join(f"osd.{osd}" for osd in drain.osds[:10])


def _many(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _check(summary: str, count: int, lines: Sequence[str], tail: Sequence[str]) -> dict[str, Any]:
    detail: list[str] = list(lines[:DETAILS_MAX])
    if len(lines) > DETAILS_MAX:
        detail.append(f"and {len(lines) - DETAILS_MAX} more: ceph predrain ls --bad")
    return {"severity": "warning", "summary": summary, "count": count, "detail": [*detail, *tail]}

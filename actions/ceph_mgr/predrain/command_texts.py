"""Answers of the commands: tables for people and JSON for programs, from the last report, with its age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .health_checks import describe_reported_osd, explain_held_drain
from .kept_texts import NO_KEY
from .last_report import LastReport, format_age
from .service_report import STATUSES, ReportedDrain, ReportedOsd, ServiceReport

LINES_MAX = 2000
"""The most lines of a table. JSON has all rows."""
GIB = 1 << 30


class UnknownName(Exception):
    """Nothing is known under that name. The text says where to find the names."""


def build_status_reply(
    known: LastReport, url: str, mode: str, now: float, last_step: str, *, signs: bool
) -> tuple[dict[str, Any], str]:
    """Build the answer of `status`: the service's address, the age of its last report, and a summary in a few
    lines.

    signs: whether there is a key that signs the texts stored for the next mgr.
    """
    told, age = known.told, known.age(now)
    body: dict[str, Any] = {
        "url": url,
        "mode": mode,
        "age_seconds": None if age is None else round(age, 1),
        "error": known.trouble,
        "halted": known.find_halt_reason(),
        "halt_error": known.halt_unread,
        "unknown_osds": known.strangers,
        "stored_report_doubt": known.doubt or ("" if signs else NO_KEY),
        "last_step": last_step,
        "service": asdict(told.state) if told else None,
        "osds": told.count_by_status() if told else None,
        "omitted_osds": told.cut if told else 0,
        "drains": _by_state(told.drains) if told else None,
    }
    lines = [f"service   {url or 'not set: ceph config set mgr mgr/predrain/url URL'}"]
    lines.append(f"answered  {format_age(age)}" + (f"; now: {known.trouble}" if known.trouble else ""))
    lines.append(f"mode      {mode}" + (f"; last step: {last_step}" if last_step else ""))
    if known.doubt or not signs:
        lines.append(f"kept      {known.doubt or NO_KEY}")
    lines.append(f"halted    {known.find_halt_reason() or known.halt_unread or 'no'}")
    if told:
        lines.append(f"cluster   {told.state.cluster}: mode {told.state.mode}, {told.state.controller}")
        counts = ", ".join(f"{count} {name}" for name, count in told.count_by_status().items())
        lines.append(f"osds      {counts}" + (f", {told.cut} not kept" if told.cut else ""))
        expected = told.state.expected_30d
        lines.append(
            f"expected  {'unknown' if expected is None else f'{expected:.1f}'} failures within 30 days"
        )
        drains = ", ".join(f"{count} {state}" for state, count in _by_state(told.drains).items())
        lines.append(f"drains    {drains or 'none'}")
    if known.strangers:
        lines.append(
            f"strangers {known.strangers} OSDs of the service are not in this cluster; is url right?"
        )
    return body, "\n".join(lines)


def build_osd_list_reply(known: LastReport, bad: bool, now: float) -> tuple[dict[str, Any], str]:
    """Build the list of all OSDs, the worst first; with `bad` only those that are bad or in warning."""
    told = _require_report(known)
    shown = sorted(
        (osd for osd in told.osds if not bad or osd.status in ("bad", "warning")),
        key=lambda osd: (STATUSES.index(osd.status), -(osd.p_fail_30d or 0.0), osd.osd),
    )
    rows: list[tuple[str, ...]] = [("OSD", "HOST", "DEVICE", "STATUS", "30 DAYS", "LIFE DAYS", "WHY")]
    rows += [_build_osd_row(osd) for osd in shown[:LINES_MAX]]
    tail = [f"and {len(shown) - LINES_MAX} more; --format json has them"] if len(shown) > LINES_MAX else []
    body = {**_build_age_fields(known, now), "osds": [asdict(osd) for osd in shown]}
    return body, "\n".join([_describe_report_age(known, now), *_format_table(rows), *tail])


def build_osd_detail_reply(known: LastReport, target: str, now: float) -> tuple[dict[str, Any], str]:
    """Build the answer about one OSD (`osd.N`, `N`) or device with everything known of it. Raises UnknownName."""
    told = _require_report(known)
    number = osd_number(target)
    found = [osd for osd in told.osds if osd.osd == number or osd.device == target]
    if not found:
        raise UnknownName(f"nothing is known of {target}; ceph predrain ls shows what is")
    drains = {drain.id: drain for drain in told.drains}
    lines = [_describe_report_age(known, now)]
    for osd in found:
        lines.append(describe_reported_osd(osd))
        lines += [
            f"  status  {osd.status}, life {_format_life_range(osd)} days",
            *(f"  why     {one}" for one in osd.reasons),
        ]
        if osd.prescription:
            lines.append(f"  do      {osd.prescription}")
        if osd.drain and osd.drain in drains:
            lines.append(f"  drain   {_drain_line(drains[osd.drain])}")
    osds = [asdict(osd) for osd in found]
    shown = [asdict(drains[osd.drain]) for osd in found if osd.drain and osd.drain in drains]
    return {**_build_age_fields(known, now), "osds": osds, "drains": shown}, "\n".join(lines)


def drain_of(known: LastReport, id_: str) -> ReportedDrain:
    """Return a drain of the last report. Raises UnknownName."""
    told = _require_report(known)
    for drain in told.drains:
        if drain.id == id_:
            return drain
    ids = ", ".join(drain.id for drain in told.drains if not drain.has_ended)
    raise UnknownName(f"no drain {id_} is known" + (f"; there are {ids[:400]}" if ids else "; there is none"))


def format_drain_plan(target: str, body: Any) -> str:
    """Format the answer of `GET plan` for people. Its fields are not validated, since they are only shown."""
    said: dict[str, Any] = body if isinstance(body, dict) else {}
    lines = [f"{target}: {_read_text_field(said, 'mechanic')}, since {_read_text_field(said, 'reason')}"]
    size, hours = said.get("bytes"), said.get("eta_hours")
    took = (
        f"about {hours:.1f} h ({_read_text_field(said, 'bottleneck')})"
        if isinstance(hours, (int, float))
        else "unknown"
    )
    moved = f"{size / GIB:.1f} GiB" if isinstance(size, (int, float)) else "unknown"
    lines.append(f"moves {moved} in {_read_text_field(said, 'pgs')} PGs; takes {took}")
    full = said.get("fullest_after")
    if said.get("fullest_osd") is not None:
        fullness = f"{100 * full:.0f} % full" if isinstance(full, (int, float)) else "fullness unknown"
        lines.append(f"fullest target after it: osd.{_read_text_field(said, 'fullest_osd')}, {fullness}")
    refusals = said.get("refusals")
    lines += [f"refused: {one}" for one in refusals] if isinstance(refusals, list) else []
    return "\n".join(_replace_unprintable(text) for text in lines)


def format_drain_journal(body: Any) -> str:
    """Format the answer of `GET drains/ID/journal` for people."""
    items = body.get("items") if isinstance(body, dict) else None
    lines = []
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            told = [
                _read_text_field(item, name) for name in ("observed", "decision", "result") if item.get(name)
            ]
            lines.append(
                f"{_read_text_field(item, 'at')} {_read_text_field(item, 'caller')}: {' | '.join(told)}"
            )
    return "\n".join(_replace_unprintable(text) for text in lines) or "the journal is empty"


def osd_number(target: str) -> int | None:
    """Return N for `osd.N` or `N`, and None for any other text."""
    digits = target[4:] if target.startswith("osd.") else target
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None


def _require_report(known: LastReport) -> ServiceReport:
    if known.told is None:
        raise UnknownName("the service has sent no report yet; see ceph predrain status")
    return known.told


def _build_age_fields(known: LastReport, now: float) -> dict[str, Any]:
    age = known.age(now)
    return {"age_seconds": None if age is None else round(age, 1), "trouble": known.trouble}


def _describe_report_age(known: LastReport, now: float) -> str:
    return f"as of {format_age(known.age(now))}" + (f"; now: {known.trouble}" if known.trouble else "")


def _by_state(drains: Sequence[ReportedDrain]) -> dict[str, int]:
    found: dict[str, int] = {}
    for drain in drains:
        found[drain.state] = found.get(drain.state, 0) + 1
    return found


def _drain_line(drain: ReportedDrain) -> str:
    moved = f"{drain.moved_pgs} of {drain.planned_pgs} PGs moved"
    return f"{drain.id} {drain.state_text or drain.state}, {moved}: {explain_held_drain(drain)}"


def _build_osd_row(osd: ReportedOsd) -> tuple[str, ...]:
    why_ = osd.reasons[0] if osd.reasons else ""
    device = osd.device or "-"
    return (
        f"osd.{osd.osd}",
        osd.host,
        device,
        osd.status,
        _format_probability(osd.p_fail_30d),
        _format_life_range(osd),
        why_,
    )


def _format_probability(p: float | None) -> str:
    return "-" if p is None else f"{100 * p:.1f} %"


def _format_life_range(osd: ReportedOsd) -> str:
    ends = ["over 10 y" if end is None else f"{end:.0f}" for end in (osd.life_p10_days, osd.life_p90_days)]
    return "-" if osd.life_p10_days is None and osd.life_p90_days is None else " to ".join(ends)


def _format_table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _read_text_field(said: dict[str, Any], name: str) -> str:
    found = said.get(name)
    return "unknown" if found is None else str(found)[:600]


def _replace_unprintable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)

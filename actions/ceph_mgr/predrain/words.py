"""What the commands answer: tables for people, JSON for programs, of what is known and how old that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .checks import line, why
from .kept_texts import NO_KEY
from .known import LastReport, ago
from .told import STATUSES, ReportedDrain, ReportedOsd, ServiceReport

LINES_MAX = 2000
"""Of a table; JSON holds all that is known."""
GIB = 1 << 30


class NotKnown(Exception):
    """Nothing of that name is known; the text says where to look."""


def status(
    known: LastReport, url: str, mode: str, now: float, hand: str, *, signs: bool
) -> tuple[dict[str, Any], str]:
    """Where the service is, how old its last word, and the whole in a few lines. signs: whether there is a key to sign
    what is kept for the next mgr.
    """
    told, age = known.told, known.age(now)
    body: dict[str, Any] = {
        "url": url,
        "mode": mode,
        "age_seconds": None if age is None else round(age, 1),
        "trouble": known.trouble,
        "halted": known.halt(),
        "halt_unread": known.halt_unread,
        "strangers": known.strangers,
        "kept_doubt": known.doubt or ("" if signs else NO_KEY),
        "hand": hand,
        "service": asdict(told.state) if told else None,
        "osds": told.counts() if told else None,
        "osds_not_kept": told.cut if told else 0,
        "drains": _by_state(told.drains) if told else None,
    }
    lines = [f"service   {url or 'not set: ceph config set mgr mgr/predrain/url URL'}"]
    lines.append(f"answered  {ago(age)}" + (f"; now: {known.trouble}" if known.trouble else ""))
    lines.append(f"mode      {mode}" + (f"; last step: {hand}" if hand else ""))
    if known.doubt or not signs:
        lines.append(f"kept      {known.doubt or NO_KEY}")
    lines.append(f"halted    {known.halt() or known.halt_unread or 'no'}")
    if told:
        lines.append(f"cluster   {told.state.cluster}: mode {told.state.mode}, {told.state.controller}")
        counts = ", ".join(f"{count} {name}" for name, count in told.counts().items())
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


def listing(known: LastReport, bad: bool, now: float) -> tuple[dict[str, Any], str]:
    """Every OSD, the worst first; or those alone that are bad or in warning."""
    told = _told(known)
    shown = sorted(
        (osd for osd in told.osds if not bad or osd.status in ("bad", "warning")),
        key=lambda osd: (STATUSES.index(osd.status), -(osd.p_fail_30d or 0.0), osd.osd),
    )
    rows: list[tuple[str, ...]] = [("OSD", "HOST", "DEVICE", "STATUS", "30 DAYS", "LIFE DAYS", "WHY")]
    rows += [_row(osd) for osd in shown[:LINES_MAX]]
    tail = [f"and {len(shown) - LINES_MAX} more; --format json has them"] if len(shown) > LINES_MAX else []
    body = {**_age(known, now), "osds": [asdict(osd) for osd in shown]}
    return body, "\n".join([_aged(known, now), *_table(rows), *tail])


def show(known: LastReport, target: str, now: float) -> tuple[dict[str, Any], str]:
    """One OSD (`osd.N`, `N`) or device with all that is known of it. Raises NotKnown."""
    told = _told(known)
    number = osd_number(target)
    found = [osd for osd in told.osds if osd.osd == number or osd.device == target]
    if not found:
        raise NotKnown(f"nothing is known of {target}; ceph predrain ls shows what is")
    drains = {drain.id: drain for drain in told.drains}
    lines = [_aged(known, now)]
    for osd in found:
        lines.append(line(osd))
        lines += [f"  status  {osd.status}, life {_life(osd)} days", *(f"  why     {one}" for one in osd.why)]
        if osd.prescription:
            lines.append(f"  do      {osd.prescription}")
        if osd.drain and osd.drain in drains:
            lines.append(f"  drain   {_drain_line(drains[osd.drain])}")
    osds = [asdict(osd) for osd in found]
    shown = [asdict(drains[osd.drain]) for osd in found if osd.drain and osd.drain in drains]
    return {**_age(known, now), "osds": osds, "drains": shown}, "\n".join(lines)


def drain_of(known: LastReport, id_: str) -> ReportedDrain:
    """A drain that the service told of. Raises NotKnown."""
    told = _told(known)
    for drain in told.drains:
        if drain.id == id_:
            return drain
    ids = ", ".join(drain.id for drain in told.drains if not drain.ended)
    raise NotKnown(f"no drain {id_} is known" + (f"; there are {ids[:400]}" if ids else "; there is none"))


def plan(target: str, body: Any) -> str:
    """`GET plan` for people; reads what it finds, since it is only shown."""
    said: dict[str, Any] = body if isinstance(body, dict) else {}
    lines = [f"{target}: {_word(said, 'mechanic')}, since {_word(said, 'why')}"]
    size, hours = said.get("bytes"), said.get("eta_hours")
    took = (
        f"about {hours:.1f} h ({_word(said, 'bottleneck')})" if isinstance(hours, (int, float)) else "unknown"
    )
    moved = f"{size / GIB:.1f} GiB" if isinstance(size, (int, float)) else "unknown"
    lines.append(f"moves {moved} in {_word(said, 'pgs')} PGs; takes {took}")
    full = said.get("fullest_after")
    if said.get("fullest_osd") is not None:
        fullness = f"{100 * full:.0f} % full" if isinstance(full, (int, float)) else "fullness unknown"
        lines.append(f"fullest target after it: osd.{_word(said, 'fullest_osd')}, {fullness}")
    refusals = said.get("refusals")
    lines += [f"refused: {one}" for one in refusals] if isinstance(refusals, list) else []
    return "\n".join(_plain(text) for text in lines)


def journal(body: Any) -> str:
    """`GET drains/ID/journal` for people."""
    items = body.get("items") if isinstance(body, dict) else None
    lines = []
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict):
            told = [_word(item, name) for name in ("seen", "decided", "answered") if item.get(name)]
            lines.append(f"{_word(item, 'at')} {_word(item, 'caller')}: {' | '.join(told)}")
    return "\n".join(_plain(text) for text in lines) or "the journal is empty"


def osd_number(target: str) -> int | None:
    """N of `osd.N` or `N`."""
    digits = target[4:] if target.startswith("osd.") else target
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None


def _told(known: LastReport) -> ServiceReport:
    if known.told is None:
        raise NotKnown("the service has not told anything yet; see ceph predrain status")
    return known.told


def _age(known: LastReport, now: float) -> dict[str, Any]:
    age = known.age(now)
    return {"age_seconds": None if age is None else round(age, 1), "trouble": known.trouble}


def _aged(known: LastReport, now: float) -> str:
    return f"as of {ago(known.age(now))}" + (f"; now: {known.trouble}" if known.trouble else "")


def _by_state(drains: Sequence[ReportedDrain]) -> dict[str, int]:
    found: dict[str, int] = {}
    for drain in drains:
        found[drain.state] = found.get(drain.state, 0) + 1
    return found


def _drain_line(drain: ReportedDrain) -> str:
    moved = f"{drain.moved_pgs} of {drain.planned_pgs} PGs moved"
    return f"{drain.id} {drain.state_text or drain.state}, {moved}: {why(drain)}"


def _row(osd: ReportedOsd) -> tuple[str, ...]:
    why_ = osd.why[0] if osd.why else ""
    device = osd.device or "-"
    return (f"osd.{osd.osd}", osd.host, device, osd.status, _share(osd.p_fail_30d), _life(osd), why_)


def _share(p: float | None) -> str:
    return "-" if p is None else f"{100 * p:.1f} %"


def _life(osd: ReportedOsd) -> str:
    ends = ["over 10 y" if end is None else f"{end:.0f}" for end in (osd.life_p10_days, osd.life_p90_days)]
    return "-" if osd.life_p10_days is None and osd.life_p90_days is None else " to ".join(ends)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _word(said: dict[str, Any], name: str) -> str:
    found = said.get(name)
    return "unknown" if found is None else str(found)[:600]


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)

"""Everything that is known of one disk, as text: the same facts as the page's view of the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from predrain.data.outlook import Life
from predrain.service.cli.disk_request_view import describe_requests, describe_self_tests
from predrain.service.cli.disk_rows import DAYS_A_YEAR, TB
from predrain.service.cli.row_tables import Row
from predrain.service.fleet.probability_text import format_bounded_probability, format_life_expectancy
from predrain.service.terminal.service_connection import Json

_ALIVE_DAYS: Final = (7, 30, 90, 365)
_LINES: Final = 12
"""The newest lines of what was done."""
_PROTOCOLS: Final = {"ata": "SATA", "scsi": "SAS", "nvme": "NVMe"}
_ROLES: Final = {"db": "DB", "wal": "WAL", "journal": "journal"}
_ALWAYS_RISING: Final = ("hours", "bytes")
"""Units of series that rise all the time, which says nothing."""


@dataclass(frozen=True, slots=True)
class DiskAnswers:
    """The answers of REST about one disk. `osds`: the rows of its OSDs; `alerts`: its announcements, newest first."""

    device: Json
    history: Json
    host: Json
    osds: Sequence[Row]
    alerts: Sequence[Json]
    requests: Json

    def to_json(self) -> Json:
        """Return the answers as they are, by name."""
        return {
            "device": self.device,
            "history": self.history,
            "host": self.host,
            "osds": list(self.osds),
            "alerts": list(self.alerts),
            "requests": self.requests,
        }


def describe_disk(answers: DiskAnswers, days: int) -> Iterator[str]:
    """Yield the lines about a disk, the verdict first. days: of the history."""
    yield from _describe_verdict(answers)
    for title, lines in (
        ("Where and what", _describe_identity(answers)),
        ("Why", _describe_reasons(answers.device)),
        ("How sure", _describe_certainty(answers.device)),
        (f"What it reported in {days} days", _describe_history(answers.history)),
        (
            "Self-tests and light",
            (*describe_self_tests(answers.requests), *describe_requests(answers.requests)),
        ),
        ("What happens next", _describe_next(answers)),
        ("What was done, UTC", _describe_past(answers)),
    ):
        told = list(lines)
        if told:
            yield ""
            yield title
            yield from (f"  {line}" for line in told)


def _describe_verdict(answers: DiskAnswers) -> Iterator[str]:
    device, outlook = answers.device, answers.device["outlook"]
    names = ", ".join((*(f"osd.{osd}" for osd in device["osds"]), device["device"]))
    if device["severity"] is None:
        yield f"{names}: {device['state'].replace('_', ' ')}"
        yield device["life"]["sentence"]
        return
    state = "" if device["state"] in ("in_service", "new") else f", {device['state'].replace('_', ' ')}"
    yield f"{names}: {device['severity']}{state}{_describe_chance(answers)}"
    if outlook is not None and outlook["life"] is not None and outlook["p_fail_30d"] is not None:
        yield f"Likely life: {_format_life(outlook['life'])}."
    if outlook is not None and outlook["prescription"]:
        yield outlook["prescription"]
    if device["unreadable"] is not None:
        gone = device["unreadable"]
        blame = " The host is at fault: this says nothing against the disk." if gone["blames_host"] else ""
        yield f"No reading since {_format_time(gone['since'])} UTC: {gone['reason']}.{blame}"
    elif device["taken_at"] is not None:
        yield f"Last reading: {_format_time(device['taken_at'])} UTC."


def _describe_chance(answers: DiskAnswers) -> str:
    outlook = answers.device["outlook"]
    if outlook is None:
        return ", no outlook yet"
    if outlook["p_fail_30d"] is None:
        score = outlook["rule_score"]
        return f", by rule {outlook['source'].removeprefix('rule:')}" + (
            f", evidence {score:.2f} of 1" if score is not None else ""
        )
    before = next((osd["p_fail_30d_week_ago"] for osd in answers.osds), None)
    was = f" (a week ago {format_bounded_probability(before)})" if before is not None else ""
    return f", {format_bounded_probability(outlook['p_fail_30d'])} to fail within 30 days{was}"


def _describe_identity(answers: DiskAnswers) -> Iterator[str]:
    device, identity = answers.device, answers.device["identity"] or {}
    slot = "" if device["slot"] is None else f", slot {device['slot']}"
    name = f", {device['device_name']}" if device["device_name"] else ""
    yield f"host          {device['host'] or 'not reported'}{slot}{name}"
    for osd in answers.osds:
        size, used = osd["size_bytes"], osd["used_bytes"]
        full = f"{100 * used / size:.0f} % full" if size and used is not None else "fullness not reported"
        lag = "" if osd["latency_ratio"] is None else f", latency {osd['latency_ratio']:.2f} x its peers"
        yield f"osd.{osd['osd']:<9} {'up' if osd['up'] else 'down'}, {'in' if osd['in'] else 'out'}, {full}{lag}"
    if not answers.osds:
        before = ", ".join(f"osd.{osd}" for osd in device["life"]["osds"])
        yield f"OSD           none; it stood under {before}" if before else "OSD           none"
    for role, word in _ROLES.items():
        kept = [f"osd.{one['osd']}" for one in device["osd_devices"] if one["role"] == role]
        if kept:
            yield f"keeps         {word} of {', '.join(kept)}"
    yield f"model         {device['model'] or 'not reported'}"
    yield f"serial        {device['serial'] or 'not reported'}"
    yield f"kind          {_describe_kind(device, identity)}"
    yield f"firmware      {identity.get('firmware') or 'not reported'}"
    hours, heat, passed = device["power_on_hours"], device["temperature_c"], device["passed"]
    yield f"powered on    {'not reported' if hours is None else f'{hours / 24 / DAYS_A_YEAR:.1f} years ({hours:,} h)'}"
    yield f"temperature   {'not reported' if heat is None else f'{heat} °C'}"
    verdict = "not reported" if passed is None else "passed, which says little" if passed else "FAILED"
    yield f"own verdict   {verdict}"
    if answers.host["other_hosts"]:
        others = ", ".join(answers.host["other_hosts"])
        state = f"{answers.host['state']}, in {answers.host['host']}"
        yield f"named by      {others}, too: {state}; predrain disk host {device['device']}"


def _describe_kind(device: Json, identity: Json) -> str:
    speaks = _PROTOCOLS.get(device["protocol"] or "", "")
    rpm, size = identity.get("rotation_rpm"), device["capacity_bytes"]
    turns = "" if rpm is None or device["protocol"] == "nvme" else "SSD" if rpm == 0 else f"{rpm:,} rpm"
    told = " ".join(filter(None, (speaks, turns))) or "not reported"
    return f"{told}, {'size not reported' if size is None else f'{size / TB:.1f} TB'}"


def _describe_reasons(device: Json) -> Iterator[str]:
    outlook = device["outlook"]
    if outlook is None:
        if device["severity"] is not None:
            yield "No reason is reported: this disk has not been judged."
        return
    for number, reason in enumerate(outlook["reasons"], start=1):
        yield f"{number}. {reason['sentence']}"
    if outlook["clear_condition"]:
        yield outlook["clear_condition"]
    yield f"Judged by {outlook['source']}, {_format_time(outlook['as_of'])} UTC."


def _describe_certainty(device: Json) -> Iterator[str]:
    outlook = device["outlook"]
    if outlook is None:
        return
    chances = [
        f"{format_bounded_probability(outlook[key])} within {days} days"
        for days, key in ((7, "p_fail_7d"), (14, "p_fail_14d"), (30, "p_fail_30d"))
        if outlook[key] is not None
    ]
    if chances:
        yield f"Of disks that looked like this fail: {', '.join(chances)}."
    else:
        yield "A rule judged the disk, and rules know no probability."
    if outlook["endurance"] is not None:
        yield f"At the pace of its wear counter its rated life lasts {_format_life(outlook['endurance'])}."
    curves = (("this disk", outlook["survival"]), ("its model", device["family_survival"]))
    for whose, curve in curves:
        if points := _read_curve(curve or ()):
            yield f"Alive, {whose}: {', '.join(points)}."


def _read_curve(curve: Sequence[Json]) -> list[str]:
    """Return the probability to be alive after each of some days: of the last point up to that day."""
    told = []
    for day in _ALIVE_DAYS:
        before = [point for point in curve if point["day"] <= day]
        if before and curve[-1]["day"] >= day:
            told.append(f"{100 * before[-1]['p']:.1f} % after {day} days")
    return told


def _describe_history(history: Json) -> Iterator[str]:
    """Yield each series that moved with its first and last value, then the names of those that stand still."""
    still = []
    for series in history["series"]:
        known = [(at, value) for at, value in series["points"] if value is not None]
        if not known:
            continue
        unit, first, last = series["unit"], known[0][1], known[-1][1]
        if all(value == first for _, value in known):
            still.append(f"{series['name']} {_format_value(first, unit)}")
            continue
        changed = max(
            at for (at, value), (_, before) in zip(known[1:], known, strict=False) if value != before
        )
        most = _format_value(max(value for _, value in known), unit)
        ends = f"{series['name']:<24}{_format_value(first, unit)} -> {_format_value(last, unit)}"
        told = f"; most {most}, last change {datetime.fromtimestamp(changed / 1000, tz=UTC):%Y-%m-%d}"
        yield ends if unit in _ALWAYS_RISING else ends + told
    if still:
        yield f"Did not move: {', '.join(still)}."


def _describe_next(answers: DiskAnswers) -> Iterator[str]:
    device = answers.device
    if device["severity"] is None:
        yield "Nothing: it is out of service."
        return
    drains = [(osd, osd["drain"]) for osd in answers.osds if osd["drain"] is not None]
    for osd, drain in drains:
        planned = drain["planned_bytes"]
        moved = f", {100 * drain['moved_bytes'] / planned:.0f} % moved" if planned else ""
        held = f"; held: {' '.join(drain['held_by'])}" if drain["held_by"] else ""
        yield f"osd.{osd['osd']}: {drain['state_text']}{moved}{held}; predrain drain explain {drain['id']}"
    for osd in answers.osds:
        if not osd["up"]:
            yield f"osd.{osd['osd']} is down."
    if not drains and device["osds"]:
        plans = ", ".join(f"predrain drain plan osd.{osd}" for osd in device["osds"][:1])
        yield f"No drain is under way; what one would do: {plans}"


def _describe_past(answers: DiskAnswers) -> Iterator[str]:
    device = answers.device
    lines = [
        (one["created_at"], f"drain {one['id']}, now {one['state'].replace('_', ' ')}")
        for one in device["drains"]
    ]
    lines += [(one["at"], one["sentence"]) for one in device["life_changes"]]
    lines += [(one["at"], f"alert, {one['status']}: {one['reason']}") for one in answers.alerts]
    lines += [
        (
            one["at"],
            f"outcome {one['fate']}, says {one['source']}" + (f": {one['note']}" if one["note"] else ""),
        )
        for one in device["outcomes"]
    ]
    newest = sorted(lines, key=lambda line: datetime.fromisoformat(line[0]), reverse=True)
    for at, text in newest[:_LINES]:
        yield f"{_format_time(at)}  {text}"
    if len(newest) > _LINES:
        yield f"and {len(newest) - _LINES} lines before: predrain events --disk {device['device']} --since 520w"


def _format_life(life: Json) -> str:
    return format_life_expectancy(Life(life["p10"], life["p50"], life["p90"]))


_UNITS: Final = {"C": " °C", "%": " %", "hours": " h", "bytes": " B", "ms": " ms"}
"""The units of series as they are printed, by their words in REST; a count has none."""


def _format_value(value: float, unit: str | None) -> str:
    if unit == "probability":
        return format_bounded_probability(value)
    number = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
    return f"{number}{_UNITS.get(unit or '', '')}"


def _format_time(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"

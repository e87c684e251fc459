"""The rows of disks and OSDs at the command line: their columns, their urgency, and all pages of their lists."""

from __future__ import annotations

import urllib.parse
from typing import Final

from predrain.data.outlook import Status
from predrain.service.cli.row_tables import Cell, Column, Row
from predrain.service.terminal.service_connection import CliClient

PAGE_ROWS = 10_000
"""The most rows of one request."""
DAYS_A_YEAR = 365.25
HOURS_A_YEAR = 24 * DAYS_A_YEAR
TB = 1e12
_SEVERITIES: Final = {
    Status.BAD.value: 0,
    Status.WARNING.value: 2,
    Status.UNKNOWN.value: 3,
    Status.GOOD.value: 4,
}
_DOWN, _ENDED = 1, 5
"""The ranks of an OSD that is down, between `bad` and `warning`, and of a disk that failed or is retired."""


def list_devices(client: CliClient) -> list[Row]:
    """Return every disk in order of ids, by as few requests as the service allows."""
    return _list_all(client, "devices")


def list_osds(client: CliClient) -> list[Row]:
    """Return every OSD in order of ids, by as few requests as the service allows."""
    return _list_all(client, "osds")


def _list_all(client: CliClient, path: str) -> list[Row]:
    found: list[Row] = []
    cursor = ""
    while True:
        page = client.get(f"{path}?limit={PAGE_ROWS}{cursor}")
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={urllib.parse.quote(page['next'], safe='')}"


def parse_osd_number(name: str) -> str | None:
    """Return the number of an OSD that is named `osd.12` or `12`, or None for any other name."""
    number = name.removeprefix("osd.")
    return number if number.isascii() and number.isdigit() else None


def rank_disk_urgency(row: Row) -> tuple[int, float, str]:
    """Return the sort key that puts the most urgent disk first."""
    rank = _ENDED if row["severity"] is None else _SEVERITIES[row["severity"]]
    return rank, -(row["p_fail_30d"] or 0.0), row["device"]


def rank_osd_urgency(row: Row) -> tuple[int, float, int]:
    """Return the sort key that puts the most urgent OSD first; one that is down stands after those that are bad."""
    rank = _ENDED if row["severity"] is None else _SEVERITIES[row["severity"]]
    return rank if row["up"] else min(rank, _DOWN), -(row["p_fail_30d"] or 0.0), row["osd"]


def show_fraction(percent: float) -> str:
    """Show a percentage, with one decimal below 1 %."""
    return f"{percent:.1f}" if percent < 0.95 else f"{percent:.0f}"


def _percent(value: float | None) -> Cell:
    return None if value is None else value * 100


def _one_decimal(value: float) -> str:
    return f"{value:.1f}"


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _name_outlook(row: Row) -> str:
    """Return the severity, or the state of a disk without one."""
    return str(row["severity"] or row["state"] or "")


def _name_state(row: Row) -> str:
    """Return the state of a disk, unless it is in service or stands in the column of the outlook."""
    return "" if row["state"] == "in_service" or row["severity"] is None else str(row["state"])


def _describe_osd_drain(row: Row) -> Cell:
    drain = row["drain"]
    if drain is None:
        return None
    planned = drain["planned_bytes"]
    moved = f" {100 * drain['moved_bytes'] / planned:.0f} %" if planned and drain["moved_bytes"] else ""
    return f"{drain['state_text']}{moved}"


def _fullness(row: Row) -> Cell:
    size, used = row["size_bytes"], row["used_bytes"]
    return None if not size or used is None else used / size * 100


def _join_reasons(row: Row) -> Cell:
    return " ".join(row["reasons"]) or None


def _make_scaled_column(name: str, unit: str, field: str, scale: float) -> Column:
    """Return a column of a field that REST answers in a smaller unit: size in TB, age in years."""

    def scale_field(row: Row) -> Cell:
        return None if row[field] is None else row[field] / scale

    return Column(name, unit, scale_field, _one_decimal, unit, number=True)


DISK_COLUMNS: Final = (
    Column("disk", "disk", lambda row: row["serial"] or row["device"]),
    Column("severity", "outlook", _name_outlook),
    Column("fails_30d", "30 d %", lambda row: _percent(row["p_fail_30d"]), show_fraction, "%", number=True),
    Column("state", "state", _name_state, lambda state: state.replace("_", " ")),
    Column("host", "host", lambda row: row["host"]),
    Column("slot", "slot", lambda row: row["slot"], _whole, number=True),
    Column("osd", "osd", lambda row: ",".join(map(str, row["osds"]))),
    Column("model", "model", lambda row: row["model"], cut=True),
    _make_scaled_column("size", "TB", "capacity_bytes", TB),
    _make_scaled_column("age", "years", "power_on_hours", HOURS_A_YEAR),
    Column("temperature", "°C", lambda row: row["temperature_c"], _whole, "°C", number=True),
    Column("life_p10", "", lambda row: row["life_p10_days"], unit="days", number=True),
    Column("life_p90", "", lambda row: row["life_p90_days"], unit="days", number=True),
    Column("device_name", "", lambda row: row["device_name"]),
    Column("protocol", "", lambda row: row["protocol"]),
    Column("read_at", "", lambda row: row["taken_at"], unit="UTC"),
    Column("id", "", lambda row: row["device"]),
    Column("why", "", _join_reasons),
)
"""A drive counts its power-on hours, and they are its age."""

OSD_COLUMNS: Final = (
    Column("osd", "osd", lambda row: row["osd"], _whole, number=True),
    Column("map", "map", lambda row: f"{'up' if row['up'] else 'down'} {'in' if row['in'] else 'out'}"),
    Column("severity", "outlook", _name_outlook),
    Column("fails_30d", "30 d %", lambda row: _percent(row["p_fail_30d"]), show_fraction, "%", number=True),
    Column(
        "fails_30d_week_ago",
        "",
        lambda row: _percent(row["p_fail_30d_week_ago"]),
        unit="%",
        number=True,
    ),
    Column("host", "host", lambda row: row["host"]),
    Column("rack", "", lambda row: row["rack"]),
    Column("slot", "slot", lambda row: row["slot"], _whole, number=True),
    Column("model", "model", lambda row: row["model"], cut=True),
    _make_scaled_column("size", "TB", "size_bytes", TB),
    Column("full", "full %", _fullness, _whole, "%", number=True),
    _make_scaled_column("age", "years", "age_days", DAYS_A_YEAR),
    Column(
        "latency",
        "lat. x",
        lambda row: row["latency_ratio"],
        lambda ratio: f"{ratio:.2f}",
        "x peers",
        number=True,
    ),
    Column("drain", "drain", _describe_osd_drain),
    Column("life_p10", "", lambda row: row["life_p10_days"], unit="days", number=True),
    Column("life_p90", "", lambda row: row["life_p90_days"], unit="days", number=True),
    Column("id", "", lambda row: row["device"]),
    Column("why", "", _join_reasons),
)

"""The contribution of the rules to the forecast of hard disks, and the worth of the rules alone, on the histories.

Drives are judged as live ones are, every 7 days (2018) or 28 days (2013 to 2016), by the bundle that ships. The bundle
learned from these drives, so that its own figures here are too good. The contribution of the rules is not fitted to
anything.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Final

import numpy as np

from predrain.data.history import EPOCH, History, HistoryFiles
from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Status
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart
from predrain.features.drive_state import DriveState, observe_reading
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.outlooks import build_outlooks
from predrain.models.forecast.rules import judge_symptoms
from tests.bench.shares import Share

HEALTHY: Final = 4_000
"""Healthy drives of each history that are judged, evenly spread over the serial numbers; and 1,000 that failed."""
FAILING: Final = 1_000
FIELDS: Final = {
    5: "reallocated",
    187: "reported_uncorrectable",
    188: "command_timeouts",
    197: "pending",
    198: "offline_uncorrectable",
}
WARNED: Final = (Status.WARNING, Status.BAD)
SOON, FAR = 30, 60
"""Days: a drive that dies within the first is failing, one that lives on for the second is healthy."""


@dataclass
class _Counts:
    """Of landmarks and windows, by what they are of and what was said."""

    of: Counter[str] = field(default_factory=Counter[str])
    hits: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    windows: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    """(serial number, month) of a healthy drive -> what was said in it."""


def measured(folder: Path) -> Iterator[tuple[str, list[Share]]]:
    """Tables with their titles. folder: the histories."""
    bundle = Bundle.load(threads=2)
    daily = folder / "st4000dm000_2018h1_daily.parquet"
    changes = folder / "fleet_2013_2016q1_changes.parquet"
    drives = folder / "fleet_2013_2016q1_drives.parquet"
    for title, path, fates, step in (
        ("Hard disks of 2018, every 7 days", daily, daily, 7),
        ("Hard disks of 2013 to 2016, every 28 days", changes, drives, 28),
    ):
        history = HistoryFiles([path]).read()
        yield title, _shares(_judge(history, bundle, _deaths(fates), _ends(fates), step))


def _deaths(path: Path) -> Mapping[str, int]:
    return _last_days(path, "WHERE failure = 1")


def _ends(path: Path) -> Mapping[str, int]:
    return _last_days(path, "")


def _last_days(path: Path, where: str) -> Mapping[str, int]:
    """Serial number -> last day, days since 1970-01-01."""
    import duckdb

    sql = duckdb.connect(":memory:")
    names = {row[0] for row in sql.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()}
    day = "last_date" if "last_date" in names else "date"
    query = f"SELECT serial_number::VARCHAR, max({day})::DATE FROM read_parquet(?) {where} GROUP BY 1"
    return {serial: (last - EPOCH).days for serial, last in sql.execute(query, [str(path)]).fetchall()}


def _judge(
    history: History, bundle: Bundle, deaths: Mapping[str, int], ends: Mapping[str, int], step: int
) -> _Counts:
    counts, states = _Counts(), defaultdict[int, list[tuple[str, DriveState]]](list)
    for drive in _chosen(history, deaths):
        serial = str(history.serials[drive])
        for day, state in _landmarks(history, drive, ends[serial], step):
            states[day].append((serial, state))
    for day, drives in states.items():
        now = datetime.combine(EPOCH + timedelta(days=day), time(13), UTC)
        said = build_outlooks(bundle, [state for _, state in drives], now)
        for (serial, state), outlook in zip(drives, said, strict=True):
            left = deaths[serial] - day if serial in deaths else FAR + 1
            if SOON < left <= FAR:
                continue
            group = "failing" if left <= SOON else "healthy"
            rules = judge_symptoms(state)
            found = (
                {f"rules alone: {rules.status}"} if rules is not None and rules.status in WARNED else set()
            )
            if outlook.source.startswith("rule:"):
                found.add(f"the rules make it {outlook.status}")
            elif outlook.status in WARNED:
                found.add("the forecast warns")
            counts.of[group] += 1
            counts.hits.update((group, what) for what in found)
            if group == "healthy":
                counts.windows[serial, day // SOON] |= found
    return counts


def _chosen(history: History, deaths: Mapping[str, int]) -> Iterator[int]:
    died = np.array([str(serial) in deaths for serial in history.serials])
    for which, many in ((~died, HEALTHY), (died, FAILING)):
        drives = np.flatnonzero(which)
        yield from drives[:: max(1, len(drives) // many)].tolist()


def _landmarks(history: History, drive: int, end: int, step: int) -> Iterator[tuple[int, DriveState]]:
    """(day, state) every `step` days from the third day on. Between change points a drive is as it was."""
    rows = range(int(history.start[drive]), int(history.start[drive + 1]))
    state, place = None, rows.start
    for day in range(int(history.day[rows.start]) + 3, end + 1, step):
        while place < rows.stop and history.day[place] <= day:
            state = observe_reading(state, _reading(history, drive, place, int(history.day[place])))
            place += 1
        state = observe_reading(state, _reading(history, drive, place - 1, day))
        yield day, state


def _reading(history: History, drive: int, row: int, day: int) -> Reading:
    at = datetime.combine(EPOCH + timedelta(days=day), time(12), UTC)
    raw = {number: int(values[row]) for number, values in history.raw.items() if not np.isnan(values[row])}
    seen = Smart(
        Protocol.ATA,
        Identity(model=history.model_names[history.model[row]], rotation_rpm=7200),
        True,
        Counters(**{name: raw[number] for number, name in FIELDS.items() if number in raw}),
        {number: Attribute(str(number), value) for number, value in raw.items()},
        raw.get(9),
        raw.get(194),
    )
    return Reading(DeviceId(str(history.serials[drive])), HostName("h"), at, at, seen)


def _shares(counts: _Counts) -> list[Share]:
    found = [
        Share(group, what, counts.hits[group, what], counts.of[group])
        for group in ("healthy", "failing")
        for what in sorted({what for _, what in counts.hits})
    ]
    windows = list(counts.windows.values())
    lifted = [said for said in windows if any(one.startswith("the rules make it") for one in said)]
    return [
        *found,
        Share(
            "healthy windows",
            "the forecast warns",
            sum("the forecast warns" in one for one in windows),
            len(windows),
        ),
        Share(
            "healthy windows",
            "the rules alone raise it",
            sum("the forecast warns" not in said for said in lifted),
            len(windows),
        ),
    ]

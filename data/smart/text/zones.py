"""The printed time (`Wed Sep 18 10:00:00 2024 CEST`) as an instant, where the zone's name has one meaning."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PRINTED = re.compile(
    r"[A-Za-z]{3}\s+([A-Za-z]{3})\s+(\d{1,2})\s+(\d{1,2}):(\d{2}):(\d{2})\s+(\d{4})(?:\s+(\S+))?"
)
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})?")
_HOURS = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "EET": 2, "EEST": 3,
    "EST": -5, "EDT": -4, "CDT": -5, "MDT": -6, "MST": -7, "PST": -8, "PDT": -7, "AKST": -9, "AKDT": -8, "HST": -10,
    "NZST": 12, "NZDT": 13, "AEST": 10, "AEDT": 11, "ACST": 9.5, "ACDT": 10.5, "AWST": 8, "JST": 9, "KST": 9,
    "HKT": 8, "SAST": 2, "ChST": 10,
}  # fmt: skip
"""Hours east of UTC. CST (Chicago, Shanghai), IST (India, Israel, Ireland) and BST are missing: they have several."""


def local_time(written: str) -> tuple[datetime, str | None] | None:
    """The naive time and the zone as printed; None where the time is masked or no time."""
    match = _PRINTED.match(written.strip())
    if match is None or match[1].lower() not in _MONTHS:
        return None
    try:
        month = _MONTHS.index(match[1].lower()) + 1
        naive = datetime(int(match[6]), month, int(match[2]), int(match[3]), int(match[4]), int(match[5]))  # noqa: DTZ001
    except ValueError:
        return None
    return naive, match[7]


def instant(naive: datetime, zone: str | None) -> datetime | None:
    """In UTC; None where the zone is not printed or its name has several meanings."""
    hours = _hours(naive, zone or "")
    return None if hours is None else (naive - timedelta(hours=hours)).replace(tzinfo=UTC)


def _hours(naive: datetime, zone: str) -> float | None:
    if zone == "MSK":  # Moscow kept summer time from 2011-03-27 to 2014-10-26
        return 4 if datetime(2011, 3, 27, 2) <= naive < datetime(2014, 10, 26, 2) else 3  # noqa: DTZ001
    if match := _OFFSET.fullmatch(zone):
        hours = int(match[2]) + int(match[3] or 0) / 60
        return (-hours if match[1] == "-" else hours) if hours <= 14 else None
    return _HOURS.get(zone)

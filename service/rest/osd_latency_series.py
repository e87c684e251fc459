"""Latencies of an OSD over time, beside those of its peers, in few points."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median
from typing import Final

from predrain.data.ids import OsdId
from predrain.data.latency_windows import LatencyWindows
from predrain.models.slow.slowness_rules import HOURS

POINTS = 480
"""The most points of a series: a pixel or two each."""
SLOW_RATIO: Final = HOURS.ratio
"""The ratio at which the rule for hours begins to count. Its ratio is that of an hour, and corrected for the load."""
FEWEST_PEERS = 2
"""Of two OSDs that differ, one alone may be the fast one."""
_COMPARED: Final = ("device_await_ms", "commit_ms_p50", "write_ms_p50", "read_ms_p50")
"""The latencies that are compared: the first that the OSD and enough peers have, as the rule for slow OSDs does."""
OSD_SERIES: Final = {
    "read_ms": "ms",
    "write_ms": "ms",
    "commit_ms": "ms",
    "latency_ratio": "ratio",
    "slow_minutes": "minutes",
    "slow_ops": "count",
}
"""The series of an OSD and the unit of each."""

SeriesPoints = list[tuple[int, float | None]]


@dataclass(frozen=True, slots=True)
class OsdWindow:
    """One OSD in one window. `ratio`: to the median of its peers; None: too few of them answered."""

    start: datetime
    seconds: float
    read_ms: float | None
    write_ms: float | None
    commit_ms: float | None
    ratio: float | None
    slow_ops: int | None


def compute_osd_latency_series(
    windows: Sequence[LatencyWindows],
    osd: OsdId,
    peers: Collection[OsdId],
    since: datetime,
    until: datetime,
) -> dict[str, SeriesPoints]:
    """Return the series of OSD_SERIES: points (time in ms since 1970, value), each of a share of the time.

    windows: those that have the OSD, oldest first, with its peers on the same host. A value is None if no window of its
    share has one.
    """
    width = max(60.0, (until - since).total_seconds() / POINTS)
    shares: dict[int, list[OsdWindow]] = defaultdict(list)
    for one in windows:
        shares[int((one.window_start - since).total_seconds() // width)].append(_take_window(one, osd, peers))
    series: dict[str, SeriesPoints] = {name: [] for name in OSD_SERIES}
    for _, share in sorted(shares.items()):
        at = to_epoch_milliseconds(share[0].start)
        for name, value in _summarise_share(share).items():
            series[name].append((at, value))
    return series


def _take_window(windows: LatencyWindows, osd: OsdId, peers: Collection[OsdId]) -> OsdWindow:
    place = windows.osd.index(osd)
    beside = [index for index, one in enumerate(windows.osd) if one in peers]
    return OsdWindow(
        windows.window_start,
        windows.window_seconds[place],
        windows.read_ms_p50[place],
        windows.write_ms_p50[place],
        windows.commit_ms_p50[place],
        _compute_peer_ratio(windows, place, beside),
        windows.slow_ops[place],
    )


def _compute_peer_ratio(windows: LatencyWindows, place: int, beside: Sequence[int]) -> float | None:
    for name in _COMPARED:
        column: Sequence[float | None] = getattr(windows, name)
        own = column[place]
        others = [value for index in beside if (value := column[index]) is not None and value > 0]
        if own is not None and own > 0 and len(others) >= FEWEST_PEERS:
            return own / median(others)
    return None


def _summarise_share(share: Sequence[OsdWindow]) -> dict[str, float | None]:
    compared = [(one.ratio, one.seconds) for one in share if one.ratio is not None]
    slow = sum(seconds for ratio, seconds in compared if ratio >= SLOW_RATIO)
    return {
        "read_ms": _take_middle(share, lambda one: one.read_ms),
        "write_ms": _take_middle(share, lambda one: one.write_ms),
        "commit_ms": _take_middle(share, lambda one: one.commit_ms),
        "latency_ratio": _take_middle(share, lambda one: one.ratio),
        "slow_minutes": round(slow / 60, 1) if compared else None,
        "slow_ops": max((one.slow_ops for one in share if one.slow_ops is not None), default=None),
    }


def _take_middle(share: Sequence[OsdWindow], value: Callable[[OsdWindow], float | None]) -> float | None:
    known = [found for one in share if (found := value(one)) is not None]
    return round(median(known), 3) if known else None


def to_epoch_milliseconds(at: datetime) -> int:
    """Return the time in ms since 1970."""
    return round(at.astimezone(UTC).timestamp() * 1000)

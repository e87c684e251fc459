"""What an OSD's clients waited for its disk, as series beside what the disk says of itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

from predrain.data.reading import LatencySummary

POINTS = 480
"""At most so many points a series: a pixel or two each."""
FELT = {"read_ms": "read_ms_p50", "write_ms": "write_ms_p50"}
"""Series and what each is made of: the host's medians over a window."""


def felt(
    rows: Sequence[LatencySummary], since: datetime, until: datetime
) -> dict[str, list[tuple[int, float | None]]]:
    """Milliseconds by series over (milliseconds since 1970): each point the median of the windows in its share of the
    time, None where those had no such operation."""
    width = max(60.0, (until - since).total_seconds() / POINTS)
    shares: dict[int, list[LatencySummary]] = defaultdict(list)
    for row in rows:
        shares[int((row.window_start - since).total_seconds() // width)].append(row)
    series: dict[str, list[tuple[int, float | None]]] = {name: [] for name in FELT}
    for _, windows in sorted(shares.items()):
        at = round(windows[0].window_start.astimezone(UTC).timestamp() * 1000)
        for name, made_of in FELT.items():
            known = [value for one in windows if (value := getattr(one, made_of)) is not None]
            series[name].append((at, round(median(known), 3) if known else None))
    return series

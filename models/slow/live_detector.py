"""Live OSDs: latency windows of hosts in, slow OSDs out, by the same ratios and rules as for histories.

Every hour is judged after its end by the rule for hours, every UTC day by those for days. Windows that arrive for
an hour that was already judged are ignored. After a start the windows of the last days are read from the store
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencyWindows
from predrain.data.slow_osd import SlowHost, Slowness, SlowOsd
from predrain.models.slow.latency_ratios import ComparisonGroups, Floats, Ints, compute_period_ratios
from predrain.models.slow.slow_verdicts import Flags, SlowPeriod, SlowWatch, beside_peers
from predrain.models.slow.slowness_rules import DAY, DISKS, HOSTS, HOURS

BIN_SECONDS = 300
GRACE_SECONDS = 300
"""Seconds after its end at which an hour is judged, so that the last rows of all hosts have arrived."""

Table = npt.NDArray[np.float32]
"""(rows, 7): disk, bin, then device await, commit, write and read latency (ms), then load; NaN means unknown.

Bins since 1970 are exact in a float32 until 2129.
"""


@dataclass(slots=True)
class LiveWatch:
    """Follows the OSDs of one cluster. It is mutable on purpose; only one thread may use it at a time."""

    _disks: dict[tuple[HostName, str, OsdId], int] = field(default_factory=dict)
    _groups: dict[tuple[HostName, str], int] = field(default_factory=dict)
    _group: list[int] = field(default_factory=list)
    _class: list[str] = field(default_factory=list)
    _hours: dict[int, list[Table]] = field(default_factory=dict)
    _past: dict[int, Table] = field(default_factory=dict)
    """The rows of hours that were judged, until their day is judged."""
    _judged: int | None = None
    """The newest hour that was judged, since 1970."""
    _short: SlowWatch = field(default_factory=lambda: SlowWatch(HOURS, 0))
    _long: SlowWatch = field(default_factory=lambda: SlowWatch(DISKS, 0))
    _hosts: SlowWatch = field(default_factory=lambda: SlowWatch(HOSTS, 0))
    _standing: dict[str, SlowPeriod] = field(default_factory=dict)
    _ratio: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    _told: Flags = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    _peers: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _host_ratio: Floats = field(default_factory=lambda: np.zeros(0, dtype=np.float32))

    def add_windows(self, told: Iterable[LatencyWindows], classes: Mapping[OsdId, str | None]) -> None:
        """Add latency windows. classes: each OSD's device class.

        OSDs of different classes are no peers. OSDs that are missing from `classes` do not count.
        """
        for one in told:
            at = one.window_start.timestamp()
            hour = int(at // HOURS.seconds)
            if self._judged is not None and hour <= self._judged:
                continue
            mine = [osd in classes for osd in one.osd]
            disks = [self._disk(one.host, classes[osd] or "", osd) for osd in one.osd if osd in classes]
            if disks:
                table = np.empty((len(disks), 7), dtype=np.float32)
                table[:, 0], table[:, 1] = disks, at // BIN_SECONDS
                table[:, 2:] = _extract_measurements(one)[mine]
                self._hours.setdefault(hour, []).append(table)

    def judge_elapsed_periods(self, now: datetime) -> Slowness:
        """Judge every hour and day that is over, in order. Return the OSDs and hosts that are slow."""
        over = int((now.timestamp() - GRACE_SECONDS) // HOURS.seconds)
        for hour in sorted(hour for hour in self._hours if hour < over):
            if self._judged is None or hour > self._judged:
                self._turn_of_day(hour)
                self._hour(hour)
                self._judged = hour
        self._turn_of_day(over)
        return self._said()

    def _disk(self, host: HostName, kind: str, osd: OsdId) -> int:
        known = self._disks.get((host, kind, osd))
        if known is None:
            known = self._disks[host, kind, osd] = len(self._disks)
            self._group.append(self._groups.setdefault((host, kind), len(self._groups)))
            if len(self._class) < len(self._groups):
                self._class.append(kind)
        return known

    def _hour(self, hour: int) -> None:
        table = np.concatenate(self._hours.pop(hour))
        self._past[hour] = table
        disk, _, peers = self._compared(table, hour * HOURS.seconds)
        self._standing["short"] = self._short.step(hour, disk)
        self._told = np.isfinite(disk)
        self._ratio, self._peers = np.where(np.isfinite(disk), disk, self._grown(self._ratio)), peers

    def _turn_of_day(self, hour: int) -> None:
        """Judge each day that ended before this hour, and drop its rows."""
        day = hour * HOURS.seconds // DAY
        open_days = {held * HOURS.seconds // DAY for held in self._hours}
        for past in sorted({held * HOURS.seconds // DAY for held in self._past} - open_days):
            if past >= day:
                continue
            mine = sorted(held for held in self._past if held * HOURS.seconds // DAY == past)
            table = np.concatenate([self._past.pop(held) for held in mine])
            disk, host, _ = self._compared(table, past * DAY)
            self._standing["long"] = self._long.step(past, disk)
            self._standing["hosts"] = self._hosts.step(past, host)
            self._host_ratio = np.where(np.isfinite(host), host, self._grown(self._host_ratio, hosts=True))

    def _compared(self, table: Table, start: int) -> tuple[Floats, Floats, Ints]:
        """Compare the disks in a period that starts at `start`.

        Return (the ratio that counts for each disk, each group's ratio, number of peers).
        """
        group = np.array(self._group, dtype=np.int64)
        roster = ComparisonGroups.from_groups(group)
        for watch, count in (
            (self._short, len(group)),
            (self._long, len(group)),
            (self._hosts, len(self._groups)),
        ):
            watch.grow(count)
        disk, bin_, latency, load = _average_by_bin(table, group)
        found_disk = np.full(len(group), np.nan, dtype=np.float32)
        found_host = np.full(len(self._groups), np.nan, dtype=np.float32)
        peers = np.zeros(len(group), dtype=np.int64)
        kinds = np.array([self._class[one] for one in group.tolist()], dtype=object)
        for kind in sorted(set(self._class)):
            mine = kinds[disk] == kind
            if not mine.any():
                continue
            work = load[mine] if np.isfinite(load[mine]).any() else None
            period = compute_period_ratios(
                roster, disk[mine], bin_[mine] - start // BIN_SECONDS, latency[mine], work
            )
            ours = kinds == kind
            found_disk[ours], peers[ours] = beside_peers(period)[ours], period.peers[ours]
            known = np.isfinite(period.host)
            found_host[known] = period.host[known]
        return found_disk, found_host, peers

    def _grown(self, held: Floats, *, hosts: bool = False) -> Floats:
        grown = np.full(len(self._groups) if hosts else len(self._group), np.nan, dtype=np.float32)
        grown[: len(held)] = held
        return grown

    def _said(self) -> Slowness:
        if self._judged is None:
            return Slowness()
        as_of = _from_timestamp((self._judged + 1) * HOURS.seconds)
        short, long, hosts = (self._standing.get(name) for name in ("short", "long", "hosts"))
        osds: dict[OsdId, SlowOsd] = {}
        for (host, _, osd), index in self._disks.items():
            hourly = short is not None and index < len(short.slow) and bool(short.slow[index])
            daily = long is not None and index < len(long.slow) and bool(long.slow[index])
            if not (hourly or daily):
                continue
            starts = [int(short.since[index]) * HOURS.seconds] if short is not None and hourly else []
            starts += [int(long.since[index]) * DAY] if long is not None and daily else []
            since, ratio = _from_timestamp(min(starts)), float(np.exp(self._ratio[index]))
            peers = int(self._peers[index])
            begun = f"since {since:%Y-%m-%d %H:%M}Z"
            reason = f"osd.{osd} answers {ratio:.2f} times as slowly as its {peers} peers on {host}, {begun}"
            osds[osd] = SlowOsd(osd, host, since, as_of, ratio, daily, reason)
        slow_hosts = []
        for (host, kind), index in self._groups.items():
            if hosts is None or index >= len(hosts.slow) or not hosts.slow[index]:
                continue
            since, ratio = (
                _from_timestamp(int(hosts.since[index]) * DAY),
                float(np.exp(self._host_ratio[index])),
            )
            reason = (
                f"All {kind + ' ' if kind else ''}disks of {host} answer {ratio:.2f} times as slowly as those of other "
                f"hosts, since {since:%Y-%m-%d}; look at the host (controller, cable, memory, load), not at its disks"
            )
            slow_hosts.append(SlowHost(host, since, ratio, reason))
        judged = frozenset(
            osd for (_, _, osd), index in self._disks.items() if index < len(self._told) and self._told[index]
        )
        return Slowness(as_of, osds, tuple(slow_hosts), judged)


def _extract_measurements(told: LatencyWindows) -> Floats:
    """Return the columns of a Table after the bin."""
    latencies = (told.device_await_ms, told.commit_ms_p50, told.write_ms_p50, told.read_ms_p50)
    columns = np.array([*latencies, told.iops, told.operations, told.window_seconds], dtype=np.float32).T
    load, operations, seconds = columns[:, 4], columns[:, 5], columns[:, 6]
    known = np.divide(operations, seconds, out=np.full_like(load, np.nan), where=seconds > 0)
    columns[:, 4] = np.where(np.isnan(load), known, load)
    return columns[:, :5]


def _average_by_bin(table: Table, group: Ints) -> tuple[Ints, Ints, Floats, Floats]:
    """Average the rows of each disk and bin: the latency that most rows of its host have, and the load."""
    disk, bin_ = table[:, 0].astype(np.int64), table[:, 1].astype(np.int64)
    known = np.isfinite(table[:, 2:6]) & (table[:, 2:6] > 0)
    have = np.zeros((int(group.max(initial=-1)) + 1, 4), dtype=np.int64)
    np.add.at(have, group[disk], known)
    kind = have.argmax(axis=1)[group[disk]]
    at = np.arange(len(table))
    latency = np.where(known[at, kind], table[at, 2 + kind], np.nan)
    keys, place = np.unique(np.stack([disk, bin_], axis=1), axis=0, return_inverse=True)
    return (
        keys[:, 0],
        keys[:, 1],
        _compute_means(latency, place.ravel(), len(keys)),
        _compute_means(table[:, 6], place.ravel(), len(keys)),
    )


def _compute_means(values: Floats, place: Ints, count: int) -> Floats:
    known = np.isfinite(values)
    sums = np.bincount(place[known], values[known], count)
    counts = np.bincount(place[known], minlength=count)
    with np.errstate(invalid="ignore"):
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).astype(np.float32)


def _from_timestamp(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)

"""The reason for the score of a disk on a day, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from predrain.models.slow.latency_ratios import BINS_MIN, ComparisonGroups, Floats, Ints
from predrain.models.slow.slow_verdicts import FEW_PEERS, SlowPeriod
from predrain.models.slow.slowness_rules import DISKS, HOSTS


@dataclass(frozen=True, slots=True)
class SlowDay:
    """One day of all disks.

    `present`: the disks with a row. disk, against, peers, bins, standing: (disks,). host, whole: (groups,). `disk`
    is the ratio to the host's others, `against` the one that counts (both logarithms).
    """

    day: int
    present: Ints
    disk: Floats
    against: Floats
    peers: Ints
    bins: Ints
    host: Floats
    standing: SlowPeriod
    whole: SlowPeriod


def explain_slowness(day: SlowDay, roster: ComparisonGroups, hosts: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each present disk, in order."""
    over = np.log(DISKS.ratio)
    plain = (day.disk < over) & ~day.standing.slow & np.isfinite(day.against)
    plain &= ~day.whole.slow[roster.group]
    for disk in day.present.tolist():
        yield "like its peers" if plain[disk] else _explain_disk(day, roster, hosts, disk)


def _explain_disk(day: SlowDay, roster: ComparisonGroups, hosts: Sequence[str], disk: int) -> str:
    group, host = int(roster.group[disk]), hosts[disk]
    peers = int(day.peers[disk])
    said = []
    if not np.isfinite(day.disk[disk]):
        few = int(day.bins[disk]) < BINS_MIN
        said.append("too few latencies above 0" if few else "no other disk on its host to compare with")
    elif not np.isfinite(day.against[disk]):
        said.append(
            f"{np.exp(day.disk[disk]):.2f}x the only other disk, and no other host tells which is slow"
        )
    else:
        said.append(f"{np.exp(day.disk[disk]):.2f}x its {peers} peers on {host}")
        if peers < FEW_PEERS and day.against[disk] < min(day.disk[disk], np.log(DISKS.ratio)):
            said.append(f"but {np.exp(day.against[disk]):.2f}x the disks of other hosts")
    if day.standing.over[disk] and np.isfinite(day.disk[disk]):
        limit = float(day.standing.limit[disk])
        said.append(
            f"{_format_days(int(day.standing.over[disk]))} running, limit {limit:.2f}x for {DISKS.running}"
        )
    elif day.standing.slow[disk]:
        said.append(f"was slow, not yet below {DISKS.clears_at}x for {_format_days(DISKS.running)}")
    if day.whole.slow[group]:
        said.append(
            f"the whole host is {_format_ratio(day.host[group])} the other hosts, limit {HOSTS.ratio}x"
        )
    return ", ".join(said)


def _format_days(number: int) -> str:
    return f"{number} day{'' if number == 1 else 's'}"


def _format_ratio(ratio: float) -> str:
    return f"{np.exp(ratio):.2f}x" if np.isfinite(ratio) else "without data beside"

"""What the demo counts, and the table it ends with: the same seed with predrain and without."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from predrain.actions.core.drain_cost import DEFAULT_FAILURE_COST
from predrain.actions.simulator import ClientLoad, ClusterTruth
from predrain.service.demo.fleet import Drive
from predrain.service.demo_status import DemoRow

TIB = 1 << 40
FELT_SHARE = 0.98
"""Clients that lose more than a fiftieth of their ops feel it: a drain stays above, a recovery does not."""


@dataclass(slots=True)
class DemoLedger:
    """One run's counts."""

    deaths: dict[str, tuple[Drive, datetime, bool, float]] = field(default_factory=dict)
    """Serial: drive, when, silent, share of its data that had been moved before."""
    emptied: dict[str, tuple[Drive, datetime, int]] = field(default_factory=dict)
    """Serial: drive, when it was verified empty, bytes moved off it."""
    offered: float = 0.0
    served: float = 0.0
    felt_seconds: float = 0.0
    """Seconds in which clients were served FELT_SHARE of their ops or less."""
    slow_ops: float = 0.0
    worst_ms: float = 0.0
    thin_pg_hours: float = 0.0
    """PG-hours with a copy missing."""
    rebuilt_bytes: int = 0

    def sample(self, load: ClientLoad) -> None:
        """What clients saw in one stretch."""
        self.offered += load.offered_iops * load.seconds
        self.served += load.served_iops * load.seconds
        if load.served_iops <= FELT_SHARE * load.offered_iops:
            self.felt_seconds += load.seconds
        self.slow_ops += load.slow_ops
        self.worst_ms = max(self.worst_ms, load.worst_ms)

    def degraded(self, truth: ClusterTruth, seconds: float) -> bool:
        """Count PGs with a copy missing over a stretch; False once there is none."""
        thin = sum(pg.copies < pg.pool.size for pg in truth.pgs.values())
        self.thin_pg_hours += thin * seconds / 3600
        return thin > 0

    def died(self, drive: Drive, when: datetime, *, silent: bool, share_moved: float) -> None:
        """A drive's recorded death, in its slot or (share 1) on the technician's shelf."""
        self.deaths[drive.serial] = (drive, when, silent, share_moved)

    def drained(self, drive: Drive, when: datetime, moved_bytes: int) -> None:
        """A drive was verified empty."""
        self.emptied.setdefault(drive.serial, (drive, when, moved_bytes))

    @property
    def foretold(self) -> list[float]:
        """Days between empty and dead, of drives that were drained before they failed."""
        return [
            (when - self.emptied[serial][1]).total_seconds() / 86400
            for serial, (_, when, _, _) in self.deaths.items()
            if serial in self.emptied
        ]

    @property
    def needless(self) -> list[int]:
        """Bytes moved off each drained drive that lived on to the end of its history."""
        return [moved for drive, _, moved in self.emptied.values() if drive.death is None]

    @property
    def saved_bytes(self) -> int:
        """Bytes that were off a disk before it failed."""
        return sum(self.emptied[serial][2] for serial in self.deaths if serial in self.emptied)

    @property
    def partly(self) -> list[float]:
        """Shares already moved off drives that died during their drain."""
        return [
            share
            for serial, (_, _, _, share) in self.deaths.items()
            if serial not in self.emptied and share > 0
        ]

    def missed(self, *, silent: bool) -> int:
        """Deaths that nothing was moved for, by whether the disk had shown a symptom the day before."""
        return sum(
            1
            for serial, (_, _, quiet, share) in self.deaths.items()
            if serial not in self.emptied and share == 0 and quiet is silent
        )


def table(watched: DemoLedger, unwatched: DemoLedger) -> tuple[DemoRow, ...]:
    """The closing table."""
    lead = watched.foretold
    partly = watched.partly

    def both(what: str, of: str, digits: int = 0) -> DemoRow:
        left, right = getattr(watched, of), getattr(unwatched, of)
        return DemoRow(what, f"{left:,.{digits}f}", f"{right:,.{digits}f}")

    return (
        DemoRow("disks that failed", f"{len(watched.deaths)}", f"{len(unwatched.deaths)}"),
        DemoRow(
            "  drained before they failed",
            f"{len(lead)}" + (f" (median {median(lead):.1f} days before)" if lead else ""),
            "0",
        ),
        DemoRow(
            "  died while draining", f"{len(partly)}" + (f" ({max(partly):.0%} moved)" if partly else ""), "0"
        ),
        DemoRow(
            "  missed, had shown symptoms",
            f"{watched.missed(silent=False)}",
            f"{unwatched.missed(silent=False)}",
        ),
        DemoRow(
            "  missed, no sign before", f"{watched.missed(silent=True)}", f"{unwatched.missed(silent=True)}"
        ),
        DemoRow("needless drains (lived on)", f"{len(watched.needless)}", "0"),
        DemoRow("TiB moved off in time", _tib(watched.saved_bytes), _tib(0)),
        DemoRow("TiB moved for nothing", _tib(sum(watched.needless)), _tib(0)),
        DemoRow("TiB rebuilt after a death", _tib(watched.rebuilt_bytes), _tib(unwatched.rebuilt_bytes)),
        DemoRow(
            f"cost: TiB moved + {DEFAULT_FAILURE_COST:g} x TiB rebuilt",
            _tib(_cost(watched)),
            _tib(_cost(unwatched)),
        ),
        both("PG-hours with a copy missing", "thin_pg_hours"),
        DemoRow("client ops served", _share(watched), _share(unwatched)),
        DemoRow(
            "hours with clients 2 % slower",
            f"{watched.felt_seconds / 3600:.1f}",
            f"{unwatched.felt_seconds / 3600:.1f}",
        ),
        both("client ops over 250 ms", "slow_ops"),
        DemoRow("slowest client op", f"{watched.worst_ms:,.0f} ms", f"{unwatched.worst_ms:,.0f} ms"),
    )


def _cost(ledger: DemoLedger) -> float:
    """Bytes moved gently, where a byte that is rebuilt counts as the default policy has it."""
    return ledger.saved_bytes + sum(ledger.needless) + DEFAULT_FAILURE_COST * ledger.rebuilt_bytes


def _tib(count: float) -> str:
    return f"{count / TIB:.1f}"


def _share(ledger: DemoLedger) -> str:
    return f"{100 * ledger.served / ledger.offered:.3f} %" if ledger.offered else "-"

"""The counts of the demo and its closing table: the same seed with predrain and without."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from statistics import median

from predrain.actions.core.drain_cost import DEFAULT_FAILURE_COST
from predrain.actions.simulator import ClientLoad
from predrain.service.app.demo_status import DemoRow
from predrain.service.demo.demo_fleet import Drive

TIB = 1 << 40
FELT_SHARE = 0.98
"""Clients that lose more than a fiftieth of their ops count as slowed: a drain stays above this share, a recovery
does not.
"""


@dataclass(slots=True)
class DemoLedger:
    """The counts of one run."""

    deaths: dict[str, tuple[Drive, datetime, bool, float]] = field(default_factory=dict)
    """By serial number: drive, time, whether silent, and the share of its data that had been moved before."""
    emptied: dict[str, tuple[Drive, datetime, int]] = field(default_factory=dict)
    """By serial number: drive, the time at which it was verified empty, bytes moved off it."""
    offered: float = 0.0
    served: float = 0.0
    felt_seconds: float = 0.0
    """Seconds in which clients were served FELT_SHARE of their ops or less."""
    slow_ops: float = 0.0
    worst_ms: float = 0.0
    thin_pg_hours: float = 0.0
    """PG-hours with a missing copy."""
    rebuilt_bytes: int = 0

    def add_client_load(self, load: ClientLoad) -> None:
        """Add the load that clients saw in one stretch of time."""
        self.offered += load.offered_iops * load.seconds
        self.served += load.served_iops * load.seconds
        if load.served_iops <= FELT_SHARE * load.offered_iops:
            self.felt_seconds += load.seconds
        self.slow_ops += load.slow_ops
        self.worst_ms = max(self.worst_ms, load.worst_ms)

    def count_degraded_pgs(self, thin: int, seconds: float) -> bool:
        """Count `thin` PGs with a missing copy over a stretch of time; return False if there is none."""
        self.thin_pg_hours += thin * seconds / 3600
        return thin > 0

    def record_death(self, drive: Drive, when: datetime, *, silent: bool, share_moved: float) -> None:
        """Record a drive's death, in its slot or (share 1) after it was swapped."""
        self.deaths[drive.serial] = (drive, when, silent, share_moved)

    def record_emptied_drive(self, drive: Drive, when: datetime, moved_bytes: int) -> None:
        """Record that a drive was verified empty."""
        self.emptied.setdefault(drive.serial, (drive, when, moved_bytes))

    @property
    def lead_days(self) -> list[float]:
        """Days between the emptying and the death of drives that were drained before they failed."""
        return [
            (when - self.emptied[serial][1]).total_seconds() / 86400
            for serial, (_, when, _, _) in self.deaths.items()
            if serial in self.emptied
        ]

    @property
    def needless_bytes(self) -> list[int]:
        """Bytes moved off each drained drive that lived to the end of its history."""
        return [moved for drive, _, moved in self.emptied.values() if drive.death is None]

    @property
    def saved_bytes(self) -> int:
        """Bytes that were moved off disks before they failed."""
        return sum(self.emptied[serial][2] for serial in self.deaths if serial in self.emptied)

    @property
    def partly_moved_shares(self) -> list[float]:
        """Shares that were moved off drives that died during their drain."""
        return [
            share
            for serial, (_, _, _, share) in self.deaths.items()
            if serial not in self.emptied and share > 0
        ]

    def count_missed_deaths(self, *, silent: bool) -> int:
        """Count deaths without any move, by whether the disk had shown no symptom the day before."""
        return sum(
            1
            for serial, (_, _, quiet, share) in self.deaths.items()
            if serial not in self.emptied and share == 0 and quiet is silent
        )


def build_result_table(watched: DemoLedger, unwatched: DemoLedger) -> tuple[DemoRow, ...]:
    """Build the closing table."""
    lead = watched.lead_days
    partly = watched.partly_moved_shares

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
            "  died while draining",
            f"{len(partly)}" + (f" (median {median(partly):.0%} moved)" if partly else ""),
            "0",
        ),
        DemoRow(
            "  missed, had shown symptoms",
            f"{watched.count_missed_deaths(silent=False)}",
            f"{unwatched.count_missed_deaths(silent=False)}",
        ),
        DemoRow(
            "  missed, no sign before",
            f"{watched.count_missed_deaths(silent=True)}",
            f"{unwatched.count_missed_deaths(silent=True)}",
        ),
        DemoRow("needless drains (lived on)", f"{len(watched.needless_bytes)}", "0"),
        DemoRow("TiB moved off in time", _format_tib(watched.saved_bytes), _format_tib(0)),
        DemoRow("TiB moved for nothing", _format_tib(sum(watched.needless_bytes)), _format_tib(0)),
        DemoRow(
            "TiB rebuilt after a death",
            _format_tib(watched.rebuilt_bytes),
            _format_tib(unwatched.rebuilt_bytes),
        ),
        DemoRow(
            f"cost: TiB moved + {DEFAULT_FAILURE_COST:g} x TiB rebuilt",
            _format_tib(_compute_cost_bytes(watched)),
            _format_tib(_compute_cost_bytes(unwatched)),
        ),
        both("PG-hours with a copy missing", "thin_pg_hours"),
        DemoRow("client ops served", _format_served_share(watched), _format_served_share(unwatched)),
        DemoRow(
            "hours with clients 2 % slower",
            f"{watched.felt_seconds / 3600:.1f}",
            f"{unwatched.felt_seconds / 3600:.1f}",
        ),
        both("client ops over 250 ms", "slow_ops"),
        DemoRow("slowest client op", f"{watched.worst_ms:,.0f} ms", f"{unwatched.worst_ms:,.0f} ms"),
    )


def _compute_cost_bytes(ledger: DemoLedger) -> float:
    """Return the bytes that were moved, plus the rebuilt bytes at the failure cost of the default policy."""
    return ledger.saved_bytes + sum(ledger.needless_bytes) + DEFAULT_FAILURE_COST * ledger.rebuilt_bytes


def _format_tib(count: float) -> str:
    return f"{count / TIB:.1f}"


def _format_served_share(ledger: DemoLedger) -> str:
    return f"{100 * ledger.served / ledger.offered:.3f} %" if ledger.offered else "-"

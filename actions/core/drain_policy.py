"""The policy: every limit for drains, with the defaults of design 5."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.core.drain_cost import DEFAULT_FAILURE_COST, DEFAULT_LOSS_COST, DeathCosts


class Mode(StrEnum):
    """OBSERVE: forecasts only. PROPOSE: drains are proposed, and a person approves. ACT: bad disks are
    drained.
    """

    OBSERVE = "observe"
    PROPOSE = "propose"
    ACT = "act"


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits. Ratios are in [0, 1]."""

    mode: Mode = Mode.PROPOSE
    tick_seconds: float = 10.0
    drains_per_host: int = 1
    drains_per_rack: int = 2
    drains_per_cluster: int = 4
    out_share_max: float = 0.02
    """Share of all OSDs that may be out or draining; one OSD is always allowed."""
    recovering_share_max: float = 0.05
    """Share of all PGs, among those that no step touches, that may lack copies while data moves: about one of
    20 hosts.
    """
    peering_max: int = 3
    """PGs that may peer at once because of us. Peering is the part of a move that clients notice."""
    in_flight_max: int = 8
    """PGs that may be on their way at once, over all drains."""
    per_target_max: int = 2
    """PGs on their way to one OSD: one backfills, one waits (`osd_max_backfills` 1)."""
    backfillfull_margin: float = 0.05
    """The limit of a target is min(nearfull, backfillfull - this margin)."""
    mass_suspicion_min: int = 3
    mass_suspicion_share: float = 0.05
    mass_suspicion_window: timedelta = timedelta(days=7)
    """If more than max(mass_suspicion_min, mass_suspicion_share) disks of one model turn bad in the window, the
    forecast is suspect.
    """
    confirmation_readings: int = 3
    confirmation_hours: float = 24.0
    hard_evidence_readings: int = 2
    hard_evidence_hours: float = 1.0
    outlook_age_max: timedelta = timedelta(hours=36)
    view_age_max: timedelta = timedelta(seconds=60)
    mgr_stats_period_seconds: float = 5.0
    """`mgr_stats_period`: statistics follow the map this much later; predrain waits twice this time."""
    fast_maps_seconds: float | None = None
    """Seconds between two maps while PGs move (`paxos_propose_interval`); None: the operator's value stays.
    """
    fast_maps_max_per_second: float = 2.0
    """The rate of maps (maps/s, over a minute, from all causes) above which the fast interval is given back.
    """
    upmap_attempts: int = 3
    """Attempts to set an upmap item that the mon drops, before the drain holds."""
    new_bundle_quiet: timedelta = timedelta(hours=72)
    """No automatic proposal is made for this long after a new bundle..."""
    new_bundle_bad_share: float = 0.005
    """...nor while the new bundle judges a larger share of all devices newly bad."""
    withdraw_after: timedelta = timedelta(days=3)
    """An automatic proposal whose device is no longer bad is withdrawn after this long."""
    proposal_cooldown: timedelta = timedelta(days=7)
    """After a person cancelled a device's drain, no automatic proposal for the device is made for this long.
    """
    slow_drain_after: timedelta = timedelta(days=3)
    """A drain is proposed for an OSD that has been slower than its peers for this long."""
    slow_age_max: timedelta = timedelta(hours=3)
    """A verdict from latencies on an OSD is valid for this long."""
    replan_after: timedelta = timedelta(minutes=10)
    """A refused plan is computed again this often while the map does not change (sizes change without it)."""
    ways_out_after: timedelta = timedelta(hours=1)
    """A drain that is held for the same reasons for this long is offered its ways out."""
    window: tuple[int, int] | None = None
    """Hours of the day (UTC, from, to) in which PGs may move, e.g. (22, 6); None: always."""
    latency_hold: float = 1.2
    latency_halve: float = 1.5
    latency_pull_back: float = 2.0
    latency_grow: float = 1.1
    urgent_days: float = 7.0
    """A drive is urgent if its median life expectancy is below this number of days..."""
    urgent_latency_factor: float = 1.5
    """...and may spend this many times the latency excess (a limit of 1.2 becomes 1.3)."""
    backfill_bytes_per_second: float = 40e6
    """Assumed rate of one backfill in bytes/s, for the ETA and for replays (`actions.cost_benefit`)."""
    disk_bytes_per_second: float = 60e6
    """The rate in bytes/s that one disk reads for backfills beside its clients, for the ETA.

    A co-located OSD saturates near 80 MB/s (an operator of 18 TB disks, on 25 Gb/s hosts).
    """
    host_bytes_per_second: float = 600e6
    """The network rate of one host for backfills in bytes/s, for the ETA: half a 10 Gb/s link; clients use
    the rest.
    """
    remove_bystander_upmaps: bool = False
    """True: after a removal, remove the upmap items that keep other OSDs' PGs in place, a few at a time.
    False: they stay until the balancer removes them.
    """
    failure_cost: float = DEFAULT_FAILURE_COST
    """The cost of a byte rebuilt after a death, in bytes moved gently."""
    loss_cost: float = DEFAULT_LOSS_COST
    """The added cost of a byte of a PG that would fall below `min_size`, or to it while another of its disks
    is failing.
    """
    failure_cost_overrides: tuple[tuple[str, float], ...] = ()
    """Other values of `failure_cost` for `pool:NAME`, `class:NAME` or `host:NAME`; the highest that applies
    counts.
    """
    loss_cost_overrides: tuple[tuple[str, float], ...] = ()
    """Other values of `loss_cost`, in the same form."""
    known_releases: frozenset[str] = frozenset({"pacific", "quincy", "reef", "squid", "tentacle"})

    def snapshot(self) -> dict[str, str]:
        """Return every limit as text, to store with a drain that was approved under it."""
        return {item.name: _format_limit(getattr(self, item.name)) for item in fields(self)}

    def death_costs(self, host: str, device_class: str | None, pool: str | None = None) -> DeathCosts:
        """Return the costs of a byte of a pool on a disk of this class in this host; the highest value that
        applies counts.
        """
        places = {f"host:{host}", f"class:{device_class}", f"pool:{pool}"}
        return DeathCosts(
            max(
                (cost for place, cost in self.failure_cost_overrides if place in places),
                default=self.failure_cost,
            ),
            max(
                (cost for place, cost in self.loss_cost_overrides if place in places), default=self.loss_cost
            ),
        )

    @property
    def dearest_death(self) -> float:
        """Return the highest possible cost of a byte when a disk dies, over all pools, classes and hosts."""
        return max(self.failure_cost, *(cost for _, cost in self.failure_cost_overrides), 0.0) + max(
            self.loss_cost, *(cost for _, cost in self.loss_cost_overrides), 0.0
        )

    @property
    def open_share(self) -> float:
        """Return the share of the day in which PGs may move."""
        if self.window is None:
            return 1.0
        start, end = self.window
        return ((end - start) % 24 or 24) / 24

    def open_at(self, now: datetime) -> bool:
        """Return whether PGs may move at `now`."""
        if self.window is None:
            return True
        start, end = self.window
        return start <= now.hour < end if start < end else now.hour >= start or now.hour < end


def _format_limit(value: object) -> str:
    if isinstance(value, frozenset):
        return " ".join(sorted(str(item) for item in value))
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return " ".join(f"{place}={cost:g}" for place, cost in value)
    return str(value)

"""The policy: every limit a drain lives under, with design 5's defaults."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum

from predrain.actions.core.drain_cost import DEFAULT_FAILURE_COST, DEFAULT_LOSS_COST, DeathCosts


class Mode(StrEnum):
    """OBSERVE: forecasts only. PROPOSE: drains are proposed, a person approves. ACT: bad disks are
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
    """Share of all OSDs that may be out or draining; one is always allowed."""
    recovering_share_max: float = 0.05
    """Share of all PGs that may lack copies, of PGs that no step touches, while data moves: about one of 20 hosts."""
    peering_max: int = 3
    """PGs that may peer at once because of us: what clients feel."""
    in_flight_max: int = 8
    """PGs that may be on their way at once, over all drains."""
    per_target_max: int = 2
    """PGs on their way to one OSD: one backfills, one waits (`osd_max_backfills` 1)."""
    backfillfull_margin: float = 0.05
    """A target's limit is min(nearfull, backfillfull - this)."""
    suspicion_min: int = 3
    suspicion_share: float = 0.05
    suspicion_window: timedelta = timedelta(days=7)
    """More than max(suspicion_min, suspicion_share) newly bad of one model in the window: the model
    is sick.
    """
    trust_readings: int = 3
    trust_hours: float = 24.0
    hard_readings: int = 2
    hard_hours: float = 1.0
    outlook_age_max: timedelta = timedelta(hours=36)
    view_age_max: timedelta = timedelta(seconds=60)
    statistics_seconds: float = 5.0
    """`mgr_stats_period`: statistics follow the map this much later; twice this is waited for."""
    fast_maps: float | None = None
    """Seconds between two maps while PGs move (`paxos_propose_interval`); None: as the operator has it."""
    fast_maps_budget: float = 2.0
    """Maps a second, over a minute and from all causes, above which it is given back."""
    pin_attempts: int = 3
    """How often a pin that the mon dropped is set again before the drain holds."""
    new_bundle_quiet: timedelta = timedelta(hours=72)
    """After a new bundle no automatic proposal for this long..."""
    new_bundle_bad_share: float = 0.005
    """...nor while it calls a larger share of all devices newly bad."""
    withdraw_after: timedelta = timedelta(days=3)
    """An automatic proposal whose device is no longer bad is withdrawn after this long."""
    propose_again_after: timedelta = timedelta(days=7)
    """After a person cancelled a device's drain, nothing is proposed for it by itself for this long."""
    slow_drain_after: timedelta = timedelta(days=3)
    """An OSD that has been slower than its peers for this long is proposed for a drain."""
    slow_age_max: timedelta = timedelta(hours=3)
    """What latencies said of an OSD is believed for this long."""
    plan_again_after: timedelta = timedelta(minutes=10)
    """How often a plan that is refused is tried anew on an unchanged map (sizes change without it)."""
    ways_out_after: timedelta = timedelta(hours=1)
    """A drain that is held for the same reasons for this long is offered its ways out."""
    window: tuple[int, int] | None = None
    """Hours of the day (UTC, from, to) in which PGs may move, e.g. (22, 6); None: always."""
    latency_hold: float = 1.2
    latency_halve: float = 1.5
    latency_pull_back: float = 2.0
    latency_grow: float = 1.1
    urgent_days: float = 7.0
    """A drive whose median life is below this is urgent..."""
    urgent_stretch: float = 1.5
    """...and may spend this many times the latency excess (a limit of 1.2 becomes 1.3)."""
    move_bytes_per_second: float = 40e6
    """Assumed rate of one backfill, for the ETA and for replays (`actions.cost_benefit`)."""
    disk_bytes_per_second: float = 60e6
    """What one disk reads for backfills beside its clients, for the ETA; a co-located OSD saturates near 80 MB/s
    (an operator of 18 TB disks, on 25 Gb/s hosts)."""
    host_bytes_per_second: float = 600e6
    """What the network of one host gives to backfills, for the ETA: half a 10 Gb/s link, the rest is the clients'."""
    return_pins: bool = False
    """After a removal, give bystanders' pins back a few at a time; else they stay until the balancer takes them."""
    failure_cost: float = DEFAULT_FAILURE_COST
    """What a byte rebuilt after a death costs, in bytes moved gently."""
    loss_cost: float = DEFAULT_LOSS_COST
    """Beside it, a byte of a PG that would fall below `min_size`, or to it while another of its disks is failing."""
    failure_cost_of: tuple[tuple[str, float], ...] = ()
    """Other values of `failure_cost`, for `pool:NAME`, `class:NAME` or `host:NAME`; of several the highest counts."""
    loss_cost_of: tuple[tuple[str, float], ...] = ()
    """The same of `loss_cost`."""
    known_releases: frozenset[str] = frozenset({"pacific", "quincy", "reef", "squid", "tentacle"})

    def snapshot(self) -> dict[str, str]:
        """Every limit as text, to be kept with a drain that was approved under it."""
        return {item.name: _text(getattr(self, item.name)) for item in fields(self)}

    def death_costs(self, host: str, device_class: str | None, pool: str | None = None) -> DeathCosts:
        """What a byte costs that a disk of this class in this host holds of a pool; of several values the highest."""
        places = {f"host:{host}", f"class:{device_class}", f"pool:{pool}"}
        return DeathCosts(
            max((cost for place, cost in self.failure_cost_of if place in places), default=self.failure_cost),
            max((cost for place, cost in self.loss_cost_of if place in places), default=self.loss_cost),
        )

    @property
    def dearest_death(self) -> float:
        """The most that a byte can cost when a disk dies, over all pools, classes and hosts."""
        return max(self.failure_cost, *(cost for _, cost in self.failure_cost_of), 0.0) + max(
            self.loss_cost, *(cost for _, cost in self.loss_cost_of), 0.0
        )

    @property
    def open_share(self) -> float:
        """Share of the day in which PGs may move."""
        if self.window is None:
            return 1.0
        start, end = self.window
        return ((end - start) % 24 or 24) / 24

    def open_at(self, now: datetime) -> bool:
        """Whether PGs may move at `now`."""
        if self.window is None:
            return True
        start, end = self.window
        return start <= now.hour < end if start < end else now.hour >= start or now.hour < end


def _text(value: object) -> str:
    if isinstance(value, frozenset):
        return " ".join(sorted(str(item) for item in value))
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return " ".join(f"{place}={cost:g}" for place, cost in value)
    return str(value)

"""`[policy]` of the settings: every limit that a drain lives under, each with its unit, default and sentence."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from predrain.actions.core.drain_cost import (
    COST_MAX,
    DEFAULT_FAILURE_COST,
    DEFAULT_LOSS_COST,
    BadCost,
    check_cost,
)
from predrain.actions.core.drain_policy import Mode, Policy

DURATIONS = frozenset(field.name for field in fields(Policy) if isinstance(field.default, timedelta))

_Hour = Annotated[int, Field(ge=0, le=24)]
FAST_MAPS_LEAST = 0.25
"""Seconds; the shortest interval whose cost was estimated (docs/decisions/0039)."""
_PLACES = ("pool:", "class:", "host:")


def _check_given_cost(given: Any) -> Any:
    """Refuse a number that is no valid cost, with the cure; leave the check of any other value to pydantic."""
    try:
        cost = float(given)
    except (TypeError, ValueError):
        return given
    try:
        check_cost("a cost", cost)
    except BadCost as refused:
        raise ValueError(str(refused).removesuffix(".")) from refused
    return given


def _check_places(costs: dict[str, float]) -> dict[str, float]:
    for place in costs:
        if not place.startswith(_PLACES) or place.endswith(":"):
            raise ValueError(
                f'\'{place}\' is no place; write "pool:NAME", "class:NAME" or "host:NAME", such as '
                '{ "pool:rbd" = 30 }'
            )
    return costs


def _check_interval(given: Any) -> Any:
    """Return None for 0 (off). Refuse values below the least that was measured, and values no faster than Ceph's
    default.
    """
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        return given
    if seconds == 0:
        return None
    if not FAST_MAPS_LEAST <= seconds < 1:
        raise ValueError(
            f"{seconds:g} s between two maps is not to be set: from {FAST_MAPS_LEAST:g} to below 1, or 0 for off "
            "(below it what maps cost a large cluster was not measured; 1 is Ceph's default)"
        )
    return seconds


_Interval = Annotated[float | None, BeforeValidator(_check_interval)]
_Cost = Annotated[float, Field(ge=1, le=COST_MAX), BeforeValidator(_check_given_cost)]
_CostByPlace = Annotated[dict[str, _Cost], AfterValidator(_check_places)]


class PolicyTable(BaseModel):
    """`[policy]`: the limits every drain lives under; shares and ratios of fullness are in [0, 1]."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mode: Literal["observe", "propose", "act"] = Field(
        default="propose",
        description="`observe`: forecasts only; `propose`: a person approves each drain; `act`: disks "
        "whose drain pays are drained without a person.",
    )
    tick_seconds: float = Field(
        default=10.0, gt=0, description="Seconds between two polls of the controller."
    )
    drains_per_host: int = Field(default=1, ge=0, description="Drains at once on one host.")
    drains_per_rack: int = Field(default=2, ge=0, description="Drains at once in one rack.")
    drains_per_cluster: int = Field(default=4, ge=0, description="Drains at once in the cluster.")
    out_share_max: float = Field(
        default=0.02, ge=0, le=1, description="Share of all OSDs that may be out or draining."
    )
    recovering_share_max: float = Field(
        default=0.05,
        ge=0,
        le=1,
        description="Share of all PGs that may lack copies elsewhere while data moves; above it recovery has the "
        "cluster to itself.",
    )
    peering_max: int = Field(default=3, ge=1, description="PGs that may peer at once because of predrain.")
    in_flight_max: int = Field(default=8, ge=1, description="PGs in flight at once, over all drains.")
    per_target_max: int = Field(default=2, ge=1, description="PGs on their way to one OSD.")
    backfillfull_margin: float = Field(
        default=0.05, ge=0, le=1, description="A target's limit is min(nearfull, backfillfull - this)."
    )
    window: tuple[_Hour, _Hour] | None = Field(
        default=None,
        description="Hours of the day (UTC, from and to, 0 to 24) in which PGs may move, such as `[22, 6]`.",
    )
    mass_suspicion_min: int = Field(
        default=3, ge=1, description="Newly bad drives of one model that are still believed."
    )
    mass_suspicion_share: float = Field(
        default=0.05, ge=0, le=1, description="Share of a model newly bad above which the model is suspected."
    )
    mass_suspicion_window_days: float = Field(
        default=7.0, gt=0, description="Days over which newly bad drives are counted."
    )
    failure_cost: _Cost = Field(
        default=DEFAULT_FAILURE_COST,
        description="Cost of a byte that is rebuilt after a death, in bytes that a drain moves: a disk is drained when "
        "that pays.",
    )
    loss_cost: _Cost = Field(
        default=DEFAULT_LOSS_COST,
        description="Additional cost of a byte if its PG would fall below `min_size`, or to it while another of "
        "its disks is failing.",
    )
    failure_cost_overrides: _CostByPlace = Field(
        default={},
        description='Other values of `failure_cost`, such as `{ "pool:rbd" = 30, "class:ssd" = 5, "host:stor-01" = 20 '
        "}`; of several that fit the highest counts.",
    )
    loss_cost_overrides: _CostByPlace = Field(
        default={}, description="Other values of `loss_cost`, written alike."
    )
    confirmation_readings: int = Field(
        default=3,
        ge=1,
        description="Readings in a row that must bear out an outlook without a chance (a rule's).",
    )
    confirmation_hours: float = Field(
        default=24.0,
        ge=0,
        description="Hours over which they must lie; with a chance, the longest that it must last.",
    )
    hard_evidence_readings: int = Field(default=2, ge=1, description="The same for hard evidence: readings.")
    hard_evidence_hours: float = Field(default=1.0, ge=0, description="The same for hard evidence: hours.")
    outlook_age_max_hours: float = Field(
        default=36.0, gt=0, description="Hours after which an outlook is too old to act on."
    )
    view_age_max_seconds: float = Field(
        default=60.0, gt=0, description="Seconds after which a view of the cluster is too old to act on."
    )
    mgr_stats_period_seconds: float = Field(
        default=5.0,
        gt=0,
        description="Ceph's `mgr_stats_period` in seconds; twice this is waited for after a change.",
    )
    fast_maps_seconds: _Interval = Field(
        default=None,
        description="Seconds between two maps while PGs move (`paxos_propose_interval` of the monitors), from "
        f"{FAST_MAPS_LEAST:g} to below 1; 0 and unset: as the operator has it.",
    )
    fast_maps_max_per_second: float = Field(
        default=2.0,
        gt=0,
        description="Maps a second, over a minute and from all causes, above which `fast_maps_seconds` is given back.",
    )
    upmap_attempts: int = Field(
        default=3, ge=1, description="How often an upmap item that the mon dropped is set again."
    )
    new_bundle_quiet_hours: float = Field(
        default=72.0, ge=0, description="Hours after a new bundle without automatic proposals."
    )
    new_bundle_bad_share: float = Field(
        default=0.005,
        ge=0,
        le=1,
        description="No automatic proposals while a new bundle calls more devices newly bad.",
    )
    withdraw_after_days: float = Field(
        default=3.0,
        ge=0,
        description="Days after which a proposal is withdrawn whose device is no longer bad.",
    )
    proposal_cooldown_days: float = Field(
        default=7.0,
        ge=0,
        description="Days without an automatic proposal after a person cancelled a device's drain.",
    )
    slow_drain_after_days: float = Field(
        default=3.0,
        ge=0,
        description="Days after which a drain is proposed for an OSD slower than its peers.",
    )
    slow_age_max_hours: float = Field(
        default=3.0, gt=0, description="Hours for which it is believed that an OSD is slow, or is well again."
    )
    replan_after_minutes: float = Field(
        default=10.0,
        gt=0,
        description="Minutes after which a refused plan is tried again on an unchanged map.",
    )
    ways_out_after_minutes: float = Field(
        default=60.0,
        gt=0,
        description="Minutes after which a drain that is held for the same reasons is offered its ways out.",
    )
    latency_hold: float = Field(default=1.2, ge=1, description="Latency ratio above which a drain holds.")
    latency_halve: float = Field(
        default=1.5, ge=1, description="Latency ratio above which the next batch is halved."
    )
    latency_pull_back: float = Field(
        default=2.0, ge=1, description="Latency ratio above which waiting PGs are pulled back."
    )
    latency_grow: float = Field(
        default=1.1, ge=1, description="Latency ratio below which one more PG may move."
    )
    urgent_days: float = Field(
        default=7.0, ge=0, description="Median life in days below which a drive is urgent."
    )
    urgent_latency_factor: float = Field(
        default=1.5, ge=1, description="How many times the latency excess an urgent one may spend."
    )
    backfill_bytes_per_second: float = Field(
        default=40e6,
        gt=0,
        description="Assumed rate of one backfill in bytes/s, for the ETA and for replays.",
    )
    disk_bytes_per_second: float = Field(
        default=60e6, gt=0, description="Rate at which a disk reads for backfills in bytes/s, for the ETA."
    )
    host_bytes_per_second: float = Field(
        default=600e6, gt=0, description="Rate of a host's network for backfills in bytes/s, for the ETA."
    )
    remove_bystander_upmaps: bool = Field(
        default=False,
        description="After a removal, remove the upmap items that keep PGs of other OSDs in place, a few at a time; "
        "else they stay until the balancer removes them.",
    )

    def to_policy(self) -> Policy:
        """Return the same limits as the `Policy` of predrain.actions; the end of a key is a duration's unit."""
        limits: dict[str, Any] = {}
        for key, value in self.model_dump().items():
            name, _, unit = key.rpartition("_")
            if name in DURATIONS:
                limits[name] = timedelta(**{unit: value})
            elif isinstance(value, dict):
                limits[key] = tuple(sorted(value.items()))
            else:
                limits[key] = Mode(value) if key == "mode" else value
        return Policy(**limits)

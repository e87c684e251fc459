"""Unknown keys of the settings, as both readers of settings describe them; a key of 0.1.0 that was renamed is refused
with its name now.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

RENAMED: Mapping[str, str] = {
    "service.address": "service.external_url",
    "service.proxies": "service.trusted_proxies",
    "forecast.tracking": "forecast.tracking_uri",
    "forecast.ask_home_after_hours": "forecast.confirm_host_after_hours",
    "ceph.hand_key": "ceph.executor_key",
    "kafka.bootstrap": "kafka.bootstrap_servers",
    "kafka.replicas": "kafka.replication_factor",
    "kafka.in_sync": "kafka.min_insync_replicas",
    "mail.least": "mail.min_severity",
    "webhook.least": "webhook.min_severity",
    "webhook.inside": "webhook.allow_private_address",
    "collector.round_minutes": "collector.reading_interval_minutes",
    "collector.smartctl_seconds": "collector.smartctl_timeout_seconds",
    "policy.suspicion_min": "policy.mass_suspicion_min",
    "policy.suspicion_share": "policy.mass_suspicion_share",
    "policy.suspicion_window_days": "policy.mass_suspicion_window_days",
    "policy.failure_cost_of": "policy.failure_cost_overrides",
    "policy.loss_cost_of": "policy.loss_cost_overrides",
    "policy.trust_readings": "policy.confirmation_readings",
    "policy.trust_hours": "policy.confirmation_hours",
    "policy.hard_readings": "policy.hard_evidence_readings",
    "policy.hard_hours": "policy.hard_evidence_hours",
    "policy.statistics_seconds": "policy.mgr_stats_period_seconds",
    "policy.fast_maps": "policy.fast_maps_seconds",
    "policy.fast_maps_budget": "policy.fast_maps_max_per_second",
    "policy.pin_attempts": "policy.upmap_attempts",
    "policy.return_pins": "policy.remove_bystander_upmaps",
    "policy.propose_again_after_days": "policy.proposal_cooldown_days",
    "policy.plan_again_after_minutes": "policy.replan_after_minutes",
    "policy.urgent_stretch": "policy.urgent_latency_factor",
    "policy.move_bytes_per_second": "policy.backfill_bytes_per_second",
}
"""`table.key` of 0.1.0 to `table.key` now."""


def describe_unknown_key(key: str, known: Iterable[str], otherwise: str) -> str:
    """Return a clause about the unknown key `table.key`: its name now if it was renamed, else the nearest of
    `known`, else the cure `otherwise`.
    """
    new = RENAMED.get(key)
    if new is None:
        return f"unknown key {key}; {suggest_nearest_key(key, known, otherwise)}"
    return f"{key} was renamed to {new}: write {new.partition('.')[2]}"


def suggest_nearest_key(key: str, known: Iterable[str], otherwise: str) -> str:
    """Return a question about the nearest of `known`, or `otherwise` if none is near."""
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else otherwise

"""All metric families. `docs/reference/metrics.md` is this table in words; a test compares the two."""

from __future__ import annotations

from typing import Final

from predrain.data.drain import DrainState
from predrain.data.life_cycle import LifeState
from predrain.data.outlook import Status
from predrain.service.notifications.heat_causes import HOT_C
from predrain.service.rest.metrics.metric_family import MOST, MetricFamily

_HOSTS = f"hosts, {MOST} at the most"
_CHANNELS = "channels that are set, and the digest"
_FAMILIES = "makers and models of the bundle's reference, about 20"

DEVICES = MetricFamily(
    "predrain_devices",
    "Devices that neither failed nor are retired, by severity.",
    ("status",),
    str(len(Status)),
)
LIVES = MetricFamily(
    "predrain_device_states", "Devices by the state of their life.", ("state",), str(len(LifeState))
)
STALE = MetricFamily("predrain_stale_devices", "Devices without a reading for two intervals.")
EXPECTED = MetricFamily("predrain_expected_failures_30d", "Failures expected within 30 days.")
NEWEST = MetricFamily("predrain_newest_reading_age_seconds", "Age of the newest reading.")
STALE_AFTER = MetricFamily(
    "predrain_reading_stale_seconds", "Age from which a reading is stale: two intervals."
)
BAD = MetricFamily(
    "predrain_bad_devices",
    "Devices whose severity is bad and on which data may lie (not drained, failed or retired), where there are any.",
    ("host", "model"),
    f"pairs with a bad device, {MOST} at the most",
)
MODELS = MetricFamily(
    "predrain_model_devices", "Devices by model.", ("model",), f"models, {MOST} at the most"
)
HOST_AGE = MetricFamily(
    "predrain_host_reading_age_seconds", "Age of the newest reading from a host.", ("host",), _HOSTS
)
HOST_UNREADABLE = MetricFamily(
    "predrain_host_unreadable_devices",
    "Devices that could not be read, where there are any.",
    ("host",),
    _HOSTS,
)
HOST_BLIND = MetricFamily(
    "predrain_host_devices_without_smartctl",
    "Devices that nobody could ask, since the host cannot run smartctl, where there are any.",
    ("host",),
    _HOSTS,
)
HOSTS_UNHEARD = MetricFamily("predrain_hosts_without_readings", "Hosts with OSDs that never sent a reading.")
HOSTS = MetricFamily(
    "predrain_hosts", "Hosts with OSDs, or, without a cluster, hosts that were heard of lately."
)
HOT = MetricFamily(
    "predrain_hot_devices",
    f"Hard disks at {HOT_C} degrees Celsius or more, where there are any.",
    ("rack", "host"),
    _HOSTS,
)
UNREADABLE_FOR = MetricFamily(
    "predrain_longest_unreadable_seconds", "How long the device has been unreadable that was so first."
)

OSDS = MetricFamily("predrain_osds", "OSDs in the cluster.")
VIEW_AGE = MetricFamily("predrain_view_age_seconds", "Age of the last view of the cluster.")
LATENCY_WORST = MetricFamily(
    "predrain_osd_latency_ratio", "The worst OSD's latency over its own hour before; none without a signal."
)
LATENCY_KNOWN = MetricFamily("predrain_osds_with_latency", "OSDs whose latency ratio is known.")

DRAINS = MetricFamily("predrain_drains", "Drains by state.", ("state",), str(len(DrainState)))
HELD = MetricFamily("predrain_held_drains", "Drains that guards hold now.")
FLYING = MetricFamily("predrain_drain_in_flight_pgs", "PGs on their way for drains under way.")
PGS_LEFT = MetricFamily("predrain_drain_remaining_pgs", "PGs that drains under way have still to move.")
BYTES_LEFT = MetricFamily("predrain_drain_remaining_bytes", "Bytes that drains under way have still to move.")
BYTES_MOVED = MetricFamily("predrain_drain_moved_bytes", "Bytes that drains under way have moved.")
DRAIN_LATENCY = MetricFamily(
    "predrain_drain_latency_ratio", "The worst latency ratio among sources and targets of drains under way."
)
VERIFIED = MetricFamily(
    "predrain_throttle_verified",
    "1 while every OSD at work for a drain was seen to hold the throttle, 0 while not; none without drains under way.",
)
FAST_MAPS = MetricFamily(
    "predrain_fast_maps_active",
    "1 while the monitors' interval stands as a drain set it, else 0; none before the first poll.",
)
FAST_MAPS_LEFT = MetricFamily(
    "predrain_fast_maps_left",
    "1 while the monitors' interval stands as a drain set it though nothing moves, else 0; none before the first poll.",
)
HALTED = MetricFamily("predrain_halted", "1 while a halt stands.")
RUNNING = MetricFamily(
    "predrain_controller_running",
    "1 while the controller here decides, 0 while it holds or another one leads; none without one.",
)

REFUSING = MetricFamily(
    "predrain_guard_refusals",
    "Drains and bad disks that the guard held back at the controller's last look.",
    ("guard",),
    "guards, about 20",
)

INFO = MetricFamily("predrain_build_info", "The version that runs.", ("version",), "1")
READY = MetricFamily(
    "predrain_ready", "1 once the forecaster is loaded, 0 before; none where this process scores nothing."
)
ACTIVE = MetricFamily(
    "predrain_active",
    "1 where the service is the active one of those on its store, or is alone; 0 where it is the standby.",
)
STORE = MetricFamily("predrain_store_up", "1 while the store answers; without it only this section is known.")
FAULT = MetricFamily(
    "predrain_fault", "1 while a part is broken.", ("part",), "parts of the process, about 10"
)
ACCEPTED = MetricFamily(
    "predrain_readings_accepted", "Readings accepted into the log by this process.", counts=True
)
REFUSED = MetricFamily("predrain_readings_refused", "Readings refused at the door.", counts=True)
ANONYMOUS = MetricFamily(
    "predrain_anonymous_requests_refused",
    "Requests that would have changed something and came without a good credential.",
    counts=True,
)
WORKED = MetricFamily(
    "predrain_readings_processed", "Records that the worker took from the log.", counts=True
)
DEAD = MetricFamily("predrain_readings_dead_lettered", "Records that became dead letters.", counts=True)
ALERTS = MetricFamily("predrain_announcements", "Readings that led to an announcement.", counts=True)
LATENCIES = MetricFamily(
    "predrain_latencies_stored", "Latency summaries of OSDs that were kept.", counts=True
)
LATENCIES_DEAD = MetricFamily(
    "predrain_latency_batches_dead_lettered",
    "Latency batches that became dead letters, whole or in part.",
    counts=True,
)
LATENCIES_LOST = MetricFamily(
    "predrain_latencies_lost", "Latency summaries that hosts said they had lost.", counts=True
)
LAG = MetricFamily(
    "predrain_worker_lag_seconds",
    "How long the last readings to be judged had waited in the log; 0 when none wait.",
)
SENT = MetricFamily(
    "predrain_notifications_sent", "Messages that were delivered.", ("channel",), _CHANNELS, counts=True
)
UNSENT = MetricFamily(
    "predrain_notifications_failed",
    "Deliveries of messages that failed.",
    ("channel",),
    _CHANNELS,
    counts=True,
)
SENT_AGE = MetricFamily(
    "predrain_last_notification_age_seconds",
    "How long ago this process delivered a message; none before its first.",
    ("channel",),
    _CHANNELS,
)

BUNDLE = MetricFamily("predrain_bundle_info", "The bundle that scores.", ("bundle",))
CHALLENGER = MetricFamily("predrain_challenger_info", "The bundle in its shadow.", ("bundle",))
REIGN = MetricFamily("predrain_bundle_age_seconds", "How long the bundle has scored here.")
THRESHOLD = MetricFamily(
    "predrain_forecast_threshold",
    "Chance to fail within 30 days from which a disk is called so.",
    ("status",),
    "2",
)
CONCERN = MetricFamily("predrain_forecast_concern", "1 while an alert stands.", ("cause",), "3")
DRIFT = MetricFamily(
    "predrain_forecast_drift_index",
    "Stability index of the feature that moved most since training; above 0.25 is much.",
    ("family",),
    _FAMILIES,
)
DRIFTED = MetricFamily(
    "predrain_forecast_drifted_features",
    "Features that stability index and Kolmogorov-Smirnov test both call changed.",
    ("family",),
    _FAMILIES,
)
SCORE_DRIFT = MetricFamily(
    "predrain_forecast_score_drift_index",
    "Stability index of the forecast chance to fail within 30 days.",
    ("family",),
    _FAMILIES,
)
EXPECTED_BY = MetricFamily(
    "predrain_forecast_expected_failures", "Failures that were expected.", ("family",), _FAMILIES
)
OBSERVED_BY = MetricFamily(
    "predrain_forecast_observed_failures", "Failures that were seen.", ("family",), _FAMILIES
)
CALIBRATED_LOW = MetricFamily(
    "predrain_forecast_calibration_low",
    "Lower end of the 95 % interval of expected over observed.",
    ("family",),
    _FAMILIES,
)
CALIBRATED_HIGH = MetricFamily(
    "predrain_forecast_calibration_high",
    "Upper end of it; no series while nothing has failed.",
    ("family",),
    _FAMILIES,
)
COMPARED_FAILURES = MetricFamily("predrain_forecast_failures", "Failures that bundles are compared on.")
COMPARED_WINDOWS = MetricFamily("predrain_forecast_healthy_windows", "Healthy windows of 30 days likewise.")
FORETOLD = MetricFamily(
    "predrain_forecast_detected_failures",
    "Failures called warning or bad in the 30 days before.",
    ("role",),
    "2",
)
ALARMED = MetricFamily(
    "predrain_forecast_false_alarms", "Healthy windows called warning or bad.", ("role",), "2"
)
BRIER = MetricFamily(
    "predrain_forecast_brier_score",
    "Mean squared error of the chance to fail within 30 days.",
    ("role",),
    "2",
)

CATALOGUE: Final[dict[str, tuple[MetricFamily, ...]]] = {
    "Fleet": (
        *(DEVICES, LIVES, STALE, EXPECTED, NEWEST, STALE_AFTER, BAD, MODELS, HOSTS, HOSTS_UNHEARD),
        *(HOST_AGE, HOST_UNREADABLE, HOST_BLIND, HOT, UNREADABLE_FOR),
    ),
    "Cluster and drains": (
        *(OSDS, VIEW_AGE, LATENCY_WORST, LATENCY_KNOWN, DRAINS, HELD, FLYING, PGS_LEFT, BYTES_LEFT),
        *(BYTES_MOVED, DRAIN_LATENCY, VERIFIED, FAST_MAPS, FAST_MAPS_LEFT, HALTED, RUNNING, REFUSING),
    ),
    "Service": (
        *(INFO, READY, ACTIVE, STORE, FAULT, ACCEPTED, REFUSED, ANONYMOUS, WORKED, DEAD, ALERTS),
        *(LATENCIES, LATENCIES_DEAD, LATENCIES_LOST, LAG, SENT, UNSENT, SENT_AGE),
    ),
    "Forecast": (
        *(
            BUNDLE,
            CHALLENGER,
            REIGN,
            THRESHOLD,
            CONCERN,
            DRIFT,
            DRIFTED,
            SCORE_DRIFT,
            EXPECTED_BY,
            OBSERVED_BY,
        ),
        *(CALIBRATED_LOW, CALIBRATED_HIGH, COMPARED_FAILURES, COMPARED_WINDOWS, FORETOLD, ALARMED, BRIER),
    ),
}
"""The families by section, in the order of the page."""

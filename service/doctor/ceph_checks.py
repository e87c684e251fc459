"""Checks of the cluster: whether it answers, what our key may do there, and whether throttles can be verified.

The record of a drain lies in the store and in the config_key store. If both are lost, it is unknown which settings are
predrain's. A finding then names the settings that look like those of a drain, and nothing is changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_port import ClusterUnreachable
from predrain.actions.cluster.cluster_view import BALANCER, ClusterView
from predrain.actions.cluster.dumps import ClusterReader, run_read_commands
from predrain.actions.cluster.dumps.pg_dump import parse_report_time
from predrain.actions.controller.cluster_summary import ALWAYS_SET
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.held_throttles import THROTTLES
from predrain.data.clock import Clock
from predrain.data.latency_windows import LatencySummary
from predrain.service.config.settings import CephTable, Settings
from predrain.service.config.state_directory import StateDir
from predrain.service.doctor import finding
from predrain.service.doctor.finding import Finding
from predrain.service.storage.signing_key import SigningKeyUnusable, find_signing_key

STAMPED = timedelta(seconds=30)
"""The normal age of the mgr's timestamp of its statistics, which does not count as a clock error."""
ASKED = 100
"""The most OSDs whose throttle is checked: a regular sample of a larger cluster."""
LEFT = timedelta(minutes=2)
"""Fast maps that no controller has renewed for this time are leftovers."""
FRESH = timedelta(minutes=2)
"""A collector's report of an OSD's reservations counts for this time."""


def check_cluster(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """Check the cluster with the service's key. Nothing is changed."""
    from predrain.service.drains.live_cluster import channel_to

    channel = channel_to(settings.ceph)
    if channel is None:
        yield Finding("cluster", "note", "none is configured ([ceph] conf, CEPH_CONF); forecasts only")
        return
    try:
        yield from check_cluster_over_channel(channel, settings, clock)
    finally:
        channel.close()


def check_cluster_over_channel(
    channel: CommandChannel, settings: Settings, clock: Clock
) -> Iterator[Finding]:
    """Check the cluster over an open channel. Raises ClusterUnreachable, NotUnderstood."""
    before, reader = clock.now(), ClusterReader()
    answers = run_read_commands(channel, reader.list_due_commands(before), before)
    view = reader.view(answers)
    yield _check_cluster_health(view, settings.ceph)
    yield _check_ceph_release(view, settings.policy.to_policy())
    yield _check_cephx_caps(channel, settings)
    yield from _fast_maps(channel, view, settings, clock)
    yield examine_unclaimed(channel, view)
    yield _check_key_signatures(channel, settings)
    yield _check_throttles(view, settings, clock)
    yield _check_mgr_module(channel)
    if view.statistics_known and "pg_sum" in answers.raw:
        stamp = parse_report_time("pg_sum", answers.raw["pg_sum"]).stamp
        yield finding.compare_clocks("the cluster's mgr", stamp, before - STAMPED, clock.now())


def _check_cluster_health(view: ClusterView, ceph: CephTable) -> Finding:
    told = f"{view.health}, {len(view.osds)} OSDs, epoch {view.epoch}, as {ceph.name}"
    if not any(one.name == ceph.pool for one in view.pools.values()):
        told += f"; there is no pool {ceph.pool}, so no controller can lead: `predrain ceph auth` prints how to make it"
        return Finding("cluster", "wrong", told)
    if not view.statistics_known:
        return Finding("cluster", "note", f"{told}; the mgr's statistics are not known, so everything waits")
    if flags := sorted(view.flags - ALWAYS_SET):
        return Finding("cluster", "note", f"{told}; flags stand: {', '.join(flags)}")
    return Finding("cluster", "ok", told)


def _check_ceph_release(view: ClusterView, policy: Policy) -> Finding:
    if view.release in policy.known_releases:
        return Finding("ceph release", "ok", view.release)
    known = ", ".join(sorted(policy.known_releases))
    return Finding(
        "ceph release", "wrong", f"{view.release} is not known, so nothing moves; known are {known}"
    )


def _check_cephx_caps(channel: CommandChannel, settings: Settings) -> Finding:
    from predrain.actions.controller.ceph_caps import FAST_MAPS_CAPS, CephUser
    from predrain.actions.controller.held_caps import probe_held_caps

    ceph = settings.ceph
    user = CephUser.SERVICE if ceph.executor_key is None else CephUser.READING
    found = probe_held_caps(channel, ceph.name, user, ceph.pool)
    unused = FAST_MAPS_CAPS if settings.policy.fast_maps_seconds is None else frozenset()
    missing = [one for one in found.missing if one.cap not in unused]
    if missing:
        lacks = "; ".join(f"{one.service} {one.cap} ({one.why})" for one in missing)
        how = "ceph auth caps with the words of `predrain ceph auth`" + (
            "" if ceph.executor_key is None else " --read-only"
        )
        return Finding("caps", "wrong", f"{ceph.name} lacks {lacks}: run {how}")
    told = f"{found.asked} rights asked for, all held"
    if found.wide:
        return Finding(
            "caps", "note", f"{told}; it may read other users' keys, too: `predrain ceph auth` prints less"
        )
    return Finding("caps", "ok", told)


def _fast_maps(
    channel: CommandChannel, view: ClusterView, settings: Settings, clock: Clock
) -> Iterator[Finding]:
    """Check whether fast maps can be set if they are wanted, and whether any were left over.

    The check reads the record that a controller writes to the config_key store and renews while it holds fast maps.
    """
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.controller.fast_maps import RECORD, parse_record
    from predrain.actions.core.claimed_settings import (
        FAST_MAPS,
        describe_standing,
        is_same_setting_value,
        read_setting_value,
    )

    what = "fast maps"
    try:
        text = ConfigKeys(channel).read(RECORD)
    except ClusterUnreachable as refused:
        yield Finding(what, "note", f"not known whether any were left: {refused}")
        return
    record = parse_record(text) if text is not None else None
    if record is not None and is_same_setting_value(
        FAST_MAPS, read_setting_value(view, FAST_MAPS), record.value
    ):
        standing = describe_standing(record.value, record.was, "a drain")
        if clock.now() - record.at > LEFT:
            yield Finding(
                what, "wrong", f"{standing}: no controller has renewed it since {record.at:%H:%M:%S}Z"
            )
        else:
            yield Finding(what, "ok", f"in use: {standing}")
    elif settings.policy.fast_maps_seconds is not None:
        wanted = settings.policy.fast_maps_seconds
        if settings.ceph.executor_key is not None:
            yield Finding(
                what, "note", f"policy.fast_maps_seconds {wanted:g} is not used where the mgr module acts"
            )
        else:
            yield Finding(what, "ok", f"set to {wanted:g} s while PGs move")


def _check_key_signatures(channel: CommandChannel, settings: Settings) -> Finding:
    """Check that all config_key entries of predrain are signed with this service's key."""
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.cluster.signed_keys import SignedKeys

    what = "cluster keys"
    try:
        key = find_signing_key(settings.ceph, StateDir(settings.service.state))
    except SigningKeyUnusable as unusable:
        return Finding(what, "wrong", str(unusable))
    if key is None:
        return Finding(what, "note", "there is no signing key yet; the first `predrain up` makes it")
    try:
        found = SignedKeys(ConfigKeys(channel), key).find_unverified()
    except ClusterUnreachable as refused:
        return Finding(what, "wrong", f"not known whether they are signed: {refused}")
    if found:
        names = ", ".join(f"predrain/{one.name}" for one in found)
        return Finding(
            what,
            "wrong",
            f"not believed, and nothing that rests on them is done: {names}. {found[0].sentence}",
        )
    return Finding(what, "ok", "all are signed with this service's key")


def _check_throttles(view: ClusterView, settings: Settings, clock: Clock) -> Finding:
    """Check that throttles are in force by the OSDs' own values (actions.core.held_throttles), which
    collectors on their hosts report.
    """
    from predrain.service.storage.backends import standing_store

    since = clock.now() - FRESH
    up = sorted(osd for osd, one in view.osds.items() if one.up)
    serving = up[:: len(up) // ASKED + 1]
    with standing_store(settings) as store:
        told = [
            osd
            for osd in serving
            if store is not None and _has_backfill_limit(store.read_latency_summaries(int(osd), since))
        ]
    if len(told) == len(serving):
        return Finding("throttles", "ok", f"verified at all of {len(serving)} OSDs looked at")
    silent = sorted({*serving} - {*told})
    return Finding(
        "throttles",
        "note",
        f"not verified at {len(silent)} of {len(serving)} OSDs (osd.{silent[0]}), so one PG moves at a time there: run"
        " the collector on their hosts, as a user who may ask the OSDs' sockets",
    )


def _has_backfill_limit(summaries: tuple[LatencySummary, ...]) -> bool:
    return any(one.backfills_max is not None for one in summaries)


def _check_mgr_module(channel: CommandChannel) -> Finding:
    reply = channel.ask("mon", "mgr module ls", {"format": "json"})
    try:
        listed = json.loads(reply.out) if reply.ok else {}
        enabled = "predrain" in listed.get("enabled_modules", ())
    except (ValueError, AttributeError, TypeError):
        enabled = False
    if enabled:
        return Finding("mgr module", "ok", "enabled")
    return Finding("mgr module", "note", "not enabled; it is optional, see docs/reference/mgr.md")


_WHAT = "unclaimed settings"
_DRAINS = "drain/"
_SHOWN = 5
_CURE = "set back by hand what no person has set (docs/explanation/durability.md)"


def examine_unclaimed(channel: CommandChannel, view: ClusterView) -> Finding:
    """Return a finding of settings that look like ours while the cluster knows no drain. A known drain claims its
    settings itself.
    """
    from predrain.actions.cluster.config_key_store import ConfigKeys

    try:
        drains = ConfigKeys(channel).names(_DRAINS)
    except ClusterUnreachable as refused:
        return Finding(_WHAT, "note", f"not known, since the cluster's keys cannot be listed: {refused}")
    if drains:
        return Finding(_WHAT, "ok", f"{len(drains)} drains are known to the cluster, and claim what they set")
    found = tuple(list_likely_ours(view))
    if not found:
        return Finding(_WHAT, "ok", "nothing looks like what a drain leaves")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    told = f"no drain is known, and these look like what one leaves: {', '.join(found[:_SHOWN])}{more}"
    return Finding(_WHAT, "note", f"{told}; {_CURE}")


def list_likely_ours(view: ClusterView) -> Iterator[str]:
    """Yield, in words, the settings that drains set and people seldom do: settings at a drain's own value, the balancer
    turned off, overrides that are no round number, and primary affinities below 1.
    """
    for option in THROTTLES:
        if view.settings.get(f"osd/{option.name}") == str(option.cap):
            yield f"{option.name} {option.cap} for all OSDs"
    if view.settings.get(f"mgr/{BALANCER}") == "false":
        yield "the balancer is off"
    for osd in sorted(view.osds.values(), key=lambda osd: osd.id):
        if abs(osd.reweight * 20 - round(osd.reweight * 20)) > 1e-3:
            yield f"override {osd.reweight:.4f} of osd.{osd.id}"
        if osd.primary_affinity < 1.0:
            yield f"primary affinity {osd.primary_affinity:g} of osd.{osd.id}"

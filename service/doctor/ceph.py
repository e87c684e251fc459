"""The cluster: whether it answers, what our key may do there, and whether throttles can be verified."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.dumps import ClusterReader, asked
from predrain.actions.cluster.dumps.pg_dump import heard
from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.view import ClusterView
from predrain.actions.controller.cluster_summary import ALWAYS_SET
from predrain.actions.core.policy import Policy
from predrain.data.clock import Clock
from predrain.data.reading import LatencySummary
from predrain.service.doctor import finding
from predrain.service.doctor.finding import Finding
from predrain.service.doctor.unclaimed import examine_unclaimed
from predrain.service.settings import CephTable, Settings
from predrain.service.signing_key import SigningKeyUnusable, find_signing_key
from predrain.service.state_directory import StateDir

STAMPED = timedelta(seconds=30)
"""How old the mgr's stamp of its statistics may be by itself."""
ASKED = 100
"""OSDs of a large cluster of which it is looked at whether their throttle is verified."""
LEFT = timedelta(minutes=2)
"""Fast maps that no controller has renewed for so long are left."""
FRESH = timedelta(minutes=2)
"""What a collector told of an OSD's reservations counts for so long."""


def cluster(settings: Settings, clock: Clock) -> Iterator[Finding]:
    """As the service's key sees it. Nothing is changed."""
    from predrain.service.live_cluster import channel_to

    channel = channel_to(settings.ceph)
    if channel is None:
        yield Finding("cluster", "note", "none is configured ([ceph] conf, CEPH_CONF); forecasts only")
        return
    try:
        yield from seen(channel, settings, clock)
    finally:
        channel.close()


def seen(channel: CommandChannel, settings: Settings, clock: Clock) -> Iterator[Finding]:
    """The same over an open channel. Raises ClusterUnreachable, NotUnderstood."""
    before, reader = clock.now(), ClusterReader()
    answers = asked(channel, reader.due(before), before)
    view = reader.view(answers)
    yield _standing(view, settings.ceph)
    yield _release(view, settings.policy.policy())
    yield _rights(channel, settings)
    yield from _fast_maps(channel, view, settings, clock)
    yield examine_unclaimed(channel, view)
    yield _signatures(channel, settings)
    yield _throttle(view, settings, clock)
    yield _module(channel)
    if view.statistics_known and "pg_sum" in answers.raw:
        stamp = heard("pg_sum", answers.raw["pg_sum"]).stamp
        yield finding.clock("the cluster's mgr", stamp, before - STAMPED, clock.now())


def _standing(view: ClusterView, ceph: CephTable) -> Finding:
    told = f"{view.health}, {len(view.osds)} OSDs, epoch {view.epoch}, as {ceph.name}"
    if not any(one.name == ceph.pool for one in view.pools.values()):
        told += f"; there is no pool {ceph.pool}, so no controller can lead: `predrain ceph auth` prints how to make it"
        return Finding("cluster", "wrong", told)
    if not view.statistics_known:
        return Finding("cluster", "note", f"{told}; the mgr's statistics are not known, so everything waits")
    if flags := sorted(view.flags - ALWAYS_SET):
        return Finding("cluster", "note", f"{told}; flags stand: {', '.join(flags)}")
    return Finding("cluster", "ok", told)


def _release(view: ClusterView, policy: Policy) -> Finding:
    if view.release in policy.known_releases:
        return Finding("ceph release", "ok", view.release)
    known = ", ".join(sorted(policy.known_releases))
    return Finding(
        "ceph release", "wrong", f"{view.release} is not known, so nothing moves; known are {known}"
    )


def _rights(channel: CommandChannel, settings: Settings) -> Finding:
    from predrain.actions.controller.ceph_caps import FAST_MAPS_CAPS, User
    from predrain.actions.controller.held_caps import held

    ceph = settings.ceph
    user = User.SERVICE if ceph.hand_key is None else User.READING
    found = held(channel, ceph.name, user, ceph.pool)
    unused = FAST_MAPS_CAPS if settings.policy.fast_maps is None else frozenset()
    missing = [one for one in found.missing if one.cap not in unused]
    if missing:
        lacks = "; ".join(f"{one.service} {one.cap} ({one.why})" for one in missing)
        how = "ceph auth caps with the words of `predrain ceph auth`" + (
            "" if ceph.hand_key is None else " --reading"
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
    """Whether fast maps can be set where they are wanted, and whether some were left. By what a controller keeps in the
    cluster, which it renews while it holds them.
    """
    from predrain.actions.cluster.config_key_store import ConfigKeys
    from predrain.actions.controller.fast_maps import RECORD, parse_record
    from predrain.actions.core.claimed_settings import FAST_MAPS, found, same
    from predrain.actions.core.interval_claims import describe_standing

    what = "fast maps"
    try:
        text = ConfigKeys(channel).read(RECORD)
    except ClusterUnreachable as refused:
        yield Finding(what, "note", f"not known whether any were left: {refused}")
        return
    record = parse_record(text) if text is not None else None
    if record is not None and same(FAST_MAPS, found(view, FAST_MAPS), record.value):
        standing = describe_standing(record.value, record.was, "a drain")
        if clock.now() - record.at > LEFT:
            yield Finding(
                what, "wrong", f"{standing}: no controller has renewed it since {record.at:%H:%M:%S}Z"
            )
        else:
            yield Finding(what, "ok", f"in use: {standing}")
    elif settings.policy.fast_maps is not None:
        wanted = settings.policy.fast_maps
        if settings.ceph.hand_key is not None:
            yield Finding(what, "note", f"policy.fast_maps {wanted:g} is not used where the mgr module acts")
        else:
            yield Finding(what, "ok", f"set to {wanted:g} s while PGs move")


def _signatures(channel: CommandChannel, settings: Settings) -> Finding:
    """Whether all that predrain keeps in the cluster is signed with this service's key."""
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


def _throttle(view: ClusterView, settings: Settings, clock: Clock) -> Finding:
    """In force is what OSDs say (actions.core.throttles); collectors on their hosts tell it."""
    from predrain.service.backends import untouched_store

    since = clock.now() - FRESH
    up = sorted(osd for osd, one in view.osds.items() if one.up)
    serving = up[:: len(up) // ASKED + 1]
    with untouched_store(settings) as store:
        told = [osd for osd in serving if store is not None and _tells(store.latency(int(osd), since))]
    if len(told) == len(serving):
        return Finding("throttles", "ok", f"verified at all of {len(serving)} OSDs looked at")
    silent = sorted({*serving} - {*told})
    return Finding(
        "throttles",
        "note",
        f"not verified at {len(silent)} of {len(serving)} OSDs (osd.{silent[0]}), so one PG moves at a time there: run"
        " the collector on their hosts, as a user who may ask the OSDs' sockets",
    )


def _tells(summaries: tuple[LatencySummary, ...]) -> bool:
    return any(one.backfills_max is not None for one in summaries)


def _module(channel: CommandChannel) -> Finding:
    reply = channel.ask("mon", "mgr module ls", {"format": "json"})
    try:
        listed = json.loads(reply.out) if reply.ok else {}
        enabled = "predrain" in listed.get("enabled_modules", ())
    except (ValueError, AttributeError, TypeError):
        enabled = False
    if enabled:
        return Finding("mgr module", "ok", "enabled")
    return Finding("mgr module", "note", "not enabled; it is optional, see docs/reference/mgr.md")

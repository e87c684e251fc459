"""The cluster, and what is moved in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client.core import Metric

from predrain.actions.cluster.view import ClusterView
from predrain.data.drain import Drain, DrainState
from predrain.service.drains.timeline import RUNNING, sample
from predrain.service.fleet import OVER, FleetSnapshot
from predrain.service.rest.metrics import catalogue as c


def drains(sight: FleetSnapshot, view: ClusterView | None, now: datetime) -> Iterator[Metric]:
    """Every series about drains; of the cluster's, those that are known."""
    states = Counter(drain.state for drain in sight.drains)
    yield c.DRAINS.by({state.value: states[state] for state in DrainState})
    waiting = [drain for drain in sight.drains if drain.state not in OVER | {DrainState.PAUSED}]
    yield c.HELD.one(sum(bool(drain.held_by) for drain in waiting))
    yield from _under_way([drain for drain in sight.drains if drain.state in RUNNING], view, now)
    if view is None:
        return
    yield c.OSDS.one(len(view.osds))
    yield c.VIEW_AGE.one((now - view.as_of).total_seconds())
    from predrain.actions.core.interval_claims import describe_left  # late, as the controller is

    yield c.FAST_MAPS.one(float(bool(describe_left(view, sight.drains, moving=True))))
    yield c.FAST_MAPS_LEFT.one(float(bool(describe_left(view, sight.drains))))
    yield c.LATENCY_KNOWN.one(len(view.latency_ratio))
    if view.latency_ratio:
        yield c.LATENCY_WORST.one(max(view.latency_ratio.values()))


def _under_way(running: Sequence[Drain], view: ClusterView | None, now: datetime) -> Iterator[Metric]:
    progress = [drain.progress for drain in running]
    yield c.FLYING.one(sum(one.in_flight for one in progress))
    yield c.PGS_LEFT.one(sum(max(0, one.planned_pgs - one.moved_pgs) for one in progress))
    yield c.BYTES_LEFT.one(sum(max(0, one.planned_bytes - one.moved_bytes) for one in progress))
    yield c.BYTES_MOVED.one(sum(one.moved_bytes for one in progress))
    if view is None or not running:
        return
    from predrain.actions.core.in_flight import at_work
    from predrain.actions.core.throttles import (
        unheld,  # late, as the controller is: a start without a cluster does not wait
    )

    ratios = [ratio for drain in running if (ratio := sample(drain, view, now).latency_ratio) is not None]
    if ratios:
        yield c.DRAIN_LATENCY.one(max(ratios))
    yield c.VERIFIED.one(float(all(unheld(view, at_work(drain)) is None for drain in running)))

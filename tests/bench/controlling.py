"""Figures of the controller on the simulated cluster of 450 OSDs and 16,384 PGs."""

from __future__ import annotations

from collections import Counter

from predrain.actions.controller.controller import Controller
from predrain.actions.core.drain_policy import Policy
from predrain.actions.simulator.simulated_cluster import SimulatedCluster
from predrain.actions.simulator.worlds import build_cisco_cluster
from predrain.data.drain import DrainState
from predrain.data.ids import OsdId
from predrain.data.store.sqlite_store import SqliteStore
from tests.bench.figure import Figure, Work

TICKS, TICK_SECONDS = 200, 10.0
SEED = 8
REQUESTED_EVERY = 11
"""One OSD in so many is to be drained."""
DEAD = (OsdId(5), OsdId(105), OsdId(205))
REBUILT_SECONDS = 1200.0
"""After this time the dead OSDs are out, and their PGs are being rebuilt."""


def draining() -> Work:
    """Ticks while one OSD drains: look, decide, write down, act."""
    cluster = SimulatedCluster(build_cisco_cluster(SEED), SEED)
    controller = Controller(cluster, SqliteStore(":memory:"), Policy())
    controller.tick(cluster.now, {})
    drain = controller.requests.propose("osd.7", "bench", "a figure", cluster.now)
    controller.requests.approve(drain.id, "bench", cluster.now)
    work, steps = Work(), 0
    for _ in range(TICKS):
        cluster.advance(TICK_SECONDS)
        with work.timed():
            steps += controller.tick(cluster.now, {}).commands
        work.amount += 1
    state = next(one for one in controller.store.drains() if one.id == drain.id).state
    assert state in (DrainState.DRAINING, DrainState.HOLDING, DrainState.DRAINED), state
    work.note = f"{steps} commands sent"
    return work


def waiting() -> Work:
    """Ticks while disks that died are rebuilt, and more drains wait for a place than may run."""
    cluster = SimulatedCluster(build_cisco_cluster(SEED), SEED)
    controller = Controller(cluster, SqliteStore(":memory:"), Policy())
    controller.tick(cluster.now, {})
    for osd in sorted(cluster.view().osds)[::REQUESTED_EVERY]:
        drain = controller.requests.propose(f"osd.{osd}", "bench", "a figure", cluster.now)
        controller.requests.approve(drain.id, "bench", cluster.now)
    for dead in DEAD:
        cluster.fail_osd(dead)
    cluster.advance(REBUILT_SECONDS)
    work = Work()
    for _ in range(TICKS // 4):
        cluster.advance(TICK_SECONDS)
        with work.timed():
            controller.tick(cluster.now, {})
        work.amount += 1
    states = Counter(drain.state for drain in controller.store.drains())
    moved = sum(pg.up != pg.acting for pg in cluster.view().pgs.values())
    assert states[DrainState.APPROVED] > REQUESTED_EVERY, states
    assert moved > 0, "nothing is rebuilt"
    work.note = f"{states[DrainState.APPROVED]} drains wait, {moved} PGs move"
    return work


def quiet() -> Work:
    """Ticks with nothing to do."""
    cluster = SimulatedCluster(build_cisco_cluster(SEED), SEED)
    controller, work = Controller(cluster, SqliteStore(":memory:"), Policy()), Work()
    for _ in range(TICKS):
        cluster.advance(TICK_SECONDS)
        with work.timed():
            controller.tick(cluster.now, {})
        work.amount += 1
    return work


def looking() -> Work:
    """The view alone, of a quiet cluster."""
    cluster, work = SimulatedCluster(build_cisco_cluster(SEED), SEED), Work()
    for _ in range(TICKS):
        cluster.advance(TICK_SECONDS)
        with work.timed():
            cluster.view()
        work.amount += 1
    return work


FIGURES = (
    Figure(
        "controller tick, one drain, 450 OSDs", "ticks", draining, looking,
        "the view alone", "under 100 ms", lambda work, _: work.seconds / work.amount < 0.1,
    ),
    Figure(
        "controller tick, forty drains wait, 450 OSDs", "ticks", waiting, looking,
        "the view alone", "under 100 ms", lambda work, _: work.seconds / work.amount < 0.1,
    ),
    Figure(
        "controller tick, quiet, 450 OSDs", "ticks", quiet, looking,
        "the view alone", "under 30 ms", lambda work, _: work.seconds / work.amount < 0.03,
    ),
)  # fmt: skip

"""Figures of the demo: simulated days in which every disk is read and scored, and suspects are drained."""

from __future__ import annotations

from functools import partial

from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import Settings
from predrain.service.demo.demo_run import REMEMBERED, Demo
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.processes.up import forecaster_of
from tests.bench.figure import Figure, Work

DAYS = 6
"""The first days, in which the budget of drains fills up and stays full."""
A_DAY = 900 / 160
"""Seconds of processor: the 160 days of the histories in 15 minutes."""


def live_days(cluster: str) -> Work:
    """Live the demo's first days with predrain, after the cluster is made and the past is read."""
    demo = Demo(cluster=cluster, days=DAYS, seconds_per_day=None)
    world, first = demo.build_demo_world()
    ports = ApplicationPorts(
        MemoryLog(),
        SqliteStore(":memory:"),
        world.clock,
        forecaster_of(None),
        LiveClusterParts(world.cluster),
    )
    settings = Settings()
    daily = settings.forecast.model_copy(update={"reading_interval_hours": 24.0})
    application = Application(
        ports, demo.build_policy(world.tick), settings.model_copy(update={"forecast": daily})
    )
    application.control.observer.begin_acting()
    world.warm_up(application, max(first, world.calendar.start - REMEMBERED))
    application.start()
    work = Work()
    with work.timed():
        for _ in world.run_days(application):
            work.amount += 1
    drains = application.store.drains()
    assert drains
    work.note = f"{len(drains)} drains, {work.cpu / work.amount:.1f} s of processor a day"
    return work


FIGURES = (
    Figure(
        "demo, 6,000 OSDs", "days", partial(live_days, "echo"), partial(live_days, "cisco"),
        "the demo of 450 OSDs", f"under {A_DAY:.1f} s of processor a day",
        lambda work, _: work.cpu / work.amount < A_DAY, long=True,
    ),
)  # fmt: skip

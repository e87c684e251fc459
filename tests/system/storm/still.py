"""`predrain up` over a simulated cluster of 450 disks, on a clock that stands still until a test moves it.

`python -m tests.system.storm.still SETTINGS CLOCK FLEET`: CLOCK is a file with the time (ISO 8601), FLEET one with
the disk of each OSD as JSON, `{"0": [DEVICE, MODEL]}`. Everything else is the service as it ships.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from predrain.actions.cluster.cluster_port import Command, CommandResult
from predrain.actions.cluster.cluster_view import ClusterView
from predrain.actions.simulator import SimulatedCluster
from predrain.actions.simulator.worlds import build_world
from predrain.data.ids import DeviceId, OsdId
from predrain.service.app import scheduler
from predrain.service.config.settings import load_settings
from predrain.service.drains.live_cluster import LiveClusterParts
from predrain.service.processes import up

LOOK_SECONDS = 0.1
"""The seconds between two searches for news to send. The machine's clock counts them, not the test's clock."""


class StillClock:
    """Says what the file says."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def now(self) -> datetime:
        return datetime.fromisoformat(self._file.read_text())

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nobody sleeps {seconds} s on this clock")


class Following:
    """The cluster, always at the clock's time."""

    def __init__(self, cluster: SimulatedCluster, clock: StillClock) -> None:
        self._cluster, self._clock = cluster, clock

    def view(self) -> ClusterView:
        behind = (self._clock.now() - self._cluster.now).total_seconds()
        if behind > 0:
            self._cluster.advance(behind)
        return self._cluster.view()

    def apply(self, command: Command) -> CommandResult:
        return self._cluster.apply(command)


def main(arguments: Sequence[str]) -> None:
    """Answer until SIGTERM."""
    settings, clock = load_settings(Path(arguments[0]), {}), StillClock(Path(arguments[1]))
    seats = json.loads(Path(arguments[2]).read_text())
    seated = {OsdId(int(osd)): (DeviceId(device), model) for osd, (device, model) in seats.items()}
    cluster = SimulatedCluster(build_world("cisco", 1).with_devices(seated), 1, clock.now())
    up.SystemClock = lambda: clock  # type: ignore[assignment, misc]
    scheduler.TELL_SECONDS = LOOK_SECONDS

    def tell(words: str) -> None:
        print(words, file=sys.stderr, flush=True)

    up._serve_application(
        settings, tell, None, lambda _: LiveClusterParts(Following(cluster, clock)), watched=False
    )


if __name__ == "__main__":
    main(sys.argv[1:])

"""Four drains that are cancelled in a random order: no faults, nobody else."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.data.drain import Intent
from tests.actions.made import wide_spec
from tests.properties.games import QUICK, Adversary


class FourCancels(Adversary):
    """Four drains on 72 OSDs and 1,024 PGs of three copies, cancelled in a random order; no faults, nobody else."""

    @staticmethod
    def make_spec(seed: int) -> ClusterSpec:  # noqa: ARG004
        return replace(wide_spec(hosts=12, per_host=6, racks=0, pg_num=1024, used=0.4), physics=QUICK)

    def play(self) -> int:
        """Drain four OSDs, each begun and cancelled at a moment of its own. Raises AssertionError."""
        with self.run:
            self._tick(10.0)
            for osd in self.random.sample(self.osds, 4):
                drain = self.run.controller.requests.propose(
                    f"osd.{osd}", "operator", "test", self.run.cluster.now, Intent.REPLACE
                )
                self.run.controller.requests.approve(drain.id, "operator", self.run.cluster.now)
                self._tick_often(self.random.choice([1, 5, 20]))
            self._tick_often(self.random.choice([5, 20, 60, 120]))
            drains = list(self.run.store.drains())
            self.random.shuffle(drains)
            for drain in drains:
                self._cancel_drain(drain)
                self._tick_often(self.random.choice([0, 3, 30]))
            self._wait_for_ends()
            self._compare()
            return len(drains)

    def _tick_often(self, count: int) -> None:
        for _ in range(count):
            self._tick(10.0)

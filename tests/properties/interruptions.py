"""The adversary with clients that write while PGs move, and with OSDs that are up and answer no PG that peers."""

from __future__ import annotations

from predrain.data.ids import OsdId
from tests.properties.games import Deaths

_PATIENT_TICKS = 60
_FOREVER = 1e9


class Interruptions(Deaths):
    """Deaths, writes of clients, and peerings that take hours or end only when a person restarts an OSD."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._silent: set[OsdId] = set()
        self.events = (*self.events, self._write, self._write, self._write, self._silence_peer)

    def _write(self) -> None:
        """Clients write to every PG while some of them move."""
        share = self.random.choice([0.001, 0.005, 0.01])
        for pool in self.spec.pools:
            for cluster in (self.run.cluster, self.shadow):
                cluster.write_to_pool(pool.pool.id, share)

    def _silence_peer(self) -> None:
        """An OSD hangs: PGs that peer on it wait for minutes, for hours, or until its daemon is started again."""
        osd = self.random.choice(self.osds)
        seconds = self.random.choice([60.0, 600.0, 7200.0, _FOREVER])
        self._silent.add(osd)
        for cluster in (self.run.cluster, self.shadow):
            cluster.silence_peer(osd, seconds)

    def _wait_for_ends(self) -> None:
        """A person restarts the OSDs that hang once they have waited for the drains long enough."""
        for _ in range(_PATIENT_TICKS):
            self._tick(30.0)
        for osd in sorted(self._silent):
            for cluster in (self.run.cluster, self.shadow):
                cluster.flap(osd, 1, 20.0)
        super()._wait_for_ends()

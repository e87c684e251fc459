"""The space of PGs that have left an OSD: the OSD deletes their objects in batches, and waits after each batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from predrain.actions.simulator.backfill import ByteCounts
from predrain.actions.simulator.event_queue import Timeline

_BATCH_OBJECTS = 30
"""`osd_target_transaction_size`."""


class PgDeletions:
    """The deletions that run on all OSDs. The space of a PG counts in full until its last batch."""

    def __init__(self, timeline: Timeline, pause_seconds: float, freed: Callable[[int], None]) -> None:
        """pause_seconds: the time after a batch. freed: called with an OSD that has more space."""
        self._timeline, self._pause_seconds, self._freed = timeline, pause_seconds, freed
        self.held_bytes = ByteCounts()
        """Bytes of PGs that are being deleted, by OSD."""
        self._disks: dict[int, int] = defaultdict(int)
        """The number of disks that an OSD has lost; a deletion on a lost disk is void."""

    def begin(self, osd: int, shard_bytes: int, objects: int) -> None:
        """Delete a PG's shard from an OSD."""
        self.held_bytes[osd] += shard_bytes
        seconds = (objects - 1) // _BATCH_OBJECTS * self._pause_seconds
        self._timeline.schedule_after(seconds, _Deleted(self, osd, self._disks[osd], shard_bytes))

    def lose_disk(self, osd: int) -> None:
        """Forget the deletions on a dead disk."""
        self._disks[osd] += 1
        self.held_bytes[osd] = 0

    def finish(self, osd: int, disk: int, shard_bytes: int) -> None:
        """Free the space of a PG, unless its disk is gone."""
        if disk == self._disks[osd]:
            self.held_bytes[osd] -= shard_bytes
            self._freed(osd)


@dataclass(frozen=True, slots=True)
class _Deleted:
    deletions: PgDeletions
    osd: int
    disk: int
    shard_bytes: int

    def __call__(self) -> None:
        self.deletions.finish(self.osd, self.disk, self.shard_bytes)

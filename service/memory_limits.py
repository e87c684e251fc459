"""How much memory the service may take, by the number of disks: for its unit, and for the table of machines."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
BASE_BYTES = 640 * MIB
"""Page, controller and worker in one process, 6,000 disks, 200 readers and a flood: 577 MB were measured."""
BYTES_OF_A_DISK = 64 * 1024
"""13 kB of what a worker remembers of it, and its share of views, plans and answers; rounded up."""
STEP_BYTES = 128 * MIB
HEADROOM_BYTES = 512 * MIB
"""From where the kernel slows the process down to where it ends it: bodies on their way (32 MiB), times what
their readings take in memory, and a bundle that is loaded beside the one that scores."""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """`high_bytes`: the kernel takes pages back from here on. `max_bytes`: it ends the process here."""

    high_bytes: int
    max_bytes: int

    def drop_in(self) -> str:
        """The lines of a drop-in for a unit of systemd."""
        return f"[Service]\nMemoryHigh={self.high_bytes // MIB}M\nMemoryMax={self.max_bytes // MIB}M\n"


def memory_limits(disks: int) -> MemoryLimits:
    """The limits of one process that looks after `disks` disks."""
    wanted = BASE_BYTES + disks * BYTES_OF_A_DISK
    high = -(-wanted // STEP_BYTES) * STEP_BYTES
    return MemoryLimits(high, high + HEADROOM_BYTES)

"""What the cluster and the hosts say of reads that failed on the disk of a drain."""

from __future__ import annotations

from predrain.data.drain import Drain
from predrain.service.application import House


def describe_read_errors(house: House, drain: Drain) -> list[str]:
    """Sentences: Ceph's health on its OSDs, and the kernel's errors before the newest reading of the disk."""
    view = house.fleet.view
    told = [said for osd in drain.osds for said in view.read_errors.get(osd, ())] if view else []
    reading = house.fleet.reading(drain.device) if drain.device is not None else None
    if reading is not None and reading.kernel_errors:
        told.append(
            f"The kernel of {reading.host} logged {reading.kernel_errors} I/O errors of the disk before its reading of "
            f"{reading.taken_at:%Y-%m-%d %H:%M} UTC."
        )
    return told

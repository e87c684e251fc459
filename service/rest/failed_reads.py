"""Reports of the cluster and of the hosts about failed reads on the disk of a drain."""

from __future__ import annotations

from predrain.data.drain import Drain
from predrain.service.app.application import Application


def describe_read_errors(application: Application, drain: Drain) -> list[str]:
    """Return sentences: Ceph's health of the drain's OSDs, and the kernel's errors before the newest reading of the
    disk.
    """
    view = application.fleet.view
    told = [said for osd in drain.osds for said in view.read_errors.get(osd, ())] if view else []
    reading = application.fleet.reading(drain.device) if drain.device is not None else None
    if reading is not None and reading.kernel_errors:
        told.append(
            f"The kernel of {reading.host} logged {reading.kernel_errors} I/O errors of the disk before its reading of "
            f"{reading.taken_at:%Y-%m-%d %H:%M} UTC."
        )
    return told

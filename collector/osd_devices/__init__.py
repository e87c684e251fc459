"""Seats: which OSDs lie on which disks of this host, and what the kernel logged of those disks.

In: links under /var/lib/ceph, sysfs, admin sockets, LVM tags; `osd metadata` where it is given; /dev/kmsg or the
journal. Out:
`SeatMap` (disks to OSDs and back, with what could not be told) and `KernelErrors` (I/O errors since the last asking).
Nothing is written, and nothing is raised for what is missing.
"""

from predrain.collector.osd_devices.device_map import SeatMap, seat_map
from predrain.collector.osd_devices.kernel import KernelErrors
from predrain.collector.osd_devices.named import named_disks
from predrain.collector.osd_devices.timeouts import Patience
from predrain.collector.osd_devices.volumes import VolumeTags

__all__ = ["KernelErrors", "Patience", "SeatMap", "VolumeTags", "named_disks", "seat_map"]

"""OSD devices: which OSDs lie on which disks of this host, and which I/O errors the kernel logged for those disks.

Input: links under /var/lib/ceph, sysfs, admin sockets, LVM tags, `osd metadata` if it is given, and /dev/kmsg or the
journal. Output: `OsdDeviceMap` (disks to OSDs and back, and what could not be found) and `KernelErrors` (I/O errors
since the last call).

Nothing is written, and nothing is raised for missing input.
"""

from predrain.collector.osd_devices.device_map import OsdDeviceMap, seat_map
from predrain.collector.osd_devices.kernel_errors import KernelErrors
from predrain.collector.osd_devices.read_timeouts import TimeoutRunner
from predrain.collector.osd_devices.reported_devices import named_disks
from predrain.collector.osd_devices.volume_tags import VolumeTags

__all__ = ["KernelErrors", "OsdDeviceMap", "TimeoutRunner", "VolumeTags", "named_disks", "seat_map"]

"""disks: finds every disk of this host and reads it with smartctl, be it hung, asleep, failing or behind a
controller.

Input: smartctl, a clock, and the OSDs on each disk. Output: a `Reading` of each disk, also of those that do not
answer. Only the disks' names are kept.
"""

from predrain.collector.disks.disk_reader import DiskScan, DiskWatch, DiskWatchLimits, FoundDisk
from predrain.collector.disks.smartctl import DiskPath, Smartctl, SmartctlMisnamed

__all__ = [
    "DiskPath",
    "DiskScan",
    "DiskWatch",
    "DiskWatchLimits",
    "FoundDisk",
    "Smartctl",
    "SmartctlMisnamed",
]

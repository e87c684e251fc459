"""disks: finds every disk of this host and reads it with smartctl, hung, asleep, sick or behind a controller.

In: smartctl, a clock, who sits on a disk. Out: `Reading`, also of the disks that do not answer. Nothing is kept
but the disks' names.
"""

from predrain.collector.disks.smartctl import Smartctl, SmartctlMisnamed, Spot
from predrain.collector.disks.watch import DiskWatch, DiskWatchLimits, Scan

__all__ = ["DiskWatch", "DiskWatchLimits", "Scan", "Smartctl", "SmartctlMisnamed", "Spot"]

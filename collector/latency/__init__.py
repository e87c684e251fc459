"""collector.latency: how long the OSDs of this host take, and how busy their disks are.

In: the OSDs' admin sockets and /proc/diskstats, every 10 to 15 seconds. Out: a `LatencySummary` an OSD and minute.
"""

from predrain.collector.latency.sockets import SocketsUnreadable, admin_sockets
from predrain.collector.latency.watch import LatencyWatch, LatencyWatchLimits

__all__ = ["LatencyWatch", "LatencyWatchLimits", "SocketsUnreadable", "admin_sockets"]

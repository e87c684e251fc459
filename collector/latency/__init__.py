"""collector.latency: measures how long the OSDs of this host take, and how busy their disks are.

Input: the OSDs' admin sockets and /proc/diskstats, every 10 to 15 s. Output: one `LatencySummary` for each OSD and
minute.
"""

from predrain.collector.latency.latency_sampler import LatencyWatch, LatencyWatchLimits
from predrain.collector.latency.socket_search import SocketsUnreadable, admin_sockets

__all__ = ["LatencyWatch", "LatencyWatchLimits", "SocketsUnreadable", "admin_sockets"]

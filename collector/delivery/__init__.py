"""delivery: from a disk's answer to whoever keeps it, without losing or doubling one.

In: readings and latency summaries of this host. Out: envelopes (data.wire) to a log or a service. `Spool` accepts,
`Courier` carries, a `Sink` takes.
"""

from predrain.collector.delivery.contents import Standing, look
from predrain.collector.delivery.file import NoRoom, SpoolUnusable
from predrain.collector.delivery.shipper import Courier, Pace
from predrain.collector.delivery.sink import Answer, Away, Later, LogSink, Sink
from predrain.collector.delivery.spool import Room, Spool
from predrain.collector.delivery.web import BadAddress, WebSink

__all__ = [
    "Answer",
    "Away",
    "BadAddress",
    "Courier",
    "Later",
    "LogSink",
    "NoRoom",
    "Pace",
    "Room",
    "Sink",
    "Spool",
    "SpoolUnusable",
    "Standing",
    "WebSink",
    "look",
]

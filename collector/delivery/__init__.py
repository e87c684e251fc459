"""delivery: from a disk's answer to whoever keeps it, without losing or doubling one.

In: readings and latency summaries of this host. Out: envelopes (data.wire) to a log or a service. `Spool` accepts,
`Courier` carries, a `Sink` takes.
"""

from predrain.collector.delivery.contents import SpoolStatus, look
from predrain.collector.delivery.file import NoRoom, SpoolUnusable
from predrain.collector.delivery.shipper import Courier, DeliveryPace
from predrain.collector.delivery.sink import Away, DeliveryResult, Later, LogSink, Sink
from predrain.collector.delivery.spool import Spool, SpoolLimits
from predrain.collector.delivery.web import BadAddress, WebSink

__all__ = [
    "Away",
    "BadAddress",
    "Courier",
    "DeliveryPace",
    "DeliveryResult",
    "Later",
    "LogSink",
    "NoRoom",
    "Sink",
    "Spool",
    "SpoolLimits",
    "SpoolStatus",
    "SpoolUnusable",
    "WebSink",
    "look",
]

"""delivery: carries readings from the disks to the sink without losing or doubling one.

Input: readings and latency summaries of this host. Output: envelopes (data.wire) to a log or a service. `Spool`
accepts records, `Shipper` carries them, and a `Sink` takes them.
"""

from predrain.collector.delivery.http_sink import BadAddress, WebSink
from predrain.collector.delivery.shipper import DeliveryPace, Shipper
from predrain.collector.delivery.sinks import DeferredRecord, DeliveryResult, LogSink, Sink, SinkUnavailable
from predrain.collector.delivery.spool import Spool, SpoolLimits
from predrain.collector.delivery.spool_contents import SpoolStatus, read_spool_status
from predrain.collector.delivery.spool_file import SpoolDiskFull, SpoolUnusable

__all__ = [
    "BadAddress",
    "DeferredRecord",
    "DeliveryPace",
    "DeliveryResult",
    "LogSink",
    "Shipper",
    "Sink",
    "SinkUnavailable",
    "Spool",
    "SpoolDiskFull",
    "SpoolLimits",
    "SpoolStatus",
    "SpoolUnusable",
    "WebSink",
    "read_spool_status",
]

"""The wire: the format of values that are sent between processes, and the checks where they enter.

`encode_envelope` and `decode_envelope` put a value into a versioned envelope and take it out; `UndecodableRecord` is
raised for bytes that are no envelope. `accept_reading`, `accept_latency`, `accept_source` and `accept_windows` check
incoming values. `NotAccepted` names the field that is wrong, and `RefusedForTime` means that the time of the value
has not come yet. `DeadLetter` holds a refused record with the reason.
"""

from predrain.data.log.log_port import LONGEST
from predrain.data.wire.acceptance import (
    FUTURE,
    ImplausibleNumber,
    NotAccepted,
    RefusedForTime,
    accept_latency,
    accept_reading,
    accept_source,
    find_implausible_numbers,
)
from predrain.data.wire.envelope import (
    Envelope,
    UndecodableRecord,
    decode_envelope,
    encode_envelope,
    list_wire_versions,
)
from predrain.data.wire.latency_wire import accept_windows
from predrain.data.wire.strict_json import InvalidValue
from predrain.data.wire.wire_bodies import AuditEnd, DeadLetter, StoreMark

__all__ = [
    "FUTURE",
    "LONGEST",
    "AuditEnd",
    "DeadLetter",
    "Envelope",
    "ImplausibleNumber",
    "InvalidValue",
    "NotAccepted",
    "RefusedForTime",
    "StoreMark",
    "UndecodableRecord",
    "accept_latency",
    "accept_reading",
    "accept_source",
    "accept_windows",
    "decode_envelope",
    "encode_envelope",
    "find_implausible_numbers",
    "list_wire_versions",
]

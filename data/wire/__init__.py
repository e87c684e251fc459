"""The wire: what is sent between processes, and the border where it is judged.

`encode` and `decode` put a value into a versioned envelope and take it out; `Poison` says why bytes are none.
`accept`, `accept_latency`, `accept_source` and `accept_windows` judge what came in; `NotAccepted` says what is wrong
with it and where, `Ahead` that its time has not come yet. `DeadLetter` keeps what was refused, with the reason.
"""

from predrain.data.wire.acceptance import (
    FUTURE,
    Ahead,
    Doubt,
    NotAccepted,
    accept,
    accept_latency,
    accept_source,
    doubts,
)
from predrain.data.wire.bodies import AuditEnd, DeadLetter, StoreMark
from predrain.data.wire.envelope import LONGEST, Envelope, Poison, decode, encode
from predrain.data.wire.shape import Misshapen
from predrain.data.wire.windows import accept_windows

__all__ = [
    "FUTURE",
    "LONGEST",
    "Ahead",
    "AuditEnd",
    "DeadLetter",
    "Doubt",
    "Envelope",
    "Misshapen",
    "NotAccepted",
    "Poison",
    "StoreMark",
    "accept",
    "accept_latency",
    "accept_source",
    "accept_windows",
    "decode",
    "doubts",
    "encode",
]

"""The windows of a host's OSDs as the store keeps them: their columns by position, without host, start and cluster."""

from __future__ import annotations

import types
import typing
from datetime import datetime
from operator import attrgetter
from typing import Any

import msgspec

from predrain.data.ids import ClusterId, HostName
from predrain.data.latency_windows import COLUMNS, LatencySummary, LatencyWindows
from predrain.data.wire.strict_json import InvalidValue

_FIELDS = (
    *("osd", "window_seconds", "operations"),
    *("read_ms_p50", "read_ms_p99", "write_ms_p50", "write_ms_p99", "commit_ms_p50", "commit_ms_p99"),
    *("device_await_ms", "iops", "queue", "slow_ops", "backfills_max", "recovering", "scrubbing"),
)
"""The fields in the order of storage: a new one goes to the end, none is ever removed."""

_NEEDED = 3
_HINTS = typing.get_type_hints(LatencySummary) | {"osd": int}
_Packed: type[Any] = msgspec.defstruct(
    "Windows",
    [
        (name, column) if n < _NEEDED else (name, column | None, None)
        for n, (name, column) in enumerate(
            (name, types.GenericAlias(list, (_HINTS[name],))) for name in _FIELDS
        )
    ],
    array_like=True,
    forbid_unknown_fields=True,
)
_kept: Any = attrgetter(*_FIELDS)
_named: Any = attrgetter(*COLUMNS)
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Packed)


def pack_latency_windows(windows: LatencyWindows) -> bytes:
    """Pack all fields but host, start and cluster. Raises InvalidValue."""
    try:
        return _encoder.encode(_kept(windows))
    except (TypeError, UnicodeEncodeError, OverflowError) as error:
        raise InvalidValue(f"these latencies cannot be written: {error}") from error


def unpack_latency_windows(
    host: str, window_start: datetime, packed: bytes, cluster: ClusterId | None = None
) -> LatencyWindows:
    """Return the windows that were packed. Raises InvalidValue."""
    try:
        columns = _named(_decoder.decode(packed))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidValue(f"these bytes are no packed latencies: {error}") from error
    count = len(columns[0])
    whole: list[Any] = [[None] * count if one is None else one for one in columns]
    if any(len(one) != count for one in whole):
        raise InvalidValue("these bytes are no packed latencies: their columns are not of one length")
    return LatencyWindows(HostName(host), window_start, *whole, cluster=cluster)

"""Convert a drive's state to bytes and back. Bytes of older versions can be read, too."""

from __future__ import annotations

from datetime import datetime
from sys import intern
from typing import Final

import msgspec
import numpy as np

from predrain.data.ids import DeviceId
from predrain.data.unreadable import cause_of_older_sentence
from predrain.features.drive_history_rows import COLUMNS
from predrain.features.drive_state import DriveState, Face, IoErrors, Probe
from predrain.features.past_rows import DAILY, PAST, SELDOM, PastRows, compress_past


class _Packed(msgspec.Struct, array_like=True):
    columns: int
    device: str
    first_day: int
    taken_at: datetime
    readings: int
    latest: bytes
    before: bytes
    past: bytes
    face: Face | None
    unreadable: Probe | None
    changes: dict[str, tuple[tuple[int, int], ...]]
    io_errors: tuple[IoErrors, ...] = ()
    seldom: bytes = b""
    lengths: bytes = b""


_OF_RUNS: Final = 1000
"""Added to the number of columns where `past` has the daily columns alone, and `seldom` those that seldom change. Up to
version 0.1.0 `past` had all of them."""
_PACKED = msgspec.msgpack.Decoder(_Packed)


def pack_drive_state(state: DriveState) -> bytes:
    """Convert the state to bytes."""
    return msgspec.msgpack.encode(
        _Packed(
            _OF_RUNS + len(COLUMNS),
            state.device,
            state.first_day,
            state.taken_at,
            state.readings,
            state.latest.tobytes(),
            state.before.tobytes(),
            state.past.daily.tobytes(),
            state.face,
            state.unreadable,
            dict(state.changes),
            state.io_errors,
            state.past.seldom.tobytes(),
            state.past.lengths.tobytes(),
        )
    )


def unpack_drive_state(packed: bytes) -> DriveState | None:
    """Convert bytes to a state. Return None if they have another layout: then observe the drive's readings again."""
    try:
        raw = _PACKED.decode(packed)
    except msgspec.MsgspecError:
        return None
    if raw.columns not in (len(COLUMNS), _OF_RUNS + len(COLUMNS)):
        return None
    return DriveState(
        DeviceId(intern(raw.device)),
        raw.first_day,
        raw.taken_at,
        raw.readings,
        np.frombuffer(raw.latest),
        np.frombuffer(raw.before),
        _unpack_past(raw),
        raw.face,
        _with_cause(raw.unreadable),
        raw.changes,
        raw.io_errors,
    )


def _unpack_past(raw: _Packed) -> PastRows:
    if raw.columns == len(COLUMNS):
        return compress_past(np.frombuffer(raw.past).reshape(-1, len(PAST)))
    return PastRows(
        np.frombuffer(raw.past).reshape(-1, len(DAILY)),
        np.frombuffer(raw.seldom).reshape(-1, len(SELDOM)),
        np.frombuffer(raw.lengths, dtype=np.int64),
    )


def _with_cause(probe: Probe | None) -> Probe | None:
    """Return the probe with a cause. A probe that version 0.1.0 packed has none, and gets the cause that its
    sentence stands for."""
    if probe is None or probe.cause is not None:
        return probe
    cause = cause_of_older_sentence(probe.why)
    if cause.blames_host:
        return Probe(probe.since, 0, probe.why, cause, probe.probes)
    return msgspec.structs.replace(probe, cause=cause)

"""A host's latencies of its OSDs on the wire: by column since version 2 of a batch, OSD by OSD before.

Since version 3 the windows name the cluster of their OSDs.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec

from predrain.data.ids import FSID_PATTERN, ClusterId, HostName
from predrain.data.latency_windows import COLUMNS, LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.wire.acceptance import (
    LONGEST_WINDOW,
    NO_OSD,
    WIDEST_MEASURE,
    NotAccepted,
    accept_latency,
    accept_source,
)
from predrain.data.wire.strict_json import InvalidValue, JsonShape

_NEEDED = ("osd", "window_seconds", "operations")
"""Columns in which every OSD has a value."""
_HINTS = typing.get_type_hints(LatencySummary) | {"osd": int}
_AWARE = Annotated[datetime, msgspec.Meta(tz=True)]
_FINITE = msgspec.Meta(ge=-1.7e308, le=1.7e308)  # msgspec would write NaN as null: "unknown"
_columns: Any = attrgetter(*COLUMNS)


def accept_windows(windows: LatencyWindows, now: datetime) -> tuple[LatencyWindows | None, tuple[str, ...]]:
    """Return the accepted windows, and for each refused one the reason, in the words of `accept_latency`."""
    if windows.sound:
        try:
            accept_source(windows.host, windows.window_start, now)
        except NotAccepted:
            pass
        else:
            return windows, ()
    kept: list[LatencySummary] = []
    refused: list[str] = []
    for summary in windows.summaries():
        try:
            kept.append(accept_latency(summary, now))
        except NotAccepted as refusal:
            refused.append(str(refusal))
    return (LatencyWindows.from_summaries(kept)[0] if kept else None), tuple(refused)


def _build_batch_structs(measure: dict[Any, msgspec.Meta]) -> tuple[type[Any], type[Any]]:
    """Build the structs of a batch and of its windows, with limits for values by their column or by their type."""

    def limited(name: str) -> Any:
        whole = _HINTS[name]
        kind = next(one for one in (bool, int, float) if one in (whole, *typing.get_args(whole)))
        meta = measure.get(name) or measure.get(kind)
        number = Annotated[kind, meta] if meta is not None else kind
        return list[number] if name in _NEEDED else list[number | None] | None  # type: ignore[valid-type]

    cluster: Any = Annotated[str, measure[str]] if str in measure else str
    windows = msgspec.defstruct(
        "Windows",
        [
            ("window_start", _AWARE),
            *((name, limited(name)) for name in _NEEDED),
            *((name, limited(name), None) for name in COLUMNS if name not in _NEEDED),
            ("host", str | None, None),
            ("cluster", cluster | None, None),
        ],
        forbid_unknown_fields=True,
        omit_defaults=True,
    )
    batch = msgspec.defstruct(
        "LatencyBatch",
        [("host", str), ("windows", list[windows]), ("lost", int, 0)],  # type: ignore[valid-type]
        forbid_unknown_fields=True,
        omit_defaults=True,
    )
    return batch, windows


class LatencyByColumns:
    """`LatencyBatch` as version 2: for each start a list for each field; a field without any OSD's
    value is left out.
    """

    def __init__(self) -> None:
        measures = {
            int: msgspec.Meta(ge=0, le=WIDEST_MEASURE - 1),
            float: msgspec.Meta(ge=0, lt=float(WIDEST_MEASURE)),
            str: msgspec.Meta(pattern=f"^{FSID_PATTERN}$"),
        }
        seconds = msgspec.Meta(gt=0, le=LONGEST_WINDOW.total_seconds())
        self.form, _ = _build_batch_structs(
            {"osd": msgspec.Meta(ge=0, lt=NO_OSD), "window_seconds": seconds, **measures}
        )
        """The struct into which a batch is decoded with its envelope: without values that `accept_latency` would
        refuse."""
        self._batch, self._windows = _build_batch_structs({float: _FINITE})
        self._decoder = msgspec.json.Decoder(self._batch)

    def write(self, value: LatencyBatch) -> bytes:
        """Return the JSON of `value`. Raises InvalidValue."""
        told = []
        for one in value.windows:
            columns = {
                name: column if name in _NEEDED or any(n is not None for n in column) else None
                for name, column in zip(COLUMNS, _columns(one), strict=True)
            }
            other = one.host if one.host != value.host else None
            told.append({"window_start": one.window_start, **columns, "host": other, "cluster": one.cluster})
        try:
            whole = {"host": value.host, "windows": told, "lost": value.lost}
            return msgspec.json.encode(msgspec.convert(whole, self._batch))
        except (msgspec.MsgspecError, UnicodeEncodeError, OverflowError) as error:
            raise InvalidValue(f"this LatencyBatch cannot be written: {error}") from error

    def read(self, raw: bytes) -> LatencyBatch:
        """Return the batch that `raw` holds, with any numbers. Raises InvalidValue."""
        try:
            return self._made(self._decoder.decode(raw), sound=False)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidValue(f"these bytes are no LatencyBatch: {error}") from error

    def build_value(self, form: Any) -> LatencyBatch:
        """Return the batch of a decoded `form`. Raises InvalidValue, and OverflowError for a time that has no UTC."""
        return self._made(form, sound=True)

    def _made(self, form: Any, *, sound: bool) -> LatencyBatch:
        host, told = HostName(form.host), []
        for one in form.windows:
            osds = one.osd
            columns: list[Any] = [
                [None] * len(osds) if column is None else column for column in _columns(one)
            ]
            if not osds or any(len(column) != len(osds) for column in columns):
                raise InvalidValue(
                    "these bytes are no LatencyBatch: its columns are empty or not of one length"
                )
            if len(set(osds)) != len(osds):
                raise InvalidValue(
                    "these bytes are no LatencyBatch: an OSD is twice among windows that begin at once"
                )
            start = one.window_start.astimezone(UTC)
            told.append(
                LatencyWindows(
                    HostName(one.host) if one.host else host,
                    start,
                    *columns,
                    cluster=ClusterId(one.cluster) if one.cluster is not None else None,
                    sound=sound,
                )
            )
        return LatencyBatch(host, tuple(told), form.lost)


@dataclass(frozen=True, slots=True)
class _Listed:
    host: HostName
    summaries: tuple[LatencySummary, ...]
    lost: int = 0


class LatencyByRows:
    """`LatencyBatch` as version 1: a list of summaries."""

    def __init__(self) -> None:
        self._form = JsonShape(_Listed, "LatencyBatch")

    def write(self, value: LatencyBatch) -> bytes:
        """Return the JSON of `value`. Raises InvalidValue."""
        return self._form.write(_Listed(value.host, value.summaries, value.lost))

    def read(self, raw: bytes) -> LatencyBatch:
        """Return the batch that `raw` holds; of two windows of an OSD with the same begin the first.

        Raises InvalidValue.
        """
        listed = self._form.read(raw)
        return LatencyBatch(listed.host, LatencyWindows.from_summaries(listed.summaries), listed.lost)


BY_COLUMNS: Final = LatencyByColumns()
ONE_BY_ONE: Final = LatencyByRows()

"""Batches as the broker stores them: unpacked within bounds, and passed over if they are damaged.

kafka-python unpacks a batch of any size, and does not get past a batch that it cannot read. Here a damaged batch
becomes one record, with its bytes and a description of the damage. It becomes a dead letter, and the batches behind
it are read.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import Any

import zstandard
from kafka.consumer.fetcher import Fetcher
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import decode_varint

from predrain.data.log.log_port import Delivered

LONGEST_UNPACKED = 32 << 20
"""Most bytes that a batch may unpack to. predrain's batches hold 128 KiB, or one record; a few bytes of zstd can hold
gigabytes."""
AT_ONCE = 32 << 20
"""Bytes of records after which no more are taken in one call."""
_NONE, _GZIP, _ZSTD = 0, 1, 4
_MAGIC = 2


class _Damaged(Exception):
    """A description of the damage of a batch: a sentence without its subject."""


def install_bounded_reader(consumer: Any) -> Any:
    """Make the consumer give `Delivered` for records and for batches that cannot be read; return the consumer."""
    consumer._fetcher.PartitionRecords = _Bounded
    return consumer


class _Bounded(Fetcher.PartitionRecords):  # type: ignore[misc]
    """The records of one partition that one fetch brought."""

    def take(self, n: int | None = None) -> list[Delivered]:
        """Return the next `n` records, or fewer once they exceed AT_ONCE bytes."""
        taken: list[Delivered] = []
        size = 0
        try:
            while self.record_iterator is not None and (n is None or len(taken) < n) and size < AT_ONCE:
                record = next(self.record_iterator, None)
                if record is None:
                    break
                taken.append(record)
                size += len(record.value)
        except BaseException:
            self.drain()  # else the client asks an exhausted iterator again and again
            raise
        return taken

    def _unpack_records(self, tp: Any, records: Any, *_: Any) -> Iterator[Delivered]:
        while (batch := records.next_batch()) is not None:
            if batch.magic != _MAGIC:  # brokers of today write no other: it is damaged
                batch = DefaultRecordBatch(batch._buffer)
            if not batch.is_control_batch:
                for record in _read_batch_or_damage(batch, tp.partition):
                    self.next_fetch_offset = record.offset + 1
                    yield record
            self.leader_epoch = batch.leader_epoch
            self.next_fetch_offset = batch.next_offset
        self.drain()


def _read_batch_or_damage(batch: Any, partition: int) -> Iterator[Delivered]:
    """Yield the records of a batch. If it is damaged, yield the rest of it as one record."""
    try:
        yield from _parse_batch_records(batch, partition)
    except _Damaged as why:
        told = f"offsets {batch.base_offset} to {batch.last_offset} of partition {partition} {why}"
        yield Delivered(batch.last_offset, "", bytes(batch._buffer), partition, told)


def _parse_batch_records(batch: Any, partition: int) -> Iterator[Delivered]:
    if batch.magic != _MAGIC or not batch.validate_crc():
        raise _Damaged("are damaged on the broker (their checksum is wrong): look at its disk")
    data, place, last = _decompress_batch(batch), 0, -1
    try:
        for to_come in reversed(range(batch.records_count)):
            length, place = decode_varint(data, place)
            end = place + length
            _, place = decode_varint(data, place + 1)
            delta, place = decode_varint(data, place)
            key, place = _read_prefixed_bytes(data, place)
            value, place = _read_prefixed_bytes(data, place)
            if not (place <= end <= len(data) and last < delta <= batch.last_offset_delta - to_come):
                raise IndexError  # an offset that leaves no number for the records to come would come twice
            place, last = end, delta
            yield Delivered(
                batch.base_offset + delta, key.decode("utf-8", "backslashreplace"), value, partition
            )
    except (IndexError, ValueError):
        raise _Damaged("end in the midst of a record: mend what sends them") from None


def _read_prefixed_bytes(data: bytes, place: int) -> tuple[bytes, int]:
    """Return a key or a value (empty if there is none), and the position behind it."""
    length, place = decode_varint(data, place)
    return (data[place : place + length], place + length) if length > 0 else (b"", place)


def _decompress_batch(batch: Any) -> bytes:
    packed = bytes(memoryview(batch._buffer)[batch._pos :])
    limit, kind = LONGEST_UNPACKED + 1, batch.compression_type
    try:
        if kind == _NONE:
            return packed
        if kind == _GZIP:
            data = zlib.decompressobj(wbits=31).decompress(packed, limit)
        elif kind == _ZSTD:
            unpacker = zstandard.ZstdDecompressor(max_window_size=LONGEST_UNPACKED)
            with unpacker.stream_reader(io.BytesIO(packed), read_across_frames=True) as reader:
                data = reader.read(limit)
        else:
            raise _Damaged("are packed as predrain does not read: let what sends them pack with zstd")
    except (zlib.error, zstandard.ZstdError) as error:
        raise _Damaged(f"cannot be unpacked ({error}): mend what sends them") from error
    if len(data) >= limit:
        raise _Damaged(
            f"hold more than {LONGEST_UNPACKED:,} bytes, packed into {len(packed):,}: let what sends them send less at"
            " once"
        )
    return data

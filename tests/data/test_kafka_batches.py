"""Batches of Kafka's, whole and broken: what can be read is read, the rest is one record that says why."""

from __future__ import annotations

import gzip
import struct
import warnings
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.log.log_port import Delivered

with warnings.catch_warnings():  # of how kafka-python reads its own schemas, once, while it is imported
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.util import calc_crc32c
    from kafka.structs import TopicPartition

    from predrain.data.log.kafka.record_batches import AT_ONCE, LONGEST_UNPACKED, _Bounded

NONE, GZIP, LZ4, ZSTD = 0, 1, 3, 4
HEADER = 61
PLACE = TopicPartition("readings", 3)


def batch(
    values: list[bytes | None], first: int = 0, codec: int = NONE, key: bytes | None = b"disk", **_: Any
) -> bytes:
    """A batch as a producer packs it; the broker would set its first offset."""
    # magic, compression_type, is_transactional, producer_id, producer_epoch, base_sequence, batch_size
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 30)
    for number, value in enumerate(values):
        builder.append(number, 1_000, key, value, [("head", b"x")])
    return at(bytes(builder.build()), first)


def at(raw: bytes, first: int) -> bytes:
    return struct.pack(">q", first) + raw[8:]


def signed(raw: bytes) -> bytes:
    """With the checksum of what it holds: the broker takes such a batch."""
    return raw[:17] + struct.pack(">I", calc_crc32c(raw[21:])) + raw[21:]


def filled(raw: bytes, contents: bytes, codec: int) -> bytes:
    """The batch with other contents, packed by `codec`."""
    whole = raw[:21] + struct.pack(">h", codec) + raw[23:HEADER] + contents
    return signed(whole[:8] + struct.pack(">i", len(whole) - 12) + whole[12:])


def given_out(*batches: bytes, start: int = 0) -> list[Delivered]:
    part = _Bounded(start, PLACE, MemoryRecords(b"".join(batches)))
    found: list[Delivered] = []
    while part:
        before = part.next_fetch_offset
        found += part.take(1_000)
        assert part.next_fetch_offset >= before
    assert not found or part.next_fetch_offset > found[-1].offset
    return found


@pytest.mark.parametrize("codec", [NONE, GZIP, ZSTD])
def test_records_come_as_they_were_sent(codec: int) -> None:
    if codec == ZSTD:
        raw = filled(batch([b"a", b"b"], 7), zstandard.compress(batch([b"a", b"b"])[HEADER:]), ZSTD)
    else:
        raw = batch([b"a", b"b"], 7, codec)
    assert given_out(raw, batch([b"c"], 9)) == [
        Delivered(7, "disk", b"a", 3), Delivered(8, "disk", b"b", 3), Delivered(9, "disk", b"c", 3)
    ]  # fmt: skip


def test_a_fetch_from_the_midst_of_a_batch_gives_what_comes_after() -> None:
    assert [one.offset for one in given_out(batch([b"a", b"b", b"c"], 7), start=9)] == [9]


def test_no_key_and_no_value_are_empty_ones_and_a_key_that_is_no_text_is_legible() -> None:
    (nothing,) = given_out(batch([None], key=None))
    assert (nothing.key, nothing.value, nothing.damage) == ("", b"", "")
    (odd,) = given_out(batch([b"v"], key=b"ok\xff\xed\xa0\x80"))
    assert odd.key == "ok\\xff\\xed\\xa0\\x80"


PLAIN = batch([b"one", b"two"], 4)
DAMAGED = {
    "a bit that fell over on the broker's disk": (PLAIN[:-3] + b"X" + PLAIN[-2:], "checksum is wrong"),
    "zstd cut short": (filled(PLAIN, zstandard.compress(PLAIN[HEADER:])[:-4], ZSTD), "unpacked|midst of a record"),
    "gzip cut short": (filled(PLAIN, gzip.compress(PLAIN[HEADER:])[:12], GZIP), "midst of a record"),
    "zstd that is none": (filled(PLAIN, b"no zstd at all", ZSTD), "cannot be unpacked"),
    "gzip that is none": (filled(PLAIN, b"no gzip at all", GZIP), "cannot be unpacked"),
    "a packing that we do not read": (filled(PLAIN, b"?", LZ4), "let what sends them pack with zstd"),
    "a bomb of zstd": (filled(PLAIN, zstandard.compress(bytes(LONGEST_UNPACKED + 1)), ZSTD), "hold more than"),
    "a bomb of gzip": (filled(PLAIN, gzip.compress(bytes(LONGEST_UNPACKED + 1)), GZIP), "hold more than"),
    "fewer records than said": (signed(PLAIN[:57] + struct.pack(">i", 9) + PLAIN[HEADER:]), "midst of a record"),
    "a record that goes on and on": (filled(PLAIN, b"\xfe\xff\xff\xff\x0f", NONE), "midst of a record"),
    "a bit that fell over in its head": (PLAIN[:16] + b"\x01" + PLAIN[17:], "checksum is wrong"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_batch_is_one_record_that_says_why_and_those_around_it_are_read(name: str) -> None:
    raw, says = DAMAGED[name]
    found = given_out(batch([b"before"], 3), raw, batch([b"after"], 6))
    assert (found[0].value, found[-1].value) == (b"before", b"after")
    (broken,) = [one for one in found if one.damage]
    assert says.split("|")[0] in broken.damage or says.split("|")[-1] in broken.damage
    assert "partition 3" in broken.damage
    assert (broken.offset, broken.key) == (5, "")
    assert len(broken.value) <= len(raw)


def test_much_is_given_out_in_parts() -> None:
    part = _Bounded(0, PLACE, MemoryRecords(batch([bytes(AT_ONCE // 4)] * 6)))
    assert [len(part.take(1_000)), len(part.take(1_000)), len(part.take(1_000))] == [4, 2, 0]
    assert not part


def test_a_record_that_names_the_offset_of_a_later_one_is_damaged_and_no_offset_comes_twice() -> None:
    raw = bytearray(batch([b"one", b"two", b"three"], 10))
    raw[HEADER + 3] = 4  # the first record's offset, two after the batch's
    found = given_out(signed(bytes(raw)))
    assert [one.offset for one in found] == [12]
    assert found[0].damage


@given(st.data())
def test_the_offsets_of_a_batch_grow_and_end_where_the_batch_ends_for_any_contents(
    data: st.DataObject,
) -> None:
    raw = bytearray(batch([b"one", b"two", b"three"], 10))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(HEADER, len(raw) - 1))] = data.draw(st.integers(0, 255))
    codec = data.draw(st.sampled_from([NONE, GZIP, 2, LZ4, ZSTD, 7]))
    found = given_out(filled(bytes(raw), bytes(raw[HEADER:]), codec), batch([b"after"], 13))
    assert found[-1] == Delivered(13, "disk", b"after", 3)
    offsets = [one.offset for one in found]
    assert sorted(set(offsets)) == offsets
    assert set(offsets) <= {10, 11, 12, 13}

"""Documents: kept by zstd, and read however they were ever kept."""

from __future__ import annotations

import hashlib
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import psycopg
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.outlook import GRID_DAYS, SurvivalCurve
from predrain.data.store import documents
from predrain.data.store.postgres_store import PostgresStore
from predrain.data.wire import wire_bodies
from predrain.data.wire.strict_json import InvalidValue
from tests.data.store import written

READING = written.READINGS[0]
PLAIN = wire_bodies.READING.write(READING)
# As histories were kept up to version 4 of the store.
DEFLATED = zlib.compress(PLAIN, 1)
DICTIONARIES = {1: "da22e1de598e05c30684cb8a2c9348a6e838aff34f4dcd1de639afd18c7d21c6"}
"""The SHA-256 of each dictionary that ever packed a document, by its number."""
CLAIMS = zstandard.ZstdCompressor(level=1).compress(bytes(documents.LONGEST + 1))


def test_a_reading_is_packed_with_the_newest_dictionary_and_comes_back() -> None:
    document = documents.READING.write(READING)
    assert zstandard.get_frame_parameters(document).dict_id == documents.NEWEST_DICTIONARY
    assert documents.READING.read(document) == READING
    assert len(document) < len(documents.compress_document(PLAIN)) / 2


@pytest.mark.parametrize(
    "kept",
    [PLAIN, DEFLATED, zlib.compress(PLAIN, 9), documents.compress_document(PLAIN)],
    ids=["plain", "fast", "small", "without a dictionary"],
)
def test_a_document_that_an_earlier_release_stored_is_read_for_ever(kept: bytes) -> None:
    assert documents.READING.read(kept) == READING


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (documents.compress_document(PLAIN)[:-5], "cannot be unpacked"),
        (DEFLATED[:-5], "cannot be unpacked"),
        (b"x", "cannot be unpacked"),
        (b"", "no Reading"),
        (b"\x00" * 40, "no Reading"),
        (CLAIMS, "longer than any"),
    ],
    ids=["zstd cut short", "zlib cut short", "a letter", "nothing", "zeros", "one that unpacks to 64 MB"],
)
def test_damage_is_told_as_such(damaged: bytes, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        documents.READING.read(damaged)


@pytest.mark.parametrize("number", DICTIONARIES)
def test_a_dictionary_that_stores_use_never_changes(number: int) -> None:
    """A document can only be read with the very bytes with which it was packed."""
    path = Path(documents.__file__).with_name("dictionaries") / f"{number}.zstd-dictionary"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == DICTIONARIES[number]


def test_each_dictionary_is_held_by_a_test() -> None:
    assert [*DICTIONARIES] == [*range(1, documents.NEWEST_DICTIONARY + 1)]


@pytest.mark.parametrize("number", DICTIONARIES)
def test_a_document_packed_with_any_dictionary_is_read_for_ever(number: int) -> None:
    dictionary = zstandard.ZstdCompressionDict(
        (Path(documents.__file__).with_name("dictionaries") / f"{number}.zstd-dictionary").read_bytes()
    )
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(PLAIN)
    assert zstandard.get_frame_parameters(packed).dict_id == number
    assert documents.READING.read(packed) == READING


def test_a_document_of_a_dictionary_that_is_not_known_names_its_version() -> None:
    newer = documents.NEWEST_DICTIONARY + 1
    samples = [PLAIN[n % 97 :] + str(n).encode() for n in range(500)]
    dictionary = zstandard.train_dictionary(4_096, samples, dict_id=newer, level=3)
    packed = zstandard.ZstdCompressor(dict_data=dictionary).compress(PLAIN)
    why = f"needs dictionary {newer}, and this predrain knows dictionaries up to {newer - 1}: update predrain"
    with pytest.raises(InvalidValue, match=why):
        documents.READING.read(packed)


@given(st.binary(max_size=2_000))
def test_any_bytes_are_packed_and_unpacked(plain: bytes) -> None:
    assert documents.decompress_document(documents.compress_document(plain)) == plain


@pytest.mark.system
def test_a_server_does_not_pack_again_what_is_packed(url: str) -> None:
    survival = SurvivalCurve(1 / (1 + day * 0.0137) for day in GRID_DAYS)
    outlook = replace(written.OUTLOOKS[0], survival=survival)
    assert len(WITH_DIGITS) < 2_048, "above this, a server puts things aside"
    with closing(PostgresStore(url)) as store:
        store.save_outlooks(
            [outlook, *(replace(outlook, as_of=written.NOON + n * written.HOUR) for n in range(9))]
        )
    aside = "SELECT sum(pg_relation_size(reltoastrelid)) FROM pg_class WHERE relname IN ('outlooks', 'latest_outlooks')"
    with psycopg.connect(url) as connection:
        assert connection.execute(aside).fetchone() == (0,)


def test_threads_pack_and_unpack_beside_each_other() -> None:
    plains = [bytes([number]) * 20_000 for number in range(64)]

    def again(plain: bytes) -> bytes:
        return documents.decompress_document(documents.compress_document(plain))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(again, plains)) == plains


CURVED = replace(written.OUTLOOKS[0], survival=SurvivalCurve(1 - day / 10_000 for day in GRID_DAYS))
WITH_CURVE = documents.OUTLOOK.write(CURVED)
WITH_DIGITS = documents.compress_document(wire_bodies.OUTLOOK.write(CURVED), documents.NEWEST_DICTIONARY)
"""As the newest outlook of a device was kept in version 11 of the store."""


def test_an_outlook_comes_back_with_its_curve() -> None:
    assert documents.OUTLOOK.read(WITH_CURVE) == CURVED


def test_a_history_keeps_an_outlook_without_its_curve() -> None:
    past = documents.OUTLOOK.write_past(CURVED)
    assert documents.OUTLOOK.read(past) == replace(CURVED, survival=None)
    assert documents.add_curve(past, CURVED.survival) == WITH_CURVE


def test_an_outlook_without_a_curve_has_one_document_for_both() -> None:
    outlook = replace(CURVED, survival=None)
    assert documents.OUTLOOK.write_past(outlook) == documents.OUTLOOK.write(outlook)


def test_a_curve_that_version_11_kept_as_digits_is_read_for_ever() -> None:
    assert documents.OUTLOOK.read(WITH_DIGITS) == CURVED
    assert len(WITH_CURVE) < len(WITH_DIGITS)


def test_a_curve_is_kept_as_little_endian_floats_behind_their_checksum_and_number() -> None:
    points = b"".join(struct.pack("<f", 1.0 - point) for point in 1 - np.array(GRID_DAYS) / 10_000)
    head = b"\xc5crv" + struct.pack("<IH", zlib.crc32(points), len(GRID_DAYS))
    assert head + points + documents.OUTLOOK.write_past(CURVED) == WITH_CURVE


@pytest.mark.parametrize(
    "damaged",
    [
        WITH_CURVE[:3],
        WITH_CURVE[:7],
        WITH_CURVE[:500],
        WITH_CURVE[:-5],
        WITH_CURVE[:600] + b"?" + WITH_CURVE[601:],
        WITH_CURVE[:8] + b"\x01" + WITH_CURVE[9:],
    ],
    ids=[
        "part of the mark",
        "no number",
        "half a curve",
        "part of the rest",
        "a damaged point",
        "a wrong number",
    ],
)
def test_a_damaged_outlook_with_a_curve_is_told_as_such(damaged: bytes) -> None:
    with pytest.raises(InvalidValue):
        documents.OUTLOOK.read(damaged)


def test_an_outlook_with_a_number_that_is_none_is_not_written() -> None:
    with pytest.raises(InvalidValue, match="this Outlook cannot be written"):
        documents.OUTLOOK.write(replace(CURVED, p_fail_7d=float("nan")))

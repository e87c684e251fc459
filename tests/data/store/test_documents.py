"""Documents: kept by zstd, and read however they were ever kept."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.outlook import GRID_DAYS
from predrain.data.store import documents
from predrain.data.store.postgres import PostgresStore
from predrain.data.wire import bodies
from predrain.data.wire.shape import Misshapen
from tests.data.store import written

READING = written.READINGS[0]
PLAIN = bodies.READING.write(READING)
# As histories were kept up to version 4 of the store.
DEFLATED = zlib.compress(PLAIN, 1)
CLAIMS = zstandard.ZstdCompressor(level=1).compress(bytes(documents.LONGEST + 1))


def test_what_is_written_is_zstd_and_comes_back() -> None:
    document = documents.READING.write(READING)
    assert zstandard.decompress(document) == PLAIN
    assert documents.READING.read(document) == READING


@pytest.mark.parametrize("kept", [PLAIN, DEFLATED, zlib.compress(PLAIN, 9)], ids=["plain", "fast", "small"])
def test_what_earlier_releases_kept_is_read_for_ever(kept: bytes) -> None:
    assert documents.READING.read(kept) == READING


@pytest.mark.parametrize(
    ("damaged", "why"),
    [
        (documents.packed(PLAIN)[:-5], "cannot be unpacked"),
        (DEFLATED[:-5], "cannot be unpacked"),
        (b"x", "cannot be unpacked"),
        (b"", "no Reading"),
        (b"\x00" * 40, "no Reading"),
        (CLAIMS, "longer than any"),
    ],
    ids=["zstd cut short", "zlib cut short", "a letter", "nothing", "zeros", "one that unpacks to 64 MB"],
)
def test_damage_is_told_as_such(damaged: bytes, why: str) -> None:
    with pytest.raises(Misshapen, match=why):
        documents.READING.read(damaged)


@given(st.binary(max_size=2_000))
def test_any_bytes_are_packed_and_unpacked(plain: bytes) -> None:
    assert documents.unpacked(documents.packed(plain)) == plain


@pytest.mark.system
def test_a_server_does_not_pack_again_what_is_packed(url: str) -> None:
    survival = tuple(1 / (1 + day * 0.0137) for day in GRID_DAYS)
    outlook = replace(written.OUTLOOKS[0], survival=survival)
    assert len(documents.OUTLOOK.write(outlook)) > 2_048  # above this, a server puts things aside
    with closing(PostgresStore(url)) as store:
        store.save_outlooks(
            [outlook, *(replace(outlook, as_of=written.NOON + n * written.HOUR) for n in range(9))]
        )
    aside = "SELECT sum(pg_relation_size(reltoastrelid)) FROM pg_class WHERE relname IN ('outlooks', 'latest_outlooks')"
    with psycopg.connect(url) as connection:
        assert connection.execute(aside).fetchone() == (0,)


def test_threads_pack_and_unpack_beside_each_other() -> None:
    plains = [bytes([number]) * 20_000 for number in range(64)]
    again: Callable[[bytes], bytes] = lambda plain: documents.unpacked(documents.packed(plain))  # noqa: E731
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(again, plains)) == plains

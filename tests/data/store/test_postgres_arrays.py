"""Columns are packed for PostgreSQL as the driver would pack them: psycopg's own loaders read them back."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.adapt import Transformer
from psycopg.pq import Format
from sqlalchemy import BigInteger, Integer, LargeBinary, String, Text
from sqlalchemy.types import TypeEngine

from predrain.data.store.postgres_arrays import pack_array

KINDS: dict[str, tuple[TypeEngine[Any], int, st.SearchStrategy[Any]]] = {
    "bigint": (BigInteger(), 1016, st.integers(-(2**63), 2**63 - 1)),
    "integer": (Integer(), 1007, st.integers(-(2**31), 2**31 - 1)),
    "varchar": (String(), 1009, st.text(st.characters(exclude_categories=("Cs",)))),
    "text": (Text(), 1009, st.text(st.characters(exclude_categories=("Cs",)))),
    "bytea": (LargeBinary(), 1001, st.binary()),
}
"""A column's type, the OID of its array on the server (pg_type.dat), and its values."""


@pytest.mark.parametrize("name", KINDS)
@given(st.data())
def test_a_packed_column_comes_back_with_its_nulls(name: str, data: st.DataObject) -> None:
    kind, oid, value = KINDS[name]
    values = data.draw(st.lists(st.none() | value, max_size=20))
    loader = Transformer().get_loader(oid, Format.BINARY)
    assert loader.load(pack_array(kind, values).packed) == values


def test_a_number_that_its_column_cannot_hold_is_refused() -> None:
    with pytest.raises(struct.error):
        pack_array(Integer(), [2**31])
    with pytest.raises(struct.error):
        pack_array(BigInteger(), [2**63])

"""Columns of rows as PostgreSQL's binary arrays.

SQLAlchemy and psycopg convert an array item by item, each by several calls. A step of a worker writes 7,000 items, so
they are packed here in one pass, in the format of the server's `array_recv`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final

from psycopg.adapt import Dumper
from psycopg.pq import Format
from sqlalchemy import BigInteger, ColumnElement, Integer, LargeBinary, String, bindparam, cast
from sqlalchemy.types import TypeEngine, UserDefinedType


class ServerType(UserDefinedType[Any]):
    """A type by its name on the server; its values are passed to the driver as they are."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:
        """Return the name."""
        return self.name


class PackedArray:
    """The bytes of an array of one dimension. The statement says its type."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed


_HEADER: Final = struct.Struct(">iiIii")
"""Dimensions, whether an item is null, the OID of the items' type, number of items, number of the first item."""
_pack_length: Final = struct.Struct(">i").pack
_NULL: Final = _pack_length(-1)
_Packing = tuple[type[TypeEngine[Any]], str, int, Callable[[Any], bytes]]
_PACKINGS: Final[Sequence[_Packing]] = (
    (BigInteger, "bigint[]", 20, struct.Struct(">q").pack),
    (Integer, "integer[]", 23, struct.Struct(">i").pack),
    (String, "text[]", 25, str.encode),
    (LargeBinary, "bytea[]", 17, bytes),
)
"""Type of a column, the type of its array, the OID of an item's type (pg_type.dat), and the bytes of an item."""


def declare_array(
    name: str | None, kind: TypeEngine[Any], value: PackedArray | None = None
) -> ColumnElement[Any]:
    """Return the parameter `name` of a statement, an array of values of a column's type."""
    array = ServerType(_find_packing(kind)[1])
    return cast(bindparam(name, value, type_=array), array)


def pack_array(kind: TypeEngine[Any], values: Sequence[Any]) -> PackedArray:
    """Pack values of a column's type; None is null. Raises struct.error, TypeError or ValueError for any other type."""
    _, _, oid, pack = _find_packing(kind)
    if None in values:
        parts: Iterable[bytes] = chain.from_iterable(
            (_NULL,) if value is None else (_pack_length(len(item := pack(value))), item) for value in values
        )
    else:
        items = list(map(pack, values))
        parts = chain.from_iterable(zip(map(_pack_length, map(len, items)), items, strict=True))
    return PackedArray(_HEADER.pack(1, int(None in values), oid, len(values), 1) + b"".join(parts))


def register_packed_arrays(connection: Any) -> None:
    """Let psycopg send packed arrays on this connection."""
    connection.adapters.register_dumper(PackedArray, _PackedArrayDumper)


def _find_packing(kind: TypeEngine[Any]) -> _Packing:
    return next(one for one in _PACKINGS if isinstance(kind, one[0]))


class _PackedArrayDumper(Dumper):
    """Sends the bytes as they are. The type is left to the statement (OID 0)."""

    format = Format.BINARY

    def dump(self, obj: PackedArray) -> bytes:
        return obj.packed

"""The attributes of a report in a fifth of a dict's memory, with what most reports of a fleet have in common shared."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Final

from predrain.data.reading import Attribute

_TABLES_KNOWN: Final = 1_000
"""Sets of attribute numbers that are remembered; a drive model has one or two."""


class AttributeTable(Mapping[int, Attribute]):
    """Attribute number -> attribute. It never changes. Reports with the same numbers share one dict of their places."""

    __slots__ = ("_places", "_rows")

    def __init__(self, places: dict[int, int], rows: tuple[Attribute, ...]) -> None:
        """places: number -> place in `rows`, in the order of the rows."""
        self._places, self._rows = places, rows

    def __getitem__(self, number: int) -> Attribute:
        return self._rows[self._places[number]]

    def __contains__(self, number: object) -> bool:
        return number in self._places

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._rows)

    def keys(self) -> KeysView[int]:
        """Return the numbers."""
        return self._places.keys()

    def values(self) -> ValuesView[Attribute]:
        """Return the attributes."""
        return _TableValues(self)

    def items(self) -> ItemsView[int, Attribute]:
        """Return the numbers with their attributes. This is faster than to ask for each of them."""
        return _TableItems(self)

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class _TableValues(ValuesView[Attribute]):
    """The attributes, iterated without a lookup for each."""

    _mapping: AttributeTable

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self._mapping._rows)


class _TableItems(ItemsView[int, Attribute]):
    """The numbers with their attributes, iterated without a lookup for each."""

    _mapping: AttributeTable

    def __iter__(self) -> Iterator[tuple[int, Attribute]]:
        return zip(self._mapping._places, self._mapping._rows, strict=True)


class SharedAttributes:
    """Gives equal attributes of all drives as one object: most of a fleet's attributes are the same.

    Attributes are never changed, so that nobody sees whether they are shared. At most `most` of them are
    remembered: when more differ, which the counters of busy drives do, all are forgotten, and sharing begins again.
    """

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._known: dict[Attribute, Attribute] = {}
        self._places: dict[tuple[int, ...], dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def share_attributes(self, attributes: Mapping[int, Attribute]) -> AttributeTable:
        """Return the attributes, each replaced by the equal one that was seen first."""
        if len(self._known) + len(attributes) > self._most:
            self._known.clear()
        known, numbers = self._known, tuple(attributes)
        places = self._places.get(numbers)
        if places is None:
            if len(self._places) >= _TABLES_KNOWN:
                self._places.clear()
            places = self._places[numbers] = {number: place for place, number in enumerate(numbers)}
        return AttributeTable(places, tuple(known.setdefault(one, one) for one in attributes.values()))

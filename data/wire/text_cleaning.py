"""Cleans the text of a reading from the wire or from an import, each field to its own length."""

from __future__ import annotations

from collections.abc import ItemsView
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from predrain.data.outside_text import (
    ATTRIBUTE_NAME,
    FIRMWARE,
    MODEL,
    SERIAL,
    UNREADABLE_WHY,
    clean_identifier,
    clean_text,
)
from predrain.data.reading import Attribute, Identity, Reading, Smart


def clean_reading(reading: Reading) -> Reading:
    """Return the reading with clean text. It is the same object if nothing had to be cleaned, which is nearly always.

    Device and host are not changed: other parts know these names, so a name that is not clean is refused.
    """
    seen = reading.seen
    if not isinstance(seen, Smart):
        why = clean_text(seen.why, UNREADABLE_WHY.limit)
        return reading if why == seen.why else replace(reading, seen=replace(seen, why=why))
    if _are_plain(seen):
        return reading
    identity, attributes = _clean_identity(seen.identity), _clean_attributes(seen.attributes.items())
    if identity == seen.identity and not attributes:
        return reading
    return replace(
        reading, seen=replace(seen, identity=identity, attributes={**seen.attributes, **attributes})
    )


_names = attrgetter("vendor", "model", "family", "serial", "wwn", "firmware")
_SHORTEST_LIMIT = min(MODEL.limit, SERIAL.limit, FIRMWARE.limit, ATTRIBUTE_NAME.limit)


def _are_plain(seen: Smart) -> bool:
    """Return whether no text needs cleaning, by one look at all of them together, which is nearly always enough.

    False: each text is to be looked at by itself.
    """
    texts = [row.name for row in seen.attributes.values()]
    texts += filter(None, _names(seen.identity))
    line = f"|{'|'.join(texts)}|"
    return (
        line.isascii()
        and line.isprintable()
        and "  " not in line
        and "| " not in line
        and " |" not in line
        and max(map(len, texts), default=0) <= _SHORTEST_LIMIT
    )


def _clean_identity(identity: Identity) -> Identity:
    def named(value: str | None, limit: int) -> str | None:
        return value and (clean_identifier(value, limit) or None)

    cleaned = {
        "vendor": named(identity.vendor, MODEL.limit),
        "model": named(identity.model, MODEL.limit),
        "family": named(identity.family, FIRMWARE.limit),
        "serial": named(identity.serial, SERIAL.limit),
        "wwn": named(identity.wwn, SERIAL.limit),
        "firmware": named(identity.firmware, FIRMWARE.limit),
    }
    changed: dict[str, Any] = {
        name: text for name, text in cleaned.items() if text != getattr(identity, name)
    }
    return replace(identity, **changed) if changed else identity


def _clean_attributes(rows: ItemsView[int, Attribute]) -> dict[int, Attribute]:
    """Return the attributes whose name had to be cleaned."""
    return {
        number: msgspec.structs.replace(row, name=name)
        for number, row in rows
        if (name := _clean_attribute_name(row.name)) != row.name
    }


def _clean_attribute_name(name: str) -> str:
    """Return a clean name. The same few names are in every reading and are cached; long ones are not."""
    if len(name) <= ATTRIBUTE_NAME.limit:
        return _clean_short_name(name)
    return clean_text(name, ATTRIBUTE_NAME.limit)


@lru_cache(maxsize=1024)
def _clean_short_name(name: str) -> str:
    return clean_text(name, ATTRIBUTE_NAME.limit)

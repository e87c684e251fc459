"""Descriptions of the values that a setting or an option may have, in words that a person knows."""

from __future__ import annotations

import types
from collections.abc import Iterable
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, IPvAnyNetwork, SecretStr

WORDS: dict[Any, str] = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    Path: "path",
    SecretStr: "text",
    IPvAnyNetwork: "address or network",
    date: "date",
    datetime: "time",
}
BOUNDS = {"ge": "{} or more", "gt": "above {}", "le": "{} or less", "lt": "below {}"}


class Unnamed(Exception):
    """A type of which this file does not know the words."""


def kind(annotation: Any, metadata: Iterable[object] = ()) -> str:
    """The words for a type, with the bounds that `metadata` (of pydantic or msgspec) sets. Raises Unnamed."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return kind(inside[0], (*inside[1:], *metadata))
    if origin is Literal:
        return _either([f"`{value}`" for value in inside])
    if origin in (Union, types.UnionType):
        return _either([kind(one, metadata) for one in inside if one is not type(None)])
    if origin in (tuple, list):
        members = [one for one in inside if one is not Ellipsis]
        told = kind(members[0], metadata)
        return f"{len(members)} of: {told}" if len(members) > 1 else f"list of: {told}"
    if origin is dict:
        return f"table of: {kind(inside[1], metadata)}"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _either([f"`{one.value}`" for one in annotation])
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        *first, last = (f"`{key}`" for key in annotation.model_fields)
        keys = f"{', '.join(first)} and {last}" if first else last
        return f"table with {keys}"
    if annotation not in WORDS:
        raise Unnamed(f"give {annotation} its words in {Path(__file__).name}")
    return ", ".join([WORDS[annotation], *bounds(metadata)])


def bounds(metadata: Iterable[object]) -> list[str]:
    """Least and most."""
    limits = {
        name: limit for one in metadata for name in BOUNDS if (limit := getattr(one, name, None)) is not None
    }
    if limits.keys() == {"ge", "le"}:
        return [f"{limits['ge']:g} to {limits['le']:g}"]
    return [words.format(f"{limits[name]:g}") for name, words in BOUNDS.items() if name in limits]


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

"""A check of LightGBM's model text before LightGBM reads it: its reader trusts every number and aborts on wrong ones.

The check covers all that `predict` relies on: sizes and offsets, children that form one tree, existing features,
and finite numbers. The text after the trees (importances, parameters) is not passed on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

TREES_MAX: Final = 5_000
LEAVES_MAX: Final = 1_024
DEPTH_MAX: Final = 64
"""Limit of the depth, because the explanation of a forecast takes time with the square of the depth."""
LEAVES_IN_ALL_MAX: Final = 200_000
LEAF_MAX: Final = 100.0
"""Limit in log odds. A leaf adds less than 10 in every model that was ever trained here."""

_END: Final = "end of trees\n"
_TAIL: Final = "\nparameters:\n[boosting: gbdt]\n\nend of parameters\n\npandas_categorical:null\n"
"""The end has a parameter, so that LightGBM writes the text back in the form that
`models.forecast.bundle.trees_hash` knows.
"""
_FIXED: Final = {
    "version": "v4",
    "num_class": "1",
    "num_tree_per_iteration": "1",
    "label_index": "0",
    "objective": "binary sigmoid:1",
}
_HEADER: Final = frozenset({*_FIXED, "max_feature_idx", "feature_names", "feature_infos", "tree_sizes"})
_MONOTONE: Final = "monotone_constraints"
"""A field that exists if features had a direction in training."""
_SPLITS: Final = (
    "split_feature",
    "split_gain",
    "threshold",
    "decision_type",
    "left_child",
    "right_child",
    "internal_value",
    "internal_weight",
    "internal_count",
)
_LEAVES: Final = ("leaf_value", "leaf_weight", "leaf_count")
_SCALARS: Final = frozenset({"num_leaves", "num_cat", "is_linear", "shrinkage"})
_DECISIONS: Final = frozenset({0, 2, 4, 6, 8, 10})
"""Kinds of comparison with a threshold: missing values go left (2) or right, and are none, zero (4) or NaN (8)."""
_WHOLE: Final = re.compile(r"-?[0-9]{1,10}")
_NUMBER: Final = re.compile(r"-?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?(?:e[+-]?[0-9]{1,3})?|inf)")
_INFO: Final = re.compile(r"none|\[[-+0-9.e]{1,64}:[-+0-9.e]{1,64}\]")
_COUNT_MAX: Final = 2**31 - 1


class UnfitTrees(ValueError):
    """The text is no model that may be passed to LightGBM. The message names the fault and the tree."""


def check_trees(text: str, columns: Sequence[str]) -> str:
    """Return the part of a model's text that holds its trees, fit for LightGBM. columns: the features, in their order.

    Raises UnfitTrees.
    """
    if not text.isascii() or "\0" in text:
        raise UnfitTrees("it holds characters that no model has")
    head, found, rest = text.partition("\nTree=0\n")
    body, ended, _ = (f"Tree=0\n{rest}").partition(_END)
    if not found or not ended:
        raise UnfitTrees("it has no trees, or no end of them")
    lines = head.strip("\n").split("\n")
    if lines[0] != "tree":
        raise UnfitTrees("it does not begin as a model does")
    header = _read_fields(lines[1:], "the header")
    _check_header(header, columns)
    sizes = [_parse_whole_number(one, "tree_sizes", 1, len(body)) for one in header["tree_sizes"].split(" ")]
    if len(sizes) > TREES_MAX or sum(sizes) != len(body):
        raise UnfitTrees("tree_sizes is not the size of its trees")
    begin, leaves = 0, 0
    for number, size in enumerate(sizes):
        leaves += _check_tree(body[begin : begin + size], number, len(columns))
        begin += size
    if leaves > LEAVES_IN_ALL_MAX:
        raise UnfitTrees(f"its trees have {leaves:,} leaves, more than {LEAVES_IN_ALL_MAX:,}")
    return f"{head}\nTree=0\n{rest[: rest.index(_END)]}{_END}{_TAIL}"


def _check_header(header: Mapping[str, str], columns: Sequence[str]) -> None:
    if header.keys() - {_MONOTONE} != _HEADER:
        raise UnfitTrees(
            "its header lacks a field, or has another one: "
            f"{_list_differing_names(header.keys() - {_MONOTONE}, _HEADER)}"
        )
    for name, value in _FIXED.items():
        if header[name] != value:
            raise UnfitTrees(f"{name} is not {value}")
    if header["max_feature_idx"] != str(len(columns) - 1):
        raise UnfitTrees(f"it is for another number of features than {len(columns)}")
    if header["feature_names"].split(" ") != list(columns):
        raise UnfitTrees("it names other features than the bundle")
    directions = header.get(_MONOTONE, " ".join("0" * len(columns))).split(" ")
    if len(directions) != len(columns) or not {"-1", "0", "1"}.issuperset(directions):
        raise UnfitTrees(f"{_MONOTONE} does not give a direction for each feature")
    infos = header["feature_infos"].split(" ")
    if len(infos) != len(columns) or not all(map(_INFO.fullmatch, infos)):
        raise UnfitTrees("feature_infos does not describe each feature")


def _check_tree(text: str, number: int, columns: int) -> int:
    """Check a tree and return its number of leaves. Raises UnfitTrees."""
    where = f"tree {number}"
    lines = text.rstrip("\n").split("\n")
    if lines[0] != f"Tree={number}":
        raise UnfitTrees(f"{where} does not begin where tree_sizes says")
    fields = _read_fields(lines[1:], where)
    leaves = _parse_whole_number(fields.get("num_leaves", ""), f"num_leaves of {where}", 1, LEAVES_MAX)
    if fields.get("num_cat") != "0" or fields.get("is_linear") != "0":
        raise UnfitTrees(f"{where} splits by categories or has linear leaves, which no model of ours does")
    splits = leaves - 1
    # A tree of one leaf has no splits, and LightGBM leaves out their fields.
    wanted = {*_SCALARS, *_LEAVES, *_SPLITS} if splits else {*_SCALARS, "leaf_value"}
    if not wanted <= fields.keys() or not fields.keys() <= {*_SCALARS, *_LEAVES, *_SPLITS}:
        raise UnfitTrees(
            f"{where} lacks a field, or has another one: {_list_differing_names(fields.keys(), wanted)}"
        )
    _parse_bounded_number(fields["shrinkage"], f"shrinkage of {where}", LEAF_MAX)
    for value in _split_values(fields, "leaf_value", leaves, where):
        _parse_bounded_number(value, f"leaf_value of {where}", LEAF_MAX)
    if splits:
        _check_splits(fields, splits, columns, where)
    return leaves


def _check_splits(fields: Mapping[str, str], splits: int, columns: int, where: str) -> None:
    def whole(name: str, least: int, most: int, count: int = splits) -> list[int]:
        values = _split_values(fields, name, count, where)
        return [_parse_whole_number(value, f"{name} of {where}", least, most) for value in values]

    whole("split_feature", 0, columns - 1)
    if not _DECISIONS.issuperset(whole("decision_type", 0, 10)):
        raise UnfitTrees(f"decision_type of {where} is none that compares numbers")
    whole("internal_count", 1, _COUNT_MAX)
    whole("leaf_count", 0, _COUNT_MAX, splits + 1)
    for value in _split_values(fields, "threshold", splits, where):
        _parse_bounded_number(
            value, f"threshold of {where}", math.inf
        )  # an infinite threshold separates missing values
    for name in ("split_gain", "internal_value", "internal_weight"):
        for value in _split_values(fields, name, splits, where):
            _parse_bounded_number(value, f"{name} of {where}", 1e30)
    for value in _split_values(fields, "leaf_weight", splits + 1, where):
        _parse_bounded_number(value, f"leaf_weight of {where}", 1e30)
    left = whole("left_child", -(splits + 1), splits - 1)
    right = whole("right_child", -(splits + 1), splits - 1)
    _check_children(left, right, where)


def _check_children(left: Sequence[int], right: Sequence[int], where: str) -> None:
    """Check that every split but the first, and every leaf (-1, -2, ..), is the child of exactly one split above it.

    Raises UnfitTrees.
    """
    if len({*left, *right}) != 2 * len(left) or 0 in left or 0 in right:
        raise UnfitTrees(f"a child in {where} has two parents, or is the root")
    # There are as many different children as nodes without the root, so nodes that are not reached form a
    # circle.
    reached, level, depth = 0, [0], 0
    while level:
        reached += len(level)
        depth += 1
        if depth > DEPTH_MAX or reached > len(left):
            raise UnfitTrees(f"{where} is deeper than {DEPTH_MAX} splits")
        level = [child for one in level for child in (left[one], right[one]) if child >= 0]
    if reached != len(left):
        raise UnfitTrees(f"the children of {where} form a circle")


def _read_fields(lines: Sequence[str], where: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in lines:
        name, is_field, value = line.partition("=")
        if not is_field or name in fields:
            raise UnfitTrees(f"{where} holds a line that is no field, or one twice")
        fields[name] = value
    return fields


def _split_values(fields: Mapping[str, str], name: str, count: int, where: str) -> list[str]:
    values = fields[name].split(" ")
    if len(values) != count:
        raise UnfitTrees(f"{name} of {where} has {len(values)} values and not {count}")
    return values


def _parse_whole_number(text: str, name: str, least: int, most: int) -> int:
    if not _WHOLE.fullmatch(text) or not least <= int(text) <= most:
        raise UnfitTrees(f"{name} is not a whole number from {least} to {most}")
    return int(text)


def _parse_bounded_number(text: str, name: str, most: float) -> float:
    """Parse a number of at most this size. A number that is too large for a float is infinite. Raises UnfitTrees."""
    if not _NUMBER.fullmatch(text) or abs(float(text)) > most:
        raise UnfitTrees(f"{name} is no number, or not one between -{most:g} and {most:g}")
    return float(text)


def _list_differing_names(
    found: frozenset[str] | set[str] | object, wanted: frozenset[str] | set[str]
) -> str:
    names = {*found} ^ wanted  # type: ignore[misc]
    return ", ".join(sorted(str(name)[:40] for name in names)[:5])

"""The cost of a JSON text is counted before a parser builds any value of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.collector.delivery.spool import BATCH_BYTES, BATCH_RECORDS
from predrain.service.rest.caller_classes import CallerClass, compute_budgets
from predrain.service.rest.json_structure import StructureCounter, StructureExcess, StructureLimits

MIB = 1 << 20
MANY = 1 << 40
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=40,
)


def limits(**changed: int) -> StructureLimits:
    return StructureLimits(**({"depth": MANY, "values": MANY, "items": MANY, "item_values": MANY} | changed))


def counted(text: bytes, size: int, **changed: int) -> StructureExcess | None:
    """Return the excess that a counter finds in `text`, fed in pieces of `size` bytes, or None."""
    counter = StructureCounter(limits(**changed))
    for start in range(0, len(text), size):
        if excess := counter.feed(text[start : start + size]):
            return excess
    return None


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((depth(one) for one in value.values()), default=0)
    return 1 + max((depth(one) for one in value), default=0) if isinstance(value, list) else 0


@pytest.mark.slow
@given(JSON, st.integers(1, 40), st.booleans())
def test_the_depth_of_any_text_in_any_pieces_is_what_a_parser_finds(
    value: Any, size: int, ascii_: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "surrogatepass")
    found = depth(value)
    assert counted(text, size, depth=found) is None
    if found:
        assert counted(text, size, depth=found - 1) is not None


@pytest.mark.slow
@given(st.lists(JSON, max_size=20), st.integers(1, 40))
def test_items_are_those_of_the_outermost_array(items: list[Any], size: int) -> None:
    text = json.dumps(items).encode()
    assert counted(text, size, items=max(1, len(items))) is None
    if len(items) > 1:
        assert counted(text, size, items=len(items) - 1) is not None


@pytest.mark.slow
@given(JSON, st.integers(1, 40))
def test_no_more_values_are_found_than_a_parser_builds(value: Any, size: int) -> None:
    def values(one: Any) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        empty = isinstance(one, (dict, list)) and not one  # counts twice
        return 1 + empty + sum(values(part) for part in inner)

    assert counted(json.dumps(value).encode(), size, values=values(value)) is None


@pytest.mark.parametrize(
    ("text", "changed", "limit", "divisible"),
    [
        (b"[" + b"1," * 200, {"values": 100}, "100 values", True),
        (b"[" + b"1," * 200, {"items": 100}, "100 items", True),
        (b"[[" + b"1," * 200, {"item_values": 100}, "100 values in one item", False),
        (b"[" * 200, {"depth": 100}, "100 levels of arrays and objects", False),
        (b'[{"a":' * 200, {"depth": 100}, "100 levels of arrays and objects", False),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_an_exceeded_limit_is_named_with_whether_smaller_texts_would_pass(
    text: bytes,
    changed: dict[str, int],
    limit: str,
    divisible: bool,
    size: int,
) -> None:
    assert counted(text, size, **changed) == StructureExcess(limit, divisible)


@pytest.mark.parametrize(
    "text", [b'["' + b"[,{" * 100 + b'"]', b'["\\"' + b"[" * 99 + b'\\\\"]', b'["\\\\","["]']
)
@pytest.mark.parametrize("size", [1, 2, 3, 1 << 20])
def test_brackets_and_commas_inside_a_string_count_for_nothing(text: bytes, size: int) -> None:
    json.loads(text)
    assert counted(text, size, depth=1, values=3, items=2) is None


def test_threads_of_all_classes_are_fewer_than_the_pool_has() -> None:
    shared = {kind: one for kind, one in compute_budgets(16 * MIB).items() if kind is not CallerClass.HALT}
    assert set(shared) | {CallerClass.HALT} == set(CallerClass)
    assert sum(one.threads for one in shared.values()) < 40, "the pool of the web framework has forty"


def test_a_collectors_own_batches_fit() -> None:
    collector = compute_budgets(16 * MIB)[CallerClass.COLLECTOR]
    assert collector.body_bytes >= BATCH_BYTES
    assert collector.structure.items >= BATCH_RECORDS
    assert collector.structure.values >= BATCH_RECORDS * 1_514, "the largest of 92 real documents"

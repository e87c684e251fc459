"""Entries of a mapping that differ from those of an earlier copy, by the identity of their values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from predrain.service.fleet.differing_keys import find_differing_keys

VALUES = [object() for _ in range(3)]
MAPPINGS = st.dictionaries(st.integers(0, 9), st.sampled_from([None, *VALUES]))


@given(MAPPINGS, MAPPINGS)
def test_a_key_differs_if_it_is_in_one_mapping_alone_or_has_another_object(
    now: dict[int, object], before: dict[int, object]
) -> None:
    missing = object()
    expected = {
        key for key in now.keys() | before.keys() if now.get(key, missing) is not before.get(key, missing)
    }
    assert find_differing_keys(now, before) == expected


def test_equal_values_of_two_objects_differ() -> None:
    assert find_differing_keys({"a": [1]}, {"a": [1]}) == {"a"}

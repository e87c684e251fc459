"""Results that are found again: by the identity of the arguments, or by the equality of the inputs of a key."""

from __future__ import annotations

from collections.abc import Mapping

from predrain.data.identity_memo import LatestResults, has_same_keys, holds_same_objects, remember_results


def test_a_result_is_computed_once_for_the_same_object_and_again_for_an_equal_one() -> None:
    asked: list[object] = []

    @remember_results(limit=2)
    def count_keys(mapping: Mapping[str, int]) -> int:
        asked.append(mapping)
        return len(mapping)

    first, equal = {"a": 1}, {"a": 1}
    assert [count_keys(first), count_keys(first), count_keys(equal)] == [1, 1, 1]
    assert [one is first for one in asked] == [True, False]


def test_of_more_arguments_than_the_limit_the_oldest_is_forgotten() -> None:
    asked: list[str] = []

    @remember_results(limit=2)
    def repeat_word(word: str) -> str:
        asked.append(word)
        return word * 2

    for word in ("a", "b", "c", "c", "b", "a"):
        assert repeat_word(word) == word * 2
    assert asked == ["a", "b", "c", "a"]


def test_a_result_counts_for_every_argument() -> None:
    @remember_results(limit=4)
    def join_words(one: str, other: str) -> str:
        return one + other

    assert [join_words("a", "b"), join_words("a", "c"), join_words("b", "a")] == ["ab", "ac", "ba"]


def test_a_key_gets_a_new_result_when_its_inputs_are_others() -> None:
    results = LatestResults[str, int](limit=8)
    assert results.find("disk", (1, (2, 3)), lambda: 10) == 10
    assert results.find("disk", (1, (2, 3)), lambda: 11) == 10
    assert results.find("disk", (1, (2, 4)), lambda: 12) == 12
    assert results.find("disk", (1, (2, 3)), lambda: 13) == 13


def test_beyond_the_limit_of_keys_results_are_computed_again() -> None:
    results = LatestResults[int, int](limit=2)
    for key in (1, 2, 3):
        assert results.find(key, (), lambda key=key: key) == key  # type: ignore[misc]
    assert results.find(1, (), lambda: -1) == -1
    assert results.find(3, (), lambda: -3) == 3


def test_mappings_hold_the_same_objects_only_with_equal_keys_in_one_order() -> None:
    one, other = [1], [1]
    assert holds_same_objects({"a": one}, {"a": one})
    assert not holds_same_objects({"a": one}, {"a": other})
    assert not holds_same_objects({"a": one}, {"b": one})
    assert has_same_keys({"a": 1, "b": 2}, {"a": 3, "b": 4})
    assert not has_same_keys({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not has_same_keys({"a": 1}, {"a": 1, "b": 2})

"""Memory of a function's last results, found again by the identity of its arguments.

A poll asks the same question about the same map many times: each guard asks it for each drain. The map's mappings have
no hash, and comparing 65,536 PGs costs as much as the answer. Values are frozen here, so the same objects have the same
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from operator import eq, is_
from typing import Generic, TypeVar, TypeVarTuple

K = TypeVar("K", bound=Hashable)
R = TypeVar("R")
A = TypeVarTuple("A")


class IdentityMemo(Generic[R, *A]):
    """A function of objects that never change, with its last results. Threads may share an instance.

    The arguments are compared by identity and are kept alive with their result, so that no other object can get the
    identity of one of them. Two threads may compute one result twice.
    """

    def __init__(self, compute: Callable[[*A], R], limit: int) -> None:
        """limit: the number of results that are kept, of the arguments that were new last."""
        self._compute, self._limit = compute, limit
        self._known: tuple[tuple[tuple[*A], R], ...] = ()

    def __call__(self, *args: *A) -> R:
        """Return the result for these arguments."""
        for parts, found in self._known:
            if all(map(is_, parts, args)):
                return found
        found = self._compute(*args)
        self._known = ((args, found), *self._known[: self._limit - 1])
        return found


def remember_results(limit: int) -> Callable[[Callable[[*A], R]], IdentityMemo[R, *A]]:
    """Return a decorator that keeps the last `limit` results of a function of objects that never change."""

    def wrap(compute: Callable[[*A], R]) -> IdentityMemo[R, *A]:
        return IdentityMemo(compute, limit)

    return wrap


def has_same_keys(one: Mapping[K, object], other: Mapping[K, object]) -> bool:
    """Return whether both mappings have equal keys in one order."""
    return len(one) == len(other) and all(map(eq, one, other))


def holds_same_objects(one: Mapping[K, object], other: Mapping[K, object]) -> bool:
    """Return whether both mappings have equal keys in one order, each with the identical value."""
    return has_same_keys(one, other) and all(map(is_, one.values(), other.values()))


class LatestResults(Generic[K, R]):
    """The last result for each key, used again while its inputs are equal. Threads may share an instance."""

    def __init__(self, limit: int) -> None:
        """limit: the number of keys; with more, all are forgotten."""
        self._limit = limit
        self._known: dict[K, tuple[object, R]] = {}

    def find(self, key: K, inputs: tuple[object, ...], compute: Callable[[], R]) -> R:
        """Return the result of `compute`, which reads nothing but frozen `inputs`."""
        known = self._known.get(key)
        if known is not None and known[0] == inputs:
            return known[1]
        found = compute()
        if len(self._known) >= self._limit:
            self._known = {}
        self._known[key] = inputs, found
        return found

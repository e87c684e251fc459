"""CRUSH's hash (rjenkins1: Robert Jenkins' 96-bit mix) over whole arrays; every placement draw is one such
hash.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_SEED = np.uint32(1315423911)
_X, _Y = np.uint32(231232), np.uint32(1232)
_BLOCK = 1 << 15
"""Elements that are hashed at once: seven arrays of 128 KiB."""
_SHIFTS = tuple(np.uint32(s) for s in (13, 8, 13, 12, 16, 5, 3, 10, 15))


def _mix_jenkins_arrays(a: Words, b: Words, c: Words) -> None:
    """Apply Jenkins' mix to three arrays of equal shape, in place."""
    shifted = np.empty_like(a)
    for step in range(0, 9, 3):
        a -= b
        a -= c
        a ^= np.right_shift(c, _SHIFTS[step], out=shifted)
        b -= c
        b -= a
        b ^= np.left_shift(a, _SHIFTS[step + 1], out=shifted)
        c -= a
        c -= b
        c ^= np.right_shift(b, _SHIFTS[step + 2], out=shifted)


def hash_two_words(first: Words, second: Words) -> Words:
    """Compute crush_hash32_2 of two arrays that broadcast together: uint32 in, uint32 out."""
    return _by_blocks(_hash_two_blocks, first, second)


def hash_three_words(first: Words, second: Words, third: Words) -> Words:
    """Compute crush_hash32_3 of three arrays that broadcast together: uint32 in, uint32 out."""
    return _by_blocks(_hash_three_blocks, first, second, third)


def _by_blocks(compute: Callable[..., Words], *parts: Words) -> Words:
    """Apply `compute` to the broadcast arrays, one block of rows at a time, so that a block fits in the
    processor's cache.
    """
    whole = np.broadcast_arrays(*parts)
    shape = whole[0].shape
    rows = max(1, _BLOCK // max(1, math.prod(shape[1:])))
    if not shape or shape[0] <= rows:
        return compute(*whole)
    hashed = np.empty(shape, dtype=np.uint32)
    for at in range(0, shape[0], rows):
        hashed[at : at + rows] = compute(*(part[at : at + rows] for part in whole))
    return hashed


def _hash_two_blocks(first: Words, second: Words) -> Words:
    a, b = first.copy(), second.copy()
    mixed: Words = a ^ b ^ _SEED
    x, y = np.full_like(mixed, _X), np.full_like(mixed, _Y)
    for left, right in ((a, b), (x, a), (b, y)):
        _mix_jenkins_arrays(left, right, mixed)
    return mixed


def _hash_three_blocks(first: Words, second: Words, third: Words) -> Words:
    a, b, c = first.copy(), second.copy(), third.copy()
    mixed: Words = a ^ b ^ c ^ _SEED
    x, y = np.full_like(mixed, _X), np.full_like(mixed, _Y)
    for left, right in ((a, b), (c, x), (y, a), (b, x), (y, c)):
        _mix_jenkins_arrays(left, right, mixed)
    return mixed

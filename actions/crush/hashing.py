"""CRUSH's hash (rjenkins1: Robert Jenkins' 96-bit mix) over whole arrays; every draw of placement is one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_SEED = np.uint32(1315423911)
_X, _Y = np.uint32(231232), np.uint32(1232)
_SHIFTS = tuple(np.uint32(s) for s in (13, 8, 13, 12, 16, 5, 3, 10, 15))


def _mix(a: Words, b: Words, c: Words) -> None:
    """Jenkins' mix of three equal-shaped arrays, in place."""
    for step in range(0, 9, 3):
        a -= b
        a -= c
        a ^= c >> _SHIFTS[step]
        b -= c
        b -= a
        b ^= a << _SHIFTS[step + 1]
        c -= a
        c -= b
        c ^= b >> _SHIFTS[step + 2]


def hash2(first: Words, second: Words) -> Words:
    """crush_hash32_2 of two arrays that broadcast together: uint32 in, uint32 out."""
    a, b = (np.array(part) for part in np.broadcast_arrays(first, second))
    mixed: Words = a ^ b ^ _SEED
    x, y = np.full_like(mixed, _X), np.full_like(mixed, _Y)
    for left, right in ((a, b), (x, a), (b, y)):
        _mix(left, right, mixed)
    return mixed


def hash3(first: Words, second: Words, third: Words) -> Words:
    """crush_hash32_3 of three arrays that broadcast together: uint32 in, uint32 out."""
    a, b, c = (np.array(part) for part in np.broadcast_arrays(first, second, third))
    mixed: Words = a ^ b ^ c ^ _SEED
    x, y = np.full_like(mixed, _X), np.full_like(mixed, _Y)
    for left, right in ((a, b), (c, x), (y, a), (b, x), (y, c)):
        _mix(left, right, mixed)
    return mixed

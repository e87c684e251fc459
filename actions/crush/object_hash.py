"""The hash from an object's name to its PG, as Ceph's clients compute it (ceph_str_hash_rjenkins,
ceph_stable_mod).
"""

from __future__ import annotations

from itertools import count

_MASK = 0xFFFFFFFF
_GOLDEN = 0x9E3779B9


def _mix_jenkins_words(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Apply Robert Jenkins' mix of 1996 to three words."""
    for right, left, last in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = (a - b - c & _MASK) ^ c >> right
        b = (b - c - a & _MASK) ^ a << left & _MASK
        c = (c - a - b & _MASK) ^ b >> last
    return a, b, c


def name_hash(name: str) -> int:
    """Return the 32-bit hash of an object's name."""
    text = name.encode()
    a, b, c, at = _GOLDEN, _GOLDEN, 0, 0
    while len(text) - at >= 12:
        words = (int.from_bytes(text[at + skip : at + skip + 4], "little") for skip in (0, 4, 8))
        a, b, c = _mix_jenkins_words(
            *(part + word & _MASK for part, word in zip((a, b, c), words, strict=True))
        )
        at += 12
    rest = text[at:]
    c = c + len(text) & _MASK
    a = a + int.from_bytes(rest[0:4], "little") & _MASK
    b = b + int.from_bytes(rest[4:8], "little") & _MASK
    c = c + (int.from_bytes(rest[8:11], "little") << 8) & _MASK
    return _mix_jenkins_words(a, b, c)[2]


def seed_of(name: str, pg_num: int) -> int:
    """Return the PG of an object of this name within its pool (the part after the dot of the PG's id)."""
    mask = (1 << (pg_num - 1).bit_length()) - 1
    drawn = name_hash(name)
    return drawn & mask if drawn & mask < pg_num else drawn & mask >> 1


def names_of(pg_num: int, prefix: str) -> dict[int, str]:
    """Return, for every PG of a pool, one name that belongs to it."""
    names: dict[int, str] = {}
    for number in count():
        name = f"{prefix}{number}"
        names.setdefault(seed_of(name, pg_num), name)
        if len(names) == pg_num:
            return names
    raise AssertionError("names never end")

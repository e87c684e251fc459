"""Which entries of a large mapping differ from those of an earlier copy of it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress, filterfalse, repeat
from operator import is_not
from typing import Final, TypeVar

K = TypeVar("K")
_MISSING: Final = object()


def find_differing_keys(now: Mapping[K, object], before: Mapping[K, object]) -> set[K]:
    """Return the keys whose value is another object than before, and the added and removed keys.

    Snapshots of a fleet are compared with it, so no line of Python runs for each of their disks.
    """
    changed = map(is_not, now.values(), map(before.get, now, repeat(_MISSING)))
    return set(compress(now, changed)).union(filterfalse(now.__contains__, before))

"""`PgIndex`: the PGs of a view by the OSDs that they name, continued from poll to poll by the PGs that changed.

A cluster of 6,000 OSDs has 65,536 PGs, of which a poll changes a few. Each question about one OSD would otherwise read
all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from itertools import compress
from operator import is_not

from predrain.actions.cluster.cluster_view import Pg
from predrain.data.identity_memo import has_same_keys, remember_results
from predrain.data.ids import OsdId, PgId

_MOST_CHANGED = 8
"""If more than one PG in so many changed, the index is built from all PGs."""


class PgIndex:
    """The PGs that name each OSD in `up` or `acting`, in the order of the view. An instance never changes.

    If no PG of an OSD has changed between two polls, its tuple is the identical object in both indices.
    """

    def __init__(self, by_osd: Mapping[int, tuple[Pg, ...]], positions: Mapping[PgId, int]) -> None:
        self._by_osd, self._positions = by_osd, positions

    @classmethod
    def from_pgs(cls, pgs: Mapping[PgId, Pg]) -> PgIndex:
        """Build the index from all PGs."""
        found: dict[int, list[Pg]] = {}
        for pg in pgs.values():
            for osd in _list_named_osds(pg):
                known = found.get(osd)
                if known is None:
                    found[osd] = [pg]
                else:
                    known.append(pg)
        positions = {id_: position for position, id_ in enumerate(pgs)}
        return cls({osd: tuple(known) for osd, known in found.items()}, positions)

    def with_changes(self, changes: Iterable[tuple[Pg, Pg]]) -> PgIndex:
        """Return the index after these PGs, (before, now), have changed."""
        gone: dict[int, set[PgId]] = {}
        come: dict[int, dict[PgId, Pg]] = {}
        for before, now in changes:
            for osd in _list_named_osds(before):
                gone.setdefault(osd, set()).add(before.id)
            for osd in _list_named_osds(now):
                come.setdefault(osd, {})[now.id] = now
        by_osd = dict(self._by_osd)
        for osd in gone.keys() | come.keys():
            left, new = gone.get(osd, set()), come.get(osd, {})
            if left == new.keys():
                row = list(by_osd[osd])
                for pg in new.values():
                    row[bisect_left(row, self._find_position(pg), key=self._find_position)] = pg
            else:
                kept = [pg for pg in by_osd.get(osd, ()) if pg.id not in left]
                row = sorted([*kept, *new.values()], key=self._find_position)
            by_osd[osd] = tuple(row)
        return PgIndex(by_osd, self._positions)

    def list_pgs(self, osd: int) -> tuple[Pg, ...]:
        """Return the PGs that have the OSD in `up` or `acting`, in the order of the view."""
        return self._by_osd.get(osd, ())

    def list_pgs_of_any(self, osds: Iterable[OsdId]) -> tuple[Pg, ...]:
        """Return the PGs that have any of `osds` in `up` or `acting`, each once, in the order of the view."""
        found = {pg.id: pg for osd in osds for pg in self.list_pgs(osd)}
        return tuple(sorted(found.values(), key=self._find_position))

    def sort_ids(self, ids: Iterable[PgId]) -> list[PgId]:
        """Return these PGs of the view in its order."""
        return sorted(ids, key=self._positions.__getitem__)

    def _find_position(self, pg: Pg) -> int:
        return self._positions[pg.id]


def _list_named_osds(pg: Pg) -> Iterable[int]:
    return set(pg.up) if pg.up == pg.acting else {*pg.up, *pg.acting}


@remember_results(limit=2)
def list_changed_pgs(before: Mapping[PgId, Pg], now: Mapping[PgId, Pg]) -> tuple[tuple[Pg, Pg], ...] | None:
    """Return each PG that is not the same object, as (before, now); None if PGs came or went."""
    if before is now:
        return ()
    if not has_same_keys(before, now):
        return None
    other = map(is_not, before.values(), now.values())
    return tuple(compress(zip(before.values(), now.values(), strict=True), other))


class _KnownIndices:
    """The last index, from which that of the next poll is continued."""

    def __init__(self) -> None:
        self._last: tuple[Mapping[PgId, Pg], PgIndex] | None = None

    def find(self, pgs: Mapping[PgId, Pg]) -> PgIndex:
        last = self._last
        changes = None if last is None else list_changed_pgs(last[0], pgs)
        if last is None or changes is None or len(changes) * _MOST_CHANGED > len(pgs):
            found = PgIndex.from_pgs(pgs)
        else:
            found = last[1].with_changes(changes) if changes else last[1]
        self._last = pgs, found
        return found


_KNOWN_INDICES = _KnownIndices()


@remember_results(limit=2)
def find_pg_index(pgs: Mapping[PgId, Pg]) -> PgIndex:
    """Return the index of these PGs, continued from that of the PGs asked for last."""
    return _KNOWN_INDICES.find(pgs)

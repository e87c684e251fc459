"""The mgr's upmap balancer, which works against a drain: it counts PGs and ignores override reweights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.simulator.simulated_osdmap import OsdMap
from predrain.data.ids import PgId

_DEVIATION = 5
_PER_ROUND = 2


def compute_balancer_upmaps(
    osdmap: OsdMap, ups: Iterable[tuple[int, tuple[int, ...]]]
) -> list[tuple[PgId, tuple[tuple[int, int], ...]]]:
    """Return the upmap items of one round: (PG, whole new list).

    The list is empty if no OSD is more than five PGs from its share. ups: (index, `up`) of every PG. An OSD
    counts by its CRUSH weight as long as its override is above 0. A partly reweighted OSD therefore looks too
    empty and is filled again (seen on real clusters: 10 > 12 > 14 PGs in 3 rounds).
    """
    held: Counter[int] = Counter()
    by_osd: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for index, up in ups:
        for osd in up:
            if osd != ITEM_NONE:
                held[osd] += 1
                by_osd.setdefault(osd, []).append((index, up))
    weights = {o: osdmap.crush_weight(o) for o, w in osdmap.reweights.items() if w and o in osdmap.up}
    total = sum(weights.values())
    if not total:
        return []
    share = {osd: sum(held.values()) * weight / total for osd, weight in weights.items() if weight}
    neediest = min(share, key=lambda osd: (held[osd] - share[osd], osd))
    if share[neediest] - held[neediest] <= min(_DEVIATION, share[neediest] / 4):
        return []
    upmaps: list[tuple[PgId, tuple[tuple[int, int], ...]]] = []
    for giver in sorted(share, key=lambda osd: (share[osd] - held[osd], osd)):
        if held[giver] <= share[giver]:
            break
        for index, up in by_osd.get(giver, []):
            pg = osdmap.pgs[index]
            others = [osd for osd in up if osd != giver]
            if neediest in up or pg in osdmap.upmaps or osdmap.same_domain(index, neediest, others):
                continue
            upmaps.append((pg, ((giver, neediest),)))
            if len(upmaps) == _PER_ROUND:
                return upmaps
            break
    return upmaps

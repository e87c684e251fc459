"""One simulated PG: who really holds its data, who serves it, and the words Ceph has for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from predrain.actions.cluster.view import Pg
from predrain.actions.crush.map import ITEM_NONE
from predrain.actions.crush.pool import Pool
from predrain.data.ids import PgId

Alive = Callable[[int], bool]
"""Whether an OSD is up."""


@dataclass(frozen=True, slots=True)
class PgTruth:
    """What a checker may know of a PG that no dump tells.

    members: OSDs that are up and hold whole, current data; for EC one entry a shard, ITEM_NONE where none
    is left.
    """

    id: PgId
    pool: Pool
    up: tuple[int, ...]
    acting: tuple[int, ...]
    members: tuple[int, ...]

    @property
    def copies(self) -> int:
        """Copies, or shards on different OSDs, that can be lost one OSD at a time."""
        return len({osd for osd in self.members if osd != ITEM_NONE})


@dataclass(slots=True)
class PlacementGroup:
    """State of a PG. Positions matter for EC only: a replicated PG keeps all its holders in `holders[0]`."""

    index: int
    id: PgId
    pool: Pool
    shard_bytes: int
    objects: int
    young: bool
    up: tuple[int, ...]
    acting: tuple[int, ...] = ()
    holders: list[set[int]] = field(default_factory=list)
    """Who holds whole data, up or down, by position."""
    behind: dict[int, float] = field(default_factory=dict)
    """Holders that missed writes: seconds that they were away."""
    partial: dict[tuple[int, int], float] = field(default_factory=dict)
    """(position, OSD) being filled: bytes there."""
    peering: bool = False
    peers_for: float = 0.0
    """Seconds that it takes to peer, while it does."""
    held: tuple[int, ...] = ()
    """Whom the mon was told to let serve on (`osd pg-temp`) when the map next moves the PG."""
    interval: int = 0
    """Grows with each peering; an event of an older interval is void."""
    backfilling: bool = False
    toofull: bool = False

    @classmethod
    def clean(
        cls,
        index: int,
        pg: PgId,
        pool: Pool,
        shard_bytes: int,
        object_bytes: int,
        young: bool,
        up: tuple[int, ...],
    ) -> PlacementGroup:
        """A PG whose data lies exactly where the map wants it."""
        holders = [{osd} - {ITEM_NONE} for osd in up] if pool.erasure else [set(up)]
        objects = max(1, shard_bytes // object_bytes)
        return cls(index, pg, pool, shard_bytes, objects, young, up, up, holders)

    def split_off(self, index: int, pg: PgId) -> PlacementGroup:
        """Give half of the objects to a child, which lies where this PG does."""
        child = replace(
            self,
            index=index,
            id=pg,
            shard_bytes=self.shard_bytes // 2,
            objects=self.objects // 2,
            holders=[set(held) for held in self.holders],
            behind=dict(self.behind),
            partial={target: done / 2 for target, done in self.partial.items()},
            peering=False,
            held=(),
            interval=0,
        )
        self.shard_bytes -= child.shard_bytes
        self.objects -= child.objects
        self.partial = {target: done / 2 for target, done in self.partial.items()}
        return child

    def place_of(self, position: int) -> int:
        """Index into `holders` of a position of `up`."""
        return position if self.pool.erasure else 0

    def missing(self) -> list[tuple[int, int]]:
        """(place, OSD) that the map wants filled and that do not hold the data."""
        if not self.pool.erasure:
            held = self.holders[0]
            return [(0, osd) for osd in self.up if osd not in held and osd != ITEM_NONE]
        pairs = enumerate(zip(self.up, self.holders, strict=True))
        return [(place, osd) for place, (osd, held) in pairs if osd not in held and osd != ITEM_NONE]

    def whole(self, alive: Alive) -> tuple[int, ...]:
        """`members` of PgTruth."""
        if not self.pool.erasure:
            return tuple(sorted(o for o in self.holders[0] if alive(o) and o not in self.behind))
        return tuple(
            min((o for o in held if alive(o) and o not in self.behind), default=ITEM_NONE)
            if served not in held or not alive(served) or served in self.behind
            else served
            for held, served in zip(self.holders, self.acting, strict=True)
        )

    def choose_acting(self, alive: Alive) -> tuple[int, ...]:
        """Who serves while `up` is filled: members of `up` with data, then who served before, then strays."""
        if self.pool.erasure:
            return tuple(self._acting_shard(position, alive) for position in range(len(self.holders)))
        held = {osd for osd in self.holders[0] if alive(osd)}
        if not held:
            return ()
        if self.young or held.issuperset(self.up):
            able, leader = held | set(self.up), self.up[0] if self.up else min(held)
        else:
            able = held
            leader = next((o for o in (*self.up[:1], *self.acting) if o in held), min(held))
        order = dict.fromkeys((leader, *self.up, *self.acting, *sorted(held)))
        return tuple(osd for osd in order if osd in able)[: self.pool.size]

    def _acting_shard(self, position: int, alive: Alive) -> int:
        wanted, held = self.up[position], self.holders[position]
        if wanted != ITEM_NONE and (wanted in held or self.young):
            return wanted
        served = self.acting[position] if self.acting else ITEM_NONE
        if served in held and alive(served):
            return served
        return min((osd for osd in held if alive(osd)), default=ITEM_NONE)

    def served_by(self) -> list[int]:
        return [osd for osd in self.acting if osd != ITEM_NONE]

    def undersized(self) -> bool:
        return len(self.served_by()) < self.pool.size

    def degraded(self) -> bool:
        """Fewer current copies serve than the pool asks for."""
        return self.undersized() or self.recovering()

    def recovering(self) -> bool:
        """A serving member is being brought up from the log."""
        return any(self._lacks(position, osd) for position, osd in enumerate(self.acting))

    def _lacks(self, position: int, osd: int) -> bool:
        return osd != ITEM_NONE and (osd in self.behind or osd not in self.holders[self.place_of(position)])

    def is_clean(self) -> bool:
        """Nothing left to do: strays may go."""
        return not (self.peering or self.undersized() or self.recovering() or self.missing())

    def states(self) -> frozenset[str]:
        """The state as `pg dump` spells it, split at the plus signs."""
        words: set[str] = set()
        if not self.served_by():
            return frozenset({"down"})
        if self.acting != self.up:
            words.add("remapped")
        if self.peering:
            return frozenset(words | {"peering"})
        serving = sum(not self._lacks(p, osd) for p, osd in enumerate(self.acting) if osd != ITEM_NONE)
        words.add("active" if serving >= min(self.pool.min_size, self.pool.size) else "peered")
        if self.undersized():
            words |= {"undersized", "degraded"}
        if self.recovering():
            words |= {"degraded", "recovering"}
        elif self.missing():
            filling = "backfilling" if self.backfilling else "backfill_wait"
            words.add("backfill_toofull" if self.toofull else filling)
        elif not self.undersized():
            words.add("clean")
        return frozenset(words)

    def degraded_objects(self) -> int:
        lacking = self.pool.size - len(self.served_by())
        lacking += sum(self._lacks(position, osd) for position, osd in enumerate(self.acting))
        return max(0, lacking) * self.objects

    def reported(self, epoch: int) -> Pg:
        """What the PG's primary tells the mgr now."""
        return Pg(
            id=self.id,
            pool=self.pool.id,
            states=self.states(),
            up=self.up,
            acting=self.acting,
            shard_bytes=self.shard_bytes,
            objects=self.objects,
            degraded_objects=self.degraded_objects(),
            reported_epoch=epoch,
        )

    def truth(self, alive: Alive) -> PgTruth:
        """What really is."""
        return PgTruth(self.id, self.pool, self.up, self.acting, self.whole(alive))

"""One simulated PG: its real data holders, its serving OSDs, and its states in Ceph's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from predrain.actions.cluster.cluster_view import Pg
from predrain.actions.crush.crush_map import ITEM_NONE
from predrain.actions.crush.pool import Pool
from predrain.data.ids import PgId

Alive = Callable[[int], bool]
"""A function that returns whether an OSD is up."""


@dataclass(frozen=True, slots=True)
class PgTruth:
    """The facts about a PG that no dump shows, for a checker.

    members: OSDs that are up and hold whole, current data. For EC there is one entry for each shard,
    ITEM_NONE where none is left.
    """

    id: PgId
    pool: Pool
    up: tuple[int, ...]
    acting: tuple[int, ...]
    members: tuple[int, ...]

    @property
    def copies(self) -> int:
        """The number of copies, or of shards on different OSDs, that can be lost one OSD at a time."""
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
    """OSDs that hold whole data, up or down, by position."""
    behind: dict[int, float] = field(default_factory=dict)
    """Holders that missed writes, with the seconds that they were away."""
    partial: dict[tuple[int, int], float] = field(default_factory=dict)
    """(position, OSD) being filled, with the bytes there."""
    peering: bool = False
    peers_for: float = 0.0
    """The duration of the present peering in seconds."""
    held: tuple[int, ...] = ()
    """The members that the mon was asked to keep serving (`osd pg-temp`) at the PG's next move by the map."""
    interval: int = 0
    """Grows with each peering; an event of an older interval is void."""
    backfilling: bool = False
    toofull: bool = False

    @classmethod
    def create_clean(
        cls,
        index: int,
        pg: PgId,
        pool: Pool,
        shard_bytes: int,
        object_bytes: int,
        young: bool,
        up: tuple[int, ...],
    ) -> PlacementGroup:
        """Return a PG whose data lies exactly where the map wants it."""
        holders = [{osd} - {ITEM_NONE} for osd in up] if pool.erasure else [set(up)]
        objects = max(1, shard_bytes // object_bytes)
        return cls(index, pg, pool, shard_bytes, objects, young, up, up, holders)

    def split_off(self, index: int, pg: PgId) -> PlacementGroup:
        """Give half of the objects to a child, which lies where this PG does. Return the child."""
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
        """Return the index into `holders` of a position of `up`."""
        return position if self.pool.erasure else 0

    def list_missing(self) -> list[tuple[int, int]]:
        """Return (place, OSD) for each OSD that the map wants filled and that does not hold the data."""
        if not self.pool.erasure:
            held = self.holders[0]
            return [(0, osd) for osd in self.up if osd not in held and osd != ITEM_NONE]
        pairs = enumerate(zip(self.up, self.holders, strict=True))
        return [(place, osd) for place, (osd, held) in pairs if osd not in held and osd != ITEM_NONE]

    def list_whole_members(self, alive: Alive) -> tuple[int, ...]:
        """Return `members` of PgTruth."""
        if not self.pool.erasure:
            return tuple(sorted(o for o in self.holders[0] if alive(o) and o not in self.behind))
        able = [
            sorted(
                (osd for osd in held if alive(osd) and osd not in self.behind), key=lambda o: (o != served, o)
            )
            for held, served in zip(self.holders, self.acting, strict=True)
        ]
        return _spread_shards(able)

    def choose_acting(self, alive: Alive) -> tuple[int, ...]:
        """Return the OSDs that serve while `up` is filled: members of `up` with data, then former members,
        then strays.
        """
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

    def is_undersized(self) -> bool:
        return len(self.served_by()) < self.pool.size

    def is_degraded(self) -> bool:
        """Return whether fewer current copies serve than the pool asks for."""
        return self.is_undersized() or self.is_recovering()

    def is_recovering(self) -> bool:
        """Return whether a serving member is being recovered from the log."""
        return any(self._lacks(position, osd) for position, osd in enumerate(self.acting))

    def _lacks(self, position: int, osd: int) -> bool:
        return osd != ITEM_NONE and (osd in self.behind or osd not in self.holders[self.place_of(position)])

    def is_clean(self) -> bool:
        """Return whether nothing is left to do, so that strays may be deleted."""
        return not (self.peering or self.is_undersized() or self.is_recovering() or self.list_missing())

    def states(self) -> frozenset[str]:
        """Return the states as `pg dump` names them, split at the plus signs."""
        words: set[str] = set()
        if not self.served_by():
            return frozenset({"down"})
        if self.acting != self.up:
            words.add("remapped")
        if self.peering:
            return frozenset(words | {"peering"})
        serving = sum(not self._lacks(p, osd) for p, osd in enumerate(self.acting) if osd != ITEM_NONE)
        words.add("active" if serving >= min(self.pool.min_size, self.pool.size) else "peered")
        if self.is_undersized():
            words |= {"undersized", "degraded"}
        if self.is_recovering():
            words |= {"degraded", "recovering"}
        elif self.list_missing():
            filling = "backfilling" if self.backfilling else "backfill_wait"
            words.add("backfill_toofull" if self.toofull else filling)
        elif not self.is_undersized():
            words.add("clean")
        return frozenset(words)

    def degraded_objects(self) -> int:
        lacking = self.pool.size - len(self.served_by())
        lacking += sum(self._lacks(position, osd) for position, osd in enumerate(self.acting))
        return max(0, lacking) * self.objects

    def build_report(self, epoch: int) -> Pg:
        """Return the report of the PG's primary to the mgr."""
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
        """Return the real state of the PG."""
        return PgTruth(self.id, self.pool, self.up, self.acting, self.list_whole_members(alive))


def _spread_shards(able: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Choose a holder for each shard, on as many different OSDs as possible.

    able: (shards,) the OSDs that hold the shard, the best one first. After a fill an OSD may hold two shards of
    a PG until the strays are deleted. The OSDs are assigned along augmenting paths (Kuhn's algorithm).
    """
    shard_of: dict[int, int] = {}

    def assign(shard: int, tried: set[int]) -> bool:
        for osd in able[shard]:
            if osd not in tried:
                tried.add(osd)
                if osd not in shard_of or assign(shard_of[osd], tried):
                    shard_of[osd] = shard
                    return True
        return False

    if len({held[0] for held in able if held}) < sum(map(bool, able)):
        for shard in range(len(able)):
            assign(shard, set())
    osd_of = {shard: osd for osd, shard in shard_of.items()}
    return tuple(osd_of.get(shard, held[0] if held else ITEM_NONE) for shard, held in enumerate(able))

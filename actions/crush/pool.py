"""A pool as the OSD map has it: how many PGs of what size, and the CRUSH rule that places them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool. `size` shards or copies a PG."""

    id: int
    name: str
    size: int
    min_size: int
    pg_num: int
    pg_num_target: int
    rule: int
    erasure: bool
    hashpspool: bool = True
    """Whether placement hashes a PG's seed with the pool; pools made before 2013 add the two instead."""
    pgp_num: int | None = None
    """How many of its PGs are placed apart from each other; None: all of them."""
    pgp_num_target: int | None = None
    pg_num_pending: int | None = None
    """`pg_num` as it will be when the PGs that are being merged have come together."""

    @property
    def changes(self) -> tuple[tuple[str, int, int], ...]:
        """What is on its way to a target of its own: name, value now, target. A `pgp_num` that is to stay below
        `pg_num` is not on its way."""
        found = []
        if self.pg_num != self.pg_num_target:
            found.append(("pg_num", self.pg_num, self.pg_num_target))
        elif self.pg_num_pending is not None and self.pg_num_pending != self.pg_num:
            found.append(("pg_num", self.pg_num, self.pg_num_pending))
        if None not in (self.pgp_num, self.pgp_num_target) and self.pgp_num != self.pgp_num_target:
            found.append(("pgp_num", self.pgp_num or 0, self.pgp_num_target or 0))
        return tuple(found)

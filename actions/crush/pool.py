"""A pool as the OSD map has it: the number and size of its PGs, and the CRUSH rule that places them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool. `size` is the number of shards or copies of a PG."""

    id: int
    name: str
    size: int
    min_size: int
    pg_num: int
    pg_num_target: int
    rule: int
    erasure: bool
    hashpspool: bool = True
    """True if placement hashes a PG's seed with the pool; pools made before 2013 add the two instead."""
    pgp_num: int | None = None
    """The number of its PGs that are placed separately; None: all of them."""
    pgp_num_target: int | None = None
    pg_num_pending: int | None = None
    """The value of `pg_num` after the present merge of PGs."""

    @property
    def changes(self) -> tuple[tuple[str, int, int], ...]:
        """Return the numbers that change towards a target: name, present value, target.

        A `pgp_num` that is to stay below `pg_num` is not among them.
        """
        found = []
        if self.pg_num != self.pg_num_target:
            found.append(("pg_num", self.pg_num, self.pg_num_target))
        elif self.pg_num_pending is not None and self.pg_num_pending != self.pg_num:
            found.append(("pg_num", self.pg_num, self.pg_num_pending))
        if None not in (self.pgp_num, self.pgp_num_target) and self.pgp_num != self.pgp_num_target:
            found.append(("pgp_num", self.pgp_num or 0, self.pgp_num_target or 0))
        return tuple(found)

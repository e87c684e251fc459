"""The CRUSH map as a value: buckets, rules, tunables. Weights are 16.16 fixed point (65536 = 1.0 TiB)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ITEM_NONE = 0x7FFFFFFF
"""CRUSH's value for "no OSD here" in a mapping."""

COMPAT_SET = -1
"""The key of the compat weight-set among `choose_args`; every other key is the id of a pool."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A node of the tree. `items`: OSD ids (>= 0) or bucket ids (< 0), in map order, with their weights."""

    id: int
    name: str
    type: str
    """`host`, `rack`, `root`, ..."""
    items: tuple[int, ...]
    weights: tuple[int, ...]
    algorithm: str = "straw2"


@dataclass(frozen=True, slots=True)
class RuleStep:
    """One step of a rule.

    The step is `take`, `choose_firstn`, `choose_indep`, `chooseleaf_firstn`, `chooseleaf_indep`, `emit`,
    `noop`, a `set_` step (`actions.crush.crush_rules`), or one that placement does not know.
    """

    op: str
    item: int = 0
    """`take`: bucket id. `set_*`: the value."""
    num: int = 0
    type: str = ""
    """`osd` means an OSD, under any name that the map gives its type 0."""


@dataclass(frozen=True, slots=True)
class CrushRule:
    """One placement rule."""

    id: int
    name: str
    steps: tuple[RuleStep, ...]


@dataclass(frozen=True, slots=True)
class Tunables:
    """Ceph's optimal profile since Jewel."""

    choose_total_tries: int = 50
    chooseleaf_descend_once: int = 1
    chooseleaf_vary_r: int = 1
    chooseleaf_stable: int = 1
    choose_local_tries: int = 0
    choose_local_fallback_tries: int = 0


@dataclass(frozen=True, slots=True)
class ChooseArg:
    """The weights and items that one set of `choose_args` puts in place of a bucket's own."""

    weight_set: tuple[tuple[int, ...], ...] = ()
    """The weights of the bucket's items, one tuple for each position of a PG's set. The last tuple also
    applies to every later position. Empty: the bucket's own weights.
    """
    ids: tuple[int, ...] = ()
    """The numbers that are hashed in place of the items. Empty: the items themselves."""


ChooseArgs = Mapping[int, ChooseArg]
"""One set: its changes, by the id of the bucket."""


@dataclass(frozen=True, slots=True)
class CrushMap:
    """The whole map."""

    buckets: Mapping[int, Bucket]
    rules: Mapping[int, CrushRule]
    tunables: Tunables = Tunables()
    classes: Mapping[int, str] | None = None
    """Device class of each OSD."""
    choose_args: Mapping[int, ChooseArgs] = field(default_factory=dict)
    """Weight-sets: `COMPAT_SET` for every pool without a set of its own, and those of single pools by their
    ids.
    """

    def find_choose_args(self, pool: int) -> ChooseArgs | None:
        """Return the set that a pool is placed by: its own, even if empty, else the compat set; None without
        both.
        """
        return self.choose_args.get(pool, self.choose_args.get(COMPAT_SET))

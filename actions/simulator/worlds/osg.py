"""Grid storage whose erasure code needs every host."""

from __future__ import annotations

from dataclasses import replace

from predrain.actions.crush.crush_map import CrushRule, RuleStep
from predrain.actions.crush.pool import Pool
from predrain.actions.simulator.cluster_spec import DEFAULT_RULES, ClusterSpec, PoolSpec, crush_tree
from predrain.actions.simulator.worlds.shapes import TB, assign_drive_model, build_osd_specs

_TRIES = 1_000
"""The default of 100 leaves holes where CRUSH must find the only remaining host of 14."""


def build_osg_cluster(seed: int) -> ClusterSpec:
    """Return the Open Science Grid's Stash: 14 hosts x 12 disks of 6 TB, EC 11+3 on all hosts, a cache of 2
    copies.

    Metadata has 3 copies. 250 TB of user data are stored and 5 TB cached. No host can be evacuated, because
    every other host already has a shard of the same PG. A disk can be drained onto its siblings.
    """
    del seed
    osds = assign_drive_model(build_osd_specs(14, 12, 6 * TB), "SAS 6T")
    grid = Pool(1, "grid", 14, 12, 1_024, 1_024, rule=1, erasure=True)
    cache = Pool(2, "cache", 2, 1, 1_024, 1_024, rule=0, erasure=False)
    meta = Pool(3, "metadata", 3, 2, 256, 256, rule=0, erasure=False)
    return ClusterSpec(
        name="osg",
        osds=osds,
        pools=(
            PoolSpec(grid, shard_bytes=250 * TB // 11 // 1_024, data_shards=11),
            PoolSpec(cache, shard_bytes=5 * TB // 1_024),
            PoolSpec(meta, shard_bytes=TB // 10 // 256, object_bytes=4096),
        ),
        crush=crush_tree(osds, {0: DEFAULT_RULES[0], 1: _raise_choose_tries(DEFAULT_RULES[1])}),
        release="pacific",
    )


def _raise_choose_tries(rule: CrushRule) -> CrushRule:
    steps = (
        RuleStep("set_choose_tries", item=_TRIES) if s.op == "set_choose_tries" else s for s in rule.steps
    )
    return replace(rule, steps=tuple(steps))

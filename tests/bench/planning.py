"""How long a plan takes, beside osdmaptool, which places the PGs of the same map with the same OSD out.

Both make the final map from which the moves follow; ours places only the suspect's PGs, and chooses targets by room.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from predrain.actions.cluster.cluster_view import ClusterView, Osd, Pg
from predrain.actions.cluster.pg_index import find_pg_index
from predrain.actions.core.drain_policy import Policy
from predrain.actions.core.pg_survey import survey_pgs
from predrain.actions.core.situation import Context, SentMemory
from predrain.actions.crush.crush_map import CrushMap, CrushRule, RuleStep
from predrain.actions.crush.crush_rules import FULL_WEIGHT
from predrain.actions.crush.pg_placement import place_pgs
from predrain.actions.crush.pool import Pool
from predrain.actions.engine.plan_building import plan_drain
from predrain.actions.simulator.cluster_spec import crush_tree, crush_weight
from predrain.actions.simulator.worlds import TB, build_osd_specs
from predrain.data.drain import Drain, DrainState, Intent
from predrain.data.ids import DeviceId, OsdId
from tests.bench.figure import Figure, MissingInput, Work

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VICTIM = OsdId(7)
FULL = 0.6
MOST = 10
"""Members of a PG in a pool that osdmaptool can make."""
_RULES = {
    erasure: CrushRule(
        0,
        "hosts",
        (
            *(
                RuleStep(op, item=n)
                for op, n in (("set_chooseleaf_tries", 5), ("set_choose_tries", 100))
                if erasure
            ),
            RuleStep("take", item=-1),
            RuleStep("chooseleaf_indep" if erasure else "chooseleaf_firstn", type="host"),
            RuleStep("emit"),
        ),
    )
    for erasure in (True, False)
}


def generated(
    hosts: int, per_host: int, racks: int, pg_num: int, size: int, *, erasure: bool, size_bytes: int = 12 * TB
) -> ClusterView:
    """A cluster at rest with one pool, 60 % full, its PGs where CRUSH puts them."""
    osds = build_osd_specs(hosts=hosts, per_host=per_host, size_bytes=size_bytes, racks=racks)
    pool = Pool(1, "pool", size, size - 2 if erasure else 2, pg_num, pg_num, 0, erasure)
    crush = crush_tree(osds, rules={0: _RULES[erasure]})
    up = place_pgs(crush, {1: pool}, {osd.id: 1.0 for osd in osds}, {})
    shard = int(FULL * len(osds) * size_bytes / (pg_num * size))
    held = Counter(osd for members in up.values() for osd in members)
    clean = frozenset({"active", "clean"})
    return ClusterView(
        as_of=NOW,
        epoch=10,
        release="reef",
        osds={
            osd.id: Osd(
                osd.id, osd.host, osd.rack, DeviceId(f"D_{osd.id}"), True, 1.0, crush_weight(size_bytes) / FULL_WEIGHT,
                size_bytes=size_bytes, used_bytes=held[osd.id] * shard,
            )
            for osd in osds
        },
        pools={1: pool},
        pgs={id_: Pg(id_, 1, clean, members, members, shard, reported_epoch=10) for id_, members in up.items()},
        crush=crush,
        upmap_items={},
    )  # fmt: skip


def planned(view: ClusterView, intent: Intent = Intent.REPLACE) -> Work:
    """One plan of one device, from a view of which the poll has made the survey and the index of PGs."""
    drain = Drain("osd.7", DeviceId("D_7"), (VICTIM,), DrainState.PROPOSED, intent, "bench", "", NOW, NOW)
    context = Context(survey_pgs(view), {}, (drain,), NOW, SentMemory(NOW - timedelta(minutes=1)))
    find_pg_index(view.pgs)
    work = Work(amount=1)
    with work.timed():
        made = plan_drain(view, drain, Policy(), context)
    assert made.moves
    assert not made.refusals
    work.note = f"{len(made.moves)} PGs, {made.bytes / TB:.1f} TB"
    return work


def by_osdmaptool(view: ClusterView, spare: int, bits: int) -> Work:
    """`osdmaptool --mark-out 7 --test-map-pgs-dump` on the same map; its answer for osd.7's PGs must be ours.

    spare << bits is the pool's pg_num; the map has room for so many OSDs, and CRUSH knows only the view's.
    """
    for tool in ("osdmaptool", "crushtool"):
        if shutil.which(tool) is None:
            raise MissingInput(f"{tool} is not installed (apt-get install ceph-base)")
    pool, work = replace(view.pools[1], size=min(view.pools[1].size, MOST)), Work(amount=1)
    with tempfile.TemporaryDirectory() as folder:
        text, tree, osdmap = (str(Path(folder, name)) for name in ("crush.txt", "crush", "map"))
        Path(text).write_text(spelled(view.crush, len(view.osds)))
        bare = ["-c", "/dev/null", f"--osd_pool_default_size={pool.size}"]
        pgs = ["--with-default-pool", "--pg-bits", str(bits), "--pgp-bits", str(bits), "--clobber"]
        for command in (
            ["crushtool", "-c", text, "-o", tree],
            ["osdmaptool", osdmap, *bare, "--createsimple", str(spare), *pgs],
            ["osdmaptool", osdmap, *bare, "--import-crush", tree, "--mark-up-in", "--save"],
        ):
            subprocess.run(command, check=True, capture_output=True)
        asked = ["osdmaptool", osdmap, "--mark-out", str(VICTIM), "--test-map-pgs-dump"]
        with work.timed():
            told = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    rows = {row[0]: row[1] for line in told.splitlines() if len(row := line.split("\t")) == 3}
    assert len(rows) == pool.pg_num
    mine = [pg.id for pg in view.pgs.values() if VICTIM in pg.up]
    final = place_pgs(view.crush, {1: pool}, {**dict.fromkeys(view.osds, 1.0), VICTIM: 0.0}, {}, only=mine)
    assert all(rows[pg] == f"[{','.join(map(str, up))}]" for pg, up in final.items())
    work.note = f"{len(rows)} PGs of {pool.size} placed"
    return work


def spelled(crush: CrushMap, osds: int) -> str:
    """The map as crushtool reads it."""
    kinds = {"osd": 0, "host": 1, "rack": 3, "root": 11}
    lines = [
        "tunable choose_local_tries 0", "tunable choose_local_fallback_tries 0", "tunable choose_total_tries 50",
        "tunable chooseleaf_descend_once 1", "tunable chooseleaf_vary_r 1", "tunable chooseleaf_stable 1",
        *(f"device {osd} osd.{osd}" for osd in range(osds)),
        *(f"type {number} {kind}" for kind, number in kinds.items()),
    ]  # fmt: skip
    names = {bucket.id: bucket.name for bucket in crush.buckets.values()}
    for bucket in sorted(crush.buckets.values(), key=lambda bucket: kinds[bucket.type]):
        lines += [f"{bucket.type} {bucket.name} {{", f"id {bucket.id}", "alg straw2", "hash 0"]
        for item, weight in zip(bucket.items, bucket.weights, strict=True):
            lines.append(f"item {names.get(item, f'osd.{item}')} weight {weight / 65536!r}")
        lines.append("}")
    rule = crush.rules[0]
    lines += ["rule hosts {", "id 0", "type replicated", "min_size 1", "max_size 12"]
    for step in rule.steps:
        match step.op:
            case "take":
                lines.append(f"step take {names[step.item]}")
            case "emit":
                lines.append("step emit")
            case op if op.startswith("set_"):
                lines.append(f"step {op} {step.item}")
            case op:
                lines.append(f"step {op.replace('_', ' ')} {step.num} type {step.type}")
    return "\n".join([*lines, "}", ""])


def small() -> ClusterView:
    """450 OSDs, 3 copies."""
    return generated(45, 10, 3, 16_384, 3, erasure=False)


def large() -> ClusterView:
    """6,000 OSDs, EC 8+3."""
    return generated(300, 20, 30, 65_536, 11, erasure=True)


def largest() -> ClusterView:
    """10,000 OSDs, EC 8+3, four times the PGs of `large`. Of 6 TB: CRUSH takes no root above a weight of 65,535."""
    return generated(500, 20, 50, 262_144, 11, erasure=True, size_bytes=6 * TB)


FIGURES = (
    Figure(
        "plan of one device, 450 OSDs", "plans", lambda: planned(small()), lambda: by_osdmaptool(small(), 512, 5),
        "osdmaptool", "under 0.2 s", lambda work, _: work.seconds < 0.2,
    ),
    Figure(
        "plan of one device, 6,000 OSDs", "plans", lambda: planned(large()), lambda: by_osdmaptool(large(), 8192, 3),
        "osdmaptool", "under 0.3 s", lambda work, _: work.quiet < 0.3,
    ),
    Figure(
        "plan of a removal, 6,000 OSDs", "plans", lambda: planned(large(), Intent.REMOVE),
        lambda: by_osdmaptool(large(), 8192, 3),
        "osdmaptool", "under 1 s", lambda work, _: work.quiet < 1,
    ),
    Figure(
        "plan of one device, 10,000 OSDs", "plans", lambda: planned(largest()),
        lambda: by_osdmaptool(largest(), 16_384, 4),
        "osdmaptool", "under 0.3 s", lambda work, _: work.quiet < 0.3,
    ),
    Figure(
        "plan of a removal, 10,000 OSDs", "plans", lambda: planned(largest(), Intent.REMOVE),
        lambda: by_osdmaptool(largest(), 16_384, 4),
        "osdmaptool", "under 1 s", lambda work, _: work.quiet < 1,
    ),
)  # fmt: skip

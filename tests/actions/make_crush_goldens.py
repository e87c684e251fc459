"""Makes the golden files of weight-sets and of stretch mode in `crushed/` again, with Ceph's own tools (16.2.15):

    python -m tests.actions.make_crush_goldens

The text maps lie there too; crushtool places by the `choose_args` of pool 0, else by those of the compat set. The
clusters are real ones, which are started and taken down (root); osdmaptool prints where their PGs are.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from predrain.actions.cluster.cluster_view import StretchMode
from predrain.data.ids import PgId
from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.stretch import bring_site_back, lose_site, stretch_cluster, wait_for

CRUSHED = Path(__file__).parent / "crushed"
MAPS = ("weight-set-of-all-pools", "weight-set-of-one-pool")
OUT: dict[str, float] = {}
SOME: dict[str, float] = {"3": 0, "7": 0.4, "10": 0.8}
PLACED = 64
REWEIGHTED = (1, 0.001953125)
"""An OSD of the cluster and the CRUSH weight that it is given."""


def place_by_crushtool(name: str, folder: Path) -> None:
    """The golden file of one text map: every rule for pools of two sizes, with every OSD in and with some out."""
    binary = str(folder / name)
    run("crushtool", "-c", str(CRUSHED / f"{name}.crush.txt"), "-o", binary)
    crush = json.loads(run("crushtool", "-i", binary, "--dump"))
    cases = []
    for rule in (rule["rule_id"] for rule in crush["rules"]):
        for size, reweights in ((3, OUT), (4, SOME)):
            weights = [part for osd, weight in reweights.items() for part in ("--weight", osd, str(weight))]
            shown = ("--test", "--show-mappings", "--rule", str(rule), "--num-rep", str(size))
            text = run(
                "crushtool", "-i", binary, *shown, "--min-x", "0", "--max-x", str(PLACED - 1), *weights
            )
            sets = [json.loads(found) for found in re.findall(r" x \d+ (\[.*\])", text)]
            cases.append({"rule": rule, "size": size, "reweights": reweights, "sets": sets})
    made_by = "crushtool 16.2.15 --test --show-mappings, x from 0"
    write(name, {"made_by": made_by, "crush": crush, "cases": cases})


def add_weight_sets(cluster: MiniCluster) -> None:
    """Pools, a compat weight-set as a balancer leaves it, and weights of one pool for each position."""
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool("rep", pg_num=16, size=3)
    cluster.pool("two", pg_num=16, size=2)
    cluster.pool("ec", pg_num=8, k=2, m=1)
    cluster.command("osd crush weight-set create-compat")
    cluster.command("osd crush weight-set reweight-compat", item="osd.0", weight=[0.0012])
    cluster.command("osd crush weight-set reweight-compat", item="osd.2", weight=[0.0026])
    cluster.command("osd crush weight-set create", pool="two", mode="positional")
    cluster.command("osd crush weight-set reweight", pool="two", item="osd.1", weight=[0.0030, 0.0010])
    cluster.command("osd reweight", id=3, weight=0.7)
    cluster.wait_clean()


def map_pgs(cluster: MiniCluster, *options: str) -> dict[PgId, tuple[int, ...]]:
    """`up` of every PG, from osdmaptool on the map as it is now."""
    (cluster.folder / "osdmap").write_bytes(cluster.command("osd getmap"))
    text = cluster.run("osdmaptool", str(cluster.inside / "osdmap"), *options, "--test-map-pgs-dump").decode()
    rows = (line.split("\t") for line in text.splitlines())
    return {PgId(row[0]): tuple(json.loads(row[1])) for row in rows if len(row) == 3 and "[" in row[1]}


def record_cluster() -> None:
    """The golden file of a real cluster, before and after a CRUSH weight has changed."""
    with MiniCluster("pacific", hosts=5, size_gib=2) as cluster:
        add_weight_sets(cluster)
        osd, weight = REWEIGHTED
        found: dict[str, Any] = {
            "made_by": "ceph and osdmaptool 16.2.15",
            "pools": cluster.json("osd dump")["pools"],
            "reweights": {row["osd"]: row["weight"] for row in cluster.json("osd dump")["osds"]},
            "osd": osd,
            "weight": weight,
        }
        for when in ("before", "after"):
            found[when] = {"crush": cluster.json("osd crush dump"), "up": map_pgs(cluster)}
            cluster.command("osd crush reweight", name=f"osd.{osd}", weight=weight)
    write("weight-sets-of-a-cluster", found)


def record_stretch_mode() -> None:
    """The golden file of a stretched cluster: whole, without one of its sites, and while that site is filled again."""
    with MiniCluster("pacific", hosts=6, size_gib=2) as cluster:
        stretch_cluster(cluster)
        cluster.write("rep", objects=200)
        found: dict[str, Any] = {
            "made_by": "ceph and osdmaptool 16.2.15",
            "crush": cluster.json("osd crush dump"),
            "up": map_pgs(cluster),
            StretchMode.HEALTHY.value: cluster.json("osd dump"),
        }
        lose_site(cluster)
        cluster.write("rep", objects=400)
        found[StretchMode.DEGRADED.value] = cluster.json("osd dump")
        bring_site_back(cluster)
        wait_for(cluster, StretchMode.RECOVERING)
        found[StretchMode.RECOVERING.value] = cluster.json("osd dump")
    write("stretch-mode", found)


def run(*argv: str) -> str:
    """Run a program and return its standard output."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def write(name: str, document: dict[str, Any]) -> None:
    """One golden file, a line for each of its parts."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in document.items())
    (CRUSHED / f"{name}.json").write_text(f"{{\n{lines}\n}}\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in MAPS:
            place_by_crushtool(name, Path(folder))
    record_cluster()
    record_stretch_mode()


if __name__ == "__main__":
    main()

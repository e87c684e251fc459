"""A throw-away cluster stretched over two sites, with a tiebreaker; a site that is lost, and that comes back.

OSDs stand at the sites in turn: the even ones at dc1, the odd ones at dc2. Pacific's commands.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from predrain.actions.cluster.cluster_view import StretchMode
from predrain.actions.cluster.dumps.osd_dump import osd_dump
from tests.deadlines import idle_seconds
from tests.system.ceph.minicluster import MiniCluster

SITES = ("dc1", "dc2")
LOST_MON = "mon.b"
RULES = {
    "each_site": " step take dc1\n step chooseleaf firstn 2 type host\n step emit\n"
    " step take dc2\n step chooseleaf firstn 2 type host\n step emit\n",
    "sites_first": " step take default\n step choose firstn 0 type datacenter\n"
    " step chooseleaf firstn 2 type host\n step emit\n",
}


def stretch_cluster(cluster: MiniCluster, pg_num: int = 16) -> None:
    """Three mons, two sites of hosts, a pool of each rule, stretch mode."""
    add_mons(cluster)
    for site in SITES:
        cluster.command("osd crush add-bucket", name=site, type="datacenter")
        cluster.command("osd crush move", name=site, args=["root=default"])
    for osd in range(cluster.hosts):
        cluster.command(
            "osd crush move", name=cluster.host_of(f"osd.{osd}"), args=[f"datacenter={site_of(osd)}"]
        )
    add_rules(cluster, RULES)
    cluster.command("osd set-require-min-compat-client", version="luminous")
    cluster.pool("rep", pg_num=pg_num, size=3)
    cluster.wait_clean()
    cluster.command("mon set election_strategy", strategy="connectivity")
    for mon, site in zip("abc", (*SITES, "dc3"), strict=True):
        cluster.wait(
            lambda mon=mon, site=site: set_location(cluster, mon, site), 60, f"the location of mon.{mon}"
        )
    # Pacific may lose the change of the monmap, and keep the osdmap's, while another change or election runs.
    cluster.wait(lambda: settled_mons(cluster), 60, "mons that hold one election and one map")
    cluster.command(
        "mon enable_stretch_mode",
        tiebreaker_mon="c",
        new_crush_rule="each_site",
        dividing_bucket="datacenter",
    )
    cluster.wait(lambda: cluster.json("mon dump")["stretch_mode"], 20, "stretch mode in the monmap")
    cluster.pool("late", pg_num=pg_num, size=4)
    cluster.command("osd pool set", pool="late", var="crush_rule", val="sites_first")
    cluster.wait_clean()


def set_location(cluster: MiniCluster, mon: str, site: str) -> bool:
    """Set the site of a mon, and tell whether the monmap has it: Pacific acknowledges the command, and loses the change
    if an election runs meanwhile.
    """
    cluster.command("mon set_location", name=mon, args=[f"datacenter={site}"])
    locations = {one["name"]: one["crush_location"] for one in cluster.json("mon dump")["mons"]}
    return f"datacenter={site}" in locations[mon]


def settled_mons(cluster: MiniCluster, seconds: float = 4) -> bool:
    """Whether all mons are in quorum, with one election and one monmap for so many idle seconds."""
    until, first = idle_seconds() + seconds, None
    while idle_seconds() < until:
        status = cluster.json("quorum_status")
        look = (status["election_epoch"], status["monmap"]["epoch"], tuple(sorted(status["quorum"])))
        if len(look[2]) < len(status["monmap"]["mons"]) or first not in (None, look):
            return False
        first = look
        time.sleep(0.3)
    return True


def site_of(osd: int) -> str:
    """Return the site of the OSD."""
    return SITES[osd % 2]


def add_mons(cluster: MiniCluster) -> None:
    """Two mons beside the first, with stores of their own."""
    cluster.folder.joinpath("monmap").write_bytes(cluster.command("mon getmap"))
    for quorum, mon in ((2, "b"), (3, "c")):
        store = cluster.folder / f"mon-{mon}"
        store.mkdir()
        first = (
            "--monmap",
            str(cluster.inside / "monmap"),
            "--keyring",
            str(cluster.inside / "keyring.mon.a"),
        )
        cluster.run("ceph-mon", "--mkfs", *_named(cluster, mon), *first)
        port = cluster.reserve_port()
        address = f"[v2:127.0.0.1:{port},v1:127.0.0.1:{port + 1}]"
        start_mon(cluster, mon, "--public-addrv", address)
        cluster.wait(
            lambda count=quorum: len(cluster.json("quorum_status")["quorum"]) == count, 60, "a quorum"
        )


def start_mon(cluster: MiniCluster, mon: str, *more: str) -> None:
    """Start a mon that `add_mons` has made."""
    argv = ["env", "ceph-mon", "-f", *_named(cluster, mon), *more]
    cluster.daemons.spawn(f"mon.{mon}", cluster.enter(argv, "minihost"))


def _named(cluster: MiniCluster, mon: str) -> tuple[str, ...]:
    conf = str(cluster.inside / "ceph.conf")
    return "-i", mon, "-c", conf, "--mon-data", str(cluster.inside / f"mon-{mon}")


def add_rules(cluster: MiniCluster, rules_by_name: Mapping[str, str]) -> None:
    """Add replicated rules by their steps; they get the numbers from 5."""
    cluster.folder.joinpath("crushmap").write_bytes(cluster.command("osd getcrushmap"))
    text = cluster.run("crushtool", "-d", str(cluster.inside / "crushmap")).decode()
    rules = "".join(
        f"rule {name} {{\n id {number}\n type replicated\n min_size 1\n max_size 10\n{steps}}}\n"
        for number, (name, steps) in enumerate(rules_by_name.items(), 5)
    )
    cluster.folder.joinpath("crushmap.txt").write_text(
        text.replace("# end crush map", rules + "# end crush map")
    )
    cluster.run(
        "crushtool", "-c", str(cluster.inside / "crushmap.txt"), "-o", str(cluster.inside / "crushmap.new")
    )
    cluster.command("osd setcrushmap", inbuf=cluster.folder.joinpath("crushmap.new").read_bytes())


def lose_site(cluster: MiniCluster) -> None:
    """Everything at dc2 dies; the cluster is in degraded stretch mode then."""
    lost = set(range(1, cluster.hosts, 2))
    for osd in lost:
        cluster.kill(f"osd.{osd}")
    cluster.wait(lambda: lost.isdisjoint(cluster.osds()), 120, "the OSDs of the site down")
    cluster.kill(LOST_MON)
    wait_for(cluster, StretchMode.DEGRADED)


def bring_site_back(cluster: MiniCluster) -> None:
    """Everything at dc2 starts again."""
    start_mon(cluster, LOST_MON.removeprefix("mon."))
    for osd in range(1, cluster.hosts, 2):
        cluster.spawn(f"osd.{osd}")


def wait_for(cluster: MiniCluster, *modes: StretchMode) -> None:
    """Until the osdmap tells one of these modes."""
    cluster.wait(lambda: stretch_mode(cluster) in modes, 180, f"stretch mode {modes[0].value}")


def stretch_mode(cluster: MiniCluster) -> StretchMode:
    """Return the stretch mode that the osdmap shows."""
    return osd_dump(cluster.command("osd dump", format="json")).stretch_mode

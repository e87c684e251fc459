"""Throw-away clusters from a shell: `python -m tests.system.ceph up --release reef --folder /tmp/c1`, then
`... ceph --folder /tmp/c1 -- osd tree`, `kill`, `restart`, `freeze`, `thaw`, `flush`, and `down` in the end."""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.system.ceph.minicluster import MiniCluster
from tests.system.ceph.roots import CLEAN, SUITES, missing


def main() -> int:
    """One verb."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("up", "ceph", "kill", "restart", "freeze", "thaw", "flush", "down"):
        one = verbs.add_parser(verb)
        one.add_argument("--folder", required=True, help="the cluster's own folder")
        if verb == "up":
            one.add_argument("--release", choices=SUITES, default="pacific")
            one.add_argument("--hosts", type=int, default=4)
            one.add_argument("--per-host", type=int, default=1)
            one.add_argument("--store", choices=("file", "loop", "memstore"), default="file")
            one.add_argument("--scheduler", choices=("wpq", "mclock_scheduler"), default="wpq")
            one.add_argument("--size-gib", type=float, default=4)
            one.add_argument("--conf", default="", help="lines for [global]")
            one.add_argument("--module", action="append", default=[], help="folder of a mgr module")
        elif verb == "ceph":
            one.add_argument("words", nargs="*")
        elif verb not in ("flush", "down"):
            one.add_argument("daemon")
    asked = parser.parse_args()
    if asked.verb == "up":
        if why := missing(asked.release):
            sys.exit(why)
        conf = asked.conf.replace("\\n", "\n")
        cluster = MiniCluster(
            asked.release, asked.folder, asked.hosts, asked.per_host, asked.store, asked.scheduler,
            asked.size_gib, conf, tuple(asked.module), watched=False,
        ).start()  # fmt: skip
        print(f"up: {len(cluster.osds())} OSDs in {asked.folder}")
        cluster.leave()
        return 0
    cluster = MiniCluster.attach(asked.folder)
    if asked.verb == "ceph":
        argv = cluster.enter(["ceph", "-c", str(cluster.inside / "ceph.conf"), *asked.words])
        return subprocess.run(argv, env=CLEAN, check=False).returncode
    if asked.verb in ("flush", "down"):
        getattr(cluster, {"flush": "flush", "down": "stop"}[asked.verb])()
    else:
        getattr(cluster, asked.verb)(asked.daemon)
    cluster.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())

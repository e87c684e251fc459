"""Named clusters to simulate. A world is a function of a seed; `--cluster NAME` looks it up in `WORLDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from predrain.actions.simulator.cluster_spec import ClusterSpec
from predrain.actions.simulator.worlds.cisco import build_cisco_cluster, cisco_18tb
from predrain.actions.simulator.worlds.cnaf import cnaf_sdds, cnaf_t1
from predrain.actions.simulator.worlds.echo import build_echo_cluster
from predrain.actions.simulator.worlds.osg import build_osg_cluster
from predrain.actions.simulator.worlds.shapes import GB, TB, build_levelled_tree, build_osd_specs
from predrain.actions.simulator.worlds.small import build_tiny_cluster, ec_no_spare, ec_two_a_host
from predrain.data.refusal import Refusal

__all__ = [
    "GB",
    "TB",
    "WORLDS",
    "UnknownWorld",
    "build_cisco_cluster",
    "build_echo_cluster",
    "build_levelled_tree",
    "build_osd_specs",
    "build_tiny_cluster",
    "build_world",
]


class UnknownWorld(Refusal):
    """No simulated cluster has that name."""


WORLDS: Mapping[str, Callable[[int], ClusterSpec]] = {
    "cisco": build_cisco_cluster,
    "cisco-18tb": cisco_18tb,
    "echo": build_echo_cluster,
    "cnaf-sdds": cnaf_sdds,
    "cnaf-t1": cnaf_t1,
    "osg": build_osg_cluster,
    "tiny": build_tiny_cluster,
    "ec_no_spare": ec_no_spare,
    "ec_two_a_host": ec_two_a_host,
}


def build_world(name: str, seed: int) -> ClusterSpec:
    """Return the named cluster. Raises UnknownWorld."""
    if name not in WORLDS:
        raise UnknownWorld(f"There is no simulated cluster {name!r}; choose one of {', '.join(WORLDS)}.")
    return WORLDS[name](seed)

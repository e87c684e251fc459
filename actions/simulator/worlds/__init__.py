"""Named clusters to simulate. A world is a function of a seed; `--cluster NAME` looks it up in `WORLDS`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from predrain.actions.simulator.spec import ClusterSpec
from predrain.actions.simulator.worlds.cisco import cisco, cisco_18tb
from predrain.actions.simulator.worlds.cnaf import cnaf_sdds, cnaf_t1
from predrain.actions.simulator.worlds.echo import echo
from predrain.actions.simulator.worlds.osg import osg
from predrain.actions.simulator.worlds.shapes import GB, TB, disks, levelled
from predrain.actions.simulator.worlds.small import ec_no_spare, ec_two_a_host, tiny
from predrain.data.refusal import Refusal

__all__ = ["GB", "TB", "WORLDS", "UnknownWorld", "cisco", "disks", "echo", "levelled", "tiny", "world"]


class UnknownWorld(Refusal):
    """No cluster goes by that name."""


WORLDS: Mapping[str, Callable[[int], ClusterSpec]] = {
    "cisco": cisco,
    "cisco-18tb": cisco_18tb,
    "echo": echo,
    "cnaf-sdds": cnaf_sdds,
    "cnaf-t1": cnaf_t1,
    "osg": osg,
    "tiny": tiny,
    "ec_no_spare": ec_no_spare,
    "ec_two_a_host": ec_two_a_host,
}


def world(name: str, seed: int) -> ClusterSpec:
    """The named cluster. Raises UnknownWorld."""
    if name not in WORLDS:
        raise UnknownWorld(f"There is no simulated cluster {name!r}; choose one of {', '.join(WORLDS)}.")
    return WORLDS[name](seed)

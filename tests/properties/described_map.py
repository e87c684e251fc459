"""The description of a map by which the adversary compares a cluster with its shadow."""

from __future__ import annotations

from collections.abc import Mapping

from predrain.actions.cluster.cluster_view import ClusterView


def describe_map(view: ClusterView) -> Mapping[str, object]:
    """Everything of the map and the settings that a drain may touch, each under a key of its own."""
    found: dict[str, object] = {"flags": sorted(view.flags), "balancer": view.balancer_active}
    found |= {f"option {name}": value for name, value in view.settings.items()}
    found |= {
        f"osd.{osd.id}": (osd.reweight, osd.crush_weight, osd.primary_affinity) for osd in view.osds.values()
    }
    found |= {f"pairs {pg}": sorted(pairs) for pg, pairs in view.upmap_items.items()}
    return found | {f"up {pg.id}": pg.up for pg in view.pgs.values()}

"""A view of a cluster that stands still, for services that are measured. It imports nothing that they do not use."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from predrain.actions.cluster.cluster_view import ClusterView, Osd
from predrain.actions.crush.crush_map import CrushMap
from predrain.data.ids import OsdId
from predrain.data.reading import Reading, Smart


def build_view(readings: Iterable[Reading]) -> ClusterView:
    """Each disk under an OSD of its own, on the host that reads it."""
    osds = {}
    for number, one in enumerate(readings):
        assert isinstance(one.seen, Smart)
        id_ = OsdId(number)
        osds[id_] = Osd(
            id_, one.host, f"rack-{number // 900}", one.device, True, 1.0, 3.6,
            size_bytes=4_000_000_000_000, used_bytes=2_000_000_000_000, model=one.seen.identity.model,
        )  # fmt: skip
    crush = CrushMap.__new__(CrushMap)  # no answer that is measured here looks into it
    return ClusterView(datetime.now(UTC), 7, "reef", osds, {}, {}, crush, {})

"""Causes made of several clusters: a drive model turns bad elsewhere, and the own cluster has disks of that model."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from predrain.data.messages import format_count
from predrain.service.fleet.cluster_overview import ModelInClusters, find_models_sick_elsewhere
from predrain.service.notifications.cause import (
    AlertCause,
    AlertCauseKind,
    AlertSnapshot,
    CausePart,
    ClustersInView,
)


def find_models_sick_in_other_clusters(snapshot: AlertSnapshot) -> Iterator[AlertCause]:
    """Yield one cause for each drive model that turns bad over all known clusters but not in the own one alone."""
    clusters = snapshot.clusters
    if clusters is None or not clusters.others:
        return
    policy = snapshot.policy
    for one in find_models_sick_elsewhere(
        clusters.own, clusters.others, least=policy.mass_suspicion_min, share=policy.mass_suspicion_share
    ):
        yield _build_model_cause(one, clusters, policy.mass_suspicion_window.days)


def _build_model_cause(one: ModelInClusters, clusters: ClustersInView, days: int) -> AlertCause:
    """Build the cause. days: the window within which the disks turned bad."""
    counts = one.total
    mine = next(known for known in clusters.own.models if known.model == counts.model)
    named = [name for name in one.clusters if name != clusters.own.name]
    return AlertCause(
        f"model-elsewhere:{counts.model}",
        f"{counts.turned_bad} of {counts.disks} disks of model {counts.model} in "
        f"{format_count(len(one.clusters), 'cluster')} turned bad within {days} days",
        (
            CausePart(
                f"model:{counts.model}",
                f"This cluster has {format_count(mine.disks, 'disk')} of the model, {mine.turned_bad} of them newly "
                f"bad. The others are in {', '.join(named)}.",
                model=counts.model,
            ),
        ),
        "Compare firmware and batch with the disks there before more of yours turn bad.",
        f"/fleet?q={quote(counts.model)}",
        model=counts.model,
        kind=AlertCauseKind.MODEL_ELSEWHERE,
    )

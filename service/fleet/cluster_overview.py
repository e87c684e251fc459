"""The overview of a cluster in numbers, and the drive models of several clusters added up.

A service makes the overview of its own cluster and reads those of other clusters (service.clusters). A bad batch of
drives is visible in the sum before any single cluster has enough bad disks of the model to prove it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from predrain.actions.core.state_machine import ACTIVE
from predrain.data.ids import ClusterId, DeviceId
from predrain.data.outlook import Outlook, Status
from predrain.data.reading import Smart
from predrain.service.fleet.fleet import FleetSnapshot
from predrain.service.fleet.fleet_counts import FleetTally


@dataclass(frozen=True, slots=True)
class ModelCounts:
    """The disks of one drive model in one cluster, or in several."""

    model: str
    disks: int
    warning: int
    bad: int
    turned_bad: int
    """Disks that are bad, and turned bad within the window of mass suspicion."""


@dataclass(frozen=True, slots=True)
class ClusterOverview:
    """One cluster in numbers. Unknown figures are None."""

    name: str
    fsid: ClusterId | None
    at: datetime
    health: str | None
    osds: int
    hosts: int
    disks: int
    fresh: int
    """Disks whose newest reading is not stale."""
    warning: int
    bad: int
    expected_30d: float | None
    """Failures expected within 30 days."""
    drains: int
    """Drains under way."""
    halted: bool
    models: tuple[ModelCounts, ...]


@dataclass(frozen=True, slots=True)
class ModelInClusters:
    """One drive model over several clusters: the sum, and the names of the clusters that have such disks."""

    total: ModelCounts
    clusters: tuple[str, ...]


def build_cluster_overview(
    snapshot: FleetSnapshot,
    counted: FleetTally,
    announced: Mapping[DeviceId, Outlook],
    *,
    name: str,
    fsid: ClusterId | None,
    now: datetime,
    window: timedelta,
) -> ClusterOverview:
    """Build the overview of the own cluster.

    counted: the sums over the same snapshot. announced: the last announced outlook of each disk. window: the time
    within which a disk counts as newly bad (`mass_suspicion_window_days`).
    """
    view = snapshot.view
    return ClusterOverview(
        name=name,
        fsid=fsid,
        at=now,
        health=view.health if view else None,
        osds=len(view.osds) if view else 0,
        hosts=len({osd.host for osd in view.osds.values()}) if view else 0,
        disks=counted.total,
        fresh=counted.fresh,
        warning=counted.statuses.get(Status.WARNING, 0),
        bad=counted.statuses.get(Status.BAD, 0),
        expected_30d=counted.expected_30d,
        drains=sum(drain.state in ACTIVE for drain in snapshot.drains),
        halted=snapshot.halt is not None,
        models=count_disks_by_model(snapshot, announced, now - window),
    )


def count_disks_by_model(
    snapshot: FleetSnapshot, announced: Mapping[DeviceId, Outlook], since: datetime
) -> tuple[ModelCounts, ...]:
    """Count the living disks of each model, in order of the models. Disks that report no model are left out.

    since: a disk that turned bad later is newly bad.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for device, reading in snapshot.readings.items():
        if not snapshot.is_living(device):
            continue
        model = reading.seen.identity.model if isinstance(reading.seen, Smart) else None
        if not model:
            continue
        of_model = counts[model]
        of_model[0] += 1
        severity = snapshot.severity(device)
        of_model[1] += severity is Status.WARNING
        if severity is Status.BAD:
            of_model[2] += 1
            told = announced.get(device)
            of_model[3] += told is not None and told.severity is Status.BAD and told.as_of >= since
    return tuple(ModelCounts(model, *numbers) for model, numbers in sorted(counts.items()))


def add_up_models(overviews: Iterable[ClusterOverview]) -> tuple[ModelInClusters, ...]:
    """Add up the models of several clusters: the model with most newly bad disks first, then with most bad ones."""
    found: dict[str, list[tuple[str, ModelCounts]]] = defaultdict(list)
    for overview in overviews:
        for counts in overview.models:
            found[counts.model].append((overview.name, counts))
    models = (
        ModelInClusters(
            ModelCounts(
                model,
                sum(one.disks for _, one in parts),
                sum(one.warning for _, one in parts),
                sum(one.bad for _, one in parts),
                sum(one.turned_bad for _, one in parts),
            ),
            tuple(dict.fromkeys(name for name, _ in parts)),
        )
        for model, parts in found.items()
    )
    return tuple(
        sorted(
            models, key=lambda one: (-one.total.turned_bad, -one.total.bad, -one.total.disks, one.total.model)
        )
    )


def find_models_sick_elsewhere(
    own: ClusterOverview, others: Collection[ClusterOverview], *, least: int, share: float
) -> tuple[ModelInClusters, ...]:
    """Return the models that turn bad over all clusters, of which the own cluster has disks and too few bad ones.

    The rule is that of the guard of mass suspicion: more than max(`least`, `share` of the disks) turned bad within the
    window. A model that meets it in the own cluster alone is not returned, since that is another cause.
    """
    here = {counts.model: counts for counts in own.models}
    return tuple(
        one
        for one in add_up_models((own, *others))
        if (mine := here.get(one.total.model)) is not None
        and one.total.turned_bad > mine.turned_bad
        and _is_mass_suspicion(one.total, least, share)
        and not _is_mass_suspicion(mine, least, share)
    )


def _is_mass_suspicion(counts: ModelCounts, least: int, share: float) -> bool:
    return counts.turned_bad > max(least, share * counts.disks)

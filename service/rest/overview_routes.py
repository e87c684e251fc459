"""`GET overview`: the cluster in numbers; `GET clusters`: the own cluster and the others that this service asks."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter, Request
from starlette.responses import Response

from predrain.data.ids import ClusterId
from predrain.service.app.cluster_numbers import build_own_overview
from predrain.service.clusters.other_clusters import OtherCluster
from predrain.service.fleet.cluster_overview import (
    ClusterOverview,
    ModelCounts,
    ModelInClusters,
    add_up_models,
)
from predrain.service.rest import http_caching
from predrain.service.rest.authentication import Reader
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.shared_bodies import ResponseBody

router = APIRouter(tags=["clusters"])


class ModelCountsBody(ResponseBody):
    """The disks of one drive model. `turned_bad`: those that turned bad within the window of mass suspicion."""

    model: str
    disks: int
    warning: int
    bad: int
    turned_bad: int


class OverviewBody(ResponseBody):
    """A cluster in numbers. `fresh`: disks that were read within two intervals. `drains`: drains under way."""

    cluster: str
    fsid: ClusterId | None
    at: datetime
    health: str | None
    osds: int
    hosts: int
    disks: int
    fresh: int
    warning: int
    bad: int
    expected_30d: float | None
    drains: int
    halted: bool
    models: list[ModelCountsBody]


class OtherClusterBody(ResponseBody):
    """Another cluster, as its service answered last. `refused`: the reason why the last request got no answer."""

    url: str
    overview: OverviewBody | None
    answered_at: datetime | None
    refused: str | None


class SharedModelBody(ModelCountsBody):
    """A drive model, added up over the clusters that have such disks."""

    clusters: list[str]


class ClustersBody(ResponseBody):
    """The own cluster, the others in the order of the settings, and the models with most newly bad disks first.

    The models are added up over the clusters whose service answered within the last day.
    """

    own: OverviewBody
    others: list[OtherClusterBody]
    models: list[SharedModelBody]


@router.get("/overview", response_model=OverviewBody, responses=http_caching.declare_polled_responses(401))
def get_overview(request: Request, application: TheApplication, _: Reader) -> Response:
    """The cluster in numbers: what the services of other clusters ask for."""
    return http_caching.build_etag_response(request, _build_overview_body(build_own_overview(application)))


@router.get("/clusters", response_model=ClustersBody, responses=http_caching.declare_polled_responses(401))
def list_clusters(request: Request, application: TheApplication, _: Reader) -> Response:
    """The own cluster, the other clusters, and the drive models of them all."""
    own, others = build_own_overview(application), application.other_clusters.list_known()
    counted = (own, *application.other_clusters.list_recent_overviews(application.clock.now()))
    return http_caching.build_etag_response(
        request,
        ClustersBody(
            own=_build_overview_body(own),
            others=[_build_other_body(other) for other in others],
            models=[_build_shared_model_body(one) for one in add_up_models(counted)],
        ),
    )


def _build_overview_body(one: ClusterOverview) -> OverviewBody:
    return OverviewBody(
        cluster=one.name,
        fsid=one.fsid,
        at=one.at,
        health=one.health,
        osds=one.osds,
        hosts=one.hosts,
        disks=one.disks,
        fresh=one.fresh,
        warning=one.warning,
        bad=one.bad,
        expected_30d=one.expected_30d,
        drains=one.drains,
        halted=one.halted,
        models=[_build_model_body(counts) for counts in one.models],
    )


def _build_model_body(counts: ModelCounts) -> ModelCountsBody:
    return ModelCountsBody(
        model=counts.model,
        disks=counts.disks,
        warning=counts.warning,
        bad=counts.bad,
        turned_bad=counts.turned_bad,
    )


def _build_other_body(other: OtherCluster) -> OtherClusterBody:
    return OtherClusterBody(
        url=other.url,
        overview=_build_overview_body(other.overview) if other.overview is not None else None,
        answered_at=other.answered_at,
        refused=other.refused or None,
    )


def _build_shared_model_body(one: ModelInClusters) -> SharedModelBody:
    counts = one.total
    return SharedModelBody(
        model=counts.model,
        disks=counts.disks,
        warning=counts.warning,
        bad=counts.bad,
        turned_bad=counts.turned_bad,
        clusters=list(one.clusters),
    )

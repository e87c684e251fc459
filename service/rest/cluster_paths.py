"""Paths that name the cluster: `clusters/FSID/` before a path means that path in this cluster.

Without it the one cluster of the service is meant, whose fsid a client need not know.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Request

from predrain.data.ids import ClusterId, parse_cluster_id
from predrain.service.access.tokens import Caller, Scope
from predrain.service.app.application import Application
from predrain.service.rest.authentication import SAFE, require_scope
from predrain.service.rest.dependencies import TheApplication
from predrain.service.rest.problem_answers import HttpProblem

PREFIX = "/clusters/{fsid}"
_require_reader, _require_actor = require_scope(Scope.READ), require_scope(Scope.ACT)


def find_cluster(application: Application) -> ClusterId | None:
    """Return the cluster of the service, or None before one answered."""
    view = application.get_snapshot().view
    return view.fsid if view is not None and view.fsid else application.store.get_cluster()


async def _require_caller(request: Request) -> Caller:
    """Return the caller, who has at least the scope that every route with this method requires. Raises HttpProblem."""
    return await (_require_reader if request.method in SAFE else _require_actor)(request)


def require_own_cluster(
    application: TheApplication,
    _: Annotated[Caller, Depends(_require_caller)],
    fsid: Annotated[str, Path(description="The fsid of the cluster.", max_length=64)],
) -> None:
    """Raise a 404 problem for the fsid of any cluster but the service's own."""
    own = find_cluster(application)
    if own is None:
        raise HttpProblem(404, f"No cluster {fsid} is known here: no cluster has answered yet.")
    if parse_cluster_id(fsid) != own:
        raise HttpProblem(404, f"No cluster {fsid} is known here: this service is about cluster {own}.")

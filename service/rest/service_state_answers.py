"""The role of this service among those that share the store, as REST bodies."""

from __future__ import annotations

from datetime import datetime

from predrain.actions.cluster.lease_owner import parse_owner
from predrain.service.app.application import Application
from predrain.service.rest.shared_bodies import ResponseBody
from predrain.service.runtime.lease_decision import ActiveService
from predrain.service.runtime.service_lease import ServiceRole


class ActiveServiceBody(ResponseBody):
    """The active service: `host` and `pid` of its process, its `url` (null: it answers at none), and the time since
    which it is active."""

    host: str
    pid: int | None
    url: str | None
    since: datetime

    @classmethod
    def from_active(cls, active: ActiveService) -> ActiveServiceBody:
        """Return the body of an active service."""
        owner = parse_owner(active.name)
        return cls(host=owner.host, pid=owner.pid, url=active.url or None, since=active.since)


class ServiceStateBody(ResponseBody):
    """The role of the service that answers: `alone` (its store is a file), `active` or `standby`. The active one sends
    messages, applies retention and records lives; it, too, acts on drains if it controls a cluster. `active`: null if
    none is known, and alone. `sentence` is for people."""

    role: ServiceRole
    active: ActiveServiceBody | None
    sentence: str


def service_state_body(application: Application) -> ServiceStateBody:
    """Return the role of this service as of the last read of the lease, a few seconds ago at most."""
    state = application.service_state
    active = None if state.active is None else ActiveServiceBody.from_active(state.active)
    return ServiceStateBody(role=state.role, active=active, sentence=str(state))

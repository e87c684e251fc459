"""The app: it combines routers, error handlers, middleware and the page."""

from __future__ import annotations

from datetime import timedelta

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.gzip import GZipMiddleware

from predrain.data.clock import Clock
from predrain.service.access.audit import Audit
from predrain.service.access.credentials import CredentialBook
from predrain.service.access.loopback import is_loopback
from predrain.service.access.rate_limits import TokenBuckets
from predrain.service.access.sessions import Sessions
from predrain.service.access.tokens import Tokens
from predrain.service.app.application import Application
from predrain.service.rest import (
    attribute_routes,
    audit_routes,
    cause_routes,
    change_stream_routes,
    cluster_paths,
    device_routes,
    disk_request_routes,
    drain_routes,
    drive_model_routes,
    enrolment_routes,
    event_routes,
    forecast_routes,
    halt_routes,
    health_routes,
    latency_routes,
    mgr_executor_routes,
    osd_routes,
    outlook_routes,
    overview_routes,
    page_files,
    policy_preview_routes,
    problem_answers,
    reading_routes,
    receiver_routes,
    report_routes,
    residence_routes,
    session_routes,
    sign_in_routes,
    slot_routes,
    status_routes,
    way_out_routes,
)
from predrain.service.rest.admission import Admission
from predrain.service.rest.audit_middleware import AuditMiddleware
from predrain.service.rest.authentication import RequestAccess
from predrain.service.rest.caller_classes import compute_budgets
from predrain.service.rest.forwarded_headers import ProxyForwarding
from predrain.service.rest.http_caching import PACKING, WORTH_PACKING_BYTES
from predrain.service.rest.openapi_document import install_openapi_schema
from predrain.service.rest.request_head import BURST_SECONDS, RequestHeadFilter

API = "/api/v1"
_NOUNS = (
    status_routes,
    overview_routes,
    osd_routes,
    slot_routes,
    residence_routes,
    disk_request_routes,
    attribute_routes,
    drive_model_routes,
    device_routes,
    outlook_routes,
    forecast_routes,
    policy_preview_routes,
    drain_routes,
    way_out_routes,
    cause_routes,
    receiver_routes,
    report_routes,
    halt_routes,
    mgr_executor_routes,
    reading_routes,
    latency_routes,
    change_stream_routes,
    event_routes,
    session_routes,
    enrolment_routes,
    audit_routes,
)

_NOUNS_OF_CLUSTER = (osd_routes, slot_routes, drain_routes, way_out_routes)
"""Nouns whose paths exist a second time with the cluster's fsid: OSDs, which they name by their numbers, and drains,
whose ids two clusters may share.
"""


def create_app(
    application: Application, tokens: Tokens, *, host: str = "127.0.0.1", people: Clock | None = None
) -> FastAPI:
    """Return the app that serves `application` over HTTP. `host` is the address that the service listens on: on a
    loopback address reading needs no token.

    people: the clock for the expiry of credentials, if it is not the application's, as in a simulated world.
    """
    app = FastAPI(
        title="predrain",
        version="1",
        description="Forecasts disk failures in Ceph clusters and drains the dying OSDs before they fail.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        redirect_slashes=False,  # a route has one spelling, the same for limits and audit
        generate_unique_id_function=_choose_operation_id,
    )
    settings, limits = application.settings.service, application.settings.access
    app.state.application, app.state.access = (
        application,
        _create_access(application, tokens, host, people or application.clock),
    )
    app.add_middleware(
        Admission,
        budgets=compute_budgets(settings.body_limit_bytes),
        prefix=API,
        sign_in=session_routes.SIGN_IN,
    )
    app.add_middleware(
        AuditMiddleware,
        audit=Audit(application.store, application.clock),
        counts=application.counts,
        prefix=API,
        entrance=sign_in_routes.RETURN,
        paths=[
            f"{API}{prefix}{route.path}"
            for prefix, nouns in (("", _NOUNS), (cluster_paths.PREFIX, _NOUNS_OF_CLUSTER))
            for noun in nouns
            for route in noun.router.routes
            if isinstance(route, APIRoute)
        ],
    )
    # Event streams are not compressed: compression would delay them.
    app.add_middleware(GZipMiddleware, minimum_size=WORTH_PACKING_BYTES, compresslevel=PACKING)
    app.add_middleware(
        RequestHeadFilter,
        hosts=frozenset({*(name.lower() for name in settings.allowed_hosts), host.lower()}),
        body_limit=settings.body_limit_bytes,
        tls=settings.tls_certificate is not None,
        requests_per_second=limits.address_requests_per_second,
    )
    app.add_middleware(
        ProxyForwarding, proxies=settings.trusted_proxies
    )  # the outermost: all others see the sender's address
    problem_answers.install_error_handlers(app)
    for noun in _NOUNS:
        app.include_router(noun.router, prefix=API)
    for noun in _NOUNS_OF_CLUSTER:
        app.include_router(
            noun.router,
            prefix=f"{API}{cluster_paths.PREFIX}",
            dependencies=[Depends(cluster_paths.require_own_cluster)],
            responses=problem_answers.declare_problem_responses(404),
        )
    app.include_router(health_routes.router)
    app.include_router(sign_in_routes.router)
    page_files.install_page_routes(app)
    install_openapi_schema(app)
    return app


def _create_access(application: Application, tokens: Tokens, host: str, clock: Clock) -> RequestAccess:
    settings, rate = application.settings, application.settings.access.requests_per_second
    book, address = CredentialBook(application.store, clock), settings.service.external_url.rstrip("/")
    return RequestAccess(
        tokens,
        book,
        Sessions(tokens, book, timedelta(hours=settings.access.session_hours)),
        TokenBuckets(rate, rate * BURST_SECONDS),
        is_loopback(host),
        address,
        application.settings.oidc.make_provider(f"{address}{sign_in_routes.RETURN}"),
    )


def _choose_operation_id(route: APIRoute) -> str:
    """Return a stable operation id: the name of the route's function, with a suffix on a path with the cluster."""
    of_cluster = route.path.startswith(f"{API}{cluster_paths.PREFIX}/")
    return f"{route.name}_of_cluster" if of_cluster else route.name

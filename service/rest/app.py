"""The app: routers, handlers, the door and the page put together."""

from __future__ import annotations

from datetime import timedelta

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.gzip import GZipMiddleware

from predrain.data.clock import Clock
from predrain.service.access.audit import Audit
from predrain.service.access.book import Book
from predrain.service.access.limits import Buckets
from predrain.service.access.sessions import Sessions
from predrain.service.application import House
from predrain.service.rest import (
    audit,
    causes,
    devices,
    drain_ways,
    drains,
    enrolment,
    events,
    forecast,
    halt,
    hand,
    health,
    history,
    latency,
    osds,
    outlooks,
    page,
    preview,
    problems,
    readings,
    residence,
    session,
    signin,
    slots,
    status,
)
from predrain.service.rest.admission import Admission
from predrain.service.rest.caching import PACKING, WORTH_PACKING_BYTES
from predrain.service.rest.caller_classes import compute_budgets
from predrain.service.rest.describing import describe
from predrain.service.rest.door import BURST_SECONDS, Door
from predrain.service.rest.forwarding import Forwarding
from predrain.service.rest.guarding import Access, is_loopback
from predrain.service.rest.recording import AuditMiddleware
from predrain.service.tokens import Tokens

API = "/api/v1"
_NOUNS = (
    status,
    osds,
    slots,
    residence,
    devices,
    outlooks,
    forecast,
    preview,
    drains,
    drain_ways,
    causes,
    halt,
    hand,
    readings,
    latency,
    events,
    history,
    session,
    enrolment,
    audit,
)


def create_app(
    house: House, tokens: Tokens, *, host: str = "127.0.0.1", people: Clock | None = None
) -> FastAPI:
    """`house` over HTTP. `host` is what is listened on: reading needs no token on a loopback address.

    people: the clock that ends what lets people in, where the house's is not theirs, as in a simulated world.
    """
    app = FastAPI(
        title="predrain",
        version="1",
        description="Forecasts disk failures in Ceph clusters and drains the dying OSDs before they fail.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        redirect_slashes=False,  # a route has one spelling, so that limits and the audit see it as it is
        generate_unique_id_function=_operation,
    )
    settings, limits = house.settings.service, house.settings.access
    app.state.house, app.state.access = house, _access(house, tokens, host, people or house.clock)
    app.add_middleware(
        Admission, budgets=compute_budgets(settings.body_limit_bytes), prefix=API, sign_in=session.SIGN_IN
    )
    app.add_middleware(
        AuditMiddleware,
        audit=Audit(house.store, house.clock),
        counts=house.counts,
        prefix=API,
        entrance=signin.RETURN,
        paths=[
            f"{API}{route.path}"
            for noun in _NOUNS
            for route in noun.router.routes
            if isinstance(route, APIRoute)
        ],
    )
    # Event streams are left as they are: what packs them would hold them back.
    app.add_middleware(GZipMiddleware, minimum_size=WORTH_PACKING_BYTES, compresslevel=PACKING)
    app.add_middleware(
        Door,
        hosts=frozenset({*(name.lower() for name in settings.allowed_hosts), host.lower()}),
        body_limit=settings.body_limit_bytes,
        tls=settings.tls_certificate is not None,
        requests_per_second=limits.address_requests_per_second,
    )
    app.add_middleware(
        Forwarding, proxies=settings.proxies
    )  # the outermost: all others see the sender's address
    problems.install(app)
    for noun in _NOUNS:
        app.include_router(noun.router, prefix=API)
    app.include_router(health.router)
    app.include_router(signin.router)
    page.install(app)
    describe(app)
    return app


def _access(house: House, tokens: Tokens, host: str, clock: Clock) -> Access:
    settings, rate = house.settings, house.settings.access.requests_per_second
    book, address = Book(house.store, clock), settings.service.address.rstrip("/")
    return Access(
        tokens,
        book,
        Sessions(tokens, book, timedelta(hours=settings.access.session_hours)),
        Buckets(rate, rate * BURST_SECONDS),
        is_loopback(host),
        address,
        house.settings.oidc.provider(f"{address}{signin.RETURN}", clock),
    )


def _operation(route: APIRoute) -> str:
    """A stable id: the noun and what is done."""
    return route.name

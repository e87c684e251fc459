"""The app: routers, handlers, the door and the page put together."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.middleware.gzip import GZipMiddleware

from service.house import House
from service.rest import (
    devices,
    drains,
    events,
    forecast,
    halt,
    health,
    osds,
    outlooks,
    page,
    problems,
    readings,
    status,
)
from service.rest.guarding import Door, is_loopback
from service.tokens import Tokens

API = "/api/v1"
WORTH_PACKING_BYTES = 1024


def create_app(house: House, tokens: Tokens, *, host: str = "127.0.0.1") -> FastAPI:
    """`house` over HTTP. `host` is what is listened on: reading needs no token on a loopback address."""
    app = FastAPI(
        title="predrain",
        version="1",
        description="Forecasts disk failures in Ceph clusters and drains the dying OSDs before they fail.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        generate_unique_id_function=_operation,
    )
    app.state.house, app.state.tokens, app.state.open_reads = house, tokens, is_loopback(host)
    settings = house.settings.service
    # Event streams are left as they are: what packs them would hold them back.
    app.add_middleware(GZipMiddleware, minimum_size=WORTH_PACKING_BYTES, compresslevel=4)
    app.add_middleware(
        Door,
        hosts=frozenset({*(name.lower() for name in settings.allowed_hosts), host.lower()}),
        body_limit=settings.body_limit_bytes,
    )
    problems.install(app)
    for noun in (status, osds, devices, outlooks, forecast, drains, halt, readings, events):
        app.include_router(noun.router, prefix=API)
    app.include_router(health.router)
    page.install(app)
    _describe_problems(app)
    return app


def _operation(route: APIRoute) -> str:
    """A stable id: the noun and what is done."""
    return route.name


def _describe_problems(app: FastAPI) -> None:
    """Put the problem's shape into the OpenAPI document, which routes only refer to."""
    plain = app.openapi

    def described() -> dict[str, object]:
        schema = plain()
        schema.setdefault("components", {}).setdefault("schemas", {}).setdefault(
            "ProblemBody", problems.ProblemBody.model_json_schema()
        )
        return schema

    app.openapi = described  # type: ignore[method-assign]

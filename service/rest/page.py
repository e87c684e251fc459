"""The page at `/`: one index for all its addresses, its assets, or a plain word on how to build it."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.responses import Response

DIST = Path(__file__).parents[1] / "page" / "dist"
ADDRESSES = (
    "/", "/fleet", "/devices/{id:path}", "/osds/{id}", "/drains", "/drains/{id}", "/events", "/alerts",
    "/alerts/silences", "/forecast",
)  # fmt: skip


def install(app: FastAPI, dist: Path = DIST) -> None:
    """Serve what Vite built in `dist`; the folder may appear later."""
    router = APIRouter(include_in_schema=False)

    def index() -> Response:
        file = dist / "index.html"
        if not file.is_file():
            return PlainTextResponse(
                "The page is not built: run `make setup` in the checkout, then reload. "
                "The API answers at /api/v1.\n",
                503,
            )
        return FileResponse(file, headers={"Cache-Control": "no-cache"})

    for address in ADDRESSES:
        router.add_api_route(address, index, methods=["GET", "HEAD"])
    app.include_router(router)
    app.mount("/assets", StaticFiles(directory=dist / "assets", check_dir=False), name="assets")

    @app.get("/favicon.ico", include_in_schema=False)
    def favicon() -> Response:
        """No icon there; the page names its own."""
        return Response(status_code=204)

"""The page at `/`: one index for all its addresses and for unknown ones, its assets, or a text that says how to build
it.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse, PlainTextResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

DIST = Path(__file__).parents[1] / "page" / "dist"
ADDRESSES = (
    "/", "/fleet", "/devices/{id:path}", "/osds/{id}", "/drains", "/drains/{id}", "/events", "/alerts",
    "/alerts/silences", "/forecast", "/clusters", "/report",
)  # fmt: skip


def install_page_routes(app: FastAPI, dist: Path = DIST) -> None:
    """Serve the files that Vite built in `dist`. The folder may appear later."""
    router = APIRouter(include_in_schema=False)

    def index(status: int = 200) -> Response:
        file = dist / "index.html"
        if not file.is_file():
            return PlainTextResponse(
                "The page is not built: run `make setup` in the checkout, then reload. "
                "The API answers at /api/v1.\n",
                503,
            )
        return FileResponse(file, status_code=status, headers={"Cache-Control": "no-cache"})

    def known_address() -> Response:
        return index()

    for address in ADDRESSES:
        router.add_api_route(address, known_address, methods=["GET", "HEAD"])
    app.include_router(router)
    refuse = app.router.default

    async def unknown_address(scope: AsgiScope, receive: Receive, send: Send) -> None:
        shown = index(404) if _is_asked_by_browser(scope) else refuse
        await shown(scope, receive, send)

    app.router.default = unknown_address
    app.mount("/assets", StaticFiles(directory=dist / "assets", check_dir=False), name="assets")

    @app.get("/favicon.ico", include_in_schema=False)
    def serve_empty_favicon() -> Response:
        """Return no content: the page names its own icon."""
        return Response(status_code=204)


def _is_asked_by_browser(scope: AsgiScope) -> bool:
    """Return whether a browser requests a page, rather than a program an answer of the API."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or scope["path"].startswith("/api/"):
        return False
    return "text/html" in Headers(scope=scope).get("accept", "")

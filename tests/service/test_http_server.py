"""The HTTP server beside other work of a process: a server that cannot start is an error where it is started."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest
from starlette.applications import Starlette

from predrain.data.clock import SystemClock
from predrain.service.config.settings import ServiceTable
from predrain.service.http.server import ServedApplication, ServerNotStarted, bind_listening_socket


@asynccontextmanager
async def _fail(_: Starlette) -> AsyncIterator[None]:
    raise OSError("no room for the files of the page")
    yield


def test_a_server_that_cannot_start_is_an_error_where_it_is_started(
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = ServiceTable(port=0)
    with closing(bind_listening_socket(service)) as listener:
        server = ServedApplication(Starlette(lifespan=_fail), listener, service, SystemClock())
        with pytest.raises(ServerNotStarted, match="before it answered"):
            server.serve_aside()
    assert "no room for the files of the page" in caplog.text

"""The description of REST by a service that was never started."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from predrain.actions.core.drain_policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.log.memory_log import MemoryLog
from predrain.data.store.sqlite_store import SqliteStore
from predrain.service.access.tokens import Tokens
from predrain.service.app.application import Application, ApplicationPorts
from predrain.service.config.settings import Settings
from predrain.service.forecasting.forecaster import Forecaster
from predrain.service.rest.rest_app import create_app


def document() -> dict[str, Any]:
    """OpenAPI, as `GET openapi.json` answers it."""
    with closing(SqliteStore(":memory:")) as store:
        application = Application(
            ApplicationPorts(MemoryLog(), store, SystemClock(), _none, None), Policy(), Settings()
        )
        return create_app(application, Tokens(()), host="127.0.0.1").openapi()


def _none() -> Forecaster:
    raise AssertionError("nothing is judged here")

"""The description of REST by a service that was never started."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from predrain.actions.core.policy import Policy
from predrain.data.clock import SystemClock
from predrain.data.log.memory import MemoryLog
from predrain.data.store.sqlite import SqliteStore
from predrain.service.application import House, Ports
from predrain.service.rest.app import create_app
from predrain.service.scoring.forecasting import Forecaster
from predrain.service.settings import Settings
from predrain.service.tokens import Tokens


def document() -> dict[str, Any]:
    """OpenAPI, as `GET openapi.json` answers it."""
    with closing(SqliteStore(":memory:")) as store:
        house = House(Ports(MemoryLog(), store, SystemClock(), _none, None), Policy(), Settings())
        return create_app(house, Tokens(()), host="127.0.0.1").openapi()


def _none() -> Forecaster:
    raise AssertionError("nothing is judged here")

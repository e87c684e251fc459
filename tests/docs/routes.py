"""The description of REST by a service that was never started."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from actions.policy import Policy
from data.clock import SystemClock
from data.log.memory import MemoryLog
from data.store.sqlite import SqliteStore
from service.house import House, Ports
from service.rest.app import create_app
from service.scoring.forecasting import Forecaster
from service.settings import Settings
from service.tokens import Tokens


def document() -> dict[str, Any]:
    """OpenAPI, as `GET openapi.json` answers it."""
    with closing(SqliteStore(":memory:")) as store:
        house = House(Ports(MemoryLog(), store, SystemClock(), _none, None), Policy(), Settings())
        return create_app(house, Tokens(()), host="127.0.0.1").openapi()


def _none() -> Forecaster:
    raise AssertionError("nothing is judged here")

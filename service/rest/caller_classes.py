"""Classes of callers, and the share of the process that each class may use at once.

No class can use up the share of another class: threads, waiting requests, bytes of bodies and event streams are counted
per class. A halt has a thread of its own (service.rest.halt_lane).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from predrain.service.access.tokens import Caller, Scope
from predrain.service.rest.json_structure import StructureLimits

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
KIB = 1024
ANONYMOUS_BODY_BYTES = 8 * KIB
STREAMS_OF_ALL = 512
"""The most open event streams of all callers."""
STREAMS_OF_ONE = 256
"""The most open event streams of one caller. Many wall screens share one token, and so do the browsers of one
machine.
"""


OVER_BUDGET_STATE = "over_budget"
"""The attribute of a request's state with its known caller, if it was refused for its size, its rate or missing
capacity.
"""
PLACE_STATE = "place"
"""The attribute of a request's state with its place among the threads of its class."""


class CallerClass(StrEnum):
    """The classes of senders that have a budget each."""

    HALT = "halt"
    PROBE = "probe"
    """Probes that watch the service itself: `/healthz`, `/readyz`, `/activez`, `/metrics`."""
    SIGN_IN = "sign_in"
    """Browsers on their way to a provider and back: a request may wait for the provider."""
    ANONYMOUS = "anonymous"
    READER = "reader"
    COLLECTOR = "collector"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Budget:
    """The share of the process that one class may use at once."""

    threads: int
    """Requests that are carried out at once."""
    waiting: int
    """Requests that may wait for one of these threads."""
    body_bytes: int
    """Largest body."""
    in_flight_bytes: int
    """Bytes of all bodies that have arrived and are not answered yet."""
    structure: StructureLimits


_SMALL = StructureLimits(depth=8, values=256, items=64, item_values=256)
_MEDIUM = StructureLimits(depth=16, values=4_096, items=1_024, item_values=4_096)
_BULK = StructureLimits(depth=32, values=1_000_000, items=10_000, item_values=50_000)
"""The limits of deliveries. A collector sends at most 500 records at once. The largest document of smartctl among 92
real ones has 1,514 values on 8 levels.
"""


def compute_budgets(body_limit_bytes: int) -> Mapping[CallerClass, Budget]:
    """Return the budget of every class. All classes have fewer threads than the 40 of the shared pool, so that no class
    waits for the pool.

    body_limit_bytes: the largest body of all, which only a collector's delivery may reach.
    """
    small = min(ANONYMOUS_BODY_BYTES, body_limit_bytes)
    medium = min(64 * KIB, body_limit_bytes)
    return {
        CallerClass.HALT: Budget(1, 64, small, 64 * small, _SMALL),
        CallerClass.PROBE: Budget(2, 64, small, 16 * small, _SMALL),
        CallerClass.SIGN_IN: Budget(4, 64, small, 16 * small, _SMALL),
        CallerClass.ANONYMOUS: Budget(4, 128, small, 128 * small, _SMALL),
        CallerClass.READER: Budget(14, 1_024, medium, 64 * medium, _MEDIUM),
        CallerClass.COLLECTOR: Budget(4, 1_024, body_limit_bytes, 2 * body_limit_bytes, _BULK),
        CallerClass.OPERATOR: Budget(6, 256, medium, 64 * medium, _MEDIUM),
    }


def class_of(caller: Caller | None, method: str, *, delivers: bool) -> CallerClass:
    """Return the class of a request by its caller and its purpose, because a token may hold several scopes.

    delivers: whether the route accepts deliveries of collectors.
    """
    if caller is None:
        return CallerClass.ANONYMOUS
    if delivers and caller.has_scope(Scope.INGEST):
        return CallerClass.COLLECTOR
    if method in SAFE_METHODS and caller.has_scope(Scope.READ):
        return CallerClass.READER
    if caller.has_scope(Scope.ACT) or caller.has_scope(Scope.EXECUTE):
        return CallerClass.OPERATOR
    return CallerClass.READER if caller.has_scope(Scope.READ) else CallerClass.ANONYMOUS

"""Classes of callers, and what each of them may take of the process at once.

No class can use up what another one needs: threads, waiting requests, bytes of bodies and event streams are counted
for each class by itself. A halt has a thread of its own (service.rest.halt_lane).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from predrain.service.rest.json_structure import StructureLimits
from predrain.service.tokens import Caller, Scope

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
KIB = 1024
ANONYMOUS_BODY_BYTES = 8 * KIB
STREAMS_OF_ALL = 512
"""Event streams that are open at once, over all callers."""
STREAMS_OF_ONE = 256
"""Event streams of one caller. A wall of screens shares one token, and so do the browsers of one machine."""


OVER_BUDGET_STATE = "over_budget"
"""In the state of a request: its known caller, where it was refused for its size, its number or want of room."""
PLACE_STATE = "place"
"""In the state of a request: its place among the threads of its class."""


class CallerClass(StrEnum):
    """Who sends a request, as far as budgets are concerned."""

    HALT = "halt"
    PROBE = "probe"
    """Whoever watches the service itself: `/healthz`, `/readyz`, `/metrics`."""
    SIGN_IN = "sign_in"
    """Browsers on their way to a provider and back: a request may wait for the provider."""
    ANONYMOUS = "anonymous"
    READER = "reader"
    COLLECTOR = "collector"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Budget:
    """What one class may take at once."""

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
"""A collector sends at most 500 records at once. The largest document of smartctl among 92 real ones has 1,514 values
on 8 levels."""


def compute_budgets(body_limit_bytes: int) -> Mapping[CallerClass, Budget]:
    """The budget of every class. Threads are fewer than the 40 of the shared pool, so that none waits for the pool.

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
    """The class of a request by who sends it and what it is for: a token may hold several scopes.

    delivers: whether the route takes deliveries of collectors.
    """
    if caller is None:
        return CallerClass.ANONYMOUS
    if delivers and caller.may(Scope.INGEST):
        return CallerClass.COLLECTOR
    if method in SAFE_METHODS and caller.may(Scope.READ):
        return CallerClass.READER
    if caller.may(Scope.ACT) or caller.may(Scope.HAND):
        return CallerClass.OPERATOR
    return CallerClass.READER if caller.may(Scope.READ) else CallerClass.ANONYMOUS

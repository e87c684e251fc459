"""predrain: disk failures in Ceph clusters, forecast and drained before they happen.

The six packages lie at the top of the repository and are imported by these links: `predrain.actions`, `predrain.data`,
and so on. An installed package holds them here. The names of the client for programs are read at their first use, so
that nothing else pays for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from predrain.service.client import Client, ServiceProblem, Unreachable

__all__ = ["Client", "ServiceProblem", "Unreachable"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from predrain.service import client

    return getattr(client, name)

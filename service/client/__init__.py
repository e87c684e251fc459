"""A client for programs: `Client(url, token)`, imported as `from predrain import Client`.

The client needs only the standard library and msgspec, so its import is fast. It takes the address that a service
prints, and a token. It returns typed answers, and raises `ServiceProblem` for a refusal and `Unreachable` without an
answer.
"""

from predrain.service.client.client_methods import Client
from predrain.service.client.http_exchange import ServiceProblem, Unreachable

__all__ = ["Client", "ServiceProblem", "Unreachable"]

"""A client for programs: `Predrain(url, token)`. Standard library and msgspec alone, so that it is imported at once.

In: the address that a service prints, a token. Out: typed answers; `ServiceProblem` for a refusal, `Unreachable` for
silence.
"""

from predrain.service.client.predrain import Predrain
from predrain.service.client.wire import ServiceProblem, Unreachable

__all__ = ["Predrain", "ServiceProblem", "Unreachable"]

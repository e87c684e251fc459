"""models.scale: who does the work that falls into parts: threads of this process, or a Dask cluster.

In: a function of a part of a history, and the parts. Out: its answers, in the order of the parts, so that nothing
that is made of them depends on who did the work or on how large the parts were.
"""

from predrain.models.scale.executor import Crew, Threads

__all__ = ["Crew", "Threads"]

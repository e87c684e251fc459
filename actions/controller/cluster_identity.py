"""Which cluster a store is about: its drains must never be carried out on another one, where the same numbers are other
disks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from predrain.actions.cluster.port import ClusterUnreachable
from predrain.actions.cluster.view import ClusterView
from predrain.data.store.port import Store

_ROOM, _NAME = "cluster", "fsid"


@dataclass(slots=True)
class ClusterIdentity:
    """The cluster of a store: the first one that answered."""

    store: Store
    _recognised: str = ""

    def refuse_silent_cluster(self, look: Callable[[], ClusterView]) -> str:
        """The same, or that the cluster does not answer."""
        try:
            return self.refuse_other_cluster(look)
        except ClusterUnreachable as silent:
            return f"The cluster does not answer: {silent}."

    def refuse_other_cluster(self, look: Callable[[], ClusterView]) -> str:
        """Why nothing may be done on the cluster at hand, with the cure; empty where the store is about it.

        A cluster that does not tell its fsid is not judged. `look` is called until the cluster is recognised; raises
        ClusterUnreachable where it does.
        """
        if self._recognised or not (fsid := look().fsid):
            return ""
        noted = self.store.note_once(_ROOM, _NAME, fsid.encode()).decode()
        if noted != fsid:
            return (
                f"The store is about cluster {noted}, and cluster {fsid} answers, whose OSDs are other disks: nothing "
                "is changed there. Point predrain at the first one, or give this one a store of its own ([store] in "
                "the settings)."
            )
        self._recognised = fsid
        return ""

"""Which cluster a store is about: its drains must never be carried out on another one, where the same numbers are other
disks.
"""

from __future__ import annotations

from dataclasses import dataclass

from data.store.port import Store

_ROOM, _NAME = "cluster", "fsid"


@dataclass(slots=True)
class ClusterIdentity:
    """The cluster of a store: the first one that answered."""

    store: Store
    _recognised: str = ""

    def refuse_other_cluster(self, fsid: str) -> str:
        """Why nothing may be done on the cluster `fsid`, with the cure; empty where the store is about it.

        A cluster that does not tell its fsid is not judged.
        """
        if fsid in ("", self._recognised):
            return ""
        noted = self.store.note_once(_ROOM, _NAME, fsid.encode()).decode()
        if noted != fsid:
            return (
                f"The store is about cluster {noted}, and cluster {fsid} answers, whose OSDs are other disks: nothing "
                "is changed there. Point predrain at the first one, or give this one a store of its own ([store] in "
                "the settings)"
            )
        self._recognised = fsid
        return ""

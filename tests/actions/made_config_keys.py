"""The config_key store of a cluster, in memory, and a lease that a test gives and takes."""

from __future__ import annotations

from dataclasses import dataclass, field

from predrain.actions.cluster.cluster_port import ClusterUnreachable, LeaseHolder
from predrain.actions.cluster.lease_owner import parse_owner
from predrain.actions.cluster.signed_keys import SignedKeys

SIGNING_KEY = "a key for tests, of thirty-two letters or more"


@dataclass
class KeepInMemory:
    """A config_key store in memory.

    silent: the store does not answer. full: the store refuses texts under names that begin with this.
    """

    texts: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    full: str | None = None

    def read(self, name: str) -> str | None:
        self._answer()
        return self.texts.get(name)

    def names(self, under: str = "") -> tuple[str, ...]:
        self._answer()
        return tuple(sorted(name for name in self.texts if name.startswith(under)))

    def write(self, name: str, text: str) -> None:
        self._answer()
        if self.full is not None and name.startswith(self.full):
            raise ClusterUnreachable("ENOSPC")
        self.texts[name] = text

    def remove(self, name: str) -> None:
        self._answer()
        self.texts.pop(name, None)

    @property
    def signed(self) -> SignedKeys:
        """The same texts as the service reads and writes them."""
        return SignedKeys(self, SIGNING_KEY)

    def _answer(self) -> None:
        if self.silent:
            raise ClusterUnreachable("no answer within 5 s")


@dataclass
class LeaseInHand:
    """A lease that is free or not, as the test says."""

    free: bool = True
    has: bool = False
    why: str = "Another controller holds the lease; it does the work, or stop it."

    @property
    def taken(self) -> bool:
        return not self.free

    def hold(self) -> bool:
        self.has = self.free
        return self.has

    def is_held(self) -> bool:
        return self.has

    def release(self) -> None:
        self.has = False

    def find_holder(self) -> LeaseHolder | None:
        if self.has:
            return LeaseHolder(parse_owner("ours-1-a"), None)
        return None if self.free else LeaseHolder(parse_owner("theirs-2-b"), None)

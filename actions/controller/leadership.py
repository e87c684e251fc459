"""Whether this controller may act now: no halt stands, the lease is ours, and nobody acted since we did.

Commands of a controller that lost its lease still reach the mon (ceph.md i), so all three are read before each one.
The step counter is what a controller that was stopped in the middle of a step finds changed when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock, RLock

from predrain.actions.cluster.port import ClusterUnreachable, Keep, Lease
from predrain.actions.cluster.signed_keys import HALT
from predrain.data.outside_text import HALT_WHY, clean_text
from predrain.data.store.faults import StoreRefusal
from predrain.data.store.port import RevisionConflict, Store

_UNREAD = "whether the cluster says halt cannot be read"
_STEPS = "steps"
_COUNT = "count"
_ROOM = "lead"
_LAST = "last"
_PROOF = "proof"


class SteppedBack(ClusterUnreachable):
    """The step counter in the cluster is lower than one that this store has seen."""


def superseded(store: Store, keep: Keep) -> bool:
    """Whether somebody has led since this store's last leader, and wrote to another store. What the cluster keeps is
    then newer than what this store has, however many revisions that has run up. Raises ClusterUnreachable, SteppedBack.
    """
    _, last = _read_steps(store, keep)
    return bool(last) and last not in store.notes(_ROOM).get(_LAST, b"").decode().split("\n")


def _read_steps(store: Store, keep: Keep) -> tuple[int, str]:
    """The count of steps, and the process that made the last one (empty where the cluster names none).

    Raises SteppedBack for a count below the one of this store's last claim: an old value was put back, signed though it
    is. It would make the old copies of drains that were put back with it win. A counter that is gone is counted on.
    """
    noted = int(store.notes(_ROOM).get(_COUNT, b"0"))
    found = keep.read(_STEPS)
    if found is None:
        return noted, ""
    first, _, last = found.partition(" ")
    count = int(first) if first.isdecimal() else 0
    if count < noted:
        raise SteppedBack(
            f"the step counter predrain/{_STEPS} says {count} and this store has seen {noted}: somebody put an old "
            "value back, or all keys were removed while another controller led. Compare the drains of both (`predrain "
            f"drain list`); then remove the counter (`ceph config-key rm predrain/{_STEPS}`): this store's drains count"
        )
    return count, last


def passes(halted: str | None) -> bool:
    """Whether a halt ends by itself: the cluster does not answer, and nobody is known to have said one."""
    return halted is not None and halted.startswith(_UNREAD)


@dataclass(slots=True)
class Lead:
    """The halt, the lease and the step counter as one answer. Without keep and lease this controller leads alone.

    owner: this process, unlike any other's.
    """

    store: Store
    keep: Keep | None = None
    lease: Lease | None = None
    owner: str = ""
    outranked: bool = False
    """Whether the store was superseded when the lead was claimed; until `confirm`."""
    _counter: str | None = None
    _count: int = field(default=0)
    _confirmed: bool = True
    _unproven: bool = False
    """Whether we gave the lease up, and know nothing of the store since."""
    _turn: RLock = field(default_factory=RLock)
    _stepping: Lock = field(default_factory=Lock)
    _rests: bool = False
    _told_halt: str | None = None
    """The halt that the cluster was told by this process, for as long as the store cannot note it."""

    def halted(self) -> str | None:
        """Why everything is halted, by the store or the cluster's key; what cannot be read halts for now.

        A halt that the store alone has is told to the cluster, once: who lifts it there, lifts it for the others.
        """
        why = self.store.halt_reason()
        if why is not None:
            with suppress(ClusterUnreachable):
                self._tell()
            return why
        if self.keep is None:
            return None
        try:
            found = self.keep.read(HALT)
        except ClusterUnreachable as trouble:
            return f"{_UNREAD} ({trouble})"
        return None if found is None else clean_text(found, HALT_WHY.limit) or "no reason given"

    def halt(self, why: str | None) -> None:
        """Halt in both places, or lift both. Raises ClusterUnreachable; a halt then stands in the store until `halted`
        finds the cluster, a lifted one still stands. Raises what the store raises; a halt then stands in the store's
        memory, for this process, and in the cluster.
        """
        with self._turn:
            self._told_halt = None
            if why is not None:
                try:
                    self.store.note(_ROOM, {HALT: None})
                    self.store.set_halt(why)
                except Exception:  # who leads next must hear it, whatever is wrong with our store
                    with suppress(StoreRefusal):
                        self.store.set_halt(why)
                    if self.keep is not None:
                        self.keep.write(HALT, why)
                        self._told_halt = why
                    raise
                self._tell()
                return
            if self.keep is not None:
                self.keep.remove(HALT)
            self.store.set_halt(None)
            self.store.note(_ROOM, {HALT: None})

    def give_up(self) -> None:
        """Let the next controller lead at once. This one does so again only when its store takes a line."""
        self._counter, self._unproven = None, self.lease is not None
        if self.lease is not None:
            self.lease.release()

    @contextmanager
    def while_whole(self) -> Iterator[None]:
        """What a leader does. Broken off, by a store that cannot be written above all, it leads no more: without its
        journal it may not act, and would only keep others from it.
        """
        try:
            yield
        except RevisionConflict:
            raise
        except Exception:
            self.give_up()
            raise

    def take(self) -> bool:
        """Take or renew the lease; whether it is ours. Raises what the store raises, after it broke our lead off."""
        if self.lease is None:
            return True
        if self._unproven:
            self.store.note(_ROOM, {_PROOF: self.owner.encode()})
            self._unproven = False
        if not self.lease.hold():
            self._counter = None
        return self.lease.held()

    @property
    def leads(self) -> bool:
        """Whether the lease is ours by our own clock. Asks nobody."""
        return self.lease is None or self.lease.held()

    def lost(self) -> str:
        """Why the lease is not ours; empty while it is."""
        return "" if self.lease is None or self.lease.held() else self.lease.why

    def unchallenged(self) -> bool:
        """Whether nobody has counted a step since we did. Raises ClusterUnreachable."""
        if self.lease is None or self.keep is None:
            return True
        return self._counter is not None and self.keep.read(_STEPS) == self._counter

    def claim(self) -> None:
        """Count on from whoever led before; from here on they find the counter changed. Raises ClusterUnreachable."""
        assert self.keep is not None
        self.outranked, self._confirmed = superseded(self.store, self.keep), False
        self._count, last = _read_steps(self.store, self.keep)
        if not self.outranked:
            # Whichever of the two the cluster names if we are killed here, it was of this store.
            self.store.note(_ROOM, {_LAST: f"{last}\n{self.owner}".encode()})
        self._advance()
        # After it, or a kill between the two would raise SteppedBack.
        self.store.note(_ROOM, {_COUNT: str(self._count).encode()})

    def confirm(self) -> None:
        """The store has all that the cluster keeps. Killed before this, the next process takes it over once more."""
        if not self._confirmed:
            self.store.note(_ROOM, {_LAST: self.owner.encode()})
            self._confirmed, self.outranked = True, False

    @contextmanager
    def stepping(self) -> Iterator[bool]:
        """All the commands of one step; whether it may begin."""
        may = self._stepping.acquire(blocking=False)
        try:
            yield may
        finally:
            if may:
                self._stepping.release()

    def rest(self, seconds: float) -> None:
        """Let no step begin from now on, and wait so long for the one that has begun: cut short it would leave its
        flags standing until the next process comes, and while they stand nothing heals.
        """
        if not self._rests:
            self._rests = self._stepping.acquire(timeout=seconds)

    def step(self, *, despite_halt: bool = False) -> str | None:
        """Count one step; a sentence when it must not be made. Nothing was counted then."""
        refused = self.refusal(despite_halt=despite_halt)
        if refused is not None or self.lease is None or self.keep is None:
            return refused
        try:
            self._advance()
        except ClusterUnreachable as trouble:
            self._counter = None
            return f"not sent, the step cannot be counted: {trouble}"
        return None

    def refusal(self, *, despite_halt: bool = False) -> str | None:
        """Why the next command must not be sent; None when it may. `despite_halt`: it clears a flag that a step set."""
        if not despite_halt and (why := self.halted()) is not None:
            return f"not sent, halted: {why}"
        if self.lease is None:
            return None
        if self.keep is not None:
            try:
                found = self.keep.read(_STEPS)
            except ClusterUnreachable as trouble:
                return f"not sent, the step counter cannot be read: {trouble}"
            if self._counter is None or found != self._counter:
                self._counter = None
                return f"not sent, another controller acted since (step {found or 'unknown'})"
        if not self.lease.held():  # last, for it is what time takes away
            self._counter = None
            return "not sent, the lease ran out"
        return None

    def heard(self) -> bool:
        """Whether no halt stands in the store that the cluster was not told."""
        why = self.store.halt_reason()
        if why is None or self.keep is None or why == self._told_halt:
            return True
        return self.store.notes(_ROOM).get(HALT) == why.encode()

    def _tell(self) -> None:
        with self._turn:
            why = self.store.halt_reason()
            if why is None or self.keep is None or self.heard():
                return
            self.keep.write(HALT, why)
            self._told_halt = why
            with suppress(StoreRefusal):  # then it is told once more after the next start
                self.store.note(_ROOM, {HALT: why.encode()})

    def _advance(self) -> None:
        assert self.keep is not None
        self._count += 1
        counter = f"{self._count} {self.owner}".strip()
        self.keep.write(_STEPS, counter)
        self._counter = counter

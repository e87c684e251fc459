"""Check whether this controller may act now: no halt is set, it holds the lease, and no other controller has acted
since.

Commands of a controller that lost its lease still reach the mon (ceph.md i), so all three are checked before each one.
A controller that was suspended in the middle of a step finds the step counter changed when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock, RLock

from predrain.actions.cluster.cluster_port import ClusterUnreachable, ConfigKeyStore, Lease
from predrain.actions.cluster.signed_keys import HALT
from predrain.data.halt_state import Halt, HaltAuthor, halt_by_person
from predrain.data.outside_text import HALT_WHY, clean_text
from predrain.data.store.store_faults import StoreRefusal
from predrain.data.store.store_port import RevisionConflict, Store

_UNREAD = "whether the cluster says halt cannot be read"
_STEPS = "steps"
_COUNT = "count"
_ROOM = "lead"
_LAST = "last"
_PROOF = "proof"


class StepCounterWentBack(ClusterUnreachable):
    """The step counter in the cluster is lower than one that this store has seen."""


def is_store_superseded(store: Store, keep: ConfigKeyStore) -> bool:
    """Return whether a controller with another store has held the lease since this store's last one.

    The cluster's copies are then newer than those in this store, even if their revisions are lower. Raises
    ClusterUnreachable and StepCounterWentBack.
    """
    _, last = _read_steps(store, keep)
    return bool(last) and last not in store.read_notes(_ROOM).get(_LAST, b"").decode().split("\n")


def _read_steps(store: Store, keep: ConfigKeyStore) -> tuple[int, str]:
    """Return the number of steps, and the process that made the last one ("" if the cluster names none).

    Raises StepCounterWentBack for a number below the one of this store's last claim: an old value was put back,
    although it is signed. With it, the old copies of drains that were put back together with it would win. If the
    counter is missing, counting goes on from this store's number.
    """
    noted = int(store.read_notes(_ROOM).get(_COUNT, b"0"))
    found = keep.read(_STEPS)
    if found is None:
        return noted, ""
    first, _, last = found.partition(" ")
    count = int(first) if first.isdecimal() else 0
    if count < noted:
        raise StepCounterWentBack(
            f"the step counter predrain/{_STEPS} says {count} and this store has seen {noted}: an old value was put "
            "back, or all keys were removed while another controller led. Compare the drains of both (`predrain "
            f"drain list`); then remove the counter (`ceph config-key rm predrain/{_STEPS}`): this store's drains count"
        )
    return count, last


@dataclass(slots=True)
class Leadership:
    """The halt, the lease and the step counter as one answer. Without keep and lease this controller acts alone.

    owner: the unique name of this process.
    """

    store: Store
    keep: ConfigKeyStore | None = None
    lease: Lease | None = None
    owner: str = ""
    outranked: bool = False
    """True if the store was superseded when this process claimed the leadership; reset by `confirm_recovery`."""
    _counter: str | None = None
    _count: int = field(default=0)
    _confirmed: bool = True
    _unproven: bool = False
    """True if this process released the lease and has not shown since that its store can be written."""
    _turn: RLock = field(default_factory=RLock)
    _stepping: Lock = field(default_factory=Lock)
    _rests: bool = False
    _told_halt: str | None = None
    """The halt that this process wrote to the cluster, for as long as the store cannot record it."""

    def find_halt_reason(self) -> str | None:
        """Return the reason of the halt in force, or None."""
        halt = self.find_halt()
        return None if halt is None else halt.reason

    def find_halt(self) -> Halt | None:
        """Return the halt by the store or by the cluster's key. A key that cannot be read counts as a halt.

        A halt that is only in the store is written to the cluster, once. If a person lifts it there, it is lifted for
        the other controllers.
        """
        why = self.store.halt_reason()
        if why is not None:
            with suppress(ClusterUnreachable):
                self._tell()
            return halt_by_person(why)
        if self.keep is None:
            return None
        try:
            found = self.keep.read(HALT)
        except ClusterUnreachable as trouble:
            return Halt(HaltAuthor.NOBODY, f"{_UNREAD} ({trouble})")
        if found is None:
            return None
        return halt_by_person(clean_text(found, HALT_WHY.limit) or "no reason given")

    def halt(self, why: str | None) -> None:
        """Set a halt in store and cluster, or lift both.

        Raises ClusterUnreachable: a halt is then in the store alone until `find_halt_reason` reaches the cluster, and
        a halt that was to be lifted stays. Raises what the store raises: a halt is then in the store's memory, for
        this process, and in the cluster.
        """
        with self._turn:
            self._told_halt = None
            if why is not None:
                try:
                    self.store.write_notes(_ROOM, {HALT: None})
                    self.store.set_halt(why)
                except Exception:  # the next controller must see it, even if our store fails
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
            self.store.write_notes(_ROOM, {HALT: None})

    def give_up(self) -> None:
        """Release the lease, so that another controller can take it at once. This one takes it again only when its
        store can be written.
        """
        self._counter, self._unproven = None, self.lease is not None
        if self.lease is not None:
            self.lease.release()

    @contextmanager
    def while_whole(self) -> Iterator[None]:
        """Run work that needs the lease. If an exception ends it, above all a store that cannot be written, release
        the lease: without its journal this controller may not act, and would only keep others from acting.
        """
        try:
            yield
        except RevisionConflict:
            raise
        except Exception:
            self.give_up()
            raise

    def take_lease(self) -> bool:
        """Take or renew the lease. Return whether it is held. Raises what the store raises if the store cannot be
        written.
        """
        if self.lease is None:
            return True
        if self._unproven:
            self.store.write_notes(_ROOM, {_PROOF: self.owner.encode()})
            self._unproven = False
        if not self.lease.hold():
            self._counter = None
        return self.lease.is_held()

    @property
    def holds_lease(self) -> bool:
        """Return whether the lease is held by our own clock, without asking the cluster."""
        return self.lease is None or self.lease.is_held()

    def explain_lost_lease(self) -> str:
        """Return why the lease is not held; "" while it is."""
        return "" if self.lease is None or self.lease.is_held() else self.lease.why

    def is_unchallenged(self) -> bool:
        """Return whether no other process has counted a step since this one did. Raises ClusterUnreachable."""
        if self.lease is None or self.keep is None:
            return True
        return self._counter is not None and self.keep.read(_STEPS) == self._counter

    def claim_leadership(self) -> None:
        """Count on from the last holder of the lease, which then finds the counter changed. Raises
        ClusterUnreachable.
        """
        assert self.keep is not None
        self.outranked, self._confirmed = is_store_superseded(self.store, self.keep), False
        self._count, last = _read_steps(self.store, self.keep)
        if not self.outranked:
            # If we are killed here, the cluster names one of these two, and both are of this store.
            self.store.write_notes(_ROOM, {_LAST: f"{last}\n{self.owner}".encode()})
        self._advance()
        # Afterwards, because a kill between the two would otherwise raise StepCounterWentBack.
        self.store.write_notes(_ROOM, {_COUNT: str(self._count).encode()})

    def confirm_recovery(self) -> None:
        """Record that the store has everything that the cluster holds. After a kill before this, the next process
        recovers again.
        """
        if not self._confirmed:
            self.store.write_notes(_ROOM, {_LAST: self.owner.encode()})
            self._confirmed, self.outranked = True, False

    @contextmanager
    def begin_step(self) -> Iterator[bool]:
        """Enclose all the commands of one step. Yield whether the step may begin."""
        may = self._stepping.acquire(blocking=False)
        try:
            yield may
        finally:
            if may:
                self._stepping.release()

    def stop_new_steps(self, seconds: float) -> None:
        """Allow no further step, and wait at most `seconds` for the one that has begun.

        An interrupted step would leave its flags set until the next process starts, and while they are set the cluster
        does not recover.
        """
        if not self._rests:
            self._rests = self._stepping.acquire(timeout=seconds)

    def count_next_step(self, *, despite_halt: bool = False) -> str | None:
        """Count one step. Return None, or a sentence if the step must not be made; nothing was counted then."""
        refused = self.explain_refusal(despite_halt=despite_halt)
        if refused is not None or self.lease is None or self.keep is None:
            return refused
        try:
            self._advance()
        except ClusterUnreachable as trouble:
            self._counter = None
            return f"not sent, the step cannot be counted: {trouble}"
        return None

    def explain_refusal(self, *, despite_halt: bool = False) -> str | None:
        """Return why the next command must not be sent; None if it may.

        `despite_halt`: the command clears a flag that a step set, or restores the monitors' interval.
        """
        if not despite_halt and (why := self.find_halt_reason()) is not None:
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
        if not self.lease.is_held():  # checked last, because the lease can expire during the other checks
            self._counter = None
            return "not sent, the lease ran out"
        return None

    def is_halt_reported(self) -> bool:
        """Return whether the halt in the store was written to the cluster, or there is none."""
        why = self.store.halt_reason()
        if why is None or self.keep is None or why == self._told_halt:
            return True
        return self.store.read_notes(_ROOM).get(HALT) == why.encode()

    def _tell(self) -> None:
        with self._turn:
            why = self.store.halt_reason()
            if why is None or self.keep is None or self.is_halt_reported():
                return
            self.keep.write(HALT, why)
            self._told_halt = why
            with suppress(StoreRefusal):  # it is then written once more after the next start
                self.store.write_notes(_ROOM, {HALT: why.encode()})

    def _advance(self) -> None:
        assert self.keep is not None
        self._count += 1
        counter = f"{self._count} {self.owner}".strip()
        self.keep.write(_STEPS, counter)
        self._counter = counter

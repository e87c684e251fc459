"""`RadosLease`: one controller at a time holds a RADOS lock, and stops relying on it before it expires.

Ceph enforces expiry late: a renewal was accepted up to two seconds after it (ceph.md i). So our own deadline lies well
before the lock's. It is counted from before the lock was requested, on a clock that also runs during suspension.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.cluster_port import ClusterUnreachable, LeaseHolder
from predrain.actions.cluster.lease_owner import LeaseOwner, parse_owner

LOCK = "lease"
OWN_SHARE = 2 / 3
"""The share of the lock's time after which we no longer rely on it."""


def _never_known(_: LeaseOwner) -> bool:
    return False


@dataclass(slots=True)
class RadosLease:
    """A `Lease` by the lock `lease` on the object of that name.

    - cookie: a name that no other process has.
    - monotonic: seconds of a clock that cannot be set and that counts suspension (CLOCK_BOOTTIME).
    - seconds: the lock's time without renewal. A tick must come within two thirds of it.
    - has_ended: whether a process is known to have ended, as seen from here. Its lock is broken at once.
    """

    channel: CommandChannel
    cookie: str
    monotonic: Callable[[], float]
    pool: str = "predrain"
    seconds: float = 30.0
    has_ended: Callable[[LeaseOwner], bool] = _never_known
    why: str = "The lease was not asked for yet."
    """The reason why the lease is not held, as a sentence; empty while it is held."""
    taken: bool = False
    """True if another controller held the lease when this one last asked for it."""
    _until: float | None = None
    _turn: RLock = field(default_factory=RLock)

    def hold(self) -> bool:
        """Take or renew the lease. Return whether it is held now; false also if the cluster does not answer."""
        with self._turn:
            asked_at = self.monotonic()
            try:
                code = self._asked()
                if code == -errno.EBUSY and self._break_locks_of_the_dead():
                    code = self._asked()
            except ClusterUnreachable as trouble:
                self.why = f"The lease cannot be renewed: {trouble}."
                return self.is_held()
            self.taken = code == -errno.EBUSY
            if code == 0:
                self._until, self.why = asked_at + OWN_SHARE * self.seconds, ""
                return self.is_held()
            self._until, self.why = None, self._sentence(code)
            return False

    def is_held(self) -> bool:
        """Return whether the lease is still held by our own monotonic deadline, which lies before the lock's. Send no
        command.
        """
        with self._turn:
            if self._until is not None and self.monotonic() < self._until:
                return True
            if not self.why:
                self.why = "The lease ran out before it was renewed."
            return False

    def release(self) -> None:
        """Release the lease, so that another controller can take it at once."""
        with self._turn:
            was, self._until = self._until, None
            self.why = "The lease was given back."
            if was is not None:
                try:
                    self.channel.unlock(self.pool, LOCK, self.cookie)
                except ClusterUnreachable:
                    self.why = "The lease was given up and expires by itself."

    def find_holder(self) -> LeaseHolder | None:
        """Ask the cluster which process holds the lease; None if there is none, or only one that is known to have
        ended.

        Raises ClusterUnreachable.
        """
        for locker in self.channel.list_lockers(self.pool, LOCK):
            owner = parse_owner(locker.cookie)
            if not self.has_ended(owner):
                return LeaseHolder(owner, locker.expires_at)
        return None

    def _break_locks_of_the_dead(self) -> bool:
        """Break the lock of a process that is known to have ended. Return whether one was broken.

        Only this very lock is broken: if another controller has taken it meanwhile, nothing happens.
        """
        with suppress(ClusterUnreachable):  # the holder is not reported: the lock then expires by itself
            for locker in self.channel.list_lockers(self.pool, LOCK):
                if self.has_ended(parse_owner(locker.cookie)):
                    return self.channel.break_lock(self.pool, LOCK, locker).ok
        return False

    def _asked(self) -> int:
        renew = self._until is not None
        code = self.channel.lock(self.pool, LOCK, self.cookie, self.seconds, renew=renew).rc
        if code == -errno.EEXIST:
            return self.channel.lock(self.pool, LOCK, self.cookie, self.seconds, renew=True).rc
        if renew and code == -errno.ENOENT:
            return self.channel.lock(self.pool, LOCK, self.cookie, self.seconds).rc
        return code

    def _sentence(self, code: int) -> str:
        if code == -errno.EBUSY:
            return "Another controller holds the lease; it does the work, or stop it."
        if code == -errno.ENOENT:
            return (
                f"There is no pool {self.pool} to lock in; make it with `ceph osd pool create {self.pool} 1` and "
                f"`ceph osd pool application enable {self.pool} predrain`."
            )
        if code in (-errno.EACCES, -errno.EPERM):
            return f"This key may not lock in pool {self.pool}; give it the caps that `predrain ceph auth` prints."
        return f"The lease was refused ({errno.errorcode.get(-code, code)})."

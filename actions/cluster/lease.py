"""`RadosLease`: one controller at a time, by a RADOS lock that is given up before it expires.

Expiry is enforced late: a renewal was accepted up to two seconds after it (ceph.md i). So our own deadline lies
well before the lock's, counted from before the lock was asked for, on a clock that also runs while we are stopped.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from threading import RLock

from predrain.actions.cluster.channel import CommandChannel
from predrain.actions.cluster.lease_owner import LeaseOwner, parse_owner
from predrain.actions.cluster.port import ClusterUnreachable, LeaseHolder

LOCK = "lease"
OWN_SHARE = 2 / 3
"""Of the lock's time, after which we no longer trust it."""


def _never_known(_: LeaseOwner) -> bool:
    return False


@dataclass(slots=True)
class RadosLease:
    """`actions.cluster.port.Lease` by the lock `lease` on the object of that name.

    cookie: unlike any other process's. monotonic: seconds on a clock that nobody sets and that counts suspension
    (CLOCK_BOOTTIME). seconds: how long the lock stands without renewal; a tick must come within two thirds of it.
    has_ended: whether a process is known to have ended, seen from here; its lock is broken at once.
    """

    channel: CommandChannel
    cookie: str
    monotonic: Callable[[], float]
    pool: str = "predrain"
    seconds: float = 30.0
    has_ended: Callable[[LeaseOwner], bool] = _never_known
    why: str = "The lease was not asked for yet."
    """Why it is not held, as a sentence; empty while it is."""
    taken: bool = False
    """Whether another controller had it when it was last asked for."""
    _until: float | None = None
    _turn: RLock = field(default_factory=RLock)

    def hold(self) -> bool:
        """Take or renew it; whether it is held for now. False also when the cluster does not answer."""
        with self._turn:
            asked_at = self.monotonic()
            try:
                code = self._asked()
                if code == -errno.EBUSY and self._break_locks_of_the_dead():
                    code = self._asked()
            except ClusterUnreachable as trouble:
                self.why = f"The lease cannot be renewed: {trouble}."
                return self.held()
            self.taken = code == -errno.EBUSY
            if code == 0:
                self._until, self.why = asked_at + OWN_SHARE * self.seconds, ""
                return self.held()
            self._until, self.why = None, self._sentence(code)
            return False

    def held(self) -> bool:
        """Whether it is still held by our own monotonic deadline, which lies before the lock's. Asks nobody."""
        with self._turn:
            if self._until is not None and self.monotonic() < self._until:
                return True
            if not self.why:
                self.why = "The lease ran out before it was renewed."
            return False

    def release(self) -> None:
        """Let the next one have it at once."""
        with self._turn:
            was, self._until = self._until, None
            self.why = "The lease was given back."
            if was is not None:
                try:
                    self.channel.unlock(self.pool, LOCK, self.cookie)
                except ClusterUnreachable:
                    self.why = "The lease was given up and expires by itself."

    def find_holder(self) -> LeaseHolder | None:
        """Who holds it, by the cluster; None when nobody does, or only a process that is known to have ended. Raises
        ClusterUnreachable.
        """
        for locker in self.channel.list_lockers(self.pool, LOCK):
            owner = parse_owner(locker.cookie)
            if not self.has_ended(owner):
                return LeaseHolder(owner, locker.expires_at)
        return None

    def _break_locks_of_the_dead(self) -> bool:
        """Break the lock of a process that is known to have ended; whether one was broken. Only that very lock is
        broken: where another controller took it meanwhile, nothing happens.
        """
        with suppress(ClusterUnreachable):  # whose it is, is not told: then it ends by itself
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

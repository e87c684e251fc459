"""What the kernel says of processes: the name of this one for the lease, and whether another one has ended."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path

from predrain.actions.cluster.lease_owner import LeaseOwner, parse_owner, write_owner

PROC = Path("/proc")
_STATE, _THREADS, _STARTED = 0, 17, 19
"""Fields of /proc/PID/stat behind the name of the command, counted from 0."""


def name_this_process() -> str:
    """A name that no other process has, by which others on this host see whether this one still runs."""
    return write_owner(
        socket.gethostname(),
        os.getpid(),
        _boot(),
        _pid_namespace(),
        _started(os.getpid()),
        uuid.uuid4().hex[:8],
    )


def has_ended(owner: LeaseOwner) -> bool:
    """Whether the process is known to have ended: it ran on this host since this boot, in this namespace of process
    ids, and its id belongs to no process, or to one that began at another time. False where any of that is not known.
    """
    here = parse_owner(name_this_process())
    if owner.pid is None or owner.boot is None or owner.pid_namespace is None:
        return False
    if (owner.host, owner.boot, owner.pid_namespace) != (here.host, here.boot, here.pid_namespace):
        return False
    try:
        os.kill(owner.pid, 0)  # also tells of a process that /proc hides from other users
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it belongs to another user
    stat = _stat(owner.pid)
    if stat is None:
        return False
    if stat[_STATE] in "ZX" and int(stat[_THREADS]) <= 1:
        return True  # killed, and its parent has not asked for it yet
    return owner.started is not None and int(stat[_STARTED]) != owner.started


def _boot() -> str | None:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _pid_namespace() -> int | None:
    """None also where /proc shows another namespace than ours: its start times are those of other processes."""
    try:
        if str((PROC / "self").readlink()) != str(os.getpid()):
            return None
        return (PROC / "self/ns/pid").stat().st_ino
    except OSError:
        return None


def _started(pid: int) -> int | None:
    stat = _stat(pid)
    return None if stat is None else int(stat[_STARTED])


def _stat(pid: int) -> list[str] | None:
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].decode().split()
    except (OSError, UnicodeDecodeError):
        return None
    return fields if len(fields) > _STARTED else None

"""Facts from the kernel about processes: a name of this process for the lease, and whether another process has
ended.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from pathlib import Path

from predrain.actions.cluster.lease_owner import LeaseOwner, parse_owner, write_owner

PROC = Path("/proc")
_STATE, _THREADS, _STARTED = 0, 17, 19
"""Indexes of the fields of /proc/PID/stat after the command name, counted from 0."""


def name_this_process() -> str:
    """Return a name that no other process has, and from which others on this host see whether this process still
    runs.
    """
    return write_owner(
        socket.gethostname(),
        os.getpid(),
        _read_boot_id(),
        _pid_namespace(),
        _read_start_ticks(os.getpid()),
        uuid.uuid4().hex[:8],
    )


def read_boot_clock() -> float:
    """Return the seconds since the boot, suspension included; no person can set this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def name_process(owner: LeaseOwner) -> str:
    """Return the name of a process as people know it."""
    return owner.host if owner.pid is None else f"{owner.host} (process {owner.pid})"


def has_ended(owner: LeaseOwner) -> bool:
    """Return whether the process is known to have ended.

    The process must have run on this host since this boot, in this PID namespace. It has ended if its id belongs
    to no process, or to one that began at another time. Returns False if any of that is unknown.
    """
    here = parse_owner(name_this_process())
    if owner.pid is None or owner.boot is None or owner.pid_namespace is None:
        return False
    if (owner.host, owner.boot, owner.pid_namespace) != (here.host, here.boot, here.pid_namespace):
        return False
    try:
        os.kill(owner.pid, 0)  # also finds a process that /proc hides from other users
    except ProcessLookupError:
        return True
    except OSError:
        pass  # the process belongs to another user
    stat = _read_stat_fields(owner.pid)
    if stat is None:
        return False
    if stat[_STATE] in "ZX" and int(stat[_THREADS]) <= 1:
        return True  # killed, and its parent has not collected it yet
    return owner.started is not None and int(stat[_STARTED]) != owner.started


def _read_boot_id() -> str | None:
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _pid_namespace() -> int | None:
    """Return the PID namespace, or None also if /proc shows another one than ours, since its start times would be
    wrong.
    """
    try:
        if str((PROC / "self").readlink()) != str(os.getpid()):
            return None
        return (PROC / "self/ns/pid").stat().st_ino
    except OSError:
        return None


def _read_start_ticks(pid: int) -> int | None:
    stat = _read_stat_fields(pid)
    return None if stat is None else int(stat[_STARTED])


def _read_stat_fields(pid: int) -> list[str] | None:
    try:
        fields = (PROC / str(pid) / "stat").read_bytes().rpartition(b") ")[2].decode().split()
    except (OSError, UnicodeDecodeError):
        return None
    return fields if len(fields) > _STARTED else None

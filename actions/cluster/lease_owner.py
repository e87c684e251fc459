"""The name of a process that asks for the lease: unique, and with enough data to check whether that process still
runs.

The name is the cookie of the lock, so every other controller reads it there. A name of another form, such as that of a
release that wrote only host, process id and a random number, gives host and process id; its process is never known to
have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

_FORM = "v2"


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """One process. A field that is unknown is None.

    boot: the kernel's boot id. pid_namespace: the inode of its namespace of process ids, because the same id is
    another process in another container. started: clock ticks after the boot, because process ids are reused.
    """

    name: str
    host: str
    pid: int | None = None
    boot: str | None = None
    pid_namespace: int | None = None
    started: int | None = None


def write_owner(
    host: str, pid: int, boot: str | None, pid_namespace: int | None, started: int | None, unique: str
) -> str:
    """Build the name of a process, without blanks and line ends. unique: letters that no other process has."""
    fields = (pid_namespace, started)
    told = (_FORM, host, str(pid), boot or "-", *("-" if one is None else str(one) for one in fields), unique)
    return "/".join("".join(part.split()) for part in told)


def parse_owner(name: str) -> LeaseOwner:
    """Parse the name of a process. If it cannot be read, only the name is known."""
    match name.split("/"):
        case [form, host, pid, boot, namespace, started, _] if form == _FORM and pid.isdecimal():
            return LeaseOwner(
                name,
                host,
                int(pid),
                None if boot == "-" else boot,
                _parse_whole_number(namespace),
                _parse_whole_number(started),
            )
    host, _, rest = name.rpartition("-")[0].rpartition("-")
    return LeaseOwner(name, host, int(rest)) if host and rest.isdecimal() else LeaseOwner(name, name)


def _parse_whole_number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None

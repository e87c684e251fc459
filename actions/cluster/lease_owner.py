"""The name of a process that asks for the lease: unlike any other's, and enough to see whether that process still runs.

The name is the cookie of the lock, so every other controller reads it there. A name of another form, as of a release
that wrote only host, process id and a random number, keeps its host and process id and is never known to have ended.
"""

from __future__ import annotations

from dataclasses import dataclass

_FORM = "v2"


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """One process. What is not known of it is None.

    boot: the kernel's boot id. pid_namespace: the inode of its namespace of process ids, for the same id means another
    process in another container. started: clock ticks after the boot, for ids are used again.
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
    """The name of a process; it holds neither blanks nor line ends. unique: letters that no other process has."""
    fields = (pid_namespace, started)
    told = (_FORM, host, str(pid), boot or "-", *("-" if one is None else str(one) for one in fields), unique)
    return "/".join("".join(part.split()) for part in told)


def parse_owner(name: str) -> LeaseOwner:
    """The process of that name; of a name that cannot be read only the name is known."""
    match name.split("/"):
        case [form, host, pid, boot, namespace, started, _] if form == _FORM and pid.isdecimal():
            return LeaseOwner(
                name, host, int(pid), None if boot == "-" else boot, _number(namespace), _number(started)
            )
    host, _, rest = name.rpartition("-")[0].rpartition("-")
    return LeaseOwner(name, host, int(rest)) if host and rest.isdecimal() else LeaseOwner(name, name)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None

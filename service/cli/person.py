"""The person who types a command, as audit and journals name one."""

from __future__ import annotations

import getpass
import os
import socket


def name_account() -> str:
    """Who types; the number of an account that has no name (in a container, or while the directory is away)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def name_typist() -> str:
    """The person who types, and the host where: several hosts have a root."""
    return f"{name_account()} on {socket.gethostname()}"

"""The person who types a command, as audit and journals name one."""

from __future__ import annotations

import getpass
import os
import socket


def name_account() -> str:
    """Return the account of the person who types, or its number if it has no name (in a container, say)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def name_typist() -> str:
    """The person who types, and the host where: several hosts have a root."""
    return f"{name_account()} on {socket.gethostname()}"

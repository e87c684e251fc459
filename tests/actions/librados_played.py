"""An interpreter for the rados channel whose `rados` is played: `python librados_played.py -I -c PROGRAM`.

The prefix of each command selects the answer. With a word before `-I`, no program is run: the word selects how the
child process misbehaves.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
import time
import types
from typing import Any

BARRIER = threading.Barrier(3)


class Refused(Exception):
    """As rados.Error: with an errno."""

    errno = errno.EACCES


class Cluster:
    """rados.Rados."""

    def __init__(self, **how: Any) -> None:
        self.conf, self.state = how["conffile"], "-"
        if how["conffile"] == "nowhere":
            raise Refused("error calling conf_read_file")

    def connect(self) -> None:
        if self.conf == "refused":
            raise Refused("error connecting to the cluster")
        if self.conf == "hangs":
            time.sleep(600)

    def mon_command(self, text: str, given: bytes) -> tuple[int, bytes, str]:
        command = json.loads(text)
        prefix = command["prefix"]
        if prefix == "hang":
            time.sleep(600)
        if prefix == "late":
            time.sleep(command["seconds"])
        if prefix == "together":
            BARRIER.wait(10)
        if prefix == "chatter":
            os.write(1, b'{"id": 2, "rc": 0, "err": "", "size": 0}\n')
            print("said on stdout", flush=True)
        if prefix == "flood":
            for _ in range(200):
                os.write(2, b"x" * 65536 + b"\n")
        if prefix == "large":
            return 0, bytes(range(256)) * 40_000, ""
        if prefix == "fall":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(3)
        if prefix == "raise":
            raise Refused("not allowed")
        return command.get("rc", 0), json.dumps([command, given.decode("latin-1")]).encode(), f"done {prefix}"

    def mgr_command(self, *_: object) -> tuple[int, bytes, str]:
        return 0, b"the mgr's", ""

    def osd_command(self, osd: int, *_: object) -> tuple[int, bytes, str]:
        return 0, f"osd.{osd}'s".encode(), ""


def misbehave(how: str) -> None:
    """Speak to the near half without the protocol."""
    line = b""

    def heard() -> dict[str, Any]:
        nonlocal line
        while b"\n" not in line:
            piece = os.read(0, 65536)
            if not piece:
                sys.exit()
            line += piece
        first, _, line = line.partition(b"\n")
        return dict(json.loads(first))

    def say(**head: Any) -> None:
        os.write(1, json.dumps({"rc": 0, "err": "", "size": 0, **head}).encode() + b"\n")

    if how == "dies at once":
        sys.exit("no such thing")
    say(id=heard()["id"])
    asked = heard()
    if how == "garbage":
        os.write(1, b"\xff\xfe librados says hello\n")
    elif how == "half a line":
        os.write(1, b'{"id": 2, "rc": 0, "er')
        sys.exit()
    elif how == "fewer bytes than said":
        say(id=asked["id"], size=100)
        os.write(1, b"too few")
        sys.exit()
    elif how == "answers another question":
        say(id=asked["id"] - 1)
    elif how == "a line without an end":
        while True:
            os.write(1, b"x" * 65536)
    elif how == "no head":
        os.write(1, b"[]\n")
    time.sleep(600)


if __name__ == "__main__":
    if sys.argv[1] != "-I":
        misbehave(sys.argv[1])
    played = types.ModuleType("rados")
    played.Rados = Cluster  # type: ignore[attr-defined]
    sys.modules["rados"] = played
    exec(compile(sys.argv[-1], "rados_child.py", "exec"), {"__name__": "__main__"})

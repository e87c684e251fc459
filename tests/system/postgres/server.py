"""A throw-away PostgreSQL: real, alone, on a free port, gone with the process that started it.

An acknowledged commit survives a kill -9 of the server. It survives a crash of the machine only where `fsync`
is set to on again.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.processes import freeze_process, thaw_process

USER = "postgres"
SETTINGS = """fsync = off
full_page_writes = off
shared_buffers = 32MB
max_connections = 60
log_statement = none
listen_addresses = '127.0.0.1'
"""
HBA = """host all wary 127.0.0.1/32 scram-sha-256
host all stranger 127.0.0.1/32 reject
host all all 127.0.0.1/32 trust
local all all trust
"""


def programs() -> Path:
    """Return the folder of the server's programs. Without them the test is skipped; under CI it fails."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if not found:
        told = "PostgreSQL is not installed: apt-get install postgresql-15"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(told)
    return found[-1].parent


class Server:
    """One server with its data. The superuser `postgres` needs no password; `wary` does; `stranger` is not let in."""

    def __init__(self) -> None:
        self._bin = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="predrain-pg-"))
        self._data = self._folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count()
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER, USER)
        how = ("-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        self._run("initdb", "-D", str(self._data), "-U", USER, *how)
        (self._data / "pg_hba.conf").write_text(HBA)
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        self.port = hold_port()
        self.start()

    def start(self) -> None:
        """Start it, unless it runs, and wait until it answers."""
        if self._process is not None:
            return
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._as_user("INT"), str(self._bin / "postgres"), "-D", str(self._data),
                 "-p", str(self.port), "-k", str(self._folder)],
                cwd="/", stdout=log, stderr=log,
            )  # fmt: skip
        end = idle_seconds() + 60
        while True:
            try:
                psycopg.connect(self.conninfo("postgres"), connect_timeout=5).close()
                break
            except psycopg.OperationalError:
                if idle_seconds() > end or self._process.poll() is not None:
                    told = (self._folder / "log").read_text()[-2000:]
                    raise AssertionError(f"the server does not start: {told}") from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Shut the server down at once; the server notifies its clients."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """kill -9: its clients find the connection cut."""
        self._end(signal.SIGKILL)

    def freeze(self, frozen: bool) -> None:
        """All of its processes stand still with their sockets open, or go on."""
        if self._process is not None:
            change = freeze_process if frozen else thaw_process
            # The first process stands before the others are counted: it begins no new ones.
            change(self._process.pid)
            for pid in _children(self._process.pid):
                change(pid)

    def remove(self) -> None:
        """Stop it and delete its data."""
        self.freeze(False)
        self._end(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def conninfo(self, database: str) -> str:
        """Return the connection string of a database for psycopg."""
        return f"host=127.0.0.1 port={self.port} user={USER} dbname={database}"

    def url(self, database: str, user: str = USER) -> str:
        """Return the URL of a database for a store."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, statement: str, database: str = "postgres") -> None:
        """A statement as the superuser, in no transaction."""
        with psycopg.connect(self.conninfo(database), autocommit=True) as connection:
            connection.execute(statement.encode())

    def ask(self, question: str, url: str) -> Any:
        """The one value that a question to a store's database brings."""
        with psycopg.connect(self.conninfo(url.rsplit("/", 1)[1]), autocommit=True) as connection:
            (value,) = connection.execute(question.encode()).fetchone() or (None,)
            return value

    def database(self, template: str = "template1") -> str:
        """A new database; returns its name."""
        name = f"predrain_{os.getpid()}_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        # After kill -9 of the first process the others end by themselves; until then the data cannot be opened.
        family = _children(self._process.pid)
        self._process.send_signal(how)
        self._process.wait(60)
        self._process = None
        end = idle_seconds() + 60
        while any(Path(f"/proc/{pid}").exists() for pid in family) and idle_seconds() < end:
            time.sleep(0.02)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as_user("KILL"), str(self._bin / program), *arguments]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr

    def _as_user(self, at_our_death: str) -> list[str]:
        """The server refuses to run as root."""
        command = ["setpriv", "--pdeathsig", at_our_death]
        return (
            [*command, "--reuid", USER, "--regid", USER, "--clear-groups"] if os.geteuid() == 0 else command
        )


def _children(parent: int) -> list[int]:
    listed = Path(f"/proc/{parent}/task/{parent}/children")
    return [int(pid) for pid in listed.read_text().split()] if listed.exists() else []


@contextmanager
def running() -> Iterator[Server]:
    """A server for as long as the block runs."""
    server = Server()
    try:
        yield server
    finally:
        server.remove()

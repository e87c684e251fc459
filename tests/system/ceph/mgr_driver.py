"""The real ceph-mgr with the module in it, as tests speak to it: commands, options, health checks, its log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.system.ceph.conftest import Start
from tests.system.ceph.minicluster import MiniCluster

MODULE = ROOT / "actions" / "ceph_mgr" / "predrain"
INTERVAL = 2
FIRST_REPORT_SECONDS = 90
"""A new mgr reports no health checks to the mons until every OSD has reported to it, or four `mgr_stats_period`s (20 s)
have passed, so that the checks of its modules come late."""


@dataclass
class Mgr:
    """`ceph predrain ...` and what stands around it."""

    cluster: MiniCluster

    def ask(self, command: str, **args: Any) -> tuple[int, str, str]:
        rc, out, err = self.cluster.try_command(f"predrain {command}", to="mgr", timeout=10, **args)
        return rc, out.decode(), err

    def text(self, command: str, **args: Any) -> str:
        rc, out, err = self.ask(command, **args)
        assert rc == 0, err
        return out

    def json(self, command: str, **args: Any) -> Any:
        return json.loads(self.text(command, format="json", **args))

    def checks(self) -> dict[str, Any]:
        found = self.cluster.json("health", detail="detail")["checks"]
        return {code: check for code, check in found.items() if code.startswith("PREDRAIN_")}

    def wait(self, condition: Any, what: str, seconds: float = 30) -> Any:
        return self.cluster.wait(condition, seconds, what)

    def until(self, seconds: float = 30, **wanted: bool) -> dict[str, Any]:
        """Health checks, once those named (without prefix) stand or do not."""

        def stands() -> bool:
            found = self.checks()
            return all((f"PREDRAIN_{code}" in found) is there for code, there in wanted.items())

        self.wait(stands, str(wanted), seconds)
        return self.checks()

    def point(self, url: str, token: str = "") -> None:
        if token:
            self.cluster.command("config-key set", key="mgr/predrain/token", val=token)
        self.option("url", url)

    def option(self, name: str, value: str) -> None:
        self.cluster.command("config set", who="mgr", name=f"mgr/predrain/{name}", value=value)

    def trouble(self, words: str) -> str:
        """Wait until the error of `status` contains these words; return the error."""
        status = self.wait(lambda: words in self.json("status")["error"] and self.json("status"), words)
        return str(status["error"])

    def restarted(self, how: Any) -> None:
        """After `how`, another mgr process answers the module's commands."""
        before = self.cluster.json("mgr dump")["active_gid"]
        how()
        self.cluster.wait_for_mgr()
        self.wait(lambda: self.cluster.json("mgr dump")["active_gid"] not in (0, before), "a new mgr", 60)
        self.wait(lambda: self.ask("status")[0] == 0, "the module's commands", 60)

    def threads(self) -> int:
        """Return the number of threads of the mgr's process."""
        status = Path("/proc", str(self.cluster.daemons.pid("mgr.x")), "status").read_text()
        return int(re.findall(r"^Threads:\s+(\d+)", status, re.MULTILINE)[0])

    def log_is_clean(self) -> None:
        """Neither a traceback through our module nor a crash; Reef's own modules have some of theirs."""
        said = self.log()
        for words in ("modules/predrain/", "unexpected"):
            assert words not in said, said[said.index(words) - 500 :][:1500]
        assert not find_crashes(said)

    def log(self) -> str:
        return (self.cluster.folder / "log" / "mgr.x.log").read_text(errors="replace")


def find_crashes(log: str) -> list[str]:
    """Return the crashes in a log of ceph-mgr, without those of the messenger while the mgr starts.

    A mgr of Pacific or Reef sometimes aborts in `cephx_verify_authorizer` when an OSD connects before the mgr has its
    rotating keys. No module takes part in such a crash. systemd starts the mgr again, and the throw-away cluster does
    the same.
    """
    _, *crashes = re.split(r"^.*\*\*\* Caught signal", log, flags=re.MULTILINE)
    backtraces = [crash[:5000] for crash in crashes]
    return [crash for crash in backtraces if "cephx_verify_authorizer" not in crash]


@pytest.fixture(scope="module", name="mgr")
def the_mgr(start: Start) -> Mgr:
    cluster = start(store="memstore", size_gib=1, modules=(MODULE,))
    cluster.pool("rep", pg_num=16, size=2)
    mgr = Mgr(cluster)
    mgr.option("interval", str(INTERVAL))
    mgr.wait(lambda: mgr.ask("status")[0] == 0, "the module")
    return mgr


@pytest.fixture(autouse=True)
def calm(mgr: Mgr) -> Iterator[None]:
    """Each test begins with a module that looks nowhere, and leaves nothing in the mgr's log."""
    yield
    mgr.option("url", "")
    mgr.option("mode", "mirror")
    mgr.ask("unhalt")
    for key in ("token", "ca", "executor_key", "steps"):
        mgr.cluster.try_command("config-key rm", key=f"mgr/predrain/{key}")
    mgr.log_is_clean()

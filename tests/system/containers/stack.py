"""The stack of deploy/compose.yaml under podman: started, asked over REST from outside, and hurt."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.collector.fake_smartctl import Disk, FakeSmartctl
from tests.system.containers.podman import Podman
from tests.system.install.images import ROOT
from tests.system.install.machine import until

HERE: Final = Path(__file__).parent
STORES_AND_PARTS: Final = ("kafka", "postgres", "topics", "schema", "serve", "worker", "control")
COLLECTOR_TOML: Final = """[collector]
url = "http://serve:8080"
smartctl = "/opt/drives/smartctl"
reading_interval_minutes = 1.0
"""
USER: Final = 10001
"""The user of the image, which must own the secrets that it reads."""


class Stack:
    """One project of podman-compose. `drives`: the disks of each storage host."""

    def __init__(self, podman: Podman, folder: Path, drives: Mapping[str, Iterable[Disk]]) -> None:
        self._podman, self._folder = podman, folder / "deploy"
        self._folder.mkdir(parents=True)
        for file in (ROOT / "deploy/compose.yaml", HERE / "compose.override.yaml"):
            shutil.copy(file, self._folder)
        self._write_secrets()
        (self._folder / "collector.toml").write_text(COLLECTOR_TOML)
        for host, disks in drives.items():
            fake = FakeSmartctl(self._folder / host, disks)
            script = Path(fake.program)
            script.write_text(script.read_text().replace(str(self._folder / host), "/opt/drives"))

    def compose(self, *argv: str) -> str:
        """Run a command of podman-compose on the project, and return what it printed."""
        files = [self._folder / "compose.yaml", self._folder / "compose.override.yaml"]
        return self._podman.compose(self._folder, files, *argv)

    def start(self) -> None:
        """Start everything but the collectors, and wait until the service answers.

        podman 4.3 cannot start a container over one that has ended and depends on a third (podman issue 26193), and
        podman-compose waits for no health check of it. So each step is a command without dependencies.
        """
        self.up("kafka", "postgres")
        self.up("topics", "schema")
        for service in ("topics", "schema"):
            until(lambda each=service: self.has_ended_well(each), f"the end of {service}", 600)
        self.up("serve", "worker", "control")
        until(self.is_ready, "readiness of the service", 600)

    def up(self, *words: str) -> None:
        """Create and start services without what they depend on."""
        self.compose("up", "--detach", "--no-build", "--no-deps", *words)

    def has_ended_well(self, service: str) -> bool:
        """Return whether a service that does one thing has done it."""
        return (
            self.inspect(self.name(service), ".State.Status")
            + self.inspect(self.name(service), ".State.ExitCode")
            == "exited0"
        )

    def is_ready(self) -> bool:
        """Return whether readyz answers with 200 on the published port."""
        return self._get("/readyz", "") is not None

    def ask(self, path: str) -> Any:
        """Return an answer of REST, or None if there is none."""
        return self._get(path, self.exec("serve", "cat", "/var/lib/predrain/token"))

    def list_scored_disks(self) -> dict[str, str]:
        """Return the status of each disk that has an outlook, by the disk's name."""
        answer = self.ask("/api/v1/outlooks?limit=1000") or {"items": []}
        return {one["device"]: one["status"] for one in answer["items"]}

    def count_readings(self) -> dict[str, int]:
        """Return how many readings the store holds of each disk."""
        asked = "SELECT device, count(*) FROM readings GROUP BY device"
        rows = self.exec(
            "postgres", "psql", "--username=predrain", "--tuples-only", "--no-align", "--command", asked
        )
        return {name: int(count) for name, _, count in (row.rpartition("|") for row in rows.splitlines())}

    def count_smartctl_runs(self, host: str) -> dict[str, int]:
        """Return how often each disk of a host was read, by its path."""
        asked = (
            (self._folder / host / "asked").read_text().splitlines()
            if (self._folder / host / "asked").exists()
            else []
        )
        return Counter(line.split()[-1] for line in asked if "-x" in line.split())

    def read_store_version(self) -> int:
        """Return the version of the tables."""
        asked = "SELECT version_num FROM alembic_version"
        return int(
            self.exec(
                "postgres", "psql", "--username=predrain", "--tuples-only", "--no-align", "--command", asked
            )
        )

    def exec(self, service: str, *argv: str) -> str:
        """Run a command in the container of a service."""
        return self._podman.run("exec", self.name(service), *argv)

    def name(self, service: str, number: int = 1) -> str:
        """Return the name of a container."""
        return f"predrain_{service}_{number}"

    def inspect(self, container: str, field: str) -> str:
        """Return a field of a container, as a template of Go names it."""
        return self._podman.run("inspect", "--format", f"{{{{{field}}}}}", container)

    def kill(self, container: str) -> int:
        """Kill the first process of a container from outside, as the kernel does, and return its number."""
        pid = int(self.inspect(container, ".State.Pid"))
        self._podman.enter(["kill", "-KILL", str(pid)])
        return pid

    def is_replaced(self, container: str, pid: int) -> bool:
        """Return whether a container runs again with another first process."""
        return self.inspect(container, ".State.Pid") not in ("0", str(pid))

    def enrol(self, host: str) -> None:
        """Enrol a storage host with a one-time token, and start its collector."""
        _, token = self.exec(
            "serve", "/usr/lib/predrain/bin/predrain", "token", "enrol", host, "--state", "/var/lib/predrain"
        ).split()
        self.compose(
            "run", "--rm", host, "collect", "--config", "/etc/predrain/collector.toml", "--enrol", token
        )
        self.up(host)

    def take_image(self, image: str) -> None:
        """Let the name that the compose file gives stand for another image from now on."""
        self._podman.run("tag", image, "localhost/predrain:latest")

    def read_log(self, service: str) -> str:
        """Return all that a container printed."""
        return self._podman.enter(["sh", "-c", f"podman logs {self.name(service)} 2>&1"])

    def list_logs(self) -> str:
        """Return the end of what each container printed."""
        names = self._podman.run("ps", "--all", "--format", "{{.Names}} {{.Status}}").splitlines()
        return "\n".join(
            f"== {name}\n{self._podman.run('logs', '--tail=12', name.split()[0], check=False)}"
            for name in names
        )

    def _get(self, path: str, token: str) -> Any:
        command = [
            "curl",
            "--silent",
            "--fail",
            "--max-time",
            "20",
            "--config",
            "-",
            f"http://127.0.0.1:8080{path}",
        ]
        said = self._podman.enter(command, check=False, stdin=f'header = "Authorization: Bearer {token}"\n')
        return json.loads(said) if said.startswith(("{", "[")) else None

    def _write_secrets(self) -> None:
        folder = self._folder / "secrets"
        folder.mkdir()
        password = secrets.token_hex(24)
        key = subprocess.run(
            ["openssl", "rand", "-base64", "32"], capture_output=True, text=True, check=True
        ).stdout
        for name, text in (
            ("postgres", f"{password}\n"),
            ("pgpass", f"postgres:5432:predrain:predrain:{password}\n"),
            ("signing_key", key),
        ):
            (folder / name).write_text(text)
            if name != "postgres":
                (folder / name).chmod(0o600)
                os.chown(folder / name, USER, USER)

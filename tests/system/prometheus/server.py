"""A throw-away Prometheus: real, alone, on a free port, with the rules that ship."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.deadlines import idle_seconds
from tests.ports import hold_port

DEPLOY = Path(__file__).parents[3] / "deploy"
RULES = tuple(sorted(one for one in (DEPLOY / "prometheus").glob("*.yml") if one.stem != "prometheus"))


def program(name: str) -> str:
    """Return the path of the program from Debian. Without the program the test is skipped; under CI it fails."""
    found = shutil.which(name)
    if found is None:
        why = f"{name} is not installed: apt-get install prometheus prometheus-alertmanager"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(why)
    return found


class Prometheus:
    """One server. Queries are those of its own HTTP interface."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **query: str) -> Any:
        """`data` of an answer. Fails with Prometheus' own words when it refuses."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            pytest.fail(f"{query}: {json.load(refused)['error']}")

    def series(self, query: str) -> list[dict[str, Any]]:
        """Return the series that a query finds now."""
        found: list[dict[str, Any]] = self.ask("query", query=query)["result"]
        return found

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Ask until it is truthy."""
        end = idle_seconds() + 120
        while idle_seconds() < end:
            if found := holds():
                return found
            time.sleep(0.3)
        pytest.fail(f"{what} did not come")


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, list[tuple[str, str]]]) -> Iterator[Prometheus]:
    """Scrapes `targets`, by job the cluster and the address of each, every five seconds; ended with the context."""
    port = hold_port()
    jobs = [
        {
            "job_name": job,
            "static_configs": [{"targets": [at], "labels": {"cluster": cluster}} for cluster, at in found],
        }
        for job, found in targets.items()
    ]
    config = folder / "prometheus.json"  # YAML is a superset
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "5s", "scrape_timeout": "5s", "evaluation_interval": "2s"},
                "rule_files": [str(one) for one in RULES],
                "scrape_configs": jobs,
            }
        )
    )
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    server = Prometheus(port)
    try:
        server.until(lambda: process.poll() is not None or _answers(port), "Prometheus")
        assert process.poll() is None, (folder / "prometheus.log").read_text()[-2000:]
        yield server
    finally:
        process.terminate()
        process.wait(20)


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5):
            return True
    except OSError:
        return False

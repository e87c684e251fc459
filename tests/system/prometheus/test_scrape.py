"""A real Prometheus scrapes a real service and a demo: every query that ships finds what it asks for."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, fields
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from predrain.collector.delivery.collector_metrics import CollectorTally, format_metrics
from predrain.collector.delivery.spool_contents import SpoolStatus
from predrain.service.rest.metrics import CATALOGUE
from tests.deadlines import idle_seconds
from tests.system.conftest import PREDRAIN, demo
from tests.system.prometheus.server import DEPLOY, RULES, Prometheus, program, prometheus

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(1200)]
SMART = Path(__file__).parents[2] / "data" / "smart" / "samples"
DASHBOARD = DEPLOY / "grafana" / "predrain.json"
PANELS: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
EMPTY = {
    "predrain_forecast_concern",  # of the first look at the forecast, six hours after a start
    "predrain_forecast_drift_index",
    "predrain_forecast_expected_failures",
    "predrain_forecast_observed_failures",
    "predrain_forecast_detected_failures",
    "predrain_forecast_failures",
    "predrain_notifications_sent_total",  # of channels, of which none is set
    "predrain_notifications_failed_total",
    "predrain_fault",  # shown while something is broken
}
"""The metrics that rightly have no line on a dashboard of these two services."""


@dataclass(frozen=True)
class Watched:
    server: Prometheus
    service: str
    demo: str


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a real `predrain up` that was sent readings."""
    state = tmp_path_factory.mktemp("state")
    with (state / "said").open("wb") as out:
        process = subprocess.Popen([PREDRAIN, "up", "--port", "0", "--state", state], stdout=out, stderr=out)
    try:
        end = idle_seconds() + 120
        while not (state / "url").exists() and idle_seconds() < end and process.poll() is None:
            time.sleep(0.2)
        assert (state / "url").exists(), (state / "said").read_text()
        url = (state / "url").read_text().strip()
        documents = [json.loads((SMART / name).read_text()) for name in ("ata-030.json", "nvme-004.json")]
        for document in documents:
            document["local_time"] = {"time_t": int(time.time()) - 60, "asctime": ""}
        request = urllib.request.Request(
            f"{url}/api/v1/readings?host=stor-01",
            json.dumps(documents).encode(),
            {
                "Authorization": f"Bearer {(state / 'token').read_text().strip()}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["accepted"] == 2
        yield url.removeprefix("http://")
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture(scope="module")
def collector() -> Iterator[str]:
    """Address where a collector's own figures are read, as node_exporter would give them."""
    standing = SpoolStatus(**{field.name: 1 for field in fields(SpoolStatus)})
    tally = CollectorTally(**{**{field.name: 1 for field in fields(CollectorTally)}, "spool": standing})  # type: ignore[arg-type]
    told = format_metrics(tally, "stor-01")

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(told.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def paused(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a demo that is over on its sixteenth day, with a disk called bad and a drain that a person paused."""
    with demo(tmp_path_factory.mktemp("demo"), "--speed", "0", "--days", "16") as running:
        running.until(lambda: (running.get("status")["demo"] or {}).get("table"), 600, "the table")
        drain = running.get("drains")["items"][0]["id"]
        asked = urllib.request.Request(
            f"{running.url}/api/v1/drains/{drain}/pause",
            method="POST",
            headers={"Authorization": f"Bearer {running.token}"},
        )
        with urllib.request.urlopen(asked, timeout=60):
            yield running.url.removeprefix("http://")


@pytest.fixture(scope="module")
def watched(
    service: str, collector: str, paused: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    targets = {"predrain": [("live", service), ("demo", paused)], "node": [("live", collector)]}
    with prometheus(tmp_path_factory.mktemp("prometheus"), targets) as server:
        server.until(lambda: len(server.series("up == 1")) == 3, "an answer of every target")
        server.until(
            lambda: server.series('predrain_readings_processed_total{cluster="live"} == 2'), "both readings"
        )
        server.until(lambda: server.series("rate(predrain_readings_accepted_total[1m])"), "a second scrape")
        yield Watched(server, service, paused)


def shown(target: dict[str, Any]) -> str:
    """A dashboard's query as Grafana would send it."""
    query: str = target["expr"]
    return query.replace("$cluster", ".*").replace("$__rate_interval", "1m")


def asked(query: str) -> set[str]:
    return set(re.findall(r"\bpredrain_\w+", query))


def known() -> set[str]:
    """Every metric that service and collector can tell."""
    source = (Path(__file__).parents[3] / "docs" / "reference" / "metrics.md").read_text()
    families = {family.series_name for section in CATALOGUE.values() for family in section}
    return families | set(re.findall(r"`(predrain_collector_\w+)`", source))


@pytest.mark.parametrize("which", ["service", "demo"])
def test_promtool_finds_nothing_to_object_to_in_the_metrics(watched: Watched, which: str) -> None:
    with urllib.request.urlopen(f"http://{getattr(watched, which)}/metrics", timeout=60) as answer:
        text = answer.read()
    done = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_every_panel_shows_something(watched: Watched) -> None:
    silent = {
        shown(target)
        for panel in PANELS
        for target in panel.get("targets", ())
        if not watched.server.series(shown(target))
    }
    assert {query for query in silent if not asked(query) & EMPTY} == set()


def test_every_query_names_metrics_that_there_are(watched: Watched) -> None:
    queries = [shown(target) for panel in PANELS for target in panel.get("targets", ())]
    groups = watched.server.ask("rules")["groups"]
    queries += [rule["query"] for group in groups for rule in group["rules"]]
    assert len(queries) > 60
    assert {name for query in queries for name in asked(query)} - known() == set()


@pytest.mark.core
def test_every_rule_is_evaluated_without_an_error(watched: Watched) -> None:
    def rules() -> list[dict[str, Any]]:
        groups = watched.server.ask("rules")["groups"]
        found = [rule for group in groups for rule in group["rules"]]
        return found if all(rule["health"] != "unknown" for rule in found) else []

    found = watched.server.until(rules, "a look at every rule")
    assert {rule["name"] for rule in found if rule["type"] == "alerting"} == {
        name for file in RULES for name in re.findall(r"- alert: (\w+)", file.read_text())
    }
    assert [rule for rule in found if rule["health"] != "ok" or rule.get("lastError")] == []


def test_bad_disk_alerts_in_the_demo_name_exactly_the_hosts_with_bad_disks(watched: Watched) -> None:
    bad = watched.server.series('sum by (host) (predrain_bad_devices{cluster="demo"})')
    pending = watched.server.until(
        lambda: watched.server.series('ALERTS{alertname="PredrainDisksBad",cluster="demo"}'), "the alert"
    )
    assert {one["metric"]["host"] for one in pending} == {one["metric"]["host"] for one in bad}
    assert watched.server.series('ALERTS{alertname="PredrainAway"}') == []


def test_panels_lie_side_by_side_and_each_says_what_it_is() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in PANELS:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
        assert panel["type"] == "row" or (panel["description"] and panel["targets"])
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)

"""The rules that ship, by promtool: when each alert fires and with which words, and when it stays silent."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.system.prometheus.server import DEPLOY, RULES, program

pytestmark = pytest.mark.system
UNITS = Path(__file__).parent / "rules"
CONFIG = DEPLOY / "alertmanager" / "alertmanager.yml"


def said(name: str, *arguments: object) -> str:
    done = subprocess.run(
        [program(name), *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.core
def test_rules_and_samples_are_what_prometheus_and_alertmanager_take() -> None:
    said("promtool", "check", "config", DEPLOY / "prometheus" / "prometheus.yml")
    said("promtool", "check", "rules", *RULES)
    said("amtool", "check-config", CONFIG)


@pytest.mark.slow
@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.stem)
def test_every_alert_fires_when_it_should_and_not_when_it_should_not(rules: Path) -> None:
    units = UNITS / rules.name
    said("promtool", "test", "rules", units)
    looks = re.split(r"- alertname: ", units.read_text())[1:]
    fired = {look.split("\n")[0] for look in looks if "exp_labels" in look}
    quiet = {look.split("\n")[0] for look in looks if "exp_alerts: []" in look}
    alerts = set(re.findall(r"- alert: (\w+)", rules.read_text()))
    assert fired == quiet == alerts


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("alertname=PredrainAway severity=critical", "on-call"),
        ("alertname=PredrainModelSick severity=critical", "on-call"),
        ("alertname=PredrainDisksBad severity=warning host=stor-01", "storage-team"),
        ("alertname=PredrainDeadLetters severity=info", "storage-team"),
    ],
)
def test_only_what_is_critical_wakes_somebody(labels: str, receiver: str) -> None:
    told = said("amtool", "config", "routes", "test", f"--config.file={CONFIG}", *labels.split())
    assert told.strip() == receiver

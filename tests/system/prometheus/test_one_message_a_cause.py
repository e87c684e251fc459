"""The sample for a real Alertmanager: its messages, and how often they are sent, when much is wrong at once."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from predrain.data.reading import Unreadable
from predrain.service.notifications import find_alert_causes
from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.service.notifications.snapshots import NOW, Fleet, device, host_of
from tests.system.prometheus.server import DEPLOY, program

pytestmark = [pytest.mark.system, pytest.mark.slow]
Message = frozenset[tuple[str, str]]


class Desk:
    """An Alertmanager, and the messages that came out of it: each as its alerts, by name and host, model or rack."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.messages: list[Message] = []

    def alert(self, name: str, severity: str = "warning", **labels: str) -> dict[str, dict[str, str]]:
        return {
            "labels": {"alertname": name, "severity": severity, "cluster": "ceph", **labels},
            "annotations": {},
        }

    def send(self, *alerts: dict[str, dict[str, str]]) -> None:
        request = urllib.request.Request(
            f"{self._url}/api/v2/alerts", json.dumps(alerts).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30):
            pass

    def silence(self, **labels: str) -> None:
        """For an hour nobody wants to hear of alerts with these labels."""
        now = datetime.now(UTC)
        body = {
            "matchers": [{"name": name, "value": value, "isRegex": False} for name, value in labels.items()],
            "startsAt": now.isoformat(),
            "endsAt": (now + timedelta(hours=1)).isoformat(),
            "createdBy": "jo",
            "comment": "it is being swapped",
        }
        request = urllib.request.Request(
            f"{self._url}/api/v2/silences", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=30):
            pass

    def told(self, what: Message) -> list[Message]:
        """All messages up to the one that says `what`."""
        end = idle_seconds() + 120
        while idle_seconds() < end and what not in self.messages:
            time.sleep(0.1)
        assert what in self.messages, self.messages
        return list(self.messages)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """The sample as it ships, but for its waits and for where messages go."""
    port = hold_port()
    desk = Desk(f"http://127.0.0.1:{port}")

    class Inbox(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            labels = [one["labels"] for one in body["alerts"]]
            desk.messages.append(frozenset((one["alertname"], _where(one)) for one in labels))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Inbox) as inbox:
        threading.Thread(target=inbox.serve_forever, daemon=True).start()
        sample = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text()
        hook = f"webhook_configs:\n      - url: http://127.0.0.1:{inbox.server_port}\n"
        mail = r"email_configs:\n(?:    .*\n)+"
        text = re.sub(r"webhook_configs:\n(?:    .*\n)+", hook, re.sub(mail, hook, sample))
        config = tmp_path / "alertmanager.yml"
        config.write_text(re.sub(r"group_wait: \w+", "group_wait: 2s", text))
        with (tmp_path / "said").open("wb") as out:
            process = subprocess.Popen(
                [program("prometheus-alertmanager"), f"--config.file={config}", f"--storage.path={tmp_path}",
                 f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="],
                stdout=out, stderr=out,
            )  # fmt: skip
        try:
            end = idle_seconds() + 60
            while idle_seconds() < end and process.poll() is None:
                try:
                    desk.send()
                    break
                except OSError:
                    time.sleep(0.2)
            yield desk
        finally:
            process.terminate()
            process.wait(20)
            inbox.shutdown()


def _where(labels: dict[str, str]) -> str:
    return next((labels[name] for name in ("host", "model", "rack") if name in labels), "")


def test_a_service_that_is_away_is_one_message_whatever_else_follows_from_it(desk: Desk) -> None:
    desk.send(desk.alert("PredrainAway", "critical", instance="a:8080", left="none"))
    away = frozenset({("PredrainAway", "")})
    desk.told(away)
    follows = [desk.alert("PredrainHostSilent", host=f"stor-{n}") for n in range(30)]
    desk.send(*follows, desk.alert("PredrainDrainHeld"), desk.alert("PredrainDeadLetters", "info"))
    other = desk.alert("PredrainHalted")
    other["labels"]["cluster"] = "another"
    desk.send(other)
    assert desk.told(frozenset({("PredrainHalted", "")})) == [away, frozenset({("PredrainHalted", "")})]


def test_causes_that_predrain_sends_by_itself_are_a_message_each(desk: Desk) -> None:
    for host in ("a", "b"):
        desk.send(desk.alert("PredrainCause", "critical", cause=f"disks:host:{host}", host=host))
    for host in ("a", "b"):
        desk.told(frozenset({("PredrainCause", host)}))
    assert len(desk.messages) == 2


def test_a_process_that_is_away_while_others_answer_hides_nothing_of_what_they_say(desk: Desk) -> None:
    desk.send(
        desk.alert("PredrainAway", "critical", instance="predrain-worker-2:8081", left="others"),
        desk.alert("PredrainStoreAway", "critical", instance="predrain-worker-1:8081", left="others"),
    )
    desk.told(frozenset({("PredrainAway", "")}))
    desk.send(desk.alert("PredrainDrainFailed", "critical"))
    desk.told(frozenset({("PredrainDrainFailed", "")}))


@pytest.mark.parametrize("cause", ["PredrainScoringStuck", "PredrainForecasterNotLoaded"])
def test_hosts_are_not_told_as_silent_while_nobody_judges_what_they_send(desk: Desk, cause: str) -> None:
    desk.send(desk.alert(cause))
    desk.told(frozenset({(cause, "")}))
    desk.send(
        desk.alert("PredrainHostsSilent"),
        desk.alert("PredrainHostSilent", host="stor-01", collector="delivers"),
    )
    desk.send(desk.alert("PredrainHalted"))
    messages = desk.told(frozenset({("PredrainHalted", "")}))
    assert not [name for message in messages for name, _ in message if "Silent" in name]


def test_a_silent_host_whose_collector_delivered_is_told_of_while_others_keep_what_they_read(
    desk: Desk,
) -> None:
    desk.send(desk.alert("PredrainCollectorsSpooling"))
    spooling = frozenset({("PredrainCollectorsSpooling", "")})
    desk.told(spooling)
    desk.send(
        *(desk.alert("PredrainHostSilent", host=f"stor-0{n}", collector="unknown") for n in (1, 2)),
        desk.alert("PredrainHostSilent", host="stor-03", collector="delivers"),
    )
    dead = frozenset({("PredrainHostSilent", "stor-03")})
    assert desk.told(dead) == [spooling, dead]
    desk.send(desk.alert("PredrainHalted"))
    assert desk.told(frozenset({("PredrainHalted", "")}))[:2] == [spooling, dead]


def test_disk_alerts_of_one_host_are_sent_in_one_message(desk: Desk) -> None:
    desk.send(
        desk.alert("PredrainDisksBad", host="stor-01"),
        desk.alert("PredrainDisksUnreadable", host="stor-01"),
        desk.alert("PredrainDisksBad", host="stor-02"),
    )
    first = frozenset({("PredrainDisksBad", "stor-01"), ("PredrainDisksUnreadable", "stor-01")})
    second = frozenset({("PredrainDisksBad", "stor-02")})
    desk.told(first)
    assert sorted(desk.told(second), key=len) == [second, first]


def test_two_sick_models_are_two_messages_and_hot_racks_are_one(desk: Desk) -> None:
    desk.send(
        desk.alert("PredrainModelSick", "critical", model="A"),
        desk.alert("PredrainModelSick", "critical", model="B"),
        desk.alert("PredrainRackHot", "critical", rack="r1"),
        desk.alert("PredrainRackHot", "critical", rack="r2"),
    )
    hot = frozenset({("PredrainRackHot", "r1"), ("PredrainRackHot", "r2")})
    ill = [frozenset({("PredrainModelSick", model)}) for model in "AB"]
    for message in (hot, *ill):
        desk.told(message)
    assert sorted(map(sorted, desk.messages)) == sorted(map(sorted, [hot, *ill]))


def test_alerts_of_a_silenced_host_are_not_sent_and_all_other_alerts_are(desk: Desk) -> None:
    desk.silence(host="stor-01")
    desk.send(
        desk.alert("PredrainDisksBad", host="stor-01"),
        desk.alert("PredrainDisksUnreadable", host="stor-01"),
        desk.alert("PredrainDisksBad", host="stor-02"),
    )
    other = frozenset({("PredrainDisksBad", "stor-02")})
    assert desk.told(other) == [other]
    desk.send(desk.alert("PredrainHalted"))
    assert desk.told(frozenset({("PredrainHalted", "")}))[0] == other


def a_fleet(hosts: int = 1, **changes: Any) -> Fleet:
    """Something is the matter with a disk on each of so many hosts."""
    fleet = Fleet(disks=400, **changes)
    for number in range(0, 10 * hosts, 10):
        fleet.unread[device(number)] = Unreadable(NOW - timedelta(hours=6), "no answer within 30 s")
    return fleet


def sick(*numbers: int) -> Fleet:
    fleet = Fleet(disks=400)
    fleet.sicken(*numbers)
    return fleet


def silent(hosts: int) -> Fleet:
    return Fleet(disks=400, silent={host_of(10 * n): NOW - timedelta(hours=3) for n in range(hosts)})


@pytest.mark.parametrize(
    ("alert", "fleet"),
    [
        ("PredrainDisksBad", sick(3)),
        ("PredrainModelSick", sick(*range(300))),
        ("PredrainDisksUnreadable", a_fleet(3)),
        ("PredrainHostsUnreadable", a_fleet(4)),
        ("PredrainHostSilent", silent(3)),
        ("PredrainHostsSilent", silent(4)),
        ("PredrainHalted", Fleet(halted="somebody looks")),
    ],
)
def test_an_alert_is_grouped_by_the_labels_by_which_predrain_groups_causes(alert: str, fleet: Fleet) -> None:
    units = "".join(file.read_text() for file in (Path(__file__).parent / "rules").glob("*.yml"))
    fired = re.findall(
        rf"alertname: {alert}\n(?:(?!.*alertname).*\n)*? +- exp_labels:\n((?: {{14}}.*\n)+)", units
    )
    labels = {line.split(":")[0].strip() for block in fired for line in block.splitlines()}
    found = find_alert_causes(fleet.snapshot())
    assert {(cause.host is not None, cause.model is not None) for cause in found} == {
        ("host" in labels, "model" in labels)
    }
    assert len(found) == 1 or "host" in labels

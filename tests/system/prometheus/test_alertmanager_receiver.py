"""Our alerts at a real Alertmanager: they stand, they are the same over repetitions, and they end."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from predrain.service.config.channels import open_channels
from predrain.service.notifications.cause import AlertCause, CausePart, Severity
from predrain.service.notifications.channel import NotDelivered
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.notifier import Notifier
from predrain.service.notifications.receiver_channel import ReceiverChannel
from predrain.service.notifications.trial_message import send_test_message
from tests.deadlines import idle_seconds
from tests.ports import hold_port
from tests.service.notifications.snapshots import Fleet
from tests.service.notifications.test_notifier import Kept
from tests.service.notifications.test_notifying_service import settings_of
from tests.service.notifications.test_receivers import receiver_settings
from tests.system.prometheus.server import program

pytestmark = [pytest.mark.system, pytest.mark.slow]
CONFIG = "route:\n  receiver: none\nreceivers:\n  - name: none\n"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of an Alertmanager that is ready."""
    port = hold_port()
    (tmp_path / "alertmanager.yml").write_text(CONFIG)
    with (tmp_path / "said").open("wb") as out:
        process = subprocess.Popen(
            [program("prometheus-alertmanager"), f"--config.file={tmp_path}/alertmanager.yml",
             f"--storage.path={tmp_path}/data", f"--web.listen-address=127.0.0.1:{port}",
             "--cluster.listen-address="],
            stdout=out, stderr=out,
        )  # fmt: skip
    try:
        until(lambda: is_ready(port), "Alertmanager")
        yield port
    finally:
        process.terminate()
        process.wait(20)


@pytest.fixture
def channel(tmp_path: Path, port: int) -> ReceiverChannel:
    settings = settings_of(tmp_path, receiver_settings(tmp_path, "alertmanager", port))
    (found,) = open_channels(settings, lambda: datetime.now(UTC))
    assert isinstance(found, ReceiverChannel)
    return found


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until(met: Callable[[], bool], what: str) -> None:
    end = idle_seconds() + 60
    while not met():
        assert idle_seconds() < end, f"{what} did not come"
        time.sleep(0.1)


def active(port: int) -> list[Any]:
    """The alerts that Alertmanager takes for standing now."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/alerts?active=true", timeout=10) as answer:
        found: list[Any] = json.load(answer)
        return found


def message(
    severity: Severity = Severity.URGENT, *, over: bool = False, ago: timedelta = timedelta(0)
) -> Message:
    point = CausePart("disk:x", "x (stor-07): pending sectors rose.", severity, "stor-07")
    cause = AlertCause(
        "disks:host:stor-07", "x on stor-07 is bad", (point,), "Drain it.", "/fleet?q=stor-07", "stor-07"
    )
    return Message("1", datetime.now(UTC) - ago, cause, frozenset(), over)


def test_an_alert_stands_under_one_name_over_repetitions_and_ends(
    channel: ReceiverChannel, port: int
) -> None:
    channel.deliver(message())
    (first,) = active(port)
    channel.deliver(message())
    (again,) = active(port)
    assert again["labels"] == {
        "alertname": "PredrainCause", "cluster": "echo", "severity": "critical", "cause": "disks:host:stor-07",
        "host": "stor-07",
    }  # fmt: skip
    assert (again["fingerprint"], again["startsAt"]) == (first["fingerprint"], first["startsAt"])
    assert again["generatorURL"] == "https://predrain.example.org/fleet?q=stor-07"
    assert again["annotations"]["summary"] == "x on stor-07 is bad"
    channel.deliver(message(over=True))
    until(lambda: active(port) == [], "the end")


def test_an_alert_ends_even_if_our_clock_is_behind(channel: ReceiverChannel, port: int) -> None:
    channel.deliver(message())
    assert len(active(port)) == 1
    channel.deliver(message(over=True, ago=timedelta(hours=1)))
    until(lambda: active(port) == [], "the end")


def test_a_test_leaves_no_alert(channel: ReceiverChannel, port: int) -> None:
    send_test_message(channel, datetime.now(UTC), "somebody pressed the button")
    until(lambda: active(port) == [], "the end")


def test_an_alert_refused_by_alertmanager_is_reported_with_the_receiver_and_the_http_status(
    tmp_path: Path, channel: ReceiverChannel, port: int
) -> None:
    del channel
    text = receiver_settings(tmp_path, "alertmanager", port).replace(f":{port}", f":{port}/elsewhere")
    (wrong,) = open_channels(settings_of(tmp_path, text), lambda: datetime.now(UTC))
    with pytest.raises(NotDelivered, match=r"the receiver alertmanager\.ops at \S+ answered 40\d"):
        wrong.deliver(message())


def test_the_notifier_s_alerts_come_back_after_alertmanager_lost_them(
    channel: ReceiverChannel, port: int
) -> None:
    fleet = Fleet(now=datetime.now(UTC))
    fleet.sicken(3)
    notifier = Notifier(Kept(), [channel])
    for _ in range(3):
        fleet.now += timedelta(minutes=1)
        notifier.send_notifications(fleet.snapshot())
    (standing,) = active(port)
    end = [{"labels": standing["labels"], "endsAt": datetime.now(UTC).isoformat()}]
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v2/alerts",
        json.dumps(end).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10):
        pass
    until(lambda: active(port) == [], "the loss")
    time.sleep(1)
    fleet.now += timedelta(minutes=1)
    notifier.send_notifications(fleet.snapshot())
    assert [one["labels"]["cause"] for one in active(port)] == ["disks:host:stor-00"]

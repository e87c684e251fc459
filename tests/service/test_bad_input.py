"""Mistakes of people and of other systems are reported with a remedy, and no other part of the service stops."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from predrain.data.outlook import Status
from predrain.data.reading import Reading
from predrain.service.cli import main
from predrain.service.notifications import http_sender
from tests.service.conftest import NOON, Place, Serve, Site, envelope, shut, smart_reading, week_of
from tests.service.notifications.test_channels import Post, a_mail, a_webhook, post_office
from tests.service.test_worker import work


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[service]\nport = 'many'\n", ("service.port", "valid integer", "'many'")),
        ("[service]\nport = [8080]\n", ("service.port", "valid integer")),
        (
            "[forecast]\nreading_interval_hours = 'hourly'\n",
            ("forecast.reading_interval_hours", "valid number"),
        ),
        ("[policy]\nmode = true\n", ("policy.mode", "'observe', 'propose' or 'act'")),
        ("[ceph]\npython = 3\n", ("ceph.python", "valid tuple")),
        ("service = 'here'\n", ("service: ", "'here'")),
        ("[service]\nprot = 8080\n", ("unknown key service.prot; did you mean service.port?",)),
        ("[servise]\nport = 8080\n", ("unknown key servise", "did you mean service.")),
        ("[collector]\nintervall = 3\n", ("intervall",)),
    ],
)
def test_settings_that_are_wrong_are_told_with_their_key_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: tuple[str, ...]
) -> None:
    (tmp_path / "predrain.toml").write_text(text)
    assert main(["up", "--config", str(tmp_path / "predrain.toml"), "--state", str(tmp_path / "state")]) == 1
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "Traceback" not in told
    for word in says:
        assert word in told
    assert not (tmp_path / "state").exists()


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Takes connections and never answers, until it is closed."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener


def test_while_a_webhook_hangs_and_mail_is_refused_readings_are_scored_and_the_page_answers(
    place: Place, serve: Serve, silent: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sender, "DEADLINE_SECONDS", 120.0)
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
    with post_office(Post(answer="550 no")) as port:
        application = place.application(channels=[a_webhook(url), a_mail(port)])
        application.start()
        site = serve(application)
        application.halt("storm", "me")

        def tell() -> None:
            for _ in range(5):
                place.clock.sleep(60)
                application.step_telling()

        telling = threading.Thread(target=tell)
        telling.start()
        called, _ = silent.accept()
        with called:
            assert "readings" in site.client.get("/api/v1/status").json()
            now = place.clock.now()
            assert _posted(site, [smart_reading("A", now), smart_reading("B", now)])["accepted"] == 2
            work(application)
            assert len(site.client.get("/api/v1/outlooks").json()["items"]) == 2
            assert telling.is_alive(), "the webhook was to hang all the while"
        silent.close()
        telling.join()
        troubles = " ".join(application.troubles.values())
        assert "webhook" in troubles
        assert "550" in troubles
        shut(application)


def test_nothing_waits_for_prometheus_whether_it_hangs_up_or_never_comes_again(site: Site) -> None:
    application = site.application
    address = (site.client.base_url.host, site.client.base_url.port)
    for _ in range(20):  # asked, and gone before the answer
        with socket.create_connection(address) as scraper:
            scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    with socket.create_connection(address) as scraper:  # asked, and never read
        scraper.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        application.ingest(week_of("A", pending=400))
        work(application)
        (outlook,) = application.store.latest_outlooks().values()
        assert outlook.status is Status.BAD
        assert site.client.get("/healthz").status_code == 200
    assert application.faults == {}
    assert "predrain_" in site.client.get("/metrics", headers=site.acting).text


def test_when_our_own_clock_was_ahead_and_is_set_right_readings_go_on(place: Place, serve: Serve) -> None:
    place.clock.sleep(3 * 3600)
    application = place.application()
    application.start()
    site = serve(application)
    assert _posted(site, [smart_reading("A", place.clock.now())])["accepted"] == 1
    work(application)
    place.clock.sleep(-3 * 3600)
    assert _posted(site, [smart_reading("A", NOON), smart_reading("B", NOON)])["accepted"] == 2
    work(application)
    assert set(application.store.latest_outlooks()) == {"ST4000DM000_A", "ST4000DM000_B"}
    assert site.client.get("/api/v1/status").status_code == 200
    shut(application)


def _posted(site: Site, readings: list[Reading]) -> dict[str, Any]:
    body = [envelope(site.application, one) for one in readings]
    answer = site.client.post("/api/v1/readings", json=body, headers=site.acting)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told

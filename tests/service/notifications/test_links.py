"""The links of messages, followed as robots do that draw a preview of each link, and nothing changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from predrain.service.notifications import find_alert_causes
from predrain.service.notifications.digest_text import Digest, DigestEntry
from predrain.service.notifications.message_texts import PageLinks, format_message_text
from predrain.service.notifications.notification_log import Message
from predrain.service.notifications.receiver_channel import MessagePlace
from tests.service.conftest import Place, Serve, Site, shut, smart_reading, week_of
from tests.service.notifications.snapshots import NOW
from tests.service.notifications.test_channels import a_webhook
from tests.service.notifications.test_receivers import RENDERERS
from tests.service.test_worker import work

ADDRESS = "https://predrain.example.org"
ROBOTS = (
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5",
    "facebookexternalhit/1.1",
)
"""The user agents of programs that draw previews; Slack and Teams are the first two."""
STREAMS = ("/api/v1/events",)
"""An answer that never ends."""


@pytest.fixture
def told(place: Place, serve: Serve) -> Iterator[Site]:
    """A service with a bad disk and a halt."""
    application = place.application()
    application.start()
    application.ingest(week_of("A", passed=False))
    application.ingest([smart_reading("B")])
    work(application)
    application.halt("switch maintenance", "jo")
    yield serve(application)
    shut(application)


def links_of_messages(site: Site) -> set[str]:
    """Every link in every form of a message about each present cause, and in the digest."""
    found: list[str] = []
    causes = find_alert_causes(site.application.build_alert_snapshot())
    assert len(causes) > 1
    for cause in causes:
        for over in (False, True):
            message = Message("1", NOW, cause, frozenset(), over)
            found.append(format_message_text(message, ADDRESS))
            found.append(json.dumps(a_webhook("https://x", address=ADDRESS)._document(message)))
            for renderer in RENDERERS.values():
                place = MessagePlace("echo", PageLinks(ADDRESS))
                found += [json.dumps(request.body) for request in renderer.render(message, place)]
    entry = DigestEntry("a disk is bad", causes[0].severity, NOW)
    found.append(Digest(NOW.date(), NOW, {"a": entry}).format_text(ADDRESS))
    said = re.findall(rf'{re.escape(ADDRESS)}[^\s"|>)\\]*', "\n".join(found))
    return {link.removeprefix(ADDRESS) for link in said}


def state_of(site: Site) -> dict[str, Any]:
    """All that a person could have changed, as the service itself says, and the end of the audit."""
    read = ("halt", "silences", "causes", "drains", "receivers", "audit")
    answers = {path: site.client.get(f"/api/v1/{path}", headers=site.acting) for path in read}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {path: answer.json() for path, answer in answers.items()}


def test_each_message_has_a_link_to_the_halt_dialog_and_one_to_the_thing(told: Site) -> None:
    links = links_of_messages(told)
    assert "/drains?ask=halt" in links
    assert "/fleet?q=stor-01" in links
    assert all(urlsplit(link).path.startswith("/") for link in links)


def test_a_robot_that_follows_every_link_changes_nothing(told: Site) -> None:
    before = state_of(told)
    for link in sorted(links_of_messages(told)):
        for robot in ROBOTS:
            for method in ("HEAD", "GET"):
                for cookie in ({}, told.acting):  # a browser may send a person's credentials with it
                    headers = {"User-Agent": robot, "Accept": "text/html,*/*", **cookie}
                    answer = told.client.request(method, link, headers=headers)
                    assert answer.status_code in (200, 503), link  # 503: the page is not built here
    assert state_of(told) == before


def test_no_get_of_the_interface_changes_anything(told: Site) -> None:
    document = told.client.get("/api/v1/openapi.json").json()
    paths = [path for path, methods in document["paths"].items() if "get" in methods and path not in STREAMS]
    assert len(paths) > 20
    before = state_of(told)
    for path in paths:
        asked = re.sub(r"\{\w+\}", "mail", path)
        for query in ("", "?host=*&reason=a&hours=1"):
            assert told.client.get(f"{asked}{query}", headers=told.acting).status_code < 500, path
    for path in ("/api/v1/receivers/mail/test", "/api/v1/unhalt", "/api/v1/drains/d-1/approve"):
        assert told.client.get(path, headers=told.acting).status_code in (404, 405), path
    assert state_of(told) == before

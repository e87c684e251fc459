"""The rules of third-party receivers, as their makers publish them: each check names its source.

A check raises AssertionError for a body that the receiver would refuse.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit


def check_slack(body: Any) -> None:
    """https://docs.slack.dev/reference/block-kit/blocks and https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks."""
    assert body.keys() <= {"text", "blocks"}
    assert 0 < len(body["text"]) <= 40_000
    assert 0 < len(body["blocks"]) <= 50
    for block in body["blocks"]:
        assert block.keys() == {"type", "text"}
        text = block["text"]
        if block["type"] == "header":
            assert text["type"] == "plain_text"
            assert 0 < len(text["text"]) <= 150
        else:
            assert block["type"] == "section"
            assert text["type"] in ("plain_text", "mrkdwn")
            assert 0 < len(text["text"]) <= 3000
        assert text.keys() <= (
            {"type", "text", "emoji"} if text["type"] == "plain_text" else {"type", "text", "verbatim"}
        )


CARD_ELEMENTS = {
    "RichTextBlock": {"type", "inlines"},
    "TextRun": {"type", "text", "size", "weight", "color"},
    "Action.OpenUrl": {"type", "title", "url"},
}
COLOURS = {"Default", "Dark", "Light", "Accent", "Good", "Warning", "Attention"}


def check_teams(body: Any) -> None:
    """http://adaptivecards.io/schemas/adaptive-card.json (1.4); https://learn.microsoft.com/connectors/teams/."""
    assert len(json.dumps(body)) <= 28 * 1024
    assert body["type"] == "message"
    (attachment,) = body["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    assert card.keys() <= {"$schema", "type", "version", "body", "actions", "msteams"}
    assert card["body"]
    for element in [
        *card["body"],
        *card["actions"],
        *(one for row in card["body"] for one in row["inlines"]),
    ]:
        assert element.keys() <= CARD_ELEMENTS[element["type"]]
        if element["type"] == "TextRun":
            assert element["text"]
            assert element.get("color", "Default") in COLOURS
            assert element.get("size", "Default") in {"Default", "Small", "Medium", "Large", "ExtraLarge"}
            assert element.get("weight", "Default") in {"Default", "Lighter", "Bolder"}
        if element["type"] == "Action.OpenUrl":
            assert urlsplit(element["url"]).scheme == "https"


def check_pagerduty(body: Any) -> None:
    """https://developer.pagerduty.com/docs/send-alert-event: fields, limits and actions."""
    assert len(json.dumps(body)) <= 512 * 1024
    assert len(body["routing_key"]) == 32
    assert body["event_action"] in ("trigger", "acknowledge", "resolve")
    assert 0 < len(body["dedup_key"]) <= 255
    if body["event_action"] != "trigger":
        assert body.keys() == {"routing_key", "event_action", "dedup_key"}
        return
    assert body.keys() <= {
        "routing_key",
        "event_action",
        "dedup_key",
        "payload",
        "links",
        "client",
        "client_url",
    }
    payload = body["payload"]
    assert payload.keys() <= {
        "summary", "source", "severity", "timestamp", "component", "group", "class", "custom_details",
    }  # fmt: skip
    assert 0 < len(payload["summary"]) <= 1024
    assert payload["source"]
    assert payload["severity"] in ("critical", "error", "warning", "info")
    assert datetime.fromisoformat(payload["timestamp"]).tzinfo is not None
    assert isinstance(payload["custom_details"], dict)
    assert all(link.keys() == {"href", "text"} for link in body.get("links", []))


def check_opsgenie(path: str, body: Any) -> None:
    """https://docs.opsgenie.com/docs/alert-api: create, acknowledge and close by alias, with their limits."""
    parts = urlsplit(path)
    assert len(body.get("source", "")) <= 100
    assert len(body.get("user", "")) <= 100
    if parts.path != "/v2/alerts":
        _, version, noun, alias, action = parts.path.split("/")
        assert (version, noun, parts.query) == ("v2", "alerts", "identifierType=alias")
        assert action in ("close", "acknowledge")
        assert alias
        assert body.keys() <= {"source", "user", "note"}
        return
    assert body.keys() <= {
        "message", "alias", "description", "responders", "visibleTo", "actions", "tags", "details", "entity", "source",
        "priority", "user", "note",
    }  # fmt: skip
    assert 0 < len(body["message"]) <= 130
    assert 0 < len(body["alias"]) <= 512
    assert len(body["description"]) <= 15_000
    assert len(body["entity"]) <= 512
    assert body["priority"] in ("P1", "P2", "P3", "P4", "P5")
    assert len(body["tags"]) <= 20
    assert all(len(tag) <= 50 for tag in body["tags"])
    assert all(one.keys() == {"type", "name"} for one in body.get("responders", []))


def check_alertmanager(path: str, body: Any) -> None:
    """https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml: postableAlerts."""
    assert path == "/api/v2/alerts"
    for alert in body:
        assert alert.keys() <= {"labels", "annotations", "startsAt", "endsAt", "generatorURL"}
        assert alert["labels"]["alertname"]
        assert all(isinstance(value, str) and value for value in alert["labels"].values())
        assert all(isinstance(value, str) for value in alert["annotations"].values())
        if "endsAt" in alert:
            assert datetime.fromisoformat(alert["endsAt"]).tzinfo is not None

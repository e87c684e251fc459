"""Every entrance of text keeps the limit of its row in the reference for any text, and the text behind it is clean."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import structlog

from predrain.actions.cluster.dumps.device_dumps import device_ls, osd_metadata
from predrain.actions.controller.forwarded_requests import ANSWERS, REQUESTS, ForwardedRequests
from predrain.actions.controller.leadership import Leadership
from predrain.data.ids import DeviceId, OsdId
from predrain.data.log.log_port import Delivered, Topic
from predrain.data.outside_text import CUT_MARK, TEXT_FIELDS, TextField, is_clean
from predrain.data.reading import Attribute, Reading, Smart, Unreadable
from predrain.data.smart import Undecodable, decode_smartctl_output
from predrain.data.store.sqlite_store import SqliteStore
from predrain.data.wire import DeadLetter, UndecodableRecord
from predrain.data.wire import decode_envelope as opened
from predrain.service.cli import main
from predrain.service.notifications.mail_channel import MailChannel
from predrain.service.runtime import logging_setup
from tests.actions.made_config_keys import KeepInMemory
from tests.service.conftest import NOON, Place, Serve, Site, envelope, shut, smart_reading, week_of
from tests.service.notifications.test_channels import Post, post_office
from tests.service.test_worker import work

SHORT = "A\x1b[31mB\u202eC\x9b2J\u2066D\x07\nE"
LONGER = SHORT * 10 + "x" * 3_000
LONG = SHORT * 2_000 + "x" * 470_000
STEERING = ("\x1b", "\x9b", "\x07", "\u202e", "\u2066", "\x00")


def sent(site: Site, reading: Reading, at: datetime = NOON) -> Smart | Unreadable | None:
    """Send one reading of a disk as an envelope, and return the stored state of the disk, or None if it was refused."""
    sealed = envelope(site.application, smart_reading())
    sealed["body"] |= {"device": reading.device, "host": reading.host}
    if isinstance(reading.seen, Unreadable):
        del sealed["body"]["smart"]
        sealed["body"]["unreadable"] = {"since": at.isoformat(), "why": reading.seen.why}
    else:
        identity = reading.seen.identity
        told = {
            name: getattr(identity, name)
            for name in ("model", "serial", "wwn", "vendor", "family", "firmware")
        }
        sealed["body"]["smart"]["identity"] |= {
            name: value for name, value in told.items() if value is not None
        }
        for number, row in reading.seen.attributes.items():
            sealed["body"]["smart"]["attributes"][str(number)]["name"] = row.name
    answer = site.client.post("/api/v1/readings", json=[sealed], headers=site.ingesting)
    assert len(answer.content) < 5_000
    if answer.json()["refused"]:
        return None
    work(site.application)
    kept = site.application.store.latest_readings()[reading.device]
    return kept.seen


def identified(**names: str) -> Reading:
    reading = smart_reading()
    assert isinstance(reading.seen, Smart)
    return replace(reading, seen=replace(reading.seen, identity=replace(reading.seen.identity, **names)))


def by_identity(*names: str) -> Callable[[Site, str], list[str | None]]:
    def enter(site: Site, text: str) -> list[str | None]:
        share = text[: len(text) // len(names)] if len(text) > 1000 else text
        seen = sent(site, identified(**dict.fromkeys(names, share)))
        assert isinstance(seen, Smart)
        told = json.dumps(
            {
                "device": {"protocol": "ATA"},
                "model_name": text,
                "serial_number": text,
                "firmware_version": text,
            }
        )
        printed = decode_smartctl_output(told.encode()).smart.identity
        return [
            *(getattr(seen.identity, name) for name in names),
            printed.model,
            printed.serial,
            printed.firmware,
        ]

    return enter


def by_name_of(part: str) -> Callable[[Site, str], list[str | None]]:
    def enter(site: Site, text: str) -> list[str | None]:
        reading = replace(smart_reading(), **{part: text})
        return [None if sent(site, reading) is None else text]

    return enter


def attribute_names(site: Site, text: str) -> list[str | None]:
    reading = smart_reading()
    assert isinstance(reading.seen, Smart)
    rows = {number: Attribute(text[:30_000], 1) for number in reading.seen.attributes}
    seen = sent(site, replace(reading, seen=replace(reading.seen, attributes=rows)))
    assert isinstance(seen, Smart)
    row = {"id": 5, "name": text, "raw": {"value": 1}}
    printed = decode_smartctl_output(
        json.dumps({"device": {"protocol": "ATA"}, "ata_smart_attributes": {"table": [row]}}).encode()
    )
    return [*(one.name for one in seen.attributes.values()), printed.smart.attributes[5].name]


def messages(_: Site, text: str) -> list[str | None]:
    program = {"exit_status": 2, "messages": [{"string": text, "severity": "error"}]}
    with pytest.raises(Undecodable) as refused:
        decode_smartctl_output(json.dumps({"smartctl": program}).encode())
    return [*refused.value.messages, str(refused.value)]


def unreadable(site: Site, text: str) -> list[str | None]:
    seen = sent(site, replace(smart_reading(), seen=Unreadable(NOON, text)))
    assert isinstance(seen, Unreadable)
    return [seen.why]


def producer(site: Site, text: str) -> list[str | None]:
    sealed = envelope(site.application, smart_reading()) | {"producer": text}
    try:
        return [opened(json.dumps(sealed).encode(), Reading).producer]
    except UndecodableRecord:
        return [None]


def dead_letter(_: Site, text: str) -> list[str | None]:
    letter = DeadLetter.from_delivered(Topic.READINGS, Delivered(1, text, b"{"), ValueError(text), NOON)
    return [letter.key, letter.reason]


def posted(site: Site, path: str, body: dict[str, Any], *fields: str) -> list[str | None]:
    answer = site.client.post(f"/api/v1/{path}", json=body, headers=site.acting)
    if answer.status_code in (413, 422):
        return [None]
    assert answer.status_code in (200, 201), answer.text
    return [answer.json()[field] for field in fields]


def petition(text: str) -> tuple[KeepInMemory, dict[str, Any]]:
    keep = KeepInMemory()
    asked = {
        "id": "one",
        "wish": "propose",
        "at": NOON.isoformat(),
        "caller": text,
        "reason": text,
        "target": text,
    }
    keep.texts[REQUESTS + "one"] = json.dumps(asked, ensure_ascii=False)
    return keep, asked


def reasons(site: Site, text: str) -> list[str | None]:
    site.application.ingest([smart_reading()])
    work(site.application)
    waiting = ForwardedRequests(petition(text)[0]).list_waiting_requests(NOON)
    note = posted(site, "devices/ST4000DM000_Z1/outcome", {"fate": "cleared", "note": text}, "note")
    return [*note, *(one.reason for one in waiting)]


def callers(_: Site, text: str) -> list[str | None]:
    return [one.caller for one in ForwardedRequests(petition(text)[0]).list_waiting_requests(NOON)] or [None]


def patterns(site: Site, text: str) -> list[str | None]:
    body = {"hours": 1, "reason": "x", "host": text, "name": text}
    waiting = ForwardedRequests(petition(text)[0]).list_waiting_requests(NOON)
    return [*posted(site, "silences", body, "host", "name"), *(one.target for one in waiting)]


def halts(site: Site, text: str) -> list[str | None]:
    asked = posted(site, "halt", {"reason": text}, "halted")
    assert main(
        [
            "halt",
            "--reason",
            text.replace("\x00", ""),
            "--state",
            str(site.application.settings.service.state),
        ]
    ) in (0, 3)
    silence = posted(site, "silences", {"hours": 1, "reason": text, "host": "a"}, "reason")
    store = SqliteStore(":memory:")
    in_cluster = Leadership(store, KeepInMemory({"halt": text})).find_halt_reason()
    store.close()
    return [*asked, site.application.find_halt_reason(), in_cluster, *silence]


def cluster_names(_: Site, text: str) -> list[str | None]:
    device = {"devid": text, "daemons": ["osd.0"], "location": [{"host": text, "dev": "sda"}]}
    listed = device_ls(json.dumps([device]).encode())
    told = osd_metadata(json.dumps([{"id": 0, "hostname": text, "device_ids": f"sda={text}"}]).encode())
    ((host, _),) = listed.plugged
    return [*listed.of_osd[OsdId(0)], host, told[OsdId(0)].host]


def cluster_words(_: Site, text: str) -> list[str | None]:
    keep = KeepInMemory({ANSWERS + "one": json.dumps({"at": NOON.isoformat(), "refused": text})})
    heard = ForwardedRequests(keep).answer_to("one")
    assert heard is not None
    return [heard.refused]


ENTRANCES: dict[str, Callable[[Site, str], list[str | None]]] = {
    "device id": by_name_of("device"),
    "host name": by_name_of("host"),
    "model, vendor": by_identity("model", "vendor"),
    "serial number, WWN": by_identity("serial", "wwn"),
    "family, firmware": by_identity("family", "firmware"),
    "attribute name": attribute_names,
    "message of smartctl": messages,
    "why a disk cannot be read": unreadable,
    "producer of an envelope": producer,
    "key and reason of a dead letter": dead_letter,
    "reason of a drain, note of an outcome": reasons,
    "reason of a halt or a silence": halts,
    "pattern of a silence, target of a drain": patterns,
    "name of a caller": callers,
    "names of hosts, racks, pools, rules, mgrs and devices": cluster_names,
    "message of a Ceph daemon": cluster_words,
}
REFUSED_WHEN_UNCLEAN = {"device id", "host name"}
REFUSED_WHEN_LONG = {"producer of an envelope"}
BOUNDED_AS_A_WHOLE = {
    "name of a caller",
    "reason of a drain, note of an outcome",
    "pattern of a silence, target of a drain",
}
"""Requests in the cluster have 16,384 letters at most."""


def text_for(field: TextField, size: str) -> str:
    if size == "short":
        return SHORT
    return LONGER if field.name in BOUNDED_AS_A_WHOLE else LONG


@pytest.mark.slow
@pytest.mark.parametrize("size", ["short", "long"])
@pytest.mark.parametrize("field", TEXT_FIELDS, ids=lambda field: field.name)
def test_each_entrance_keeps_its_limit(site: Site, field: TextField, size: str) -> None:
    came = ENTRANCES[field.name](site, text_for(field, size))
    assert came
    if field.name in REFUSED_WHEN_UNCLEAN or (size == "long" and field.name in REFUSED_WHEN_LONG):
        assert set(came) == {None}
        return
    kept = [one for one in came if one is not None]
    assert kept
    for one in kept:
        assert is_clean(one, field.limit), one[:200]
        assert "BCD" in one
    if size == "long":
        assert any(CUT_MARK in one for one in kept)


def test_a_text_longer_than_a_request_may_be_is_refused_as_a_whole(site: Site) -> None:
    for enter in (reasons, patterns, callers):
        assert set(enter(site, LONG)) == {None}


def test_a_disk_with_hostile_text_makes_a_small_clean_mail_page_and_log(
    place: Place, serve: Serve, capsys: pytest.CaptureFixture[str]
) -> None:
    post = Post()
    logging_setup.configure_logging()
    with post_office(post) as port:
        mail = MailChannel(
            "127.0.0.1", port, "none", "p@example.org", ("ops@example.org",), "echo", "https://p.example.org"
        )
        application = place.application(channels=[mail])
        application.start()
        site = serve(application)
        for index, reading in enumerate(week_of("A", passed=False)):
            assert isinstance(reading.seen, Smart)
            rows = {
                number: Attribute(LONG[:20_000], row.raw) for number, row in reading.seen.attributes.items()
            }
            sealed = envelope(application, reading)
            sealed["body"]["smart"]["identity"] |= {"model": LONG[:100_000], "firmware": SHORT}
            for number in rows:
                sealed["body"]["smart"]["attributes"][str(number)]["name"] = rows[number].name
            answer = site.client.post("/api/v1/readings", json=[sealed], headers=site.ingesting)
            assert answer.json()["accepted"] == 1, (index, answer.text[:500])
        work(application)
        site.client.post("/api/v1/halt", json={"reason": SHORT}, headers=site.acting)
        for _ in range(30):
            application.clock.sleep(60)
            application.step_telling()
        paths = ("devices", "devices/ST4000DM000_A", "outlooks", "causes", "halt", "status", "audit")
        pages = [site.client.get(f"/api/v1/{path}") for path in paths]
        shut(application)
    assert post.kept
    for mail_ in post.kept:
        text = f"{mail_['Subject']}\n{mail_.get_content()}"
        assert len(text) < 8_000
        assert not any(sign in text for sign in STEERING)
    for page in pages:
        assert len(page.content) < 40_000
        assert not any(sign in page.text or json.dumps(sign)[1:-1] in page.text for sign in STEERING)
    said = capsys.readouterr().err
    assert not any(sign in said for sign in STEERING)


def test_a_log_line_steers_no_terminal_whatever_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    logging_setup.configure_logging()
    structlog.get_logger().warning(SHORT, why=LONG, host={"a": [SHORT]})
    handler = logging.getLogger().handlers
    made = logging.LogRecord("ceph", logging.WARNING, __file__, 1, SHORT, None, None)
    written = [one for one in handler if isinstance(one.formatter, logging_setup.OneLineFormatter)]
    said = capsys.readouterr().err + "".join(one.format(made) for one in written)
    assert "A\\x1b[31mB\\u202eC" in said
    assert not any(sign in said for sign in STEERING)
    assert said.count("\n") == 1
    assert len(said) < 20_000


def test_readings_of_older_logs_with_unclean_text_are_taken_and_cleaned(site: Site) -> None:
    """A worker finds them in the log, past the door."""
    from predrain.data.log.log_port import Record

    sealed = envelope(site.application, identified(model=SHORT, firmware=SHORT * 200))
    site.application.log.append(
        Topic.READINGS, [Record(DeviceId("ST4000DM000_Z1"), json.dumps(sealed).encode())]
    )
    work(site.application)
    seen = site.application.store.latest_readings()[DeviceId("ST4000DM000_Z1")].seen
    assert isinstance(seen, Smart)
    assert is_clean(seen.identity.model or "", 256)
    assert is_clean(seen.identity.firmware or "", 256)

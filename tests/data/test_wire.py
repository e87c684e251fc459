"""Envelopes: what was once written is read for ever, and what cannot be read says why."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import ClusterId, DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencyBatch, LatencySummary, LatencyWindows
from predrain.data.log.log_port import Delivered, Topic
from predrain.data.outlook import GRID_DAYS, Advice, Life, Outlook, Reason, Status, SurvivalCurve
from predrain.data.reading import (
    Attribute,
    Counters,
    Identity,
    Logs,
    OsdDevice,
    Protocol,
    Reading,
    Role,
    Smart,
    Unreadable,
)
from predrain.data.refusal import Refusal
from predrain.data.unreadable import UnreadableCause
from predrain.data.wire import (
    LONGEST,
    DeadLetter,
    InvalidValue,
    UndecodableRecord,
    decode_envelope,
    encode_envelope,
)
from predrain.data.wire.wire_bodies import OUTLOOK as OUTLOOK_BODY

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "wire"
NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DEVICE = DeviceId("ST4000DM000-1F2168_Z305B2QN")

ATA = Reading(
    DEVICE, HostName("ceph-17"), NOON, NOON + timedelta(seconds=3),
    Smart(
        Protocol.ATA,
        Identity("Seagate", "ST4000DM000-1F2168", "Seagate Desktop HDD.15", "Z305B2QN", "5000c500a1b2c3d4",
                 "CC54", 4_000_787_030_016, 5980),
        False,
        Counters(*range(1, 16), bytes_written=123_456_789_012_345, bytes_read=2**70),
        {5: Attribute("Reallocated_Sector_Ct", 16, 100, 99, 10),
         188: Attribute("Command_Timeout", 2, 100, 98, 0, 8_590_065_666)},
        31_000, 29, (3, 6), 10,
    ),
)  # fmt: skip
UNREADABLE = replace(ATA, seen=Unreadable(NOON - timedelta(hours=2), "smartctl: no answer within 30 s"))
LATENCY = LatencySummary(
    OsdId(17), HostName("ceph-17"), NOON, 15.0, 4211, 4.25, 31.5, 6.75, 48.0, 5.5, 40.0, 3.125, 280.7, 2.5, 3
)
SEATS = (OsdDevice(OsdId(17), Role.DATA), OsdDevice(OsdId(18), Role.DB))
assert isinstance(ATA.seen, Smart)
ATA_2 = replace(ATA, seen=replace(ATA.seen, logs=Logs(131, 2, 7, 5)), osd_devices=SEATS, kernel_errors=4)
UNREADABLE_2 = replace(UNREADABLE, osd_devices=SEATS, kernel_errors=12)
LATENCY_2 = replace(LATENCY, backfills_max=1, recovering=True, scrubbing=True)
BATCH = LatencyBatch(HostName("ceph-17"), LatencyWindows.from_summaries([LATENCY_2]), 240)
BATCH_2 = LatencyBatch(
    HostName("ceph-17"),
    LatencyWindows.from_summaries(
        [LATENCY_2, replace(LATENCY, osd=OsdId(18)), replace(LATENCY_2, host=HostName("ceph-18"))]
    ),
    240,
)
OUTLOOK = Outlook(
    DEVICE, NOON, Status.BAD, "model:2026-03-01",
    (Reason("pending-rose", "Pending sectors rose on 5 of the last 7 days, 0 to 48.", "pending"),),
    "Drain osd.17 and replace the drive.", 0.125, 0.25, 0.5,
    SurvivalCurve(1 / (1 + day / 8) for day in GRID_DAYS), Life(2.0, 21.5, None), True, 3, 26.5,
)  # fmt: skip
OUTLOOK_2 = replace(
    OUTLOOK, rule_score=0.875, advice=Advice.DRAIN_NOW, clears="Clears when nothing rises for 30 days.",
    endurance=Life(40.0, 120.5, 400.0),
)  # fmt: skip
OUTLOOK_3 = replace(OUTLOOK_2, status=Status.WARNING, held=Status.BAD)
DEAD = DeadLetter(Topic.READINGS, 41, "Z305B2QN", NOON, "JSON is malformed", bytes(range(256)), False)

DEAD_2 = replace(DEAD, partition=7)
UNREADABLE_3 = replace(
    UNREADABLE_2,
    seen=Unreadable(
        NOON - timedelta(hours=2), "smartctl did not answer within 60 s", UnreadableCause.TIMEOUT
    ),
)
CLUSTER = ClusterId("6b1f4c1e-6f0d-11ee-9a7c-0050569a3c11")
SEATS_4 = tuple(replace(one, cluster=CLUSTER) for one in SEATS)
ATA_4, UNREADABLE_4 = replace(ATA_2, osd_devices=SEATS_4), replace(UNREADABLE_3, osd_devices=SEATS_4)
assert isinstance(ATA_4.seen, Smart)
ATA_5 = replace(ATA_4, seen=replace(ATA_4.seen, temperature_limit_c=60, temperature_critical_c=70))
LATENCY_3 = replace(LATENCY_2, cluster=CLUSTER)
BATCH_3 = LatencyBatch(
    HostName("ceph-17"),
    LatencyWindows.from_summaries(
        [LATENCY_2, LATENCY_3, replace(LATENCY_3, cluster=ClusterId("7" + CLUSTER[1:]), operations=1)]
    ),
    240,
)
"""A host with OSDs of two clusters, and one whose cluster is not known: each has an osd.17."""

VALUES: dict[str, Any] = {
    "reading.v1": ATA, "reading_unreadable.v1": UNREADABLE, "latency.v1": LATENCY, "outlook.v1": OUTLOOK,
    "outlook.v2": OUTLOOK_2, "outlook.v3": OUTLOOK_3,
    "dead_letter.v1": DEAD, "reading.v2": ATA_2, "reading_unreadable.v2": UNREADABLE_2,
    "latency.v2": LATENCY_2, "latency_batch.v1": BATCH, "latency_batch.v2": BATCH_2, "dead_letter.v2": DEAD_2,
    "reading.v3": ATA_2, "reading_unreadable.v3": UNREADABLE_3, "reading.v4": ATA_4,
    "reading_unreadable.v4": UNREADABLE_4, "reading.v5": ATA_5, "reading_unreadable.v5": UNREADABLE_4,
    "latency.v3": LATENCY_3, "latency_batch.v3": BATCH_3,
}  # fmt: skip
OLDER = {
    "reading.v1",
    "reading_unreadable.v1",
    "latency.v1",
    "outlook.v1",
    "outlook.v2",
    "dead_letter.v1",
    "latency_batch.v1",
    "reading.v2",
    "reading_unreadable.v2",
    "reading.v3",
    "reading_unreadable.v3",
    "reading.v4",
    "reading_unreadable.v4",
    "latency.v2",
    "latency_batch.v2",
}
NEWEST = tuple(name for name in VALUES if name not in OLDER)


def _sent(value: Any, **changed: Any) -> bytes:
    """An envelope of `value` with fields of its JSON changed."""
    document = json.loads(encode_envelope(value, producer="ceph-17", sequence=7, sent_at=NOON))
    return json.dumps({**document, **changed}).encode()


def _parse_document(raw: bytes) -> dict[str, Any]:
    """Parse an envelope, with a survival curve at the precision of curves."""
    document: dict[str, Any] = json.loads(raw)
    if isinstance(document["body"].get("survival"), list):
        document["body"]["survival"] = SurvivalCurve(document["body"]["survival"])
    return document


@pytest.mark.parametrize("name", VALUES)
def test_a_golden_envelope_is_read_as_what_it_was(name: str) -> None:
    value = VALUES[name]
    envelope = decode_envelope((GOLDEN / f"{name}.json").read_bytes(), type(value))
    assert envelope.body == value
    assert (f"v{envelope.version}", envelope.producer, envelope.sequence) == (
        name.split(".")[1],
        "ceph-17",
        7,
    )
    assert envelope.sent_at == NOON


@pytest.mark.parametrize("name", NEWEST)
def test_an_envelope_written_today_equals_the_newest_golden_file(name: str) -> None:
    written = encode_envelope(VALUES[name], producer="ceph-17", sequence=7, sent_at=NOON)
    assert _parse_document(written) == _parse_document((GOLDEN / f"{name}.json").read_bytes())


def test_every_golden_file_is_read_by_a_test() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(VALUES)


@pytest.mark.parametrize("name", NEWEST)
def test_a_new_field_of_the_vocabulary_asks_for_a_new_version(name: str) -> None:
    """A reader of yesterday refuses fields that it does not know: a golden file must hold every one."""

    declared: set[str] = set()
    shown: set[str] = set()

    def walk(value: Any) -> None:
        if is_dataclass(value):
            for field in fields(value):
                inner, name = getattr(value, field.name), f"{type(value).__name__}.{field.name}"
                declared.add(name)
                if inner != field.default:
                    shown.add(name)
                walk(inner)
        elif isinstance(value, dict | tuple):
            for inner in value.values() if isinstance(value, dict) else value:
                walk(inner)

    walk(VALUES[name])
    beyond_the_grid, not_sent = "Life.p90_days", {"LatencyWindows.sound", "Reading.kernel_errors_shared"}
    assert declared - shown <= {beyond_the_grid, *not_sent}


def test_an_outlook_that_an_older_predrain_stored_is_read_with_what_it_did_not_know_left_out() -> None:
    stored = json.loads((GOLDEN / "outlook.v1.json").read_bytes())["body"]
    read = OUTLOOK_BODY.read(json.dumps(stored).encode())
    assert (read.rule_score, read.advice, read.clears, read.endurance) == (None, None, "", None)


readings = st.builds(
    Reading,
    device=st.text(st.characters(codec="utf-8"), min_size=1).map(DeviceId),
    host=st.just(HostName("h")),
    taken_at=st.datetimes(timezones=st.just(UTC)),
    received_at=st.datetimes(timezones=st.just(UTC)),
    seen=st.one_of(
        st.builds(Unreadable, st.datetimes(timezones=st.just(UTC)), st.text(st.characters(codec="utf-8"))),
        st.builds(
            Smart,
            st.sampled_from(Protocol),
            st.builds(
                Identity, model=st.none() | st.just("ST4000"), capacity_bytes=st.none() | st.integers()
            ),
            st.none() | st.booleans(),
            st.builds(Counters, pending=st.none() | st.integers(), bytes_read=st.none() | st.integers()),
            st.dictionaries(
                st.integers(0, 255), st.builds(Attribute, st.just("x"), st.integers()), max_size=5
            ),
            exit_bits=st.none() | st.lists(st.integers(0, 7), max_size=3).map(tuple),
        ),
    ),
)


@given(readings)
def test_a_reading_comes_back_as_it_was_sent(reading: Reading) -> None:
    raw = encode_envelope(reading, producer="h", sequence=0, sent_at=NOON)
    assert decode_envelope(raw, Reading).body == reading


@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_poison_with_a_sentence(raw: bytes) -> None:
    with pytest.raises(UndecodableRecord, match=r"\w+ .+") as poison:
        decode_envelope(raw, Reading)
    assert isinstance(poison.value, Refusal)


@given(st.data())
def test_a_damaged_envelope_is_read_or_poison_and_nothing_else(data: st.DataObject) -> None:
    raw = bytearray((GOLDEN / "reading.v1.json").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_envelope(bytes(raw[: data.draw(st.integers(1, len(raw)))]), Reading)
    except UndecodableRecord:
        return


def test_a_newer_version_is_poison_that_says_to_update() -> None:
    raw = _sent(ATA, version=6, body={"of": "tomorrow"}, signature="new in the header, too")
    with pytest.raises(
        UndecodableRecord, match=r"reading of version 6 and this predrain reads up to 5: update it"
    ):
        decode_envelope(raw, Reading)


@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_never_was_is_poison(version: int) -> None:
    with pytest.raises(UndecodableRecord, match="there never was"):
        decode_envelope(_sent(ATA, version=version), Reading)


def test_another_schema_is_poison_that_names_both() -> None:
    with pytest.raises(UndecodableRecord, match=r"holds a 'latency' where a 'reading' belongs"):
        decode_envelope(_sent(LATENCY), Reading)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"extra": 1}, "unknown field `extra`"),
        ({"sequence": -1}, "sequence"),
        ({"sequence": "7"}, "sequence"),
        ({"sent_at": "2026-03-01T12:00:00"}, "timezone"),
        ({"producer": ""}, "producer"),
    ],
)
def test_an_envelope_with_a_wrong_header_is_poison_that_names_the_field(
    changed: dict[str, Any], says: str
) -> None:
    with pytest.raises(UndecodableRecord, match=says):
        decode_envelope(_sent(ATA, **changed), Reading)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("smart", "counters", "pendin"), 3, "pendin"),
        (("smart", "counters", "pending"), "3", r"pending"),
        (("smart", "counters", "pending"), 3.5, r"pending"),
        (("smart", "power_on_hours"), True, "power_on_hours"),
        (("smart", "protocol"), "ide", "protocol"),
        (("smart", "attributes", "5", "worth"), 3, "worth"),
        (("smart", "attributes", "5", "raw"), True, "attributes"),
        (("smart", "attributes", "five"), {"name": "x", "raw": 1}, "attributes"),
        (("taken_at",), "2026-03-01T12:00:00", "taken_at"),
        (("unreadable",), {"since": "2026-03-01T12:00:00Z", "why": "both"}, "exactly one"),
        (("smart",), None, "exactly one"),
    ],
)
def test_a_body_with_an_unknown_or_ill_typed_field_is_poison_that_names_it(
    path: tuple[str, ...], value: Any, says: str
) -> None:
    body = json.loads(_sent(ATA))["body"]
    place = body
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(UndecodableRecord, match=says):
        decode_envelope(_sent(ATA, body=body), Reading)


def test_fields_that_an_older_writer_did_not_know_are_unknown_not_zero() -> None:
    body = json.loads(_sent(ATA))["body"]
    del body["smart"]["counters"]["pending"]
    seen = decode_envelope(_sent(ATA, body=body), Reading).body.seen
    assert isinstance(seen, Smart)
    assert seen.counters.pending is None


def test_times_of_any_offset_come_back_as_utc() -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    moved = replace(
        UNREADABLE,
        taken_at=NOON.astimezone(east),
        seen=Unreadable((NOON - timedelta(hours=2)).astimezone(east), "smartctl: no answer within 30 s"),
    )
    body = decode_envelope(
        encode_envelope(moved, producer="h", sequence=1, sent_at=NOON.astimezone(east)), Reading
    ).body
    assert body == UNREADABLE
    assert isinstance(body.seen, Unreadable)
    assert (body.taken_at.tzinfo, body.seen.since.tzinfo) == (UTC, UTC)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (replace(LATENCY, read_ms_p50=float("nan")), "read_ms_p50"),
        (replace(LATENCY, iops=float("inf")), "iops"),
        (replace(LATENCY, osd="17"), "osd"),
        (replace(ATA, taken_at=NOON.replace(tzinfo=None)), "timezone"),
        (replace(ATA, host="\ud800"), "surrogates"),
        (replace(ATA, seen=None), "NoneType"),
        (replace(OUTLOOK, p_fail_7d=1.5), "outside"),
        (replace(OUTLOOK, p_fail_14d=0.1), "falls with more days"),
        (replace(OUTLOOK, rule_score=1.01), "score is outside"),
        (replace(OUTLOOK, survival=SurvivalCurve([1.0, 0.5])), "2 points where the grid has 213"),
        (replace(OUTLOOK, survival=SurvivalCurve([1.0, 0.5, *([0.9] * (len(GRID_DAYS) - 2))])), "rises"),
        (replace(OUTLOOK, survival=SurvivalCurve([0.5] * len(GRID_DAYS))), "not from 1"),
        (replace(ATA, seen=Unreadable(NOON, "x" * LONGEST)), "longer than"),
    ],
)
def test_a_value_that_breaks_its_vocabulary_is_not_sent(broken: Any, says: str) -> None:
    with pytest.raises(InvalidValue, match=says):
        encode_envelope(broken, producer="h", sequence=1, sent_at=NOON)


def test_an_outlook_that_cannot_be_true_is_poison() -> None:
    body = {**json.loads(_sent(OUTLOOK))["body"], "p_fail_7d": 0.9}
    with pytest.raises(UndecodableRecord, match="falls with more days"):
        decode_envelope(_sent(OUTLOOK, body=body), Outlook)


def test_an_envelope_beyond_its_size_is_poison_before_it_is_parsed() -> None:
    with pytest.raises(UndecodableRecord, match="longer than the 1,048,576"):
        decode_envelope(b" " * (LONGEST + 1), Reading)


def test_a_dead_letter_holds_the_longest_record_and_says_when_it_was_cut() -> None:
    whole = DeadLetter.from_delivered(
        Topic.READINGS, Delivered(4, "k", b"\xff" * LONGEST), UndecodableRecord("no"), NOON
    )
    cut = DeadLetter.from_delivered(
        Topic.READINGS, Delivered(5, "k", b"\xff" * (LONGEST + 1)), UndecodableRecord("no"), NOON
    )
    assert (whole.whole, cut.whole) == (True, False)
    for letter in (whole, cut):
        assert (
            decode_envelope(encode_envelope(letter, producer="w", sequence=1, sent_at=NOON), DeadLetter).body
            == letter
        )

"""Input of broken or hostile senders: plausible input is accepted, and other input is refused with a sentence."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import HostName, OsdId
from predrain.data.latency_windows import LatencySummary
from predrain.data.log.log_port import Delivered, Topic
from predrain.data.reading import OsdDevice, Reading, Role, Smart
from predrain.data.refusal import Refusal
from predrain.data.wire import DeadLetter, accept_latency, accept_reading, decode_envelope, encode_envelope

GOLDEN = (Path(__file__).resolve().parents[1] / "golden" / "wire" / "reading.v2.json").read_bytes()
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOOD = accept_reading(decode_envelope(GOLDEN, Reading).body, NOON)
HUGE = 10**4_000
DEEP = 100_000
"""From Python 3.14 on the size of the stack ends a recursion, and no count of calls: this depth is decoded there, and
the decoding ends at the first field that is wrong."""


def changed(path: str, value: Any) -> bytes:
    """The golden envelope with the field at `path` (dots between) set to `value`."""
    document = json.loads(GOLDEN)
    *above, last = path.split(".")
    place = document
    for name in above:
        place = place[name]
    place[last] = value
    return json.dumps(document).encode()


def spelt(path: str, raw: str) -> bytes:
    """The golden envelope with the field at `path` written as `raw`, which need not be JSON."""
    return changed(path, "@").replace(b'"@"', raw.encode("latin-1"))


def taken(raw: bytes) -> Reading:
    return accept_reading(decode_envelope(raw, Reading).body, NOON)


PENDING, TAKEN = "body.smart.counters.pending", "body.taken_at"
REFUSED = {
    "nothing": (b"", "no envelope"),
    "zstd cut short": (b"\x28\xb5\x2f\xfd\x04\x58torn", "no envelope"),
    "a byte order mark": (b"\xef\xbb\xbf" + GOLDEN, "no envelope"),
    "UTF-16": (GOLDEN.decode().encode("utf-16"), "no envelope"),
    "invalid UTF-8": (spelt("body.host", '"ceph-\xff"'), "can't decode byte 0xff"),
    "half a character": (changed("body.smart.identity.model", "\ud800"), "malformed"),
    "a NUL in a name": (changed("body.device", "ST4000\x00"), "unprintable"),
    "a terminal's command in a name": (changed("body.host", "\x1b[2Jceph"), "unprintable"),
    "a line break in a name": (changed("body.device", "A\nB"), "unprintable"),
    "an empty name": (changed("body.device", ""), "empty"),
    "a name of a megabyte": (changed("body.device", "y" * 900_000), "longer than 256"),
    "a schema of a megabyte": (changed("schema", "y" * 900_000), "'reading' belongs"),
    "nesting in the header": (spelt("schema", "[" * DEEP + "]" * DEEP), "recursion|str"),
    "nesting beside it": (spelt("extra", "[" * DEEP + "]" * DEEP), "recursion|unknown field"),
    "nesting in a counter": (spelt(PENDING, "[" * DEEP + "]" * DEEP), "recursion|array"),
    "NaN": (spelt(PENDING, "NaN"), "malformed"),
    "Infinity": (spelt(PENDING, "-Infinity"), "malformed"),
    "1e400": (spelt(PENDING, "1e400"), "out of range"),
    "a count with a fraction": (spelt(PENDING, "2.5"), "got `float`"),
    "a count of five thousand digits": (spelt(PENDING, "1" + "0" * 5_000), "out of range"),
    "a negative count of four thousand digits": (changed(PENDING, -HUGE), "negative"),
    "a raw value of four thousand digits": (changed("body.smart.attributes.5.raw", HUGE), "4001 digits"),
    "a threshold below zero": (changed("body.smart.attributes.5.threshold", -1), "threshold -1"),
    "a capacity of four thousand digits": (
        changed("body.smart.identity.capacity_bytes", HUGE),
        "4001 digits",
    ),
    "an OSD below zero": (changed("body.seats", [{"osd": -1, "role": "data"}]), "osd.-1"),
    "an OSD of four thousand digits": (changed("body.seats", [{"osd": HUGE, "role": "db"}]), "is no OSD"),
    "fewer kernel errors than none": (changed("body.kernel_errors", -1), "no count of errors"),
    "the day after tomorrow": (changed("version", 99), "version 99 .* update it"),
    "a version of four thousand digits": (changed("version", HUGE), "update it"),
    "a naive time": (changed(TAKEN, "2026-03-01T11:00:00"), "timezone component"),
    "a day": (changed(TAKEN, "2026-03-01"), "RFC3339"),
    "seconds since 1970": (changed(TAKEN, 1_772_366_400), "got `int`"),
    "a leap second": (changed(TAKEN, "2016-12-31T23:59:60Z"), "RFC3339"),
    "a day that is not": (changed(TAKEN, "2026-02-30T12:00:00Z"), "RFC3339"),
    "an offset of a day": (changed(TAKEN, "2026-03-01T12:00:00+24:00"), "RFC3339"),
    "the year 9999": (changed(TAKEN, "9999-12-31T23:59:59Z"), "in the future"),
    "after the last year": (changed(TAKEN, "9999-12-31T23:59:59-14:00"), "end of the calendar"),
    "before the first year": (changed(TAKEN, "0001-01-01T00:00:00+14:00"), "end of the calendar"),
    "sent after the last year": (changed("sent_at", "9999-12-31T23:59:59-14:00"), "end of the calendar"),
    "unreadable since after the last year": (
        changed("body", {**json.loads(encode_envelope(GOOD, producer="h", sequence=0, sent_at=NOON))["body"],
                         "smart": None, "unreadable": {"since": "9999-12-31T23:59:59-01:00", "why": "x"}}),
        "end of the calendar",
    ),
    "a number as a key": (changed("body.smart.attributes", {"05": {"name": "x", "raw": 1}}), "attributes"),
    "a counter named by a megabyte": (changed(f"body.{'y' * 900_000}", 1), "unknown field"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_malformed_or_impossible_reading_is_refused_and_its_dead_letter_shows_the_reason(name: str) -> None:
    raw, says = REFUSED[name]
    with pytest.raises(Refusal, match=says) as refused:
        taken(raw)
    letter = DeadLetter.from_delivered(Topic.READINGS, Delivered(1, "k", raw), refused.value, NOON)
    read = decode_envelope(encode_envelope(letter, producer="w", sequence=1, sent_at=NOON), DeadLetter).body
    assert read == letter
    assert len(read.reason) < 1_100
    assert "_" not in read.reason.split(":")[0].split()[-1]  # no name of our own code


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        (changed(TAKEN, "2026-03-02T01:30:00+14:00"), {"taken_at": NOON - timedelta(minutes=30)}),
        (changed(TAKEN, "2026-02-28T23:00:00-12:00"), {"taken_at": NOON - timedelta(hours=1)}),
        (changed(TAKEN, "2026-03-01T11:00:00.123456789Z"), {"taken_at": NOON.replace(hour=11, microsecond=123457)}),
        (
            changed("body.seats", [{"osd": 2**31 - 2, "role": "db"}]),
            {"osd_devices": (OsdDevice(OsdId(2**31 - 2), Role.DB),)},
        ),
    ],
)  # fmt: skip
def test_an_unusual_but_valid_field_is_kept_as_the_sender_meant_it(raw: bytes, kept: dict[str, Any]) -> None:
    assert taken(raw) == replace(GOOD, **kept)


def test_a_count_that_no_drive_can_have_is_unknown_however_long_it_is() -> None:
    seen = taken(changed(PENDING, HUGE)).seen
    assert isinstance(seen, Smart)
    assert seen.counters.pending is None


def test_a_register_of_all_ones_is_taken_as_it_is() -> None:
    seen = taken(changed("body.smart.attributes.5.raw", 2**64 - 1)).seen
    assert isinstance(seen, Smart)
    assert seen.attributes[5].raw == 2**64 - 1


def test_of_two_equal_names_the_last_counts() -> None:
    raw = GOLDEN.replace(b'"device":', b'"device": "OTHER", "device":', 1)
    assert raw != GOLDEN
    assert taken(raw) == GOOD


@pytest.mark.slow
@given(
    st.text(st.characters(exclude_categories=()), max_size=20),
    st.integers(1, 200_000),
    st.binary(max_size=20),
    st.integers(1, 100_000),
    st.text(st.characters(exclude_categories=()), max_size=20),
)
def test_any_record_has_a_dead_letter_that_can_be_sent(
    key: str, times: int, value: bytes, more: int, why: str
) -> None:
    record = Delivered(3, key * times, value * more, 5)
    letter = DeadLetter.from_delivered(Topic.READINGS, record, why * times, NOON)
    assert (
        decode_envelope(encode_envelope(letter, producer="w", sequence=1, sent_at=NOON), DeadLetter).body
        == letter
    )


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=5),
    st.datetimes(timezones=st.timezones()).map(lambda at: at.isoformat()),
)


@pytest.mark.slow
@given(
    st.sampled_from(["body.taken_at", "body.received_at", "body.device", "body.seats", "body.smart", "version",
                     "body.kernel_errors", PENDING, "body.smart.attributes.5", "body.smart.exit_bits", "sent_at"]),
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner)),
)  # fmt: skip
def test_any_value_in_any_place_is_taken_or_refused_and_nothing_else(path: str, value: Any) -> None:
    raw = changed(path, value)
    try:
        reading = taken(raw)
    except Refusal:
        return
    assert taken(encode_envelope(reading, producer="h", sequence=0, sent_at=NOON)) == reading


def test_the_golden_reading_is_taken_so_that_each_refusal_has_one_reason() -> None:
    assert taken(GOLDEN) == GOOD


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"osd": OsdId(2**31 - 1)}, "is no OSD"),
        ({"osd": OsdId(HUGE)}, "is no OSD"),
        ({"window_seconds": 1e300}, "a day at most"),
        ({"operations": HUGE}, "operations .* too large"),
        ({"backfills_max": 2**63}, "backfills_max .* too large"),
        ({"device_await_ms": 1e300}, "device_await_ms .* too large"),
    ],
)
def test_a_summary_that_no_database_could_hold_is_refused(changes: dict[str, Any], says: str) -> None:
    summary = LatencySummary(OsdId(3), HostName("ceph-1"), NOON - timedelta(minutes=1), 60.0, 100)
    assert accept_latency(summary, NOON) is summary
    with pytest.raises(Refusal, match=says):
        accept_latency(replace(summary, **changes), NOON)

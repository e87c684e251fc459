"""The border: what is refused, with its number, and what is kept without the number that cannot be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predrain.data.ids import DeviceId, HostName, OsdId
from predrain.data.latency_windows import LatencySummary
from predrain.data.outside_text import ATTRIBUTE_NAME, FIRMWARE, MODEL, clean_identifier, clean_text
from predrain.data.reading import Attribute, Counters, Identity, Protocol, Reading, Smart, Unreadable
from predrain.data.wire import NotAccepted, accept_latency, accept_reading, find_implausible_numbers

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SMART = Smart(
    Protocol.NVME,
    Identity(model="INTEL SSDPE2KX040T8", capacity_bytes=4_000_787_030_016, rotation_rpm=0),
    True,
    Counters(media_errors=3, available_spare_pct=100, percentage_used=4, bytes_written=10**15),
    {5: Attribute("Reallocated_Sector_Ct", 8, 100)},
    power_on_hours=31_000,
    temperature_c=-3,
)
READING = Reading(DeviceId("D_1"), HostName("ceph-1"), NOW, NOW, SMART)
LATENCY = LatencySummary(
    OsdId(3), HostName("ceph-1"), NOW - timedelta(seconds=15), 15.0, 100, read_ms_p99=4.0
)


def _with(**changed: Any) -> Reading:
    return replace(READING, seen=replace(SMART, **changed))


def test_a_good_reading_is_kept_as_it_is() -> None:
    assert accept_reading(READING, NOW) is READING
    assert find_implausible_numbers(READING) == ()


_TEXTS = st.text(st.sampled_from("a |\x1b\u200b\xfc\t"), max_size=6) | st.sampled_from(["x" * 65, "x" * 257])


@given(model=_TEXTS, firmware=_TEXTS, name=_TEXTS)
def test_the_texts_of_a_reading_are_cleaned_each_by_itself(model: str, firmware: str, name: str) -> None:
    identity = replace(SMART.identity, model=model, firmware=firmware)
    sent = _with(identity=identity, attributes={5: Attribute(name, 8, 100)})
    seen = accept_reading(sent, NOW).seen
    assert isinstance(seen, Smart)
    assert seen.identity.model == (model and (clean_identifier(model, MODEL.limit) or None))
    assert seen.identity.firmware == (firmware and (clean_identifier(firmware, FIRMWARE.limit) or None))
    assert seen.attributes[5].name == clean_text(name, ATTRIBUTE_NAME.limit)


@pytest.mark.parametrize("number", [190, 194, 231])
def test_a_disk_in_the_frost_is_kept_with_its_temperatures(number: int) -> None:
    frozen = _with(attributes={number: Attribute("Airflow_Temperature_Cel", -3, raw_packed=0xFD)})
    assert accept_reading(frozen, NOW) is frozen


def test_a_time_ahead_of_ours_is_taken_in_at_the_time_of_receipt_and_keeps_its_order() -> None:
    ahead = [
        accept_reading(replace(READING, taken_at=NOW + timedelta(seconds=by)), NOW)
        for by in (0, 1, 60, 280, 300)
    ]
    times = [reading.taken_at for reading in ahead]
    assert times[0] == times[-1] == NOW
    assert sorted(times[1:]) == times[1:]
    assert all(NOW - timedelta(milliseconds=1) < at <= NOW for at in times)
    unread = replace(READING, seen=Unreadable(NOW + timedelta(minutes=1), "no answer"))
    assert accept_reading(unread, NOW).seen == Unreadable(NOW, "no answer")


def test_a_clock_may_run_five_minutes_ahead_and_no_more() -> None:
    accept_reading(replace(READING, taken_at=NOW + timedelta(minutes=5)), NOW)
    with pytest.raises(
        NotAccepted, match=r"taken_at .* from ceph-1 is 301 s in the future: set that host's clock"
    ):
        accept_reading(replace(READING, taken_at=NOW + timedelta(seconds=301)), NOW)


@pytest.mark.parametrize(
    ("reading", "says"),
    [
        (replace(READING, taken_at=datetime(1970, 1, 1, tzinfo=UTC)), "before 2000"),
        (replace(READING, taken_at=NOW.replace(tzinfo=None)), "no time zone"),
        (
            replace(READING, seen=Unreadable(NOW + timedelta(days=1), "no answer")),
            "unreadable since .* future",
        ),
        (_with(counters=Counters(pending=-1)), r"pending -1 of D_1 on ceph-1 is negative"),
        (_with(power_on_hours=-5), "power_on_hours -5"),
        (_with(attributes={187: Attribute("x", -2)}), "attribute 187 raw -2"),
        (_with(attributes={300: Attribute("x", 2)}), "attribute 300"),
        (_with(identity=Identity(capacity_bytes=-512)), "capacity_bytes -512"),
        (replace(READING, device=DeviceId("")), "device name ''"),
        (replace(READING, host=HostName("a\nb")), "host name"),
        (replace(READING, host=HostName("h" * 300)), "longer than 256"),
    ],
)
def test_a_reading_that_only_a_broken_sender_makes_is_refused_with_its_number(
    reading: Reading, says: str
) -> None:
    with pytest.raises(NotAccepted, match=says):
        accept_reading(reading, NOW)


@pytest.mark.parametrize(
    ("field", "number"),
    [
        ("power_on_hours", 5 * 10**15),
        ("media_errors", 4_294_967_295),
        ("command_timeouts", 2**48 - 1),
        ("temperature_c", 2**31),
        ("temperature_c", -128),
        ("temperature_limit_c", 0),
        ("temperature_critical_c", 2**31),
        ("available_spare_pct", 101),
        ("bytes_read", 2**70),
    ],
)
def test_a_number_that_no_drive_can_have_is_unknown_and_the_rest_is_kept(field: str, number: int) -> None:
    own = hasattr(SMART, field)
    kept = replace(SMART, passed=False)
    reading = replace(
        READING,
        seen=replace(kept, **{field: number})
        if own
        else replace(kept, counters=replace(kept.counters, **{field: number})),
    )
    expected = (
        replace(kept, **{field: None})
        if own
        else replace(kept, counters=replace(kept.counters, **{field: None}))
    )
    assert accept_reading(reading, NOW) == replace(READING, seen=expected)
    (doubt,) = find_implausible_numbers(reading)
    assert (doubt.field, doubt.number) == (field, number)
    assert f"{field} {number:,} is outside" in str(doubt)


def test_the_greatest_believable_counts_stay() -> None:
    reading = _with(counters=Counters(media_errors=2**32 - 2, percentage_used=255), power_on_hours=350_400)
    assert accept_reading(reading, NOW) is reading


def test_an_unreadable_drive_is_evidence_and_is_kept() -> None:
    reading = replace(READING, seen=Unreadable(NOW - timedelta(hours=1), "no answer within 30 s"))
    assert accept_reading(reading, NOW) is reading
    assert find_implausible_numbers(reading) == ()


@pytest.mark.slow
@given(st.builds(Counters, *[st.none() | st.integers(0, 2**72)] * 17), st.none() | st.integers(0, 2**72))
def test_an_accepted_reading_is_accepted_again_unchanged(counters: Counters, hours: int | None) -> None:
    once = accept_reading(_with(counters=counters, power_on_hours=hours), NOW)
    assert accept_reading(once, NOW) is once
    assert find_implausible_numbers(once) == ()


def test_a_good_summary_is_kept_as_it_is() -> None:
    assert accept_latency(LATENCY, NOW) is LATENCY


@pytest.mark.parametrize(
    ("summary", "says"),
    [
        (replace(LATENCY, window_start=NOW + timedelta(hours=1)), "3,600 s in the future"),
        (replace(LATENCY, osd=OsdId(-1)), "osd.-1"),
        (replace(LATENCY, window_seconds=0.0), "window_seconds 0"),
        (replace(LATENCY, window_seconds=float("nan")), "window_seconds nan"),
        (replace(LATENCY, operations=-1), "operations -1"),
        (replace(LATENCY, read_ms_p99=-0.5), "read_ms_p99 -0.5 of osd.3 on ceph-1"),
        (replace(LATENCY, queue=float("nan")), "queue nan"),
        (replace(LATENCY, host=HostName("")), "host name"),
    ],
)
def test_a_summary_that_cannot_be_is_refused_with_its_number(summary: LatencySummary, says: str) -> None:
    with pytest.raises(NotAccepted, match=says):
        accept_latency(summary, NOW)

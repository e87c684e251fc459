"""Every symptom is judged, on a disk of any maker, by the rules as well as by the forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Advice, Outlook, Status
from predrain.data.reading import Attribute, Counters, Identity, Logs, Protocol, Reading, Smart, Unreadable
from predrain.features import (
    DriveState,
    compute_state_vector,
    observe_reading,
    pack_drive_state,
    replay_readings,
    unpack_drive_state,
)
from predrain.features.drive_state import values_of
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.outlooks import build_outlooks

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
UNSEEN, KNOWN = "ACME DH18000", "ST4000DM000-1F2168"
NUMBER = {
    "reallocated": 5,
    "reported_uncorrectable": 187,
    "command_timeouts": 188,
    "pending": 197,
    "offline_uncorrectable": 198,
    "crc_errors": 199,
}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load(threads=1)


def disk(model: str = UNSEEN, logs: Logs | None = None, **counts: int) -> Smart:
    """A SATA hard disk with these counts; all others that it reports are 0."""
    told = dict.fromkeys(NUMBER, 0) | counts
    rows = {NUMBER[name]: Attribute(name, value) for name, value in told.items() if name in NUMBER}
    identity = Identity(model=model, serial="1", rotation_rpm=7200)
    return Smart(Protocol.ATA, identity, True, Counters(**told), rows, 9_000, 30, logs=logs)


def sas(**counts: int) -> Smart:
    told: dict[str, Any] = {"grown_defects": 0, "uncorrected_errors": 0, "pending": 0} | counts
    return Smart(Protocol.SCSI, Identity(model="ACME S", rotation_rpm=7200), True, Counters(**told))


def nvme(**counts: int) -> Smart:
    return Smart(Protocol.NVME, Identity(model="ACME N", rotation_rpm=0), True, Counters(**counts))


def read_daily(seen: Smart, day: int) -> Reading:
    at = NOON + timedelta(days=day)
    return Reading(DeviceId("D_1"), HostName("h"), at, at, seen)


def watch(
    bundle: Bundle,
    seen: Sequence[Smart | Unreadable],
    hours: float = 24,
    errors: Sequence[int] = (),
    *,
    shared: bool = False,
) -> Outlook:
    """The outlook after readings so many hours apart, each judged as it comes. errors: of the kernel, the last ones."""
    state: DriveState | None = None
    before: dict[DeviceId, Outlook] = {}
    logged = [0] * (len(seen) - len(errors)) + list(errors)
    for place, (what, many) in enumerate(zip(seen, logged, strict=True)):
        at = NOON + timedelta(hours=hours * place)
        state = observe_reading(
            state,
            Reading(DeviceId("D_1"), HostName("h"), at, at, what, (), many, shared and many > 0),
        )
        (outlook,) = build_outlooks(bundle, [state], at, before)
        before = {outlook.device: outlook}
    return before[DeviceId("D_1")]


def test_a_disk_of_an_unseen_maker_whose_sectors_go_is_bad(bundle: Bundle) -> None:
    days = [disk(pending=64 * day, reallocated=1560 * day) for day in range(14)]
    outlook = watch(bundle, days)
    assert (outlook.status, outlook.advice) == (Status.BAD, Advice.DRAIN_NOW)
    assert (outlook.p_fail_30d or 0) > 0.05
    assert outlook.readings >= 3


def test_the_first_reading_of_a_disk_that_stands_among_the_worst_of_its_kind_is_a_warning(
    bundle: Bundle,
) -> None:
    outlook = watch(bundle, [disk(KNOWN, pending=60, reported_uncorrectable=37)])
    assert (outlook.status, outlook.advice) == (Status.WARNING, Advice.SELF_TEST)
    assert {reason.code for reason in outlook.reasons} == {"pending-old", "uncorrectable-old"}


def test_one_reading_bears_out_no_more_than_one_reading(bundle: Bundle) -> None:
    worst = disk(pending=60_000, reallocated=60_000, reported_uncorrectable=60_000, end_to_end_errors=9)
    outlook = watch(bundle, [worst])
    assert (outlook.readings, outlook.span_hours, outlook.hard) == (1, 0.0, False)


def test_a_few_old_sectors_mean_the_same_on_a_disk_of_an_unseen_maker(
    bundle: Bundle,
) -> None:
    outlook, known = (watch(bundle, [disk(model, pending=2)] * 9) for model in (UNSEEN, KNOWN))
    assert outlook.status is known.status is Status.GOOD
    assert [reason.code for reason in outlook.reasons] == ["pending-old"]
    assert "none new in the" in outlook.reasons[0].sentence
    assert outlook.p_fail_30d == pytest.approx(known.p_fail_30d, rel=0.5)


def test_a_disk_of_an_unseen_maker_that_shows_nothing_is_good_and_its_rate_uncertain(
    bundle: Bundle,
) -> None:
    outlook = watch(bundle, [disk()] * 9)
    assert (outlook.status, outlook.advice) == (Status.GOOD, Advice.NOTHING)
    assert "several times too high or too low" in outlook.reasons[-1].sentence


def test_the_rules_make_a_known_disk_a_warning_and_leave_bad_to_the_forecast(bundle: Bundle) -> None:
    old = watch(bundle, [disk(KNOWN, reallocated=2000)] * 9)
    assert (old.status, old.advice) == (Status.WARNING, Advice.SELF_TEST)
    rising = [disk(KNOWN)] * 9 + [disk(KNOWN, reallocated=300)]
    alone = watch(bundle, rising)
    assert alone.status is not Status.GOOD
    if alone.status is Status.BAD:
        assert alone.source.startswith("model:")


@pytest.mark.parametrize("model", [UNSEEN, KNOWN])
@pytest.mark.parametrize("name", NUMBER)
def test_errors_that_rise_are_never_nothing_to_do(bundle: Bundle, model: str, name: str) -> None:
    outlook = watch(bundle, [disk(model)] * 9 + [disk(model, **{name: 1})])
    assert outlook.advice not in (Advice.NOTHING, None)


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        ([sas(uncorrected_errors=536, grown_defects=260)], Status.WARNING),
        ([sas(pending=100 * day) for day in range(14)], Status.BAD),
        ([nvme(media_errors=7)], Status.WARNING),
    ],
)
def test_a_drive_of_a_kind_that_was_never_learned_from_is_judged_by_its_first_reading_and_by_its_rises(
    bundle: Bundle, seen: Sequence[Smart], status: Status
) -> None:
    outlook = watch(bundle, seen)
    assert outlook.status is status
    assert outlook.advice is not Advice.NOTHING


def as_sata(day: int) -> Smart:
    """A SATA disk with the counters that SAS disks have, those of `as_sas` under their SATA ids."""
    counts = {5: 40 * day, 187: 2 * day, 197: 16 * day}
    rows = {n: Attribute(str(n), count) for n, count in counts.items()}
    return Smart(Protocol.ATA, Identity(model=UNSEEN, rotation_rpm=7200), True, Counters(), rows, 9_000, 30)


def as_sas(day: int, rotation_rpm: int | None = 7200) -> Smart:
    counters = Counters(grown_defects=40 * day, uncorrected_errors=2 * day, pending=16 * day)
    identity = Identity(model=UNSEEN, rotation_rpm=rotation_rpm)
    return Smart(Protocol.SCSI, identity, True, counters, {}, 9_000, 30)


@pytest.mark.parametrize("days", [range(1), range(1, 2), range(9)], ids=["quiet", "first reading", "rising"])
def test_counts_of_a_sas_disk_mean_what_the_same_counts_of_a_sata_disk_mean(
    bundle: Bundle, days: range
) -> None:
    states = [replay_readings(read_daily(kind(day), day) for day in days) for kind in (as_sata, as_sas)]
    sata, sas_disk = (compute_state_vector(state, state.day) for state in states if state is not None)
    np.testing.assert_array_equal(sata, sas_disk)
    chances = {
        (one.p_fail_7d, one.p_fail_14d, one.p_fail_30d, one.life)
        for one in (watch(bundle, [kind(day) for day in days]) for kind in (as_sata, as_sas))
        if one.p_fail_30d is not None
    }
    assert len(chances) == 1


def test_errors_that_only_the_device_statistics_tell_are_judged_as_the_attributes_are(bundle: Bundle) -> None:
    """Hard disks of HGST, Toshiba and WD have no attribute 187."""

    def told(day: int, *, by_attribute: bool) -> Smart:
        count = 4 * day
        rows = {5: Attribute("5", 0), 197: Attribute("197", 0)}
        rows |= {187: Attribute("187", count)} if by_attribute else {}
        counters = Counters(reallocated=0, pending=0, reported_uncorrectable=count)
        return Smart(
            Protocol.ATA, Identity(model="HUH721212ALN604", rotation_rpm=7200), True, counters, rows, 9_000
        )

    states = [
        replay_readings(read_daily(told(day, by_attribute=by), day) for day in range(9))
        for by in (True, False)
    ]
    by_attribute, by_statistic = (
        compute_state_vector(state, state.day) for state in states if state is not None
    )
    np.testing.assert_array_equal(by_attribute, by_statistic)
    outlook = watch(bundle, [told(day, by_attribute=False) for day in range(9)])
    assert outlook.status is not Status.GOOD
    assert outlook.reasons[0].code == "uncorrectable-rose"


def test_an_attribute_stands_before_the_same_count_of_the_device_statistics() -> None:
    rows = {187: Attribute("187", 2)}
    seen = Smart(
        Protocol.ATA, Identity(model=KNOWN, rotation_rpm=7200), True, Counters(reported_uncorrectable=9), rows
    )
    assert values_of(seen)[187] == 2.0


def test_the_reasons_of_a_sas_disk_speak_of_its_own_counters_and_say_what_they_are_weighed_as(
    bundle: Bundle,
) -> None:
    outlook = watch(bundle, [sas()] * 8 + [sas(grown_defects=3)])
    told = {reason.code: reason for reason in outlook.reasons}
    assert outlook.source.startswith("model:")
    assert told["grown-defects-rose"].sentence.startswith("First grown defects on 09 Nov, 3 by now. ")
    assert "of SATA disks with such a rise die within 30 days." in told["grown-defects-rose"].sentence
    assert told["grown-defects-rose"].counter == "grown_defects"
    assert told["as-sata"].sentence.startswith("No SAS disk was learned from")
    assert "reallocated-rose" not in told


@pytest.mark.parametrize("rotation_rpm", [0, None], ids=["an SSD", "rotation is not told"])
def test_a_sas_drive_that_may_be_an_ssd_is_judged_by_rules_alone(
    bundle: Bundle, rotation_rpm: int | None
) -> None:
    assert watch(bundle, [as_sas(0, rotation_rpm)]).source == "rule:no-sign"


def test_a_sas_disk_that_reports_no_error_count_is_judged_by_rules_alone(bundle: Bundle) -> None:
    silent = Smart(Protocol.SCSI, Identity(model=UNSEEN, rotation_rpm=7200), True, Counters())
    assert watch(bundle, [silent]).source == "rule:no-sign"


@pytest.mark.parametrize(
    "seen",
    [disk(), disk(KNOWN), sas(), nvme(media_errors=0)],
    ids=["hard disk of an unseen maker", "known hard disk", "SAS", "NVMe"],
)
def test_io_errors_of_the_kernel_warn_of_any_drive_and_never_call_it_bad_alone(
    bundle: Bundle, seen: Smart
) -> None:
    outlook = watch(bundle, [seen] * 26, hours=1, errors=[400] * 25)
    assert (outlook.status, outlook.advice) == (Status.WARNING, Advice.SELF_TEST)
    told = "The kernel logged 9,600 I/O errors of it in the last 24 hours, 400 of them in this hour."
    assert told in [reason.sentence for reason in outlook.reasons]


def test_io_errors_beside_sectors_that_go_are_bad_even_where_the_forecast_is_known(bundle: Bundle) -> None:
    seen = [disk(KNOWN)] * 9 + [disk(KNOWN, pending=16)]
    assert watch(bundle, seen, errors=[900]).status is Status.BAD


def test_io_errors_are_over_a_week_after_the_last(bundle: Bundle) -> None:
    day = watch(bundle, [sas()] * 50, hours=1, errors=[400] + [0] * 30)
    assert (day.status, day.reasons[0].code) == (Status.GOOD, "io-errors-old")
    assert day.advice is not Advice.NOTHING
    week = watch(bundle, [sas()] * 20, errors=[400] + [0] * 8)
    assert (week.status, week.reasons[0].code) == (Status.GOOD, "no-symptom")


def test_the_sentence_on_quiet_counters_does_not_contradict_io_errors(bundle: Bundle) -> None:
    told = [one.sentence for one in watch(bundle, [sas()] * 50, hours=1, errors=[400] + [0] * 30).reasons]
    assert told[1].startswith("Its counters show no symptom. ")
    assert not any(sentence.startswith("No symptom") for sentence in told)


def test_io_errors_that_come_to_many_disks_of_a_host_point_at_the_host(bundle: Bundle) -> None:
    outlook = watch(bundle, [sas()] * 9, errors=[400] * 3, shared=True)
    assert (outlook.status, outlook.advice) == (Status.WARNING, Advice.CHECK_CABLE)
    assert outlook.reasons[0].code == "io-errors-shared"


def test_io_errors_with_new_crc_errors_point_at_the_cable(bundle: Bundle) -> None:
    outlook = watch(bundle, [disk()] * 8 + [disk(crc_errors=40)], errors=[400])
    assert (outlook.status, outlook.advice) == (Status.WARNING, Advice.CHECK_CABLE)


def test_io_errors_of_a_disk_that_did_not_answer_once_are_told(bundle: Bundle) -> None:
    outlook = watch(bundle, [sas(), Unreadable(NOON, "no answer")], errors=[400])
    assert outlook.reasons[0].code == "io-errors"


@pytest.mark.parametrize("model", [UNSEEN, KNOWN])
def test_a_self_test_that_failed_is_a_warning_until_a_long_one_passes(bundle: Bundle, model: str) -> None:
    failed, passed = disk(model, Logs(failed_self_tests=1)), disk(model, Logs(failed_self_tests=0))
    outlook = watch(bundle, [failed] * 5)
    assert (outlook.status, outlook.advice) == (Status.WARNING, Advice.REPLACE_SOON)
    assert "self-test-failed" in [reason.code for reason in outlook.reasons]
    assert watch(bundle, [failed] * 5 + [passed]).status is not Status.WARNING


def test_a_drive_state_remembers_a_week_of_io_errors_also_after_packing() -> None:
    state: DriveState | None = None
    for hour in range(400):
        at = NOON + timedelta(hours=hour)
        state = observe_reading(
            state, Reading(DeviceId("D"), HostName("h"), at, at, sas(), (), 400, hour % 2 == 0)
        )
    assert state is not None
    assert len(state.io_errors) == 7 * 24
    assert sum(one.shared for one in state.io_errors) == 400 * 84
    again = unpack_drive_state(pack_drive_state(state))
    assert again is not None
    assert again.io_errors == state.io_errors
    assert len(pack_drive_state(state)) < 10_000


def test_a_state_that_was_packed_before_io_errors_were_remembered_is_read(bundle: Bundle) -> None:
    state = observe_reading(None, Reading(DeviceId("D"), HostName("h"), NOON, NOON, sas()))
    import msgspec

    older = msgspec.msgpack.encode(msgspec.msgpack.decode(pack_drive_state(state))[:-1])
    again = unpack_drive_state(older)
    assert again is not None
    assert again.io_errors == ()
    assert build_outlooks(bundle, [again], NOON) == build_outlooks(bundle, [replace(state)], NOON)

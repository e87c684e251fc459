"""Real drives with symptoms, at their first reading: no outlook of theirs advises that there is nothing to do."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Advice, Outlook, Status
from predrain.data.reading import Reading, Smart
from predrain.data.smart import decode_smartctl_output
from predrain.data.smart.smartctl_document import Undecodable
from predrain.features.drive_state import observe_reading
from predrain.models.forecast.bundle import Bundle
from predrain.models.forecast.outlooks import build_outlooks

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRIVES = {
    one["why"]: json.dumps(one["document"]).encode()
    for one in map(json.loads, (Path(__file__).parent / "sick_drives.jsonl").read_text().splitlines())
}


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return Bundle.load(threads=1)


def judge_first_reading(bundle: Bundle, seen: Smart) -> Outlook:
    state = observe_reading(None, Reading(DeviceId("D_1"), HostName("h"), NOON, NOON, seen))
    (outlook,) = build_outlooks(bundle, [state], NOON)
    return outlook


@pytest.mark.parametrize(
    ("why", "status", "codes"),
    [
        (
            "SAS: 536 uncorrected errors, 260 grown defects",
            Status.WARNING,
            ["uncorrected-errors-old", "grown-defects-old", "as-sata"],
        ),
        ("SAS: 56 grown defects", Status.GOOD, ["grown-defects-old", "as-sata"]),
        ("NVMe: 7 media errors", Status.WARNING, ["media-errors-old"]),
        ("hard disk: 304 reallocated sectors", Status.GOOD, ["reallocated-old"]),
        (
            "hard disk: FAILED, a failed self-test, 1975 reallocated sectors",
            Status.BAD,
            ["verdict-failed", "self-test-failed", "reallocated-old", "pending-old"],
        ),
    ],
)
def test_a_real_drive_with_symptoms_is_judged_at_its_first_reading(
    bundle: Bundle, why: str, status: Status, codes: list[str]
) -> None:
    outlook = judge_first_reading(bundle, decode_smartctl_output(DRIVES[why], NOON).smart)
    assert (outlook.status, [reason.code for reason in outlook.reasons]) == (status, codes)
    assert outlook.advice not in (Advice.NOTHING, None)


@pytest.mark.slow
def test_no_real_drive_that_says_it_is_failing_is_told_that_there_is_nothing_to_do(
    bundle: Bundle, shared_data: Path
) -> None:
    """By limits that do not come from the rules: a verdict, a failed self-test, data that could not be read."""
    failing = 0
    for path in sorted((shared_data / "smartctl").glob("*/*.*")):
        try:
            seen = decode_smartctl_output(path.read_bytes(), NOON).smart
        except Undecodable:
            continue
        counters, logs = seen.counters, seen.logs
        media = counters.media_errors or 0
        if not (
            seen.passed is False
            or (logs is not None and logs.failed_self_tests)
            or 0 < media < 2**32 - 1
            or counters.uncorrected_errors
            or (counters.pending or 0) + (counters.offline_uncorrectable or 0) >= 50
        ):
            continue
        failing += 1
        outlook = judge_first_reading(bundle, seen)
        assert outlook.status in (Status.WARNING, Status.BAD), path.name
        assert outlook.advice not in (Advice.NOTHING, None), path.name
    assert failing >= 20

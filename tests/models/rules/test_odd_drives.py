"""Real drives that mislead naive rules, judged as the decoder reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from predrain.data.ids import DeviceId, HostName
from predrain.data.outlook import Advice, Status
from predrain.data.reading import Reading
from predrain.data.smart import decode_smartctl_output
from predrain.data.wire import accept_reading
from predrain.features.drive_state import observe_reading
from predrain.models.forecast.rules import RuleVerdict, judge_by_rules

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DRIVES: dict[str, dict[str, Any]] = {
    one["why"]: one["document"]
    for one in map(json.loads, (Path(__file__).parent / "odd_drives.jsonl").read_text().splitlines())
}


def verdict(document: dict[str, Any]) -> RuleVerdict | None:
    """Decoded, accepted and judged as a live drive is."""
    seen = decode_smartctl_output(json.dumps(document).encode(), NOON).smart
    return judge_by_rules(
        observe_reading(None, accept_reading(Reading(DeviceId("D_1"), HostName("h"), NOON, NOON, seen), NOON))
    )


@pytest.mark.parametrize(
    ("why", "status", "advice"),
    [
        ("wear-only critical warning", Status.WARNING, Advice.SWAP_WORN),
        ("temperature bit only", Status.WARNING, Advice.COOL),
        ("temperature bit and one old media error", Status.WARNING, Advice.COOL),
        ("spare bit and read-only bit", Status.BAD, Advice.DRAIN_NOW),
        ("read-only and worn", Status.BAD, Advice.DRAIN_NOW),
        ("reliability bit with low wear", Status.BAD, Advice.DRAIN_NOW),
        ("threshold 100 with spare 100", Status.GOOD, Advice.NOTHING),
        ("percentage used 255 without a warning", Status.WARNING, Advice.SWAP_WORN),
        ("NVMe behind SCSI translation", Status.GOOD, Advice.NOTHING),
        ("209,396 error-log entries", Status.GOOD, Advice.NOTHING),
        ("power-on hours 900,446", Status.GOOD, Advice.NOTHING),
        ("power-on hours 5,124,018,153,285,616", Status.WARNING, Advice.REPLACE_SOON),  # 1 media error
        ("media errors 4294967296", Status.GOOD, Advice.NOTHING),
        ("70,662 media errors without a warning", Status.WARNING, Advice.REPLACE_SOON),
        ("231 inverted: VALUE small, RAW = life left", Status.GOOD, Advice.NOTHING),
        ("233 normalised 0, 3 % used by device statistics", Status.GOOD, Advice.NOTHING),
        ("capacitor FAILING_NOW, PASSED", Status.GOOD, Advice.NOTHING),
        ("FAILED without any failing attribute", Status.BAD, Advice.DRAIN_NOW),
        (">= 200 % used, PASSED", Status.WARNING, Advice.SWAP_WORN),
    ],
)
def test_a_drive_that_misleads_naive_rules_is_judged_by_what_it_means(
    why: str, status: Status, advice: Advice
) -> None:
    said = verdict(DRIVES[why])
    assert said is not None
    assert (said.status, said.advice) == (status, advice)


def test_a_hard_disk_that_was_once_too_hot_is_left_to_the_model() -> None:
    assert verdict(DRIVES["hard disk: temperature only, failed in the past"]) is None


def test_every_odd_drive_is_judged_by_a_test() -> None:
    assert len(DRIVES) == 20


def test_wear_behind_a_scsi_translation_is_still_wear() -> None:
    said = verdict(
        {**DRIVES["NVMe behind SCSI translation"], "scsi_percentage_used_endurance_indicator": 104}
    )
    assert said is not None
    assert (said.status, said.rule) == (Status.WARNING, "wear")


@pytest.mark.parametrize("count", [2**32 - 1, 2**32, 2**64 - 1])
def test_media_errors_of_all_ones_are_no_count(count: int) -> None:
    document = json.loads(json.dumps(DRIVES["209,396 error-log entries"]))
    document["nvme_smart_health_information_log"]["media_errors"] = count
    said = verdict(document)
    assert said is not None
    assert said.rule == "no-sign"

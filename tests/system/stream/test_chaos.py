"""The short form of `make chaos`: everything is killed at least once, and nothing is lost."""

from __future__ import annotations

import os

import pytest

from tests.chaos.schedule import RATES, WHOLE_SECONDS, Kind, schedule
from tests.system.kafka import jars


def test_a_seed_and_a_length_say_what_goes_wrong_and_when() -> None:
    assert schedule(3, 75) == schedule(3, 75)
    assert schedule(3, 75) != schedule(4, 75)


@pytest.mark.parametrize("seconds", [WHOLE_SECONDS, 3 * WHOLE_SECONDS, 60.0])
def test_ten_minutes_hold_every_blow_and_a_minute_one_of_each_kind_at_least(seconds: float) -> None:
    blows = schedule(3, seconds)
    for kind, rate in RATES.items():
        count = sum(blow.kind is kind for blow in blows)
        assert count == rate.times if seconds >= WHOLE_SECONDS else 1 <= count <= rate.times
    assert all(0 < blow.at <= blow.at + blow.seconds < seconds for blow in blows)


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_accepted_is_kept_once_though_everything_was_killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    if why := jars.missing():
        pytest.fail(why) if os.environ.get("CI") == "true" else pytest.skip(why)
    from tests.chaos.__main__ import chaos

    report = chaos(seed=3, seconds=75, folder=tmp_path_factory.mktemp("chaos"))
    assert report.verdict.faults == [], report.plain()
    assert {kind for kind, _, _ in report.dealt.blows} >= set(Kind) - {Kind.DISK_FULL}
    counts = report.verdict.counts
    assert counts["readings kept"] == counts["readings accepted"] > report.drives
    assert counts["dead letters"] == counts["poison sent"] > 0
